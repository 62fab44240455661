"""Partners at a distance: lines, rings, parts of all ranks, and distances that double from round to round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, limited, rounds
from ranksight.core.records import dataclass

NEAR = 64
"""Largest distance that is tried."""
PARTS = (2, 3, 4, 8)
"""Parts of all ranks that are tried."""


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
