"""All to all: over all ranks, or within the rows or columns of a process grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.grid import MOST_DIMENSIONS
from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited
from ranksight.core.dims import dims_create


@FAMILIES.register("everyone")
@dataclass(frozen=True)
class Everyone(Rule):
    """Every rank names every rank that shares its coordinates in all dimensions but one."""

    dimensions: int  # of the grid, by ``MPI_Dims_create``; 1 is all ranks
    axis: int  # the dimension in which the ranks differ: in two, 0 is a column and 1 a row
    own: bool  # whether a rank names itself
    family: ClassVar[str] = "everyone"
    order: ClassVar[int] = 8

    def __post_init__(self) -> None:
        if not 0 <= self.axis < self.dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"axis {self.axis} of {self.dimensions} dimensions")

    def links(self, ranks: int) -> Links:
        """``n - 1`` links a rank, n the ranks along the axis."""
        extents = dims_create(ranks, self.dimensions)
        n = extents[self.axis]
        limited(ranks, ranks * n)
        after = int(np.prod(extents[self.axis + 1 :], dtype=np.int64))
        source = np.repeat(np.arange(ranks), n)
        start = source - source // after % n * after
        target = start + np.tile(np.arange(n), ranks) * after
        kept = np.full(len(source), True) if self.own else source != target
        return Links.of(source[kept], target[kept])

    @property
    def text(self) -> str:
        """Who names whom."""
        if self.dimensions == 1:
            return "every rank to every other" + (" and itself" if self.own else "")
        return f"every rank to all along {'xyz'[self.axis]} of a {self.dimensions}-d grid"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """All ranks, then lines of grids: one axis or several."""
        for dimensions in range(1, MOST_DIMENSIONS + 1):
            for own in (False, True):
                yield tuple(cls(dimensions, axis, own) for axis in range(dimensions))
