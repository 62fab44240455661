"""Neighbours on Cartesian process grids, against counting them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.comm.patterns.grid import Cartesian, cartesian_of
from ranksight.dims import dims_create
from ranksight.errors import InputError


@pytest.mark.parametrize(
    ("ranks", "extents"),
    [
        (1, (1, 1, 1)),
        (2, (2, 1, 1)),
        (6, (3, 2, 1)),
        (8, (2, 2, 2)),
        (12, (3, 2, 2)),
        (32, (4, 4, 2)),
        (1024, (16, 8, 8)),
    ],
)
def test_known_factorisations(ranks: int, extents: tuple[int, ...]) -> None:
    assert dims_create(ranks, 3) == extents


@given(st.integers(1, 5000), st.integers(1, 4))
def test_factors_multiply_to_the_ranks(ranks: int, dimensions: int) -> None:
    extents = dims_create(ranks, dimensions)
    assert np.prod(extents) == ranks
    assert list(extents) == sorted(extents, reverse=True)


@given(st.integers(1, 200), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_neighbours_are_those_that_can_be_counted(ranks: int, periodic: tuple[bool, bool, bool]) -> None:
    grid = Cartesian(3, periodic)
    extents = grid.extents(ranks)
    counted = []
    for place in itertools.product(*(range(e) for e in extents)):
        row = []
        for d in range(3):
            steps = [place[d] - 1, place[d] + 1]
            row.append(2 if periodic[d] else sum(0 <= step < extents[d] for step in steps))
        counted.append(row)
    found = grid.neighbours(ranks)
    assert found.tolist() == counted
    rows, counts = grid.classes(ranks)
    assert counts.sum() == ranks
    wanted = {tuple(row): n for row, n in zip(*np.unique(found, axis=0, return_counts=True), strict=True)}
    assert {tuple(row): n for row, n in zip(rows.tolist(), counts.tolist(), strict=True)} == {
        tuple(map(int, row)): int(n) for row, n in wanted.items()
    }


@pytest.mark.parametrize("periodic", [(False, False, False), (False, True, False), (True, True, True)])
def test_the_grid_is_found_from_who_talks_to_whom(periodic: tuple[bool, ...]) -> None:
    grid = Cartesian(3, periodic)
    assert cartesian_of([(p, grid.pairs(p)) for p in (1, 2, 4, 8, 12, 27)]) == grid


def test_extents_that_rise_are_found_where_falling_ones_explain_nothing() -> None:
    rising = Cartesian(2, (False, False), rising=True)
    assert rising.extents(8) == (2, 4)
    assert cartesian_of([(p, rising.pairs(p)) for p in (1, 2, 4, 8, 16)]) == rising
    falling = Cartesian(2, (False, False))
    assert cartesian_of([(p, falling.pairs(p)) for p in (4, 16, 9)]) == falling, "squares rise and fall alike"


def test_a_grid_is_not_guessed() -> None:
    grid = Cartesian(3, (False, False, False))
    assert cartesian_of([]) is None
    assert cartesian_of([(p, grid.pairs(p)) for p in (1, 2, 4)]) is None, "two dimensions explain it as well"
    assert cartesian_of([(8, grid.pairs(8))]) is None, "with two ranks in a dimension a ring is a line"
    assert cartesian_of([(27, grid.pairs(27))]) == grid
    assert cartesian_of([(8, {(a, b) for a in range(8) for b in range(8)})]) is None
    assert cartesian_of([(8, grid.pairs(8) - {(0, 1)})]) is None


def test_pairs_agree_with_neighbours() -> None:
    grid = Cartesian(3, (False, False, False))
    for ranks in (2, 6, 8, 30, 64):
        count = np.zeros(ranks, dtype=int)
        for a, _ in grid.pairs(ranks):
            count[a] += 1
        assert (count == grid.neighbours(ranks).sum(axis=1)).all()


@pytest.mark.parametrize(("ranks", "dimensions"), [(0, 3), (-4, 2), (4, 0)])
def test_bad_grids(ranks: int, dimensions: int) -> None:
    with pytest.raises(InputError):
        dims_create(ranks, dimensions)
