"""One row of what a program sends, as a function of ranks: an operation, its partners by rules, its volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ranksight.comm.patterns.communicators import CommunicatorSize
from ranksight.comm.patterns.recognition import Explanation
from ranksight.comm.patterns.rule import rule_from
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Row, Stored, reading

PROFILES = ("even", "doubling", "halving")
"""How a volume goes with the round k of a rule: the same, times 2^k, times 2^-k."""


@dataclass(frozen=True)
class Part(Row):
    """Messages of one kind within an entry."""

    who: int
    """What the volumes belong to: for ``links`` the rule; for ``root`` and ``last`` 0 the root, 1 the others; for
    ``grid`` 0 every rank, d + 1 each neighbour along dimension d; for ``degree`` 0, each partner; otherwise 0."""
    population: int  # messages of one size class stand apart from those of the next; part of the same rank's table
    count: int  # indices of the volumes: messages of a link or rank, and bytes of each
    size: int
    count_profile: str = "even"  # of :data:`PROFILES`
    size_profile: str = "even"

    def _fits(self) -> bool:
        return {self.count_profile, self.size_profile} <= set(PROFILES)


@dataclass(frozen=True)
class Entry(Stored):
    """An operation of a kernel on one kind of communicator."""

    kernel: str
    operation: str
    communicator: CommunicatorSize
    kind: str
    """``links``: volumes belong to links of rules; ``all``: every rank the same; ``root``, ``last``: rank 0 or the last
    one and the others; ``degree``: by the number of partners of another operation of the kernel; ``grid``: by the
    number of neighbours on the process grid; ``mean``: ranks differ by no rule, their mean stands."""
    explanations: tuple[Explanation, ...]
    """Communication patterns, the simplest first; the parts belong to the rules of the first. Of kind ``degree`` those
    of the other operation."""
    parts: tuple[Part, ...]
    once: bool = False  # whether links of several rules between the same two ranks carry one message together
    spread: float = 0.0
    """Largest difference of a link or rank from its rule, relative to the mean; 0 where the rule is exact."""
    grid: tuple[int, ...] = ()  # dimensions and whether extents rise, of kind ``grid``; else empty
    gone: int = 0  # number of ranks of a run that did not have it, 0 where all did
    tags: tuple[int, ...] = ()  # of its messages, where tags distinguish patterns of the operation; empty for all

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        size, rules = self.communicator, [[rule.to_dict() for rule in one.rules] for one in self.explanations]
        return {**super().to_dict(), "communicator": [size.name, size.number], "explanations": rules}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("a message entry"):
            explanations = tuple(Explanation(tuple(map(rule_from, rules))) for rules in content["explanations"])
            size = CommunicatorSize(*content["communicator"])
            return super().from_dict({**content, "communicator": size, "explanations": explanations})

    def of_volumes(self, volumes: int) -> bool:
        """Whether the parts belong to what the kind has, and to `volumes` volumes."""
        explanations, kind = self.explanations, self.kind
        who = {"links": len(explanations[0].rules) if explanations else 0, "root": 2, "last": 2, "all": 1, "mean": 1}
        who["degree"] = 1 if explanations else 0
        most = 1 + self.grid[0] if kind == "grid" and self.grid else who.get(kind, 0)
        return all(0 <= p.who < most and 0 <= p.count < volumes and 0 <= p.size < volumes for p in self.parts)
