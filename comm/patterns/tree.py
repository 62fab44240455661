"""Trees over the ranks: complete binary ones, and the binomial one of reductions and broadcasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited


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
