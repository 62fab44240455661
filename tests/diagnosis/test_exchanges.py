"""What messages took where they were measured: the blocking factor, and the fitted forms of their cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.exchanges import fitted_table, observe_exchanges
from ranksight.comm.costs.cost import cost
from ranksight.comm.network import NetworkParameters
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.network import Network
from ranksight.model.fit import fit
from ranksight.platforms import load

RANKS, SIZES = (2, 4, 8, 16), (8, 8192)
LINK = NetworkParameters.linear(2e-6, 1e-10).to_dict()
PLATFORM = replace(load("generic"), network={"inter": LINK, "collectives": "mpich"})


def took(ranks: int, size: float) -> float:
    return 1e-6 * np.log2(ranks) + 2e-9 * size + 3e-6


def write(path: Path, cores: str = "") -> Experiment:
    experiment = Experiment.create(path, "exchanges", ["ranks"])
    for ranks in RANKS:
        who = {"kernel": "solve", "rank": np.arange(ranks), "comm_size": ranks, "count": 100, "peers": 0}
        rows = [
            pd.DataFrame({**who, "operation": "Allreduce", "size_class": size, "bytes": 100.0 * size,
                          # all but the last rank wait besides
                          "seconds": 100 * took(ranks, size) * np.r_[np.full(ranks - 1, 1.5), 1.0]})
            for size in SIZES
        ]  # fmt: skip
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": 2.0, "compute_time": 1.5})
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": 1.5})
        run = Run({"ranks": ranks}, collector="pmpi", environment={"cores": cores} if cores else {})
        experiment.add(run, pd.concat([whole, solve]), pd.concat(rows, ignore_index=True))
    return experiment


def test_the_form_of_a_collective_is_found_from_ranks_that_wait_for_nobody(tmp_path: Path) -> None:
    table = fitted_table(observe_exchanges(write(tmp_path / "e")))
    (row,) = table.to_dict("records")
    assert row["operation"] == "Allreduce"
    assert row["formula"] == "t = 1e-06 log2 P + 2e-09 n + 3e-06"
    assert row["scatter"] == pytest.approx(0, abs=1e-12)
    assert row["points"] == len(RANKS) * len(SIZES)


def test_the_blocking_factor_is_what_was_measured_over_what_the_network_takes(tmp_path: Path) -> None:
    model = fit(write(tmp_path / "e"), platform=PLATFORM)
    table = model.diagnose(ranks=[64]).blocking().set_index(pd.Index([2, 4, 8, 16, 64]))
    network = Network(dict(PLATFORM.network), PLATFORM.cores)
    for ranks in RANKS:
        alone = sum(100 * float(cost("allreduce", ranks, size, network.fabric(), network.choice())) for size in SIZES)
        mean = np.mean(np.r_[np.full(ranks - 1, 1.5), 1.0])
        measured = sum(100 * took(ranks, size) * mean for size in SIZES)
        assert table.loc[ranks, "configuration"] == {"ranks": ranks}
        assert table.loc[ranks, "communication"] == pytest.approx(measured)
        assert table.loc[ranks, "network"] == pytest.approx(alone)
        assert table.loc[ranks, "factor"] == pytest.approx(measured / alone)
        assert table.loc[ranks, "method"] == "measured"
    assert table.loc[64, "method"] == "fitted"


def test_ranks_that_share_cores_show_nothing(tmp_path: Path) -> None:
    table = fit(write(tmp_path / "e", cores="4"), platform=PLATFORM).diagnose(ranks=[64]).blocking()
    assert table["method"].tolist() == ["measured", "measured", "fitted", "fitted", "fitted"]


def test_a_diagnosis_shows_both(tmp_path: Path) -> None:
    model = fit(write(tmp_path / "e"), platform=PLATFORM)
    model.save(tmp_path / "m.json")
    found = type(model).load(tmp_path / "m.json").diagnose(ranks=[64])
    assert found.to_dict()["fitted_costs"][0]["operation"] == "Allreduce"
    assert [row["method"] for row in found.to_dict()["blocking"]] == [*["measured"] * len(RANKS), "fitted"]


def test_sizes_that_do_not_vary_are_reported_as_such(tmp_path: Path) -> None:
    experiment = write(tmp_path / "e")
    experiment = Experiment(experiment.path, experiment.application, experiment.parameters, experiment.runs[:1])
    (row,) = fitted_table(observe_exchanges(experiment)).to_dict("records")
    assert row["formula"] == ""
    assert "do not determine" in row["reason"]
