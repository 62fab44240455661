"""The process grids whose neighbours are the ranks that exchange messages.

Few ranks do not decide the grid: with two ranks along a dimension a ring is a line, and grids of two and three
dimensions are the same below eight ranks. :func:`cartesian_grids` gives all grids that fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ranksight.comm.patterns.boxes import Sent, boxes, of_domains
from ranksight.comm.patterns.grid import MOST_DIMENSIONS, RINGS, Cartesian


def cartesian_grids(edge_sets: Sequence[tuple[int, Sent]]) -> dict[Cartesian, float]:
    """All grids whose neighbours are exactly the pairs of distinct ranks that exchange messages, and their weights.

    Pairs of a rank with itself decide nothing but :attr:`Cartesian.ring`: a program may copy what it has for itself,
    and send to itself for other reasons. `edge_sets` (sequence of (ranks, pairs)): for each run its number of ranks and
    the pairs (sender, receiver), or the bytes of a message by pair.

    Returns
    -------
    dict of Cartesian to float
        The fewest dimensions first; empty where no grid fits or no two ranks exchange messages. Extents rise where
        falling ones explain nothing, and follow the edges of the domain where neither does and bytes show these. Each
        of these grids has weight 1. A domain of :func:`~ranksight.comm.patterns.boxes.boxes` that is added to others
        has the share of the boxes with the edges shown that are cut as the runs were.
    """
    wanted = [
        (ranks, {pair for pair in pairs if pair[0] != pair[1]})
        for ranks, pairs in sorted(edge_sets, key=lambda run: run[0])
    ]
    if not any(pairs for _, pairs in wanted) or any(len(pairs) > 2 * MOST_DIMENSIONS * p for p, pairs in wanted):
        return {}
    alone = {ranks: all((rank, rank) in pairs for rank in range(ranks)) for ranks, pairs in edge_sets}
    found: dict[Cartesian, float] = {}
    for rising in (False, True):
        candidates = [
            Cartesian(dimensions, periodic, rising)
            for dimensions in range(1 + rising, MOST_DIMENSIONS + 1)
            for periodic in itertools.product((False, True), repeat=dimensions)
        ]
        fitting = [grid for grid in candidates if all(grid.pairs(ranks) == pairs for ranks, pairs in wanted)]
        if fitting:
            found = dict.fromkeys(fitting, 1.0) | boxes(fitting, wanted, edge_sets)
            break
    found = found or dict.fromkeys(of_domains(wanted, edge_sets), 1.0)
    return {
        replace(grid, ring=ring): weight * share
        for grid, weight in found.items()
        for ring, share in _rings(grid, alone).items()
    }


COPIED = 0.5
"""Share of the programs on periodic grids that copy what a rank has for itself: LAMMPS does, CoMD sends it."""


def _rings(grid: Cartesian, alone: Mapping[int, bool]) -> dict[str, float]:
    """Choices of :attr:`Cartesian.ring` that fit, and their weights; `alone` has the runs and whether every rank sends
    to itself there."""
    if not any(grid.periodic):
        return {RINGS[0]: 1.0}
    expected = {
        ranks: any(ring and n == 1 for ring, n in zip(grid.periodic, grid.extents(ranks), strict=True))
        for ranks in alone
    }
    if not any(expected.values()):
        return dict.fromkeys(RINGS, 1.0)
    return {RINGS[2]: 1.0} if expected == alone else dict.fromkeys(RINGS[:2], COPIED)
