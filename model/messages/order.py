"""The order in which a program makes its calls: what replay needs besides the message table.

The calls of a run's ranks repeat a block, a step. Its calls, with calls of one kernel and operation in a row taken as
one, are the template; ranks at borders leave some of them out. A message is sent in one call of a template and received
in one of another; which, is a property of the rule that it follows (:mod:`ranksight.comm.patterns`), so that it holds
at every number of ranks. :mod:`ranksight.model.messages.fit_order` reads it from an event trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Row, Some, reading

KINDS = ("all", "first", "last", "even")
"""Ranks that have a template: all that no other one has, rank 0, the last rank, every second one."""


@dataclass(frozen=True)
class Place(Row):
    """A call of a step, or several of one kernel and operation in a row."""

    kernel: str
    operation: str
    comm_size: int  # in the run that was traced; for collectives
    of: str  # whose template it belongs to, of :data:`KINDS`
    work: float  # part of a rank's computation in all steps that comes before it


@dataclass(frozen=True)
class Sent(Row):
    """Messages of a rule that one call sends and another receives."""

    entry: int  # of the message model, its rule, and the round of that; -1 for all
    rule: int
    round: int
    send: int  # places
    receive: int
    lag: int  # steps between the two
    count: int  # messages of a link


BY_RANK, BY_PLACE, BY_CHANCE = PATTERNS = ("rank", "place", "chance")
"""A rank computes as much at any number of ranks (its data, its core); as much as those around it in the domain; or
neither is seen."""


@dataclass(frozen=True)
class Order(Some):
    """Calls of a step."""

    places: tuple[Place, ...]
    sent: tuple[Sent, ...]
    steps: int
    ranks: int  # of the run it was read from
    uneven: Array  # (n,): what ranks of that run compute over the mean, rank after rank
    jitter: float  # standard deviation of ln of a step's computation against the rank's mean, persistent part removed
    pattern: str = BY_CHANCE
    """What a rank's computation goes with, one of :data:`PATTERNS`."""

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("an order of calls"):
            return super().from_dict(content)

    def members(self, kind: str, ranks: int) -> Mask:
        """Which of `ranks` ranks have a template, (P,)."""
        rank = np.arange(ranks)
        special = {"first": rank == 0, "last": rank == ranks - 1, "even": rank % 2 == 0}
        kinds = {place.of for place in self.places}
        if kind in special:
            return np.asarray(special[kind])
        others = [special[name] for name in kinds if name in special]
        return np.asarray(~np.any(others, axis=0)) if others else np.ones(ranks, dtype=bool)

    def _fits(self) -> bool:
        n = len(self.places)
        inside = all(0 <= one.send < n and 0 <= one.receive < n and one.lag >= 0 for one in self.sent)
        inside &= self.pattern in PATTERNS
        return inside and self.steps >= 1 and self.ranks >= 1 and all(place.of in KINDS for place in self.places)


NO_ORDER = Order((), (), 1, 1, np.ones(1), 0.0)
"""Where no event trace shows it, or no step repeats."""
