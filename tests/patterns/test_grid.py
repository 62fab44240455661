"""Neighbours on Cartesian process grids, against counting them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.comm.patterns import grid
from ranksight.comm.patterns.find_grids import cartesian_grids
from ranksight.comm.patterns.grid import RINGS, Cartesian
from ranksight.core.dims import dims_create, least_surface
from ranksight.core.errors import InputError


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


@given(st.integers(1, 200), st.tuples(st.booleans(), st.booleans(), st.booleans()), st.sampled_from(RINGS))
def test_neighbours_are_those_that_can_be_counted(ranks: int, periodic: tuple[bool, bool, bool], ring: str) -> None:
    grid = Cartesian(3, periodic, ring=ring)
    extents = grid.extents(ranks)
    counted = []
    for place in itertools.product(*(range(e) for e in extents)):
        row = []
        for d in range(3):
            steps = [place[d] - 1, place[d] + 1]
            there = [step % extents[d] for step in steps if periodic[d] or 0 <= step < extents[d]]
            if ring != "shift":
                there = [step for step in there if step != place[d]]
            row.append(len(set(there)) if ring == "peers" else len(there))
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
def test_the_grid_is_found_from_who_sends_to_whom(periodic: tuple[bool, ...]) -> None:
    grid = Cartesian(3, periodic)
    found = cartesian_grids([(p, grid.pairs(p)) for p in (1, 2, 4, 8, 12, 27)])
    assert {(each.dimensions, each.periodic, each.rising) for each in found} == {(3, periodic, False)}


def test_pairs_of_a_rank_with_itself_decide_what_a_ring_of_one_sends() -> None:
    grid, ranks = Cartesian(2, (True, True)), (1, 2, 3, 9)
    alone = {p: {(a, a) for a in range(p)} for p in (1, 2, 3)}

    def rings(itself: dict[int, set[tuple[int, int]]]) -> set[str]:
        found = cartesian_grids([(p, grid.pairs(p) | itself.get(p, set())) for p in ranks])
        return {each.ring for each in found if each.dimensions == 2}

    assert rings({}) == {"others", "peers"}
    assert rings(alone) == {"shift"}
    # Who sends to itself where there are others as well does so for another reason.
    assert rings({p: {(a, a) for a in range(p)} for p in ranks}) == {"others", "peers"}


def test_extents_that_rise_are_found_where_falling_ones_explain_nothing() -> None:
    rising = Cartesian(2, (False, False), rising=True)
    assert rising.extents(8) == (2, 4)
    assert rising in cartesian_grids([(p, rising.pairs(p)) for p in (1, 2, 4, 8, 16)])
    falling = Cartesian(2, (False, False))
    assert cartesian_grids([(p, falling.pairs(p)) for p in (4, 16, 9)]) == {falling: 1.0}, "squares rise and fall"


def test_all_grids_that_fit_are_kept() -> None:
    grid = Cartesian(3, (False, False, False))
    assert cartesian_grids([]) == {}
    assert cartesian_grids([(1, set())]) == {}
    few = cartesian_grids([(p, grid.pairs(p)) for p in (1, 2, 4)])
    assert {each.dimensions for each in few} == {2, 3}, "two dimensions explain it as well"
    eight = cartesian_grids([(8, grid.pairs(8))])
    assert {each.periodic for each in eight} == set(itertools.product((False, True), repeat=3)), (
        "a ring of two is a line"
    )
    assert cartesian_grids([(27, grid.pairs(27))]) == {grid: 1.0}
    assert cartesian_grids([(8, {(a, b) for a in range(8) for b in range(8)})]) == {}
    assert cartesian_grids([(8, grid.pairs(8) - {(0, 1)})]) == {}


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


@pytest.mark.parametrize("margin", [0.0, 2.0, 5.0])
@pytest.mark.parametrize("edges", [(3.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 1.0, 4.0)])
def test_blocks_of_long_domains_may_have_a_margin(edges: tuple[float, ...], margin: float) -> None:
    """Halos that are passed on dimension by dimension are longer along the later ones: bytes do not show the edges."""
    sent = []
    for ranks in (1, 2, 4, 8):
        extents = least_surface(ranks, edges)
        block = [10 * edge / n for edge, n in zip(edges, extents, strict=True)]
        bytes_of: dict[tuple[int, int], float] = {}
        for d in range(3):
            along = grid.pairs_along(extents, (True,) * 3)[d]
            face = np.prod([block[k] + 2 * margin * (k < d) for k in range(3) if k != d])
            bytes_of |= {pair: 8.0 * face for pair in along if pair not in bytes_of}
        sent.append((ranks, bytes_of))
    found = cartesian_grids(sent)
    for ranks in (16, 27, 32):
        assert least_surface(ranks, edges) in {each.extents(ranks) for each in found}
