"""Cartesian process grids: how many neighbours each rank has in each direction, at any number of ranks.

Programs on structured grids place their ranks on a d-dimensional grid. What a rank packs, sends and unpacks follows the
number of its neighbours in each direction, 0, 1 or 2 at corners, edges and faces of the process grid. This law is known
for every number of ranks once the grid is, while a smooth function of the number of ranks can only approach it:
the mean number of neighbours is 1, 2 and 3 at 2, 4 and 8 ranks on a three-dimensional grid, as log2 of the ranks is,
and 4 at 32 ranks, not 5.

Few ranks do not decide the grid: with two ranks along a dimension a ring is a line, and grids of two and three
dimensions are the same below eight ranks. :func:`cartesian_grids` gives all grids that fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError

RINGS = ("others", "peers", "shift")
"""What a program sends along a periodic dimension of few ranks; see :class:`Cartesian`."""


@dataclass(frozen=True, slots=True)
class Cartesian:
    """A rule that places ranks on a grid, rank numbers in row-major order as ``MPI_Cart_create`` has them.

    Attributes
    ----------
    dimensions : int
    periodic : tuple of bool
        For each dimension whether its ends are neighbours.
    rising : bool
        Whether the extents rise, as where a program numbers ranks along its longest dimension first;
        ``MPI_Dims_create`` gives falling ones.
    ring : str
        Neighbours of a rank in a periodic dimension of one and of two ranks, one of :data:`RINGS`. ``others``: none
        and two, a rank sends both ways but not to itself. ``peers``: none and one, every other rank is sent to once.
        ``shift``: two and two, a rank sends both ways whoever is there. From three ranks on each has two.
    """

    dimensions: int
    periodic: tuple[bool, ...]
    rising: bool = False
    ring: str = "others"

    def __post_init__(self) -> None:
        if self.dimensions < 1 or len(self.periodic) != self.dimensions or self.ring not in RINGS:
            raise InputError(
                f"there is no grid of {self.dimensions} dimensions with {len(self.periodic)} periodicities "
                f"and {self.ring!r} neighbours"
            )

    def extents(self, ranks: int) -> tuple[int, ...]:
        """Ranks along each dimension, by :func:`ranksight.core.dims.dims_create`."""
        found = dims_create(ranks, self.dimensions)
        return found[::-1] if self.rising else found

    def neighbours(self, ranks: int) -> NDArray[np.int64]:
        """Number of neighbours of every rank in every dimension, (ranks, dimensions)."""
        sides = self.sides(ranks)
        return np.asarray(sides[:, : self.dimensions] + sides[:, self.dimensions :], dtype=np.int64)

    def sides(self, ranks: int) -> NDArray[np.int64]:
        """Whether every rank has a lower and an upper neighbour in every dimension, (ranks, 2 x dimensions): 0 or 1."""
        extents = self.extents(ranks)
        place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
        around = np.array([self._around(extent, ring) for extent, ring in zip(extents, self.periodic, strict=True)])
        lower, upper = (place > 0) | around, (place < np.array(extents) - 1) | around
        return np.concatenate([lower, upper], axis=1).astype(np.int64)

    def _around(self, extent: int, ring: bool) -> bool:
        """Whether every rank of a dimension sends both ways."""
        return ring and (extent > 2 or self.ring == "shift" or (extent == 2 and self.ring == "others"))

    @property
    def surface(self) -> Cartesian:
        """The grid that tells how many faces of a block have a neighbour: one that is met both ways has two of them."""
        return replace(self, ring="others") if self.ring == "peers" else self

    def faces(self, ranks: int) -> NDArray[np.float64]:
        """Face of a block towards its neighbours in every dimension, in faces of the whole domain, (dimensions,).

        A block is cut along all other dimensions: 1 / (y z) is its face in x.
        """
        return np.array(self.extents(ranks), dtype=np.float64) / ranks

    def pairs(self, ranks: int) -> set[tuple[int, int]]:
        """Ordered pairs of distinct ranks that are neighbours."""
        extents = np.array(self.extents(ranks))
        place = np.stack(np.unravel_index(np.arange(ranks), tuple(extents)), axis=1)
        found: set[tuple[int, int]] = set()
        for d, ring in enumerate(self.periodic):
            if extents[d] == 1:
                continue
            for step in (-1, 1):
                there = place.copy()
                there[:, d] += step
                inside = np.full(ranks, True) if ring else (there[:, d] >= 0) & (there[:, d] < extents[d])
                there[:, d] %= extents[d]
                peer = np.ravel_multi_index(tuple(there.T), tuple(extents))
                found.update(zip(np.flatnonzero(inside).tolist(), peer[inside].tolist(), strict=True))
        return found

    def classes(self, ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct rows of :meth:`neighbours` and how many ranks have each, without listing the ranks.

        Returns
        -------
        (k, dimensions) and (k,) arrays
        """
        rows: list[tuple[int, ...]] = [()]
        counts = [1]
        for extent, ring in zip(self.extents(ranks), self.periodic, strict=True):
            kinds = {2: extent} if self._around(extent, ring) else _line(extent)
            pairs = [(row, count, n, c) for row, count in zip(rows, counts, strict=True) for n, c in kinds.items()]
            rows = [(*row, n) for row, _, n, _ in pairs]
            counts = [count * c for _, count, _, c in pairs]
        return np.array(rows, dtype=np.int64), np.array(counts, dtype=np.int64)

    @property
    def text(self) -> str:
        """As people read it: ``3-d grid``, ``2-d grid, periodic in x``."""
        axes = "".join(axis for axis, ring in zip("xyz", self.periodic, strict=False) if ring)
        how = "" if not axes else ", periodic" if all(self.periodic) else f", periodic in {' and '.join(axes)}"
        return f"{self.dimensions}-d grid{how}{', extents rising' if self.rising else ''}"


