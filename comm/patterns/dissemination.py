"""Dissemination and Bruck's rounds: in round k the partner is 2^k ranks ahead, or behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited, rounds


@FAMILIES.register("dissemination")
@dataclass(frozen=True)
class Dissemination(Rule):
    """``destination = (source + sign * 2**k) mod ranks`` for every round k below log2(ranks)."""

    sign: int
    family: ClassVar[str] = "dissemination"
    order: ClassVar[int] = 5

    def __post_init__(self) -> None:
        if self.sign not in (-1, 1):
            raise ValueError(f"the sign is {self.sign}")

    def links(self, ranks: int) -> Links:
        """``ceil(log2(ranks))`` links a rank."""
        limited(ranks, ranks * rounds(ranks))
        source = np.arange(ranks)
        return Links.joined(
            [Links.of(source, (source + self.sign * (1 << k)) % ranks, k) for k in range(rounds(ranks))]
        )

    @property
    def text(self) -> str:
        """The equation."""
        return f"rank {'+' if self.sign > 0 else '-'} 2^k (mod ranks), every round k"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """Forwards, backwards, or both."""
        yield (cls(1), cls(-1))
