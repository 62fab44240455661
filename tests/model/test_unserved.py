"""Cache levels that served nothing in the runs: what is said of them where a working set may outgrow a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight import fit
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fitted_model import Model
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import OK

RANKS, SIZES = (1, 2, 4, 8), (16, 32, 64)
REASON = "the working set may outgrow a cache beyond size 64"


def served(
    path: Path,
    *,
    held: float = 0.1,
    trickle: float = 0.0,
    memory: float | None = None,
    ranks: tuple[int, ...] = RANKS,
    strong: bool = False,
    **settings: str,
) -> Model:
    """A kernel whose loads the first two levels serve; `held` is the second's part, `trickle` that of memory."""
    made = Experiment.create(path, "served", ["ranks", "size"])
    for p in ranks:
        for n in SIZES:
            loads = 8.0 * n**3 / (p if strong else 1)
            row = {"kernel": "k", "rank": -1, "instructions": 4 * loads, "loads": loads, "stores": loads / 4}
            row |= {"loads_l1": (1 - held) * loads, "loads_l2": held * loads, "loads_l3": 0.0}
            row |= {"loads_mem": trickle * loads, "bytes_mem": 0.0, "store_misses_l2": 0.0}
            table = pd.DataFrame([row])
            if memory is not None:
                used = {"kernel": WHOLE, "rank": -1, "memory_pss": 1e6 * n**memory}
                table = pd.concat([table, pd.DataFrame([used])])
            made.add(Run({"ranks": p, "size": n}, collector="made-up"), table)
    return fit(made, platform=None, **settings)  # type: ignore[arg-type]


def at(model: Model, ranks: float, size: float, name: str) -> tuple[float, float, float, bool, str]:
    points = np.array([[ranks, size]])
    said, row = model.functions.predict(points), model.functions.rows["k", name]
    ends = [float(each[row, 0]) for each in (said.value, said.lower, said.upper)]
    return ends[0], ends[1], ends[2], bool(said.status[row, 0] == OK), str(said.reason[row, 0])


@pytest.mark.parametrize("name", ["loads_l3", "loads_mem"])
def test_a_larger_size_may_move_what_the_outermost_cache_held(tmp_path: Path, name: str) -> None:
    value, lower, upper, ok, reason = at(served(tmp_path / "e"), 4, 128, name)
    assert (value, lower) == (0.0, 0.0)
    assert 0.1 <= upper / (8 * 128**3) < 0.13
    assert (ok, reason) == (False, REASON)


def test_what_the_first_level_held_may_move_as_a_whole(tmp_path: Path) -> None:
    _, _, upper, ok, _ = at(served(tmp_path / "e", held=0.0), 4, 128, "loads_mem")
    assert upper == pytest.approx(8 * 128**3, rel=0.05)
    assert not ok


def test_next_to_nothing_is_no_law_of_what_is_outgrown(tmp_path: Path) -> None:
    value, lower, upper, ok, reason = at(served(tmp_path / "e", trickle=1e-4), 4, 128, "loads_mem")
    assert value == pytest.approx(1e-4 * 8 * 128**3, rel=0.05)
    assert lower == 0.0
    assert 0.1 <= upper / (8 * 128**3) < 0.13
    assert (ok, reason) == (False, REASON)


def test_a_level_that_served_a_share_keeps_its_function(tmp_path: Path) -> None:
    for name, share in (("loads_mem", 0.02), ("loads_l2", 0.1)):
        value, lower, upper, ok, _ = at(served(tmp_path / name, trickle=0.02), 4, 128, name)
        assert ok
        assert value == pytest.approx(share * 8 * 128**3, rel=0.05)
        assert 0.5 * value < lower <= value <= upper < 2 * value


@pytest.mark.parametrize(("ranks", "size"), [(4, 64), (4, 48), (2, 16), (64, 64), (1024, 32)])
def test_inside_and_with_more_ranks_nothing_stays_nothing(tmp_path: Path, ranks: int, size: int) -> None:
    model = served(tmp_path / "e", strong=True)
    value, lower, upper, ok, _ = at(model, ranks, size, "loads_mem")
    assert (value, lower, ok) == (0.0, 0.0, True)
    assert upper <= 0.011 * 8 * size**3 / ranks


def test_a_larger_problem_on_so_many_ranks_that_each_loads_no_more(tmp_path: Path) -> None:
    model = served(tmp_path / "e", strong=True)
    assert at(model, 64, 128, "loads_mem")[:4] == (0.0, 0.0, 0.0, True)
    assert at(model, 4, 128, "loads_mem")[3:] == (False, REASON)


def test_memory_that_does_not_grow_is_not_outgrown(tmp_path: Path) -> None:
    assert at(served(tmp_path / "same", memory=0.0), 4, 128, "loads_mem")[:4] == (0.0, 0.0, 0.0, True)
    assert not at(served(tmp_path / "more", memory=2.0), 4, 128, "loads_mem")[3]


def test_iterations_outgrow_no_cache(tmp_path: Path) -> None:
    assert at(served(tmp_path / "e", iterations="size"), 4, 128, "loads_mem")[3]


def test_stores_and_traffic(tmp_path: Path) -> None:
    model = served(tmp_path / "e")
    _, lower, upper, ok, reason = at(model, 4, 128, "store_misses_l2")
    assert (lower, ok, reason) == (0.0, False, REASON)
    assert upper == pytest.approx(2 * 128**3, rel=0.05)
    assert at(model, 4, 128, "bytes_mem")[2:] == (np.inf, False, REASON)


def test_what_is_kept_in_a_file_is_reported_again_and_checked(tmp_path: Path) -> None:
    functions = served(tmp_path / "e", memory=2.0).functions
    content = functions.structures()
    again = Functions.with_structures(functions.fitted, content)
    points = np.array([[4.0, 128.0], [4.0, 48.0]])
    for name in ("value", "lower", "upper", "status", "reason"):
        np.testing.assert_array_equal(getattr(again.predict(points), name), getattr(functions.predict(points), name))
    for damage in ({"most": [1.0]}, {"kernels": ["other"] * len(content["unserved"]["kernels"])}, {"memory": ["x"]}):
        with pytest.raises(InputError):
            Functions.with_structures(functions.fitted, {**content, "unserved": {**content["unserved"], **damage}})
