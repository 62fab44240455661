"""Cartesian process grids: how many neighbours each rank has in each direction, at any number of ranks.

Programs on structured grids place their ranks on a d-dimensional grid. What a rank packs, sends and unpacks follows the
number of its neighbours in each direction, 0, 1 or 2 at corners, edges and faces of the process grid. This law is known
for every number of ranks once the grid is, while a smooth function of the number of ranks can only approach it:
the mean number of neighbours is 1, 2 and 3 at 2, 4 and 8 ranks on a three-dimensional grid, as log2 of the ranks is,
and 4 at 32 ranks, not 5. :mod:`ranksight.comm.patterns.find_grids` finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.dims import dims_create, least_surface
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

MOST_DIMENSIONS = 3
RINGS = ("others", "peers", "shift")
"""What a program sends along a periodic dimension of few ranks; see :class:`Cartesian`."""


@dataclass(frozen=True, slots=True)
class Cartesian:
    """A rule that places ranks on a grid, rank numbers in row-major order as ``MPI_Cart_create`` has them."""

    dimensions: int
    periodic: tuple[bool, ...]  # for each dimension whether its ends are neighbours
    rising: bool = False
    """Whether the extents rise, as where a program numbers ranks along its longest dimension first; ``MPI_Dims_create``
    gives falling ones."""
    ring: str = "others"
    """Neighbours of a rank in a periodic dimension of one and of two ranks, one of :data:`RINGS`. ``others``: none and
    two, a rank sends both ways but not to itself. ``peers``: none and one, every other rank is sent to once. ``shift``:
    two and two, a rank sends both ways whoever is there. From three ranks on each has two."""
    domain: tuple[float, ...] = ()
    """Edges of the domain, where blocks of the least surface decide the extents
    (:func:`ranksight.core.dims.least_surface`); empty where ``MPI_Dims_create`` does."""

    def __post_init__(self) -> None:
        if len(self.domain) not in (0, self.dimensions) or not all(0 < edge < np.inf for edge in self.domain):
            raise InputError(f"there is no domain of {self.dimensions} dimensions with edges {self.domain}")
        if self.dimensions < 1 or len(self.periodic) != self.dimensions or self.ring not in RINGS:
            raise InputError(
                f"there is no grid of {self.dimensions} dimensions with {len(self.periodic)} periodicities "
                f"and {self.ring!r} neighbours"
            )

    def extents(self, ranks: int) -> tuple[int, ...]:
        """Ranks along each dimension."""
        if self.domain:
            return least_surface(ranks, self.domain, self.rising)
        found = dims_create(ranks, self.dimensions)
        return found[::-1] if self.rising else found

    def neighbours(self, ranks: int) -> Ints:
        """Number of neighbours of every rank in every dimension, (ranks, dimensions)."""
        sides = self.sides(ranks)
        return np.asarray(sides[:, : self.dimensions] + sides[:, self.dimensions :], dtype=np.int64)

    def sides(self, ranks: int) -> Ints:
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
        """The grid for counting faces with a neighbour: a neighbour in both directions has two of them."""
        return replace(self, ring="others") if self.ring == "peers" else self

    def faces(self, ranks: int) -> Array:
        """Face of a block towards its neighbours in every dimension, (dimensions,).

        A block is cut along all other dimensions: 1 / (y z) is its face in x, in faces of the whole domain; where its
        edges are known, in faces of their product.
        """
        faces = np.array(self.extents(ranks), dtype=np.float64) / ranks
        return faces * np.prod(self.domain) / np.array(self.domain) if self.domain else faces

    def pairs(self, ranks: int) -> set[tuple[int, int]]:
        """Ordered pairs of distinct ranks that are neighbours."""
        along = pairs_along(self.extents(ranks), self.periodic)
        return set().union(*along)

    def classes(self, ranks: int) -> tuple[Ints, Ints]:
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
        if self.domain:
            edges = " x ".join(f"{edge:.3g}" for edge in self.domain)
            return f"{self.dimensions}-d grid{how}, blocks of least surface in {edges}"
        return f"{self.dimensions}-d grid{how}{', extents rising' if self.rising else ''}"


def _line(extent: int) -> dict[int, int]:
    """Ranks with 0, 1 and 2 neighbours on a line of `extent` ranks."""
    if extent == 1:
        return {0: 1}
    return {1: 2, 2: extent - 2} if extent > 2 else {1: 2}


@lru_cache(maxsize=1024)
def pairs_along(extents: tuple[int, ...], periodic: tuple[bool, ...]) -> tuple[frozenset[tuple[int, int]], ...]:
    """Ordered pairs of distinct ranks that are neighbours along each dimension."""
    ranks = int(np.prod(extents))
    place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
    along: list[frozenset[tuple[int, int]]] = []
    for d, ring in enumerate(periodic):
        found: set[tuple[int, int]] = set()
        for step in (-1, 1) if extents[d] > 1 else ():
            there = place.copy()
            there[:, d] += step
            inside = np.full(ranks, True) if ring else (there[:, d] >= 0) & (there[:, d] < extents[d])
            there[:, d] %= extents[d]
            peer = np.ravel_multi_index(tuple(there.T), extents)
            found.update(zip(np.flatnonzero(inside).tolist(), peer[inside].tolist(), strict=True))
        along.append(frozenset(found))
    return tuple(along)


def longer_sides(grids: Sequence[Cartesian], most: int, ranks: Array) -> Array:
    """How many times as many ranks the side that grows most has at `ranks` (k,) as at `most`, on any of the grids.

    Empty where there is no grid, or one is cut along a single side.
    """
    before = [np.array(grid.extents(most)) for grid in grids]
    if not before or not all((sides > 1).sum() > 1 for sides in before):
        return np.empty(0)
    pairs = list(zip(grids, before, strict=True))
    each = [[np.max(grid.extents(max(int(count), 1)) / sides) for count in ranks] for grid, sides in pairs]
    return np.asarray(np.fmax(np.max(each, axis=0), 1.0))
