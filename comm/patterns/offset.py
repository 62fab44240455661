"""Constant distances with ends: pipelines and lines, where the first and last ranks lack a partner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited
from ranksight.comm.patterns.shift import NEAR


@FAMILIES.register("offset")
@dataclass(frozen=True)
class Offset(Rule):
    """``destination = source + by`` where that is a rank."""

    by: int
    family: ClassVar[str] = "offset"
    order: ClassVar[int] = 1

    def links(self, ranks: int) -> Links:
        """One link for each rank that has a partner."""
        limited(ranks, ranks)
        source = np.arange(max(0, -self.by), min(ranks, ranks - self.by))
        return Links.of(source, source + self.by)

    @property
    def text(self) -> str:
        """``rank + 1``."""
        return f"rank {'+' if self.by >= 0 else '-'} {abs(self.by)}" if self.by else "the rank itself"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """All distances of the run with most ranks."""
        last = max(edge_sets, key=lambda edges: edges.ranks)
        ways = sorted((int(d) for d in last.distances()), key=abs)
        # All distances of a run are all ranks, not a choice of constant ones.
        if ways and abs(ways[-1]) <= NEAR and len(ways) < max(2 * last.ranks - 2, 3):
            yield tuple(cls(d) for d in ways)
