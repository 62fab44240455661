"""A program as replay takes it: the calls of one step, which every rank makes in the same order.

A rank leaves out a call in which it has no part. Messages of a channel are matched one by one: the k-th step's message
of a channel is received by the k-th step's receive, or so many steps later as its lag says; nothing is received before
the first message.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

Kind = Literal["compute", "send", "post", "receive", "complete", "collective"]
"""``send``: hand over a channel's messages; ``post``: ask for them; ``receive``: wait until they have come;
``complete``: wait until those that wait for their receiver have gone."""


@dataclass(frozen=True)
class Channel:
    """Messages of a step from sources to targets, (e,), in the order in which a rank sends them."""

    source: Ints
    target: Ints
    size: Array
    lag: int = 0  # steps after which they are received: 1 where the next step begins with what this one sent


@dataclass(frozen=True)
class Call:
    """One call of a step."""

    what: Kind
    kernel: str
    operation: str = ""
    channel: int = -1  # of messages
    seconds: Array | None = None  # (P,) of a computation, or (steps, P)
    groups: Ints | None = None  # (P,): communicator of each rank in a collective; -1 for ranks without part
    size: float = 0.0  # bytes of a collective, as costs count them
    count: int = 1  # how often the collective is called
    root: int = 0  # of a rooted collective, within its communicator


@dataclass(frozen=True)
class Program:
    """Calls of a step, and how many steps there are."""

    ranks: int
    calls: tuple[Call, ...]
    channels: tuple[Channel, ...]
    steps: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 1 or self.steps < 1 or not self.calls:
            raise InputError(f"a program of {self.ranks} ranks and {self.steps} steps", "replay needs calls to make")
        for channel in self.channels:
            for side in (channel.source, channel.target):
                if len(side) and (side.min() < 0 or side.max() >= self.ranks):
                    raise InputError(f"a message names rank {int(side.max())} of {self.ranks}", "fit the model again")
            if len(channel.size) and not (np.isfinite(channel.size).all() and channel.size.min() >= 0):
                raise InputError("a message has no size", "fit the model again")

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels of the calls, in their order."""
        return tuple(dict.fromkeys(call.kernel for call in self.calls))

    @property
    def computing(self) -> Array:
        """Seconds that each rank computes, (P,)."""
        each = [call.seconds for call in self.calls if call.seconds is not None]
        sums = [one.sum(axis=0) if one.ndim > 1 else self.steps * one for one in each]
        return np.asarray(np.sum([np.zeros(self.ranks), *sums], axis=0))
