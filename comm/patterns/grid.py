"""Cartesian process grids: how many neighbours each rank has in each direction, at any number of ranks.

Programs on structured grids place their ranks on a d-dimensional grid. What a rank packs, sends and unpacks follows the
number of its neighbours in each direction, 0, 1 or 2 at corners, edges and faces of the process grid. This law is known
for every number of ranks once the grid is, while a smooth function of the number of ranks can only approach it:
the mean number of neighbours is 1, 2 and 3 at 2, 4 and 8 ranks on a three-dimensional grid, as log2 of the ranks is,
and 4 at 32 ranks, not 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.dims import dims_create
from ranksight.errors import InputError


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
    """

    dimensions: int
    periodic: tuple[bool, ...]
    rising: bool = False

    def __post_init__(self) -> None:
        if self.dimensions < 1 or len(self.periodic) != self.dimensions:
            raise InputError(f"a grid of {self.dimensions} dimensions with {len(self.periodic)} periodicities is none")

    def extents(self, ranks: int) -> tuple[int, ...]:
        """Ranks along each dimension, by :func:`ranksight.dims.dims_create`."""
        found = dims_create(ranks, self.dimensions)
        return found[::-1] if self.rising else found

    def neighbours(self, ranks: int) -> NDArray[np.int64]:
        """Number of neighbours of every rank in every dimension, (ranks, dimensions).

        A dimension of one rank has no neighbours unless it is periodic; then the rank is its own, twice.
        """
        extents = self.extents(ranks)
        place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
        inside = (place > 0).astype(np.int64) + (place < np.array(extents) - 1)
        return np.where(np.array(self.periodic), 2, inside)

    def sides(self, ranks: int) -> NDArray[np.int64]:
        """Whether every rank has a lower and an upper neighbour in every dimension, (ranks, 2 x dimensions): 0 or 1."""
        extents = self.extents(ranks)
        place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
        ring = np.array(self.periodic)
        lower, upper = (place > 0) | ring, (place < np.array(extents) - 1) | ring
        return np.concatenate([lower, upper], axis=1).astype(np.int64)

    def faces(self, ranks: int) -> NDArray[np.float64]:
        """Face of a block towards its neighbours in every dimension, in faces of the whole domain, (dimensions,).

        A block is cut along all other dimensions: 1 / (y z) is its face in x.
        """
        return np.array(self.extents(ranks), dtype=np.float64) / ranks

    def pairs(self, ranks: int) -> set[tuple[int, int]]:
        """Ordered pairs of neighbours; a rank that is its own neighbour is one of them."""
        extents = np.array(self.extents(ranks))
        place = np.stack(np.unravel_index(np.arange(ranks), tuple(extents)), axis=1)
        found: set[tuple[int, int]] = set()
        for d, ring in enumerate(self.periodic):
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
            kinds = {2: extent} if ring else _line(extent)
            pairs = [(row, count, n, c) for row, count in zip(rows, counts, strict=True) for n, c in kinds.items()]
            rows = [(*row, n) for row, _, n, _ in pairs]
            counts = [count * c for _, count, _, c in pairs]
        return np.array(rows, dtype=np.int64), np.array(counts, dtype=np.int64)


def _line(extent: int) -> dict[int, int]:
    """Ranks with 0, 1 and 2 neighbours on a line of `extent` ranks."""
    if extent == 1:
        return {0: 1}
    return {1: 2, 2: extent - 2} if extent > 2 else {1: 2}


MOST_DIMENSIONS = 3


def cartesian_of(talks: Sequence[tuple[int, Collection[tuple[int, int]]]]) -> Cartesian | None:
    """The one grid whose neighbours are exactly the pairs of ranks that exchange messages.

    Parameters
    ----------
    talks : sequence of (ranks, pairs)
        For each run its number of ranks and the pairs (sender, receiver).

    Returns
    -------
    Cartesian or None
        None where no grid explains all runs, or several do: grids of two and of three dimensions are the same below
        eight ranks, and a ring of two ranks is a line, so only runs with more ranks tell them apart. Extents rise
        where falling ones explain nothing.
    """
    candidates: list[Cartesian] = []
    for rising in (False, True):
        candidates = [
            Cartesian(dimensions, ring, rising)
            for dimensions in range(1 + rising, MOST_DIMENSIONS + 1)
            for ring in itertools.product((False, True), repeat=dimensions)
        ]
        for ranks, pairs in sorted(talks, key=lambda talk: talk[0]):
            wanted = set(pairs)
            candidates = [grid for grid in candidates if grid.pairs(ranks) == wanted]
        if candidates:
            break
    return candidates[0] if len(candidates) == 1 and talks else None
