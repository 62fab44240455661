"""Counts that follow the local block, and messages along single sides of the process grid."""

from __future__ import annotations

import itertools
from math import ceil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian, pairs_along
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series
from ranksight.model.structure.called import Called
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.local_blocks import NO_BLOCKS, Blocks, find_blocks
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.traced import explained, sides_along

KEY = ("halo: Sendrecv", "bytes_sent")
RUNS = list(itertools.product((1, 2, 4, 8), (12, 16, 24)))


def whole_cells(p: int, size: int) -> float:
    """Bytes of a periodic halo of whole cells of 2.3, sent on from side to side, also to the rank itself."""
    edges = [size / side for side in dims_create(p, 3)]
    cells = [ceil(edge / 2.3) for edge in edges]
    return 48.0 * (cells[1] * cells[2] + (cells[0] + 2) * cells[2] + (cells[0] + 2) * (cells[1] + 2))


def series(law=whole_cells, runs=RUNS) -> Series:
    values = np.array([law(p, size) for p, size in runs])
    return Series(("ranks", "size"), np.array(runs, dtype=float), values[None, :, None], *zip(KEY, strict=True))


@pytest.mark.parametrize(("p", "size"), [(32, 24), (16, 48), (64, 24), (64, 48)])
def test_a_block_measured_with_other_ranks_has_its_value(p: int, size: int) -> None:
    """One pair of equal blocks is no proof: a third of the doubt is the functions'."""
    given = series()
    blocks = find_blocks(given, {KEY}, {3})
    assert blocks
    assert blocks.agreed.tolist() == [1]
    fitted, point = fit_series(given), np.array([[p, size]], dtype=float)
    said, by_functions = Functions(fitted, blocks=blocks).predict(point), fitted.predict(point)
    assert said.value[0, 0] == pytest.approx(whole_cells(p, size))
    assert min(said.value[0, 0], by_functions.lower[0, 0]) <= said.lower[0, 0] < said.upper[0, 0]
    assert said.upper[0, 0] <= max(said.value[0, 0], by_functions.upper[0, 0])


def test_many_equal_blocks_leave_no_doubt() -> None:
    given = series(runs=list(itertools.product((1, 8, 27, 64), (12, 24, 36, 48, 72))))
    blocks = find_blocks(given, {KEY}, {3})
    assert blocks
    assert blocks.agreed[0] >= 8
    said = Functions(fit_series(given), blocks=blocks).predict(np.array([[216.0, 72.0]]))
    assert [said.lower[0, 0], said.value[0, 0], said.upper[0, 0]] == pytest.approx([whole_cells(216, 72)] * 3)


def test_between_blocks_that_were_measured_functions_answer() -> None:
    given = series()
    blocks = find_blocks(given, {KEY}, {3})
    assert blocks
    _, known = blocks.predict(np.array([[12.0, 24.0], [27.0, 12.0], [8.0, 40.0], [3.5, 24.0]]))
    assert not known.any()


@pytest.mark.parametrize(
    "law",
    [
        lambda p, size: whole_cells(p, size) * (p > 1),  # one rank sends nothing
        lambda p, size: whole_cells(p, size) * (1 + 0.01 * (p > 4)),
        lambda p, size: 8.0 * size**2,  # the size alone
        lambda p, size: 8.0 * p,
    ],
)
def test_what_differs_at_equal_blocks_or_follows_one_parameter_is_no_block(law) -> None:
    assert find_blocks(series(law), {KEY}, {2, 3}) is NO_BLOCKS


def test_damaged_blocks_are_refused() -> None:
    blocks = find_blocks(series(), {KEY}, {3})
    assert blocks
    assert Blocks.from_dict(blocks.to_dict()).to_dict() == blocks.to_dict()
    with pytest.raises(InputError, match="does not fit together"):
        Blocks.from_dict({**blocks.to_dict(), "dimensions": 5})


def traced(folder: Path, rising: bool = False) -> Experiment:
    """Runs on a grid of three sides, in each kernel messages along one of them."""
    made = Experiment.create(folder / "sides.exp", "sides", ["ranks"])
    grid = Cartesian(3, (False, False, False), rising)
    for p in (2, 4, 8):
        sent = [
            (f"along_{d}", "Sendrecv", *pair, 4, 64)
            for d, pairs in enumerate(pairs_along(grid.extents(p), grid.periodic))
            for pair in sorted(pairs)
        ]
        peers = pd.DataFrame(sent, columns=["kernel", "operation", "rank", "peer", "count", "bytes"])
        counted = pd.DataFrame([("sweep", rank, 1.0) for rank in range(p)], columns=["kernel", "rank", "visits"])
        made.add(Run({"ranks": p}, 0, "counted"), counted, tables={"peers": peers})
    return made


