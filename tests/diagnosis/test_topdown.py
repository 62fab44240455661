"""Memory or core, from the levels of the top-down method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.causes import VERDICTS, causes_of
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.topdown import FIRST, LEVELS, SECOND, THIRD, bound


def slots(count: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Kernels whose levels keep the method's sums; stores hold up as much as the second level does."""
    parts = np.random.default_rng(seed).dirichlet(np.ones(8), count).T
    found = dict(zip((*FIRST, *THIRD, "core_bound"), parts, strict=True))
    found["memory_bound"] = sum(found[name] for name in THIRD)
    return found


def test_sums_are_learned_to_the_last_digit() -> None:
    known, new = slots(20), slots(50, seed=2)
    both = {name: np.concatenate([known[name], new[name]]) for name in LEVELS}
    for name in SECOND:
        both[name][20:] = np.nan
        assert bound(both, name)[20:] == pytest.approx(new[name], abs=1e-9)


def test_level_two_is_taken_as_measured() -> None:
    assert (bound(slots(20) | {"memory_bound": np.full(20, 0.7)}) == 0.7).all()


def test_kernels_without_level_two_are_reported_by_the_others() -> None:
    given = slots(30)
    truth = given["memory_bound"].copy()
    given["memory_bound"] = np.where(np.arange(30) < 5, np.nan, truth)
    assert bound(given) == pytest.approx(truth)
    few = {name: values[:6] for name, values in given.items()}
    assert np.isnan(bound(few)[:5]).all()


def test_a_kernel_that_lacks_another_level_stays_unknown() -> None:
    given = slots(20)
    given["memory_bound"][0] = given["l3_bound"][0] = np.nan
    assert np.isnan(bound(given)).tolist() == [True] + 19 * [False]


def test_slots_bound_by_memory_count_as_stalls(evidence: Callable[..., Evidence]) -> None:
    given = evidence({"a": [1.0], "b": [1.0]}, [1], stalled={"a": [0.2], "b": [0.8]}, ceilings=None)
    found = causes_of(given)
    assert found.share[0, :, 0] == pytest.approx([0.8, 0.2], abs=0.01)
    assert [VERDICTS[v] for v in found.verdict[:, 0]] == ["compute-bound", "memory-bound"]


def test_rajaperf_is_reported_without_level_two(shared: Path) -> None:
    table = pd.read_csv(shared / "data" / "verdicts" / "rajaperf_topdown_gcc.csv")
    table = table[table["kernel"].astype(str).str.count("/") == 2].rename(
        columns=lambda name: name.removeprefix("topdown.")
    )
    table = table[table["run"].str.contains("O3")].groupby("kernel").median(numeric_only=True)
    label = (table["memory_bound"] > table["core_bound"]).to_numpy()
    even = np.arange(len(table)) % 2 == 0
    right = np.zeros(len(table), dtype=bool)
    for held in (even, ~even):
        known = {name: table[name].to_numpy(dtype=float) for name in LEVELS}
        known |= {name: np.where(held, np.nan, known[name]) for name in SECOND}
        memory, core = (bound(known, name) for name in SECOND)
        right[held] = ((memory > core) == label)[held]
    assert right.mean() >= 0.9
