"""Verdicts on measured configurations rest on their own counts, where caches are outgrown between two of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.counted import Counted
from ranksight.analysis.diagnosis.gathering import gather
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import load

PLATFORM = "icelake-8360y"
PACE, BLOCKING = 0.25, 0.4
"""Cycles an instruction of execution, and the part of the third cache's latency that loads wait."""
HELD = 40
"""Edge up to which the second cache holds all of it."""
SIZES = (16, 24, 40, 56, 72)


def served(size: int) -> dict[str, float]:
    """Counts of a sweep: one line in eight loads, from the second cache or, once that is outgrown, from the third."""
    i = 1e4 * size**3
    lines = 0.05 * i
    near = size <= HELD
    return {
        "instructions": i, "loads": 0.4 * i, "loads_l1": 0.4 * i - lines, "loads_l2": lines if near else 0.0,
        "loads_l3": 0.0 if near else lines, "loads_mem": 0.0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    platform = load(PLATFORM)
    made = Experiment.create(tmp_path_factory.mktemp("counted") / "e", "sweeps", ["size"])
    for size in SIZES:
        counts = served(size)
        latency = platform.latencies()["L3"]
        cycles = PACE * counts["instructions"] + BLOCKING * counts["loads_l3"] * latency
        made.add(
            Run({"size": size}),
            pd.DataFrame([{"kernel": "sweep", "rank": 0, "time": cycles / platform.frequency, **counts}]),
        )
    path = tmp_path_factory.mktemp("counted") / "m.json"
    fit(made, platform=PLATFORM).save(path)
    return Model.load(path)


@pytest.mark.parametrize("size", SIZES)
def test_the_levels_of_a_measured_configuration_are_those_counted(model: Model, size: int) -> None:
    found = gather(model, np.array([[float(size)]]))
    at = found.kernels.index("sweep")
    names = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
    assert found.loads[:, at, 0] == pytest.approx([served(size)[name] for name in names], rel=1e-12)


def test_a_sweep_is_bound_by_the_level_that_serves_it(model: Model) -> None:
    table = model.diagnose(size=[24, 72]).verdicts().set_index(["size", "kernel"])
    assert table.loc[(24, "sweep"), "verdict"] == "compute-bound"
    far = table.loc[(72, "sweep")]
    assert far["verdict"] == "cache-bound"
    assert far["level"] == "L3"
    cycles = load(PLATFORM).latencies()["L3"]
    waits = BLOCKING * 0.05 * cycles / (PACE + BLOCKING * 0.05 * cycles)
    assert far["compute_high"] <= 1 - waits + 0.01


def test_execution_costs_no_more_than_where_memory_asked_least(model: Model) -> None:
    found = gather(model, np.array([[16.0], [72.0]]))
    assert found.cpi[found.kernels.index("sweep")] == pytest.approx([PACE, PACE], rel=1e-3)


def test_counts_survive_the_file_and_know_no_other_configuration() -> None:
    rows = (("a", "loads_l3", np.array([1.0, np.nan])), ("b", "loads_l3", np.array([3.0, 4.0])))
    kept = Counted.from_dict(Counted(np.array([[1.0, 8.0], [2.0, 8.0]]), rows).to_dict())
    points = np.array([[2.0, 8.0], [1.0, 8.0], [3.0, 8.0]])
    said = kept.at(("b", "a", "c"), "loads_l3", points)
    assert said[0].tolist()[:2] == [4.0, 3.0]
    assert said[1, 1] == 1.0
    assert np.isnan(said[[0, 1, 1, 2], [2, 0, 2, 0]]).all()
    assert np.isnan(kept.at(("a",), "loads_mem", points)).all()
    assert np.isnan(kept.at(("a",), "loads_l3", points[:, :1])).all()


@pytest.mark.parametrize(
    "broken", [{"points": "x"}, {"rows": [["a"]]}, {"rows": [["a", "loads_l3", [1.0]]]}, {"points": None}]
)
def test_damaged_counts_are_refused(broken: dict[str, object], model: Model) -> None:
    whole = {"points": [[1.0], [2.0]], "rows": [["a", "loads_l3", [1.0, None]]]}
    assert Counted.from_dict(whole).rows
    with pytest.raises(InputError, match="'counted'"):
        Counted.from_dict({**whole, **broken})
    seen = {**model.observed["diagnosis"], "counted": {**whole, **broken}}
    with pytest.raises(InputError):
        gather(dataclasses.replace(model, observed={**model.observed, "diagnosis": seen}), np.array([[16.0]]))
