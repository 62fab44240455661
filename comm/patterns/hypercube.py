"""Hypercubes, as recursive doubling and butterflies walk them: in round k the partner differs in bit k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited, rounds


@FAMILIES.register("hypercube")
@dataclass(frozen=True)
class Hypercube(Rule):
    """``destination = source xor 2**k`` for every round k, where that is a rank."""

    family: ClassVar[str] = "hypercube"
    order: ClassVar[int] = 4

    def links(self, ranks: int) -> Links:
        """``log2(ranks)`` links a rank."""
        limited(ranks, ranks * rounds(ranks))
        source = np.arange(ranks)
        parts = []
        for k in range(rounds(ranks)):
            target = source ^ (1 << k)
            parts.append(Links.of(source[target < ranks], target[target < ranks], k))
        return Links.joined(parts)

    @property
    def text(self) -> str:
        """The equation."""
        return "rank xor 2^k, every round k"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """The one."""
        yield (cls(),)
