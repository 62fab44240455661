"""Kernels whose loads were counted and whose stalls were not: CPI_exec and BF_mem fitted to cycles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.kernel_time.composed import LEAST_CPI, Composed, _least_squares, learn_composed
from ranksight.model.kernel_time.composition import Composition
from ranksight.platforms import Platform, load

PLATFORM = "haswell-e5-2680v3"
CLOCK = 2.5e9
RANKS = (1, 2, 4, 8, 16, 24)
CELLS = 6.4e6


def counts(p: float, platform: Platform, hidden: bool = False) -> dict[str, float]:
    """Counts of a rank whose working set, 8 bytes a cell, sinks from memory into L3 within the runs, and into L2 far
    beyond them; `hidden`: loads of L2 and L3 cost nothing."""
    x = CELLS / p
    work = 200.0 * x
    capacity = np.array([cache.capacity / cache.shared_by for cache in platform.caches])
    missed = 1 / (1 + (capacity / (8 * x)) ** 4)
    missed = np.minimum.accumulate(missed)
    stream = 0.03 * work
    loads = 0.3 * work + stream * (1 - missed[0]), stream * (missed[0] - missed[1]), stream * (missed[1] - missed[2])
    levels = np.array([*loads, stream * missed[2]])
    latency = np.array([*(cache.latency for cache in platform.caches), platform.memory.latency * platform.frequency])
    waits = levels * latency
    cycles = 0.6 * work + 0.3 * (waits[3] if hidden else waits.sum())
    names = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
    return {"instructions": work, "cycles": cycles, "time": cycles / CLOCK, **dict(zip(names, levels, strict=True))}


def measured(path: Path, platform: Platform, **more: bool) -> Experiment:
    made = Experiment.create(path, "sinking", ["ranks"])
    for p in RANKS:
        rows = [{"kernel": "sweep", "rank": -1, **counts(p, platform, **more)}]
        made.add(Run({"ranks": float(p)}, 0, "made"), pd.DataFrame(rows))
    return made


@pytest.fixture(scope="module")
def platform() -> Platform:
    return load(PLATFORM)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, platform: Platform) -> Model:
    return fit(measured(tmp_path_factory.mktemp("fitted") / "e", platform), platform=platform)


@pytest.mark.parametrize("ranks", [96, 384, 1536])
def test_a_working_set_that_leaves_a_cache_beyond_the_runs_is_predicted(
    model: Model, platform: Platform, ranks: int
) -> None:
    answer = next(a for a in model.predict(ranks=ranks, metrics=["time"]).answers if a.kernel == "sweep")
    true = counts(ranks, platform)["time"]
    assert answer.ok
    assert answer.evidence.startswith("fitted equation")
    assert answer.value == pytest.approx(true, rel=0.1)
    assert answer.lower <= true <= answer.upper


def test_times_are_divided_into_execution_and_waiting(model: Model, platform: Platform) -> None:
    parts = model.breakdown(np.array([[1.0], [24.0]])).parts
    for at, p in enumerate((1, 24)):
        true = counts(p, platform)
        waits = 0.3 * true["loads_mem"] * platform.memory.latency
        assert parts["loads_mem"][at] == pytest.approx(waits, rel=0.2, abs=1e-3 * true["time"])
        assert sum(part[at] for part in parts.values()) == pytest.approx(true["time"], rel=0.02)


def test_waiting_that_no_run_shows_is_in_the_deviation() -> None:
    """A stream that L2 serves in the runs is served by L1 where there is less work: 8 of its 12 cycles a load go, if
    they were waited for."""
    one = np.ones(1)
    stream = Composition(np.zeros((1, 4)), 0.05 * one, 0 * one, 64 * one, np.zeros(1, np.intp), one, 0 * one)
    latencies = np.array([4.0, 12.0, 50.0, 200.0])[:, None] * np.ones(2)
    capacities = np.exp([[1.0], [3.0], [5.0]]) * np.ones((2, 1, 2))
    x, every = np.array([0.0, 2.0]), np.ones((1, 1))
    for first, served in ((0, [4.0, 12.0]), (3, [0.0, 0.0])):
        hidden = (12.0 - served[1]) * 0.05 * np.ones((1, 1, 1))
        none = np.zeros((1, 1), dtype=np.intp)
        parts = 0.5 * every, 0.2 * every, every, np.zeros((1, 1, 2)), none + first, none, x[1:], hidden
        cpi, waits = Composed(np.zeros(1, np.intp), *parts).at([stream], x, capacities, latencies)
        assert cpi.centre[0] == pytest.approx(np.log(0.5 + 0.2 * 0.05 * np.array(served)))
        assert cpi.up[0] == pytest.approx([0.2 * 0.05 * (12 - 4) / 0.5 if first else 0.0, 0.0])
        assert waits[:, 0].sum(axis=0) == pytest.approx(1 - 0.5 / np.exp(cpi.centre[0]))


@pytest.mark.slow
def test_levels_that_are_hidden_in_the_runs_are_predicted(tmp_path: Path, platform: Platform) -> None:
    model = fit(measured(tmp_path / "e", platform, hidden=True), platform=platform)
    for p in (48, 1536):
        answer = next(a for a in model.predict(ranks=p, metrics=["time"]).answers if a.kernel == "sweep")
        true = counts(p, platform, hidden=True)["time"]
        assert answer.value == pytest.approx(true, rel=0.1)
        assert answer.lower <= true <= answer.upper


def test_kernels_with_counted_stalls_have_no_fitted_equation(tmp_path: Path, platform: Platform) -> None:
    made = Experiment.create(tmp_path / "e", "stalled", ["ranks"])
    for p in RANKS:
        row = counts(p, platform)
        stalls = row["cycles"] - 0.6 * row["instructions"]
        table = pd.DataFrame([{"kernel": "sweep", "rank": -1, "stall_cycles": stalls, **row}])
        made.add(Run({"ranks": float(p)}, 0, "made"), table)
    counted = fit(made, platform=platform).equation.counted
    assert counted is not None
    assert counted.split.all()
    assert counted.composed is None


def test_bounds_of_the_equation_hold() -> None:
    """BF_mem is from 0 to 1 in every run, however it changes, and what met the cycles exactly is found."""
    draw = np.random.default_rng(1)
    waiting, change = draw.uniform(0, 30, (4, 5, 7)), np.exp(np.outer([0.0, -0.3, 0.2], np.linspace(-2, 2, 7)))
    for cpi in (draw.uniform(0.05, 5, 7), 0.4 + 0.25 * waiting[1, 2], np.full(7, 0.01)):
        execution, blocking, misfit = _least_squares(waiting, cpi, change)
        assert (execution >= LEAST_CPI).all()
        assert (blocking >= 0).all()
        assert (blocking[..., None] * change <= 1 + 1e-12).all()
        assert (misfit >= 0).all()
    cpi = 0.4 * change[2] + 0.1 * change[1] * waiting[1, 2]
    execution, blocking, misfit = (part[1, 2, 2, 1] for part in _least_squares(waiting, cpi, change))
    assert (execution, blocking, misfit) == pytest.approx((0.4, 0.1, 0.0), abs=1e-9)


@pytest.mark.parametrize(("core", "stall"), [(0.0, 0.0), (0.1, 0.0), (0.0, -0.2), (0.08, -0.15)])
def test_rates_that_change_with_the_work_go_on_beyond_the_runs(core: float, stall: float) -> None:
    """CPI_exec and BF_mem follow powers between those that are hypotheses; cycles alone are known, with 0.3 % of
    scatter, and are asked at 16 times fewer cells a rank."""
    x, asked = np.log(CELLS / np.array(RANKS)), np.log(CELLS / np.array([96.0, 384.0]))
    one, latencies = np.ones(1), np.array([4.0, 12.0, 50.0, 200.0])
    served = Composition(
        np.array([[0.3, 0.02, 0.01, 0.002]]), 0 * one, 0 * one, one, np.zeros(1, np.intp), one, 0 * one
    )

    def cpi(x: Array) -> Array:
        away = x - np.log(CELLS / np.array(RANKS)).mean()
        return 0.8 * np.exp(core * away) + 0.3 * np.exp(stall * away) * (served.constant[0] @ latencies)

    inside = []
    for seed in range(10):
        noise = np.exp(np.random.default_rng(seed).normal(0, 0.003, len(x)))
        room = np.ones((2, 3, len(x)))
        every = np.repeat(latencies[:, None], len(x), axis=1)
        composed = learn_composed(np.zeros(1, np.intp), [served], (cpi(x) * noise)[None], x, room, every)
        answer = composed.at([served], asked, room[..., :2], every[:, :2])[0]
        gap = answer.centre[0] - np.log(cpi(asked))
        assert np.abs(gap).max() < 0.25
        inside.append(np.abs(gap) <= 1.645 * np.hypot(answer.up[0], 0.01))
    assert np.mean(inside) > 0.8


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": [7]},
        {"blocking": [[-1.0]]},
        {"execution": []},
        {"x": []},
        {"hidden": [[[None]]]},
        {"member": [[99]]},
        {"powers": []},
    ],
)
def test_damaged_content_is_refused(model: Model, damage: dict[str, object]) -> None:
    content = json.loads(json.dumps(model.equation.counted.to_dict()))
    content["composed"] |= damage
    counted = model.equation.counted
    assert counted is not None
    assert type(counted).from_dict(json.loads(json.dumps(model.equation.counted.to_dict()))).composed
    with pytest.raises(InputError):
        type(counted).from_dict(content)
