"""Partners by role: a root, everyone in a line of the grid, row and column exchanged, parents in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.grid import MOST_DIMENSIONS
from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, exact_root, limited
from ranksight.core.dims import dims_create
from ranksight.core.records import dataclass


@FAMILIES.register("root")
@dataclass(frozen=True)
class Root(Rule):
    """Every other rank names the root, or the root names every other.

    `root`: a rank, counted from the last one where negative. `towards`: whether the others name the root.
    """

    root: int
    towards: bool
    family: ClassVar[str] = "root"
    order: ClassVar[int] = 0

    def links(self, ranks: int) -> Links:
        """``ranks - 1`` links; none where the root is no rank."""
        limited(ranks, ranks)
        root = self.root + ranks if self.root < 0 else self.root
        if not 0 <= root < ranks:
            return Links.joined([])
        others = np.delete(np.arange(ranks), root)
        one = np.full(ranks - 1, root)
        return Links.of(others, one) if self.towards else Links.of(one, others)

    @property
    def text(self) -> str:
        """Who names whom."""
        name = f"rank {self.root}" if self.root >= 0 else "the last rank" if self.root == -1 else f"rank {self.root}"
        return f"all others to {name}" if self.towards else f"{name} to all others"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """The root of the run with most ranks, as a fixed rank or as the last; both directions together or one."""
        last = max(edge_sets, key=lambda edges: edges.ranks)
        for which in (last.codes % last.ranks, last.codes // last.ranks):
            names, counts = np.unique(which, return_counts=True)
            for root in names[counts == last.ranks - 1].tolist()[:2]:
                yield (cls(root, True), cls(root, False))
                if root == last.ranks - 1:
                    yield (cls(-1, True), cls(-1, False))


@FAMILIES.register("transpose")
@dataclass(frozen=True)
class Transpose(Rule):
    """``destination = (source mod q) q + source div q`` with ``q = sqrt(ranks)``.

    `own`: whether ranks on the diagonal send to themselves.
    """

    own: bool
    family: ClassVar[str] = "transpose"
    order: ClassVar[int] = 7

    def links(self, ranks: int) -> Links:
        """One link a rank; none where the ranks are no square."""
        limited(ranks, ranks)
        q = exact_root(ranks)
        if q == 0:
            return Links.joined([])
        source = np.arange(ranks)
        target = source % q * q + source // q
        kept = np.full(ranks, True) if self.own else source != target
        return Links.of(source[kept], target[kept])

    @property
    def text(self) -> str:
        """The equation."""
        return "row and column exchanged on a square grid"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """With and without the diagonal."""
        yield (cls(False),)
        yield (cls(True),)


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


@FAMILIES.register("tree")
@dataclass(frozen=True)
class Tree(Rule):
    """Every rank names its parent, or its children: ``(rank - 1) div 2`` in a binary tree, ``rank`` without its lowest
    set bit in a binomial one.

    `upwards`: whether ranks name their parent.
    """

    binomial: bool
    upwards: bool
    family: ClassVar[str] = "tree"
    order: ClassVar[int] = 9

    def links(self, ranks: int) -> Links:
        """``ranks - 1`` links."""
        limited(ranks, ranks)
        child = np.arange(1, ranks, dtype=np.int64)
        parent = child & (child - 1) if self.binomial else (child - 1) // 2
        return Links.of(child, parent) if self.upwards else Links.of(parent, child)

    @property
    def text(self) -> str:
        """Who names whom."""
        return f"{'parent' if self.upwards else 'children'} in a {'binomial' if self.binomial else 'binary'} tree"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """Either tree, upwards, downwards or both."""
        yield (cls(False, True), cls(False, False))
        yield (cls(True, True), cls(True, False))
