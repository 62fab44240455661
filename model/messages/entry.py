"""One row of what a program sends, as a function of ranks: an operation, its partners by rules, its volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksight.comm.patterns.communicators import CommunicatorSize
from ranksight.comm.patterns.recognition import Explanation
from ranksight.comm.patterns.rule import rule_from
from ranksight.core.errors import InputError
from ranksight.model.plaindata import reading

PROFILES = ("even", "doubling", "halving")
"""How a volume goes with the round k of a rule: the same, times 2^k, times 2^-k."""


@dataclass(frozen=True, slots=True)
class Part:
    """Messages of one kind within an entry.

    Attributes
    ----------
    who : int
        What the volumes belong to: for ``links`` the rule; for ``root`` and ``last`` 0 the root, 1 the others; for
        ``grid`` 0 every rank, d + 1 each neighbour along dimension d; for ``degree`` 0, each partner; otherwise 0.
    population : int
        Messages of one size class stand apart from those of the next; part of the same rank's table.
    count, size : int
        Indices of the volumes: messages of a link or rank, and bytes of each.
    count_profile, size_profile : str
        Of :data:`PROFILES`.
    """

    who: int
    population: int
    count: int
    size: int
    count_profile: str = "even"
    size_profile: str = "even"


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation of a kernel on one kind of communicator.

    Attributes
    ----------
    kind : str
        ``links``: volumes belong to links of rules; ``all``: every rank the same; ``root``, ``last``: rank 0 or the
        last one and the others; ``degree``: by the number of partners of another operation of the kernel; ``grid``: by
        the number of neighbours on the process grid; ``mean``: ranks differ by no rule, their mean stands.
    explanations : tuple of Explanation
        Communication patterns, the simplest first; the parts belong to the rules of the first. Of kind ``degree`` those
        of the other operation.
    once : bool
        Whether links of several rules between the same two ranks carry one message together.
    spread : float
        Largest difference of a link or rank from its rule, relative to the mean; 0 where the rule is exact.
    grid : tuple of int
        Dimensions and whether extents rise, of kind ``grid``; else empty.
    gone : int
        Number of ranks of a run that did not have it, 0 where all did.
    tags : tuple of int
        Of its messages, where tags distinguish patterns of the operation; empty for all.
    """

    kernel: str
    operation: str
    communicator: CommunicatorSize
    kind: str
    explanations: tuple[Explanation, ...]
    parts: tuple[Part, ...]
    once: bool = False
    spread: float = 0.0
    grid: tuple[int, ...] = ()
    gone: int = 0
    tags: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "kernel": self.kernel,
            "operation": self.operation,
            "communicator": [self.communicator.name, self.communicator.number],
            "kind": self.kind,
            "explanations": [[rule.to_dict() for rule in one.rules] for one in self.explanations],
            "parts": [[p.who, p.population, p.count, p.size, p.count_profile, p.size_profile] for p in self.parts],
            "once": self.once,
            "spread": self.spread,
            "grid": list(self.grid),
            "gone": self.gone,
            "tags": list(self.tags),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], volumes: int) -> Entry:
        """Rebuild from :meth:`to_dict`, where there are `volumes` volumes; damaged content raises InputError."""
        with reading("a message entry"):
            name, number = content["communicator"]
            explanations = tuple(Explanation(tuple(map(rule_from, rules))) for rules in content["explanations"])
            parts = tuple(Part(int(a), int(b), int(c), int(d), str(e), str(f)) for a, b, c, d, e, f in content["parts"])
            entry = cls(
                str(content["kernel"]),
                str(content["operation"]),
                CommunicatorSize(str(name), int(number)),
                str(content["kind"]),
                explanations,
                parts,
                bool(content["once"]),
                float(content["spread"]),
                tuple(int(x) for x in content["grid"]),
                int(content["gone"]),
                tuple(int(x) for x in content.get("tags", ())),
            )
        who = {"links": len(explanations[0].rules) if explanations else 0, "root": 2, "last": 2, "all": 1, "mean": 1}
        who["degree"] = 1 if explanations else 0
        most = 1 + entry.grid[0] if entry.kind == "grid" and entry.grid else who.get(entry.kind, 0)
        for part in parts:
            if not (0 <= part.who < most and 0 <= part.count < volumes and 0 <= part.size < volumes):
                raise InputError("a message entry does not fit together", "fit the model again")
            if {part.count_profile, part.size_profile} - set(PROFILES):
                raise InputError("a message entry names an unknown profile", "fit the model again")
        return entry
