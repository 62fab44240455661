"""Bandwidth is learnt from counted traffic alone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.experiment import Experiment, Run
from ranksight.model.sharing.domains import Domains
from ranksight.model.sharing.fitting import fit_sharing
from ranksight.platforms import load


@pytest.mark.parametrize(("source", "learnt"), [("measured", True), ("simulated (callgrind)", False)])
def test_simulated_traffic_has_no_rate(tmp_path: Path, source: str, learnt: bool) -> None:
    experiment = Experiment.create(tmp_path / "e", "made up", ("ranks",))
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame(
            {
                "kernel": "sweep",
                "rank": range(ranks),
                "time": 1 / ranks + 0.02,
                "instructions": 4e9 / ranks,
                "bytes_mem_read": 5e9 / ranks,
                "bytes_mem_written": 2e9 / ranks,
            }
        )
        run = Run({"ranks": ranks}, 0, "made", provenance=dict.fromkeys(table.columns[2:], source))
        experiment.add(run, table)
    given = fit_sharing(experiment, Domains.of(load("icelake-8360y"), "compact", None))
    assert (given is not None) == learnt