def _line(extent: int) -> dict[int, int]:
    """Ranks with 0, 1 and 2 neighbours on a line of `extent` ranks."""
    if extent == 1:
        return {0: 1}
    return {1: 2, 2: extent - 2} if extent > 2 else {1: 2}


MOST_DIMENSIONS = 3


def cartesian_grids(talks: Sequence[tuple[int, Collection[tuple[int, int]]]]) -> tuple[Cartesian, ...]:
    """All grids whose neighbours are exactly the pairs of distinct ranks that exchange messages.

    Pairs of a rank with itself decide nothing but :attr:`Cartesian.ring`: a program may copy what it has for itself,
    and send to itself for other reasons.

    Parameters
    ----------
    talks : sequence of (ranks, pairs)
        For each run its number of ranks and the pairs (sender, receiver).

    Returns
    -------
    tuple of Cartesian
        The fewest dimensions first; empty where no grid fits or no two ranks exchange messages. Extents rise where
        falling ones explain nothing.
    """
    wanted = [(ranks, {pair for pair in pairs if pair[0] != pair[1]}) for ranks, pairs in sorted(talks, key=_ranks)]
    if not any(pairs for _, pairs in wanted) or any(len(pairs) > 2 * MOST_DIMENSIONS * p for p, pairs in wanted):
        return ()
    alone = {ranks: all((rank, rank) in pairs for rank in range(ranks)) for ranks, pairs in talks}
    for rising in (False, True):
        candidates = [
            Cartesian(dimensions, periodic, rising)
            for dimensions in range(1 + rising, MOST_DIMENSIONS + 1)
            for periodic in itertools.product((False, True), repeat=dimensions)
        ]
        fitting = [grid for grid in candidates if all(grid.pairs(ranks) == pairs for ranks, pairs in wanted)]
        if fitting:
            return tuple(replace(grid, ring=ring) for grid in fitting for ring in _rings(grid, alone))
    return ()


def _ranks(talk: tuple[int, Collection[tuple[int, int]]]) -> int:
    return talk[0]


def _rings(grid: Cartesian, alone: dict[int, bool]) -> tuple[str, ...]:
    """Choices of :attr:`Cartesian.ring` that fit; `alone` has the runs and whether every rank sends to itself there."""
    if not any(grid.periodic):
        return RINGS[:1]
    expected = {
        ranks: any(ring and n == 1 for ring, n in zip(grid.periodic, grid.extents(ranks), strict=True))
        for ranks in alone
    }
    if not any(expected.values()):
        return RINGS
    return RINGS[2:] if expected == alone else RINGS[:2]
