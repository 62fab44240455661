"""All to one and one to all: masters and workers, gathered output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited


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
