"""The clock that is shown where one rank has more cycles than the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit

CLOCK = 3e9


@pytest.mark.parametrize("loads", [False, True])
def test_means_of_cycles_and_times_of_slowest_ranks_have_the_clock_of_each_rank(tmp_path: Path, loads: bool) -> None:
    """Cycles over time is the clock on every rank; the mean's cycles over the slowest rank's time are less."""
    experiment = Experiment.create(tmp_path / "e", "solver", ["ranks"])
    for ranks in (2, 4, 8, 16, 32):
        share = np.r_[1.3, np.full(ranks - 1, 1 - 0.3 / (ranks - 1))]
        work = 8e10 / ranks * share
        table = pd.DataFrame({"kernel": "k", "rank": np.arange(ranks), "instructions": work, "cycles": 0.75 * work})
        table = table.assign(stall_cycles=0.25 * work, time=table["cycles"] / CLOCK)
        if loads:
            table = table.assign(
                loads_l1=0.2 * work, loads_l2=0.01 * work, loads_llc=1e-3 * work, loads_mem=1e-4 * work
            )
        experiment.add(Run({"ranks": ranks}), table)
    model = fit(experiment, platform="generic")
    points = np.array([[32.0], [128.0]])
    terms = model.breakdown(points).terms
    assert terms.kernels
    assert terms.clock.value[0] == pytest.approx([CLOCK, CLOCK], rel=0.02)
    assert model.breakdown(points).total.value[0] == pytest.approx(1.3 * 8e10 * 0.75 / CLOCK / points[:, 0], rel=0.03)
