"""Partners a fixed part of all ranks away: halves and quarters, as butterflies and pipelines in groups have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited

PARTS = (2, 3, 4, 8)


@FAMILIES.register("fraction")
@dataclass(frozen=True)
class Fraction(Rule):
    """``destination = (source + sign * ranks / parts) mod ranks`` where `parts` divides the ranks."""

    parts: int
    sign: int
    family: ClassVar[str] = "fraction"
    order: ClassVar[int] = 6

    def __post_init__(self) -> None:
        if self.parts < 2 or self.sign not in (-1, 1):
            raise ValueError(f"{self.sign} / {self.parts} of the ranks is not a distance")

    def links(self, ranks: int) -> Links:
        """One link a rank; none where the ranks do not divide."""
        limited(ranks, ranks)
        if ranks % self.parts:
            return Links.joined([])
        source = np.arange(ranks)
        return Links.of(source, (source + self.sign * (ranks // self.parts)) % ranks)

    @property
    def text(self) -> str:
        """``rank + ranks / 2 (mod ranks)``."""
        return f"rank {'+' if self.sign > 0 else '-'} ranks / {self.parts} (mod ranks)"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """Each part, forwards and backwards."""
        for parts in PARTS:
            yield tuple(cls(parts, sign) for sign in ((1, -1) if parts > 2 else (1,)))
