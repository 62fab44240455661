"""Steps on a Cartesian process grid: neighbours along axes, diagonals, whatever vector of -1, 0 and 1.

A program places its ranks on a grid, :func:`ranksight.core.dims.dims_create`'s or the same extents in rising
order, numbers them in row-major order as ``MPI_Cart_create`` does, and every rank sends to its neighbour one step away.
(Extents in falling order numbered column-major are those in rising order numbered row-major, read backwards.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian
from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited
from ranksight.core.dims import dims_create, least_surface
from ranksight.core.records import dataclass


@FAMILIES.register("step")
@dataclass(frozen=True)
class Step(Rule):
    """``coordinates(destination) = coordinates(source) + vector``."""

    vector: tuple[int, ...]  # -1, 0 or 1 for each of 1 to 3 dimensions
    periodic: bool  # whether the ends of the grid are neighbours, in the dimensions that the vector goes along
    rising: bool  # whether the extents rise, as LAMMPS has them; ``MPI_Dims_create`` gives falling ones
    own: bool  # whether a periodic step from a rank onto itself is a message
    domain: tuple[float, ...] = ()
    """Edges of the domain, where blocks of the least surface decide the extents; empty where ``MPI_Dims_create``
    does."""
    family: ClassVar[str] = "step"
    order: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not 1 <= len(self.vector) <= MOST_DIMENSIONS or not any(self.vector) or set(self.vector) - {-1, 0, 1}:
            raise ValueError(f"{self.vector} is not a step on a grid")
        if self.domain and (len(self.domain) != len(self.vector) or not all(0 < x < np.inf for x in self.domain)):
            raise ValueError(f"a step of {len(self.vector)} dimensions has no domain of edges {self.domain}")

    @property
    def straight(self) -> bool:
        """Whether the step goes along one axis."""
        return sum(map(abs, self.vector)) == 1

    def extents(self, ranks: int) -> tuple[int, ...]:
        """Ranks along each dimension."""
        if self.domain:
            return least_surface(ranks, self.domain, self.rising)
        found = dims_create(ranks, len(self.vector))
        return found[::-1] if self.rising else found

    def links(self, ranks: int) -> Links:
        """One link a rank that has a neighbour there."""
        limited(ranks, ranks)
        extents = np.array(self.extents(ranks))[:, None]
        place = np.stack(np.unravel_index(np.arange(ranks), tuple(extents[:, 0])))
        there = place + np.array(self.vector)[:, None]
        if self.periodic:
            there, inside = there % extents, np.full(ranks, True)
        else:
            inside = ((there >= 0) & (there < extents)).all(axis=0)
        target = np.ravel_multi_index(tuple(there[:, inside]), tuple(extents[:, 0]))
        source = np.flatnonzero(inside)
        kept = np.full(len(source), True) if self.own else source != target
        return Links.of(source[kept], np.asarray(target)[kept])

    @property
    def text(self) -> str:
        """Axes and signs: ``+x -z of a 3-d grid, periodic``."""
        along = " ".join(f"{'+' if v > 0 else '-'}{axis}" for v, axis in zip(self.vector, "xyz", strict=False) if v)
        how = ", periodic" if self.periodic else ""
        if self.domain:
            how += f", blocks of least surface in {' x '.join(f'{edge:.3g}' for edge in self.domain)}"
        return f"{along} on a {len(self.vector)}-d grid{how}{', extents rising' if self.rising else ''}"

    @classmethod
    def of_box(cls, grid: Cartesian) -> tuple[Step, ...]:
        """Steps both ways along every dimension of a grid whose extents follow the edges of its domain."""
        d, own = grid.dimensions, grid.ring == "shift"
        ways = [(tuple(way * (e == at) for e in range(d)), at) for at in range(d) for way in (-1, 1)]
        return tuple(cls(vector, grid.periodic[at], grid.rising, own, grid.domain) for vector, at in ways)

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """Every grid with each choice of periodic dimensions: a step is periodic where any of its dimensions is."""
        for dimensions in range(1, MOST_DIMENSIONS + 1):
            vectors = [v for v in itertools.product((-1, 0, 1), repeat=dimensions) if any(v)]
            vectors.sort(key=lambda v: (sum(map(abs, v)), [-abs(x) for x in v], v))
            for rising in (False, True) if dimensions > 1 else (False,):
                for ring in itertools.product((False, True), repeat=dimensions):
                    world = [v for v in vectors if len({r for r, x in zip(ring, v, strict=True) if x}) == 1]
                    around = [any(r for r, x in zip(ring, v, strict=True) if x) for v in world]
                    for own in (True, False) if any(ring) else (True,):
                        yield tuple(cls(v, r, rising, own) for v, r in zip(world, around, strict=True))