@pytest.mark.parametrize("rising", [False, True])
def test_kernels_send_along_single_sides(tmp_path: Path, rising: bool) -> None:
    made = traced(tmp_path, rising)
    along = sides_along(made, [Cartesian(3, (False, False, False), rising)])
    names = "zyx" if rising else "xyz"
    assert along == {
        key: frozenset({f"{names[d]} of 3"}) for d in range(3) for key in (f"along_{d}", f"along_{d}: Sendrecv")
    }


def test_messages_along_a_side_are_no_constant() -> None:
    """Each side has two ranks up to eight, and the longest is cut from the start on."""
    ranks = np.array([2.0, 4.0, 8.0])
    values = np.full((1, 3, 1), 4.0)
    given = Series(("ranks",), ranks[:, None], values, ("along_0: Sendrecv",), ("messages",))
    called = Called(along={"along_0: Sendrecv": frozenset({"x of 3"})})
    law = fit_rank_laws(given, set(given.keys), None, called)
    assert law
    said = law.predict(np.array([[12.0], [64.0]]))
    assert said.value[0] == pytest.approx([8 * (1 - 1 / 3), 8 * (1 - 1 / 4)])
    assert (said.lower[0] <= 4.0 * (1 + 1e-9)).all()  # a ring, whose messages stay
    plain = fit_rank_laws(given, set(given.keys))
    assert plain
    assert plain.predict(np.array([[64.0]])).value[0] == pytest.approx([4.0])


@pytest.mark.parametrize(("size_power", "beyond"), [(2, "(x - 1) / ranks"), (0, "1 - 1/x")])
def test_bytes_see_the_size_as_edges_of_blocks(size_power: int, beyond: str) -> None:
    """One number of ranks with a third side says nothing of how its face goes on, and how it grows does."""
    points = np.array(list(itertools.product((2, 4, 8), (16, 24, 32))), dtype=float)
    sides = np.array([dims_create(int(p), 3) for p in points[:, 0]], dtype=float)
    face = (points[:, 1] ** 2 / (sides[:, 1] * sides[:, 2])) ** (size_power / 2)
    key = ("along_0: Sendrecv", "bytes_sent")
    values = 64 * (1 - 1 / sides[:, 0]) * face
    given = Series(("ranks", "size"), points, values[None, :, None], *zip(key, strict=True))
    law = fit_rank_laws(given, {key}, None, Called(along={key[0]: frozenset({"x of 3"})}))
    assert law
    assert beyond in law.formula(0)
    true = 64 * 0.75 * (64 / 4) ** (size_power)
    assert law.predict(np.array([[64.0, 64.0]])).value[0] == pytest.approx([true], rel=1e-2)


def test_partners_that_no_rule_explains_are_named(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "data.exp", "data", ["ranks"])
    rng = np.random.default_rng(3)
    for p in (4, 8, 16):
        matrix = [(a, b) for a, b in itertools.combinations(range(p), 2) if rng.random() < 0.4] or [(0, 3)]
        ring = [(a, (a + 1) % p) for a in range(p)]
        sent = [("matrix", "Isend", *way, 1, 8) for a, b in matrix for way in ((a, b), (b, a))]
        sent += [("ring", "Isend", *pair, 1, 8) for pair in ring]
        peers = pd.DataFrame(sent, columns=["kernel", "operation", "rank", "peer", "count", "bytes"])
        counted = pd.DataFrame([("sweep", rank, 1.0) for rank in range(p)], columns=["kernel", "rank", "visits"])
        made.add(Run({"ranks": p}, 0, "counted"), counted, tables={"peers": peers})
    assert {key for key, rules in explained(made).items() if not rules} == {"matrix", "matrix: Isend"}


def test_faces_of_a_ring_are_in_the_interval() -> None:
    """At two ranks a ring has two neighbours too, and more ranks add none."""
    points = np.array(list(itertools.product((2, 4, 8), (16, 24, 32))), dtype=float)
    sides = np.array([dims_create(int(p), 3) for p in points[:, 0]], dtype=float)
    key = ("along_0: Isend", "bytes_sent")
    given = Series(
        ("ranks", "size"),
        points,
        (points[:, 1] ** 2 / sides[:, 1] / sides[:, 2])[None, :, None],
        *zip(key, strict=True),
    )
    law = fit_rank_laws(given, {key}, None, Called(along={key[0]: frozenset({"x of 3"})}))
    assert law
    said = law.predict(np.array([[64.0, 32.0]]))
    assert said.lower[0, 0] <= 64.0 * (1 + 1e-6)
    assert said.upper[0, 0] < 4 * said.lower[0, 0]
