"""A collective replayed: its rounds over all communicators at once, from when each rank enters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.costs.cost import Choice, algorithm_of, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.collectives import Round, rounds_of
from ranksight.comm.replay.deliver import Exchange, Sorted
from ranksight.comm.replay.program import Call
from ranksight.comm.replay.wires import slower, wires
from ranksight.core.arrays import Array, Index, Ints

STEP = 1e-7
"""Seconds of latency by which the messages on the path of an algorithm known by its cost alone are counted."""
SAME = 1e-9
"""Relative difference of repetitions that take the same time."""


@dataclass
class Left:
    """Ranks after a collective, each (P,): when, whose entry decided that, and parts (3, P) of the way from there.

    Where only times are asked for, the last two are None.
    """

    time: Array
    origin: Ints | None = None
    parts: Array | None = None


class Rounds:
    """One collective of a program, ready to be replayed."""

    def __init__(self, call: Call, fabric: Fabric, choice: Choice, nodes: Ints) -> None:
        assert call.groups is not None
        self.groups, self.count = call.groups, call.count
        name = operation_name(call.operation)
        present = np.flatnonzero(self.groups >= 0)
        self.by_group = Sorted.by(self.groups[present])
        self.present = present[self.by_group.order]
        self.members = np.split(self.present, self.by_group.first[1:])
        self.stages: list[tuple[list[tuple[Exchange, Array]], int]] = []
        self.fixed: dict[int, tuple[float, float]] = {}
        sizes = _sizes(self.groups)
        eager = fabric.far.eager_limit or np.inf
        for p, parts in zip(sizes, algorithms(call, fabric, choice), strict=True):
            each = [rounds_of(operation, kind, p, call.size, eager) for operation, kind in parts]
            known = [stages for stages in each if stages is not None]
            if len(known) < len(each):
                seconds = float(cost(name, p, call.size, fabric, choice))
                more = float(cost(name, p, call.size, slower(fabric, latency=STEP), choice))
                self.fixed[p] = seconds, (more - seconds) / STEP
                continue
            ways = np.stack([np.roll(one, -call.root) for one in self.members if len(one) == p])
            for stage in (one for stages in known for one in stages):
                self.stages.append(([_everywhere(one, ways, fabric, nodes) for one in stage.rounds], stage.times))

    def slower(self, latency: float, everywhere: bool) -> Rounds:
        """The same with so many seconds more latency between nodes, or of all messages."""
        other = copy(self)
        other.stages = [
            ([(one.slower(latency, everywhere), combining) for one, combining in rounds], times)
            for rounds, times in self.stages
        ]
        other.fixed = {p: (seconds + latency * n, n) for p, (seconds, n) in self.fixed.items()}
        return other

    def run(self, entered: Array, tracked: bool = True) -> Left:
        """Replay it from the times (P,) at which ranks enter; ranks without part stay as they are.

        `tracked`: whether the way that decided each time is followed.
        """
        ranks = len(entered)
        left = Left(entered.copy(), np.arange(ranks), np.zeros((3, ranks))) if tracked else Left(entered.copy())
        self._repeat(self.count, left, lambda: self._once(left))
        return left

    def _once(self, left: Left) -> None:
        for rounds, times in self.stages:
            self._repeat(times, left, partial(_one_after_the_other, rounds, left))
        for one in self.members if self.fixed else ():
            if len(one) in self.fixed:
                seconds, latencies = self.fixed[len(one)]
                last = one[int(np.argmax(left.time[one]))]
                left.time[one] = left.time[last] + seconds
                if left.origin is not None and left.parts is not None:
                    left.origin[one] = left.origin[last]
                    left.parts[:, one] = left.parts[:, [last]] + np.array([[latencies], [0.0], [0.0]])

    def _repeat(self, times: int, left: Left, once: Callable[[], object]) -> None:
        """Do `once` so many times; where all ranks of a communicator came out of it later by the same time, the rest
        takes that time each."""
        for turn in range(times):
            before = Left(left.time.copy(), None, None if left.parts is None else left.parts.copy())
            once()
            rest = times - turn - 1
            if not rest:
                return
            later = (left.time - before.time)[self.present]
            most, least = (end.reduceat(later, self.by_group.first) for end in (np.maximum, np.minimum))
            if (most - least <= SAME * most).all():
                left.time[self.present] += rest * later
                if left.parts is not None and before.parts is not None:
                    left.parts += rest * (left.parts - before.parts)
                return


def _sizes(groups: Ints) -> list[int]:
    """Different numbers of ranks that communicators of several have."""
    return sorted(set(np.bincount(groups[groups >= 0]).tolist()) - {0, 1})


def algorithms(call: Call, fabric: Fabric, choice: Choice) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Operations and their algorithms that a collective is made of in communicators of each size, the smallest first:
    one, or the library's own reduce and broadcast."""
    assert call.groups is not None
    name, found = operation_name(call.operation), []
    for p in _sizes(call.groups):
        kind = algorithm_of(name, p, call.size, fabric, choice)
        made = ("reduce", "bcast") if kind == "reduce_bcast" else ()
        parts = [(each, algorithm_of(each, p, call.size, fabric, choice)) for each in made]
        found.append(tuple(parts) or ((name, kind),))
    return tuple(found)


