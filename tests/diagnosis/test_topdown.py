"""Memory or core, from the levels of the top-down method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.causes import VERDICTS
from ranksight.analysis.diagnosis.diagnosing import causes_of
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.topdown import FIRST, LEVELS, THIRD, Sides, memory_bound
from ranksight.core.errors import InputError


def slots(count: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Kernels whose levels keep the method's sums; stores hold up as much as the second level does."""
    parts = np.random.default_rng(seed).dirichlet(np.ones(8), count).T
    found = dict(zip((*FIRST, *THIRD, "core_bound"), parts, strict=True))
    found["memory_bound"] = sum(found[name] for name in THIRD)
    return found


def test_sums_are_learned_to_the_last_digit() -> None:
    law = Sides.learn(slots(20))
    new = slots(50, seed=2)
    memory, core = law({name: new[name] for name in (*FIRST, *THIRD)})
    assert memory == pytest.approx(new["memory_bound"], abs=1e-9)
    assert core == pytest.approx(new["core_bound"], abs=1e-9)


def test_level_two_is_taken_as_measured() -> None:
    given = slots(20) | {"memory_bound": np.full(20, 0.7), "core_bound": np.full(20, 0.1)}
    memory, core = Sides(np.zeros((8, 2)))(given)
    assert (memory == 0.7).all()
    assert (core == 0.1).all()


def test_kernels_without_level_two_are_reported_by_the_others() -> None:
    given = slots(30)
    truth = given["memory_bound"].copy()
    given["memory_bound"] = np.where(np.arange(30) < 5, np.nan, truth)
    assert memory_bound(given) == pytest.approx(truth)
    few = {name: values[:6] for name, values in given.items()}
    assert np.isnan(memory_bound(few)[:5]).all()


def test_what_is_missing_is_reported() -> None:
    given = slots(20)
    with pytest.raises(InputError, match="l3_bound"):
        Sides.learn({name: values for name, values in given.items() if name != "l3_bound"})
    with pytest.raises(InputError, match="3 kernels"):
        Sides.learn({name: given[name][:3] for name in LEVELS})


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
        law = Sides.learn({name: table.loc[~held, name].to_numpy() for name in LEVELS})
        memory, core = law({name: table.loc[held, name].to_numpy() for name in (*FIRST, *THIRD)})
        right[held] = (memory > core) == label[held]
    assert right.mean() >= 0.9
