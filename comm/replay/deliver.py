"""When messages arrive, and what decided when their receivers went on: one round of messages over arrays of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ranksight.comm.replay.wires import Wires
from ranksight.core.arrays import Array, Index, Ints
from ranksight.core.records import dataclass

PARTS = ("latency", "overhead", "wire")
"""What of messages on a path is counted: crossings between nodes, seconds of the processors, and of the bytes."""


@dataclass(frozen=True)
class Sorted:
    """Messages by one of their sides."""

    order: Index  # (e,)
    first: Index  # (r,): where the messages of each rank begin in that order
    ranks: Ints  # (r,)
    counts: Ints  # (r,)

    @classmethod
    def by(cls, side: Ints) -> Sorted:
        """Sort by the ranks of one side."""
        order = np.argsort(side, kind="stable")
        first = np.flatnonzero(np.diff(side[order], prepend=-1))
        return cls(order, first, side[order][first], np.diff(np.append(first, len(order))))

    def most(self, values: Array) -> Array:
        """Of each rank the largest of its messages' values, (r,)."""
        ordered = values[self.order]
        return ordered if len(self.first) == len(self.order) else np.maximum.reduceat(ordered, self.first)

    def largest(self, values: Array) -> tuple[Array, Index]:
        """Of each rank the largest of its messages' values, and which message has it, (r,)."""
        if not len(self.ranks):
            return np.zeros(0), np.zeros(0, dtype=np.intp)
        mine = values[self.order]
        if len(self.first) == len(self.order):
            return mine, self.order
        most = np.maximum.reduceat(mine, self.first)
        at = np.where(mine == np.repeat(most, self.counts), np.arange(len(mine)), len(mine))
        return most, self.order[np.minimum.reduceat(at, self.first)]

    def sums(self, values: Array) -> Array:
        """Of each rank the sum over its messages, (r,)."""
        return np.add.reduceat(values[self.order], self.first) if len(self.ranks) else np.zeros(0)


class Exchange:
    """A set of messages with what each costs, sorted by both sides."""

    def __init__(self, costs: Wires, wires: Sequence[Array] = ()) -> None:
        """`wires`: seconds of the bytes of each message in step after step, (e,); in all further ones as in the last.
        As `costs` has them where not given."""
        self.costs = costs
        self.wires = list(wires) or [costs.wire]

    def slower(self, latency: float, everywhere: bool = False) -> Exchange:
        """The same with so many seconds more latency between nodes, or of all messages."""
        crossings = np.where(self.costs.waits, 3.0, 1.0) * (self.costs.apart | everywhere)
        other = copy(self)
        other.costs = replace(self.costs, latency=self.costs.latency + latency * crossings)
        return other

    def sharing(self, wires: Sequence[Array]) -> Exchange:
        """The same messages with other seconds of their bytes."""
        other = copy(self)
        other.wires = list(wires)
        return other

    @property
    def steps(self) -> int:
        """Steps in which bytes take a time of their own."""
        return len(self.wires)

    def wire(self, step: int) -> Array:
        """Seconds of the bytes of each message in a step, (e,)."""
        return self.wires[min(step, len(self.wires) - 1)]

    def flight(self, step: int = 0) -> Array:
        """Seconds of each message from leaving to its last byte in a step, (e,)."""
        return np.asarray(self.costs.latency + self.wire(step))

    @cached_property
    def outgoing(self) -> Sorted:
        """By sender."""
        return Sorted.by(self.costs.source)

    @cached_property
    def incoming(self) -> Sorted:
        """By receiver."""
        return Sorted.by(self.costs.target)

    @cached_property
    def handing_over(self) -> Array:
        """Seconds until each sender has handed all over, (r,)."""
        return self.outgoing.largest(self.costs.before)[0]

    @cached_property
    def taking(self) -> Array:
        """Seconds that each receiver needs for all of them, (r,)."""
        return self.incoming.sums(self.costs.after)

    def parts(self, message: Index, step: int = 0) -> Array:
        """Of messages in a step: crossings between nodes, seconds of the processors and of the bytes, (3, n)."""
        costs = self.costs
        crossings = np.where(costs.waits[message], 3.0, 1.0) * costs.apart[message]
        over = costs.before[message] + costs.after[message]
        return np.stack([crossings, over, self.wire(step)[message]])
