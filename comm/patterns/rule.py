"""What a rule of communication is, and the registry of their families."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, ClassVar

import numpy as np

from ranksight.core.arrays import Ints
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry

MOST_RANKS = 1 << 20
"""Ranks that a table of messages is made for: it names them one by one before it groups them."""
MOST_LINKS = 1 << 25


@dataclass(frozen=True, slots=True)
class Links:
    """Directed links of a rule at one number of ranks, each once.

    `source` and `target` (e,) int64: ranks; the target is who the source's operation names: receiver of a send, sender
    of a receive. `round` (e,) int64: for rules whose steps grow in number with the ranks the step, from 0; else 0.
    """

    source: Ints
    target: Ints
    round: Ints

    @classmethod
    def of(cls, source: Ints, target: Ints, at: Ints | int = 0) -> Links:
        """From arrays that broadcast."""
        source, target, step = np.broadcast_arrays(source, target, np.asarray(at, dtype=np.int64))
        return cls(source.astype(np.int64), target.astype(np.int64), step.astype(np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Links]) -> Links:
        """Links of several steps."""
        if not parts:
            return cls(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("source", "target", "round")))

    def codes(self, ranks: int) -> Ints:
        """Each link as one number, ``source * ranks + target``."""
        return np.asarray(self.source * ranks + self.target, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class EdgeSet:
    """The communication pattern of one run: ``source * ranks + target`` of each link, sorted, each once."""

    ranks: int
    codes: Ints

    @classmethod
    def of(cls, ranks: int, source: Ints, target: Ints) -> EdgeSet:
        """From pairs of ranks; InputError where one is not a rank of the run."""
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        for named in (source, target):
            if named.size and (named.min() < 0 or named.max() >= ranks):
                raise InputError(f"a run of {ranks} ranks names rank {int(named.max())} as partner")
        return cls(ranks, np.unique(source * ranks + target))

    def distances(self) -> Ints:
        """Distinct ``target - source``."""
        return np.unique(self.codes % self.ranks - self.codes // self.ranks)


class Rule(ABC):
    """One equation destination = f(source, ranks). Subclasses are frozen dataclasses of plain values."""

    family: ClassVar[str]
    order: ClassVar[int]
    """Families are tried and preferred in this order: what is simpler or more usual comes first."""

    @abstractmethod
    def links(self, ranks: int) -> Links:
        """All links at a number of ranks; none where the rule has no meaning there."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The equation, as people read it."""

    @classmethod
    @abstractmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """Candidates to try: each a set of rules of one kind, of which a program may use some."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return {"family": self.family} | {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}


FAMILIES: Registry[type[Rule]] = Registry("communication rule", ("ranksight.comm.patterns",), "ranksight.patterns")
"""Families of rules; a class registers itself under its ``family``."""


def rule_from(content: Mapping[str, Any]) -> Rule:
    """Rebuild a rule from :meth:`Rule.to_dict`; InputError where it is damaged."""
    try:
        family = FAMILIES[str(content["family"])]
        values: dict[str, Any] = {}
        for item in fields(family):  # type: ignore[arg-type]
            name, kind = item.name, str(item.type)
            if name not in content and item.default is not MISSING:
                continue  # a file from before there was this field
            value: Any = content[name]
            number = float if "float" in kind else int
            plain: Any = tuple(number(x) for x in value) if isinstance(value, list) else value
            wanted: type = {"int": int, "bool": bool}.get(kind, tuple)
            if type(plain) is not wanted or (isinstance(plain, int) and abs(plain) > 1 << 40):
                raise InputError(f"a rule of communication is damaged: {name} is {value!r}", "fit the model again")
            values[name] = plain
        return family(**values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a rule of communication is damaged: {error}", "fit the model again") from error


def limited(ranks: int, links: int) -> None:
    """Refuse what no table can be made of.

    Raises InputError for more than :data:`MOST_RANKS` ranks, :data:`MOST_LINKS` links, or fewer than one rank.
    """
    if ranks < 1:
        raise InputError(f"{ranks} ranks", "ask for 1 or more")
    if ranks > MOST_RANKS or links > MOST_LINKS:
        raise InputError(
            f"{ranks} ranks make {links} links: too many to list the communication pattern", "ask for fewer ranks"
        )


def rounds(ranks: int) -> int:
    """Smallest k with ``2**k >= ranks``."""
    return max(ranks - 1, 0).bit_length()


def exact_root(ranks: int) -> int:
    """``q`` with ``q * q == ranks``, 0 where there is none."""
    q = int(np.sqrt(ranks) + 0.5)
    return q if q * q == ranks else 0
