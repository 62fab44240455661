"""Bandwidth is learnt from counted traffic; what is simulated gives it where times may correct it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.series.domains import Domains
from ranksight.model.sharing.demand import Demand
from ranksight.model.sharing.fit_sharing import fit_sharing
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
    platform = load("icelake-8360y")
    domains = Domains.of(platform, "compact", None)
    assert (fit_sharing(experiment, domains) is not None) == learnt
    # Of memory by what it serves, known to a factor of two; a simulated cache is nobody else's.
    assert fit_sharing(experiment, domains, demand=Demand.on_memory(platform)) is not None
    cached = Demand.on(platform)
    assert not cached.cache or fit_sharing(experiment, domains, demand=cached) is None