def _everywhere(each: Round, ways: Ints, fabric: Fabric, nodes: Ints) -> tuple[Exchange, Array]:
    """A round in all communicators (n, p) of as many ranks: its messages, and the seconds in which their receivers
    combine them."""
    source, target = ways[:, each.source].ravel(), ways[:, each.target].ravel()
    size = np.tile(each.size, len(ways))
    return Exchange(wires(fabric, source, target, size, nodes)), fabric.reduction * size * each.combined


def _one_after_the_other(rounds: Sequence[tuple[Exchange, Array]], left: Left) -> None:
    for exchange, combining in rounds:
        _round(exchange, combining, left)


def _round(exchange: Exchange, combining: Array, left: Left) -> None:
    costs, time = exchange.costs, left.time
    origin, parts = left.origin, left.parts
    asked = np.where(costs.waits, time[costs.target], -np.inf)
    ready = time[costs.source] + costs.before
    arrival = np.maximum(ready, asked) + exchange.flight()
    out, into = exchange.outgoing, exchange.incoming
    if origin is None or parts is None:
        time[out.ranks] += exchange.handing_over
        if costs.waits.any():
            time[out.ranks] = np.maximum(time[out.ranks], out.most(np.where(costs.waits, arrival, -np.inf)))
        time[into.ranks] += exchange.taking
        time[into.ranks] = np.maximum(time[into.ranks], into.most(arrival + costs.after))
    else:
        # Whose entry decides when a message goes: the sender's, or the receiver's where that asks for it late.
        who = np.where(asked > ready, costs.target, costs.source)
        origins, ways = origin.copy(), parts.copy()

        def follow(ranks: Ints, message: Index, when: Array) -> None:
            """Let ranks go on when their message has gone or come, where that is later."""
            late = when > time[ranks]
            ranks, message = ranks[late], message[late]
            time[ranks], origin[ranks] = when[late], origins[who[message]]
            parts[:, ranks] = ways[:, who[message]] + exchange.parts(message)

        time[out.ranks] += exchange.handing_over
        parts[1, out.ranks] += exchange.handing_over
        if costs.waits.any():
            gone, message = out.largest(np.where(costs.waits, arrival, -np.inf))
            follow(out.ranks, message, gone)
        time[into.ranks] += exchange.taking
        parts[1, into.ranks] += exchange.taking
        last, message = into.largest(arrival + costs.after)
        follow(into.ranks, message, last)
    if combining.any():
        time[into.ranks] += into.sums(combining)
