"""Rings and shifts: every rank sends to the one a fixed distance away, around the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited

NEAR = 64
"""Largest distance that is tried."""


@FAMILIES.register("shift")
@dataclass(frozen=True)
class Shift(Rule):
    """``destination = (source + by) mod ranks``."""

    by: int
    family: ClassVar[str] = "shift"
    order: ClassVar[int] = 2

    def links(self, ranks: int) -> Links:
        """One link a rank; none where the distance is a multiple of the ranks."""
        limited(ranks, ranks)
        if self.by % ranks == 0:
            return Links.joined([])
        source = np.arange(ranks)
        return Links.of(source, (source + self.by) % ranks)

    @property
    def text(self) -> str:
        """``rank + 1 (mod ranks)``."""
        return f"rank {'+' if self.by >= 0 else '-'} {abs(self.by)} (mod ranks)"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """All distances of the run with most ranks, the shorter way round."""
        last = max(edge_sets, key=lambda edges: edges.ranks)
        seen = {int(d) % last.ranks for d in last.distances()} - {0}
        ways = sorted((d if 2 * d <= last.ranks else d - last.ranks for d in seen), key=abs)
        # All distances of a run are all ranks, not a choice of constant ones.
        if ways and abs(ways[-1]) <= NEAR and len(ways) < max(last.ranks - 1, 3):
            yield tuple(cls(d) for d in ways)
