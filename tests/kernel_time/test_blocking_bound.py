"""BF_mem is at most 1 at any distance: a core waits no longer than its loads take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.platforms import load

PLATFORM = load("haswell-e5-2680v3")
LATENCY = np.array([*(cache.latency for cache in PLATFORM.caches), PLATFORM.memory.latency * PLATFORM.frequency])
RANKS = (1, 2, 4, 8, 16)
AHEAD = (32, 128, 1024, 16384)
LEVELS = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")


def rising(p: float) -> float:
    return 0.25 * p**0.4


def levelling(p: float) -> float:
    return 0.2 + 0.7 * p / (p + 6)


def steep(p: float) -> float:
    return 0.9 * (p / 16) ** 0.9


def program(path: Path, factor: Callable[[float], float], stalls: bool = True) -> Experiment:
    """A kernel whose loads, of the same levels at all rank counts, are waited for by a `factor` of their latencies."""
    made, random = Experiment.create(path, "blocked", ["ranks"]), np.random.default_rng(1)
    for p, repetition in ((p, repetition) for p in RANKS for repetition in range(3)):
        work = 4e9 / p
        loads = work * np.array([0.3, 0.02, 0.004, 0.001])
        execution, stalled = 0.7 * work, factor(p) * float(loads @ LATENCY)
        noise = np.exp(random.normal(0, 0.005))
        row = {"kernel": "k", "rank": -1, "instructions": work, "cycles": (execution + stalled) * noise,
               "time": (execution + stalled) * noise / PLATFORM.frequency, **dict(zip(LEVELS, loads, strict=True))}  # fmt: skip
        if stalls:
            row["stall_cycles"] = stalled * noise
        made.add(Run({"ranks": float(p)}, repetition, "made"), pd.DataFrame([row]))
    return made


@pytest.mark.parametrize("stalls", [True, False])
@pytest.mark.parametrize("factor", [rising, levelling, steep])
def test_no_distance_makes_a_core_wait_longer_than_its_loads_take(
    tmp_path: Path, factor: Callable[[float], float], stalls: bool
) -> None:
    model = fit(program(tmp_path / "e", factor, stalls), platform=PLATFORM)
    for level in (0.5, 0.9, 0.99):
        terms = model.predict(ranks=AHEAD, level=level).terms
        assert terms.kernels
        rows = [row for row in terms.rows() if row["term"] == "bf_mem"]
        assert len(rows) == len(AHEAD)
        assert all(row["value"] <= 1 and (row["upper"] is None or row["upper"] <= 1) for row in rows)


def test_the_bound_is_that_of_the_law_and_not_of_its_table(tmp_path: Path) -> None:
    model = fit(program(tmp_path / "e", steep), platform=PLATFORM)
    points = np.array(AHEAD, dtype=float)[:, None]
    counted = model.equation.counted
    assert counted is not None
    times = counted.at(points, model.functions.predict(points), model.functions.rows, points)
    blocking = times.blocking
    assert (blocking.interval(0.9)[2] <= 1 + 1e-12).all()
    # All of the loads' latencies at most, besides the execution.
    work = 4e9 / points[:, 0]
    most = work * (0.7 + np.array([0.3, 0.02, 0.004, 0.001]) @ LATENCY) / PLATFORM.frequency
    assert (np.exp(times.time.centre[0]) <= 1.02 * most).all()


def test_what_runs_showed_beyond_one_holds_other_stalls_and_stays(tmp_path: Path) -> None:
    model = fit(program(tmp_path / "e", lambda p: 1.3), platform=PLATFORM)
    points = np.array([[16.0], [1024.0]])
    counted = model.equation.counted
    assert counted is not None
    blocking = counted.at(points, model.functions.predict(points), model.functions.rows, points).blocking
    assert np.exp(blocking.centre[0]) == pytest.approx([1.3, 1.3], rel=0.02)
