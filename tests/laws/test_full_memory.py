"""Memory that the runs may have filled, where nobody says which cores share it."""

from __future__ import annotations

import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

LIMIT = 60e9


def _fitted(
    tmp_path, rate: float, sizes: tuple[float, ...] = (), unlimited: bool = False, source: str = "measured", **settings
) -> Model:
    """A kernel whose ranks each move `rate` bytes a second as long as 60 GB/s of all are enough, and one that moves
    none at last."""
    experiment = Experiment.create(tmp_path / "app.exp", "app", ["ranks", *(["size"] if sizes else [])])
    for size in sizes or (100.0,):
        for ranks in (1.0, 2.0, 4.0, 6.0, 8.0, 12.0):
            moved = 1e10 * size / ranks
            time = moved / min(rate, rate if unlimited else LIMIT / ranks)
            row = {"kernel": "sweep", "rank": 0, "time": time, "instructions": 3 * moved, "bytes_mem": moved}
            cached = {**row, "kernel": "cached", "bytes_mem": moved * (ranks < 12)}
            rows = pd.DataFrame([{**each, "rank": rank} for rank in range(int(ranks)) for each in (row, cached)])
            configuration = {"ranks": ranks, **({"size": size} if sizes else {})}
            experiment.add(Run(configuration, collector="table", provenance={"bytes_mem": source}), rows)
    return fit(experiment, **settings)


def _asked(model: Model, **asked: float) -> tuple[str, str, float]:
    """Status, reason and value of the kernel's time."""
    rows = model.predict(metrics=["time"], **asked).to_dict()["predictions"]
    (row,) = (each for each in rows if each["kernel"] == "sweep")
    return row["status"], row["reason"], row["value"]


@pytest.mark.parametrize("sizes", [(), (50.0, 100.0, 200.0)])
def test_more_ranks_than_filled_the_memory_of_the_runs_are_not_predicted(tmp_path, sizes):
    """They share it, or find some of their own: a factor of two at twice the ranks, which no run decides."""
    model = _fitted(tmp_path, 20e9, sizes)
    asked = {"size": 100.0} if sizes else {}
    status, reason, _ = _asked(model, ranks=24.0, **asked)
    assert status == "insufficient"
    assert "--cores-per-domain" in reason
    assert _asked(model, ranks=10.0, **asked)[0] == "ok"


def test_what_leaves_room_in_memory_is_predicted(tmp_path):
    assert _asked(_fitted(tmp_path, 2e9, unlimited=True), ranks=24.0)[0] == "ok"


def test_traffic_of_simulated_caches_fills_no_memory(tmp_path):
    model = _fitted(tmp_path, 20e9, source="simulated")
    assert "share" not in _asked(model, ranks=24.0)[1]


@pytest.mark.filterwarnings("error")
def test_a_kernel_whose_traffic_ended_filled_no_memory(tmp_path):
    model = _fitted(tmp_path, 20e9)
    assert model.equation.laws.by("full memory").kernels == ("sweep",)


def test_domains_that_are_stated_decide(tmp_path):
    model = _fitted(tmp_path, 20e9, cores_per_domain=12)
    status, _, time = _asked(model, ranks=24.0)
    assert status == "ok"
    assert time == pytest.approx(1e12 / LIMIT / 2, rel=0.05)
