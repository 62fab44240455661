"""A collective replayed: its rounds over all communicators at once, from when each rank enters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.costs.cost import Choice, algorithm_of, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.collectives import Round, rounds_of
from ranksight.comm.replay.deliver import Exchange
from ranksight.comm.replay.program import Call
from ranksight.comm.replay.wires import slower, wires
from ranksight.core.arrays import Array, Index, Ints

STEP = 1e-7
"""Seconds of latency by which the messages on the path of an algorithm known by its cost alone are counted."""


@dataclass
class Left:
    """Ranks after a collective, each (P,): when, whose entry decided that, and parts (3, P) of the way from there."""

    time: Array
    origin: Ints
    parts: Array


class Rounds:
    """One collective of a program, ready to be replayed."""

    def __init__(self, call: Call, fabric: Fabric, choice: Choice, nodes: Ints) -> None:
        assert call.groups is not None
        self.groups, self.count = call.groups, call.count
        name = operation_name(call.operation)
        self.members = [np.flatnonzero(self.groups == g) for g in np.unique(self.groups[self.groups >= 0])]
        sizes = {len(one) for one in self.members}
        self.exchanges: list[tuple[Exchange, Array]] = []
        self.fixed: dict[int, tuple[float, float]] = {}
        made: dict[int, list[tuple[Ints, Round]]] = {}
        for p in sorted(sizes - {1}):
            kind = algorithm_of(name, p, call.size, fabric, choice)
            found = rounds_of(name, kind, p, call.size)
            if found is None:
                seconds = float(cost(name, p, call.size, fabric, choice))
                more = float(cost(name, p, call.size, slower(fabric, latency=STEP), choice))
                self.fixed[p] = seconds, (more - seconds) / STEP
                continue
            ways = [np.roll(one, -call.root) for one in self.members if len(one) == p]
            for at, each in enumerate(found):
                made.setdefault(at, []).extend((one, each) for one in ways)
        for at in sorted(made):
            pairs = made[at]
            source = np.concatenate([one[each.source] for one, each in pairs])
            target = np.concatenate([one[each.target] for one, each in pairs])
            size = np.concatenate([each.size for _, each in pairs])
            combined = np.concatenate([np.full(len(each.size), each.combined) for _, each in pairs])
            made_of = Exchange(wires(fabric, source, target, size, nodes))
            self.exchanges.append((made_of, fabric.reduction * size * combined))

    def run(self, entered: Array) -> Left:
        """Replay it from the times (P,) at which ranks enter; ranks without part stay as they are."""
        ranks = len(entered)
        left = Left(entered.copy(), np.arange(ranks), np.zeros((3, ranks)))
        for _ in range(self.count):
            for exchange, combining in self.exchanges:
                _round(exchange, combining, left)
            for one in self.members:
                if len(one) in self.fixed:
                    seconds, latencies = self.fixed[len(one)]
                    last = one[int(np.argmax(left.time[one]))]
                    left.time[one] = left.time[last] + seconds
                    left.origin[one] = left.origin[last]
                    left.parts[:, one] = left.parts[:, [last]] + np.array([[latencies], [0.0], [0.0]])
        return left


def _round(exchange: Exchange, combining: Array, left: Left) -> None:
    costs, time = exchange.costs, left.time
    before = Left(time.copy(), left.origin.copy(), left.parts.copy())
    asked = np.where(costs.waits, before.time[costs.target], -np.inf)
    ready = before.time[costs.source] + costs.before
    arrival = np.maximum(ready, asked) + exchange.flight
    # Whose entry decides when a message goes: the sender's, or the receiver's where that asks for it late.
    who = np.where(asked > ready, costs.target, costs.source)

    def follow(ranks: Ints, message: Index, when: Array) -> None:
        """Let ranks go on when their message has gone or come, where that is later."""
        late = when > time[ranks]
        ranks, message = ranks[late], message[late]
        time[ranks], left.origin[ranks] = when[late], before.origin[who[message]]
        left.parts[:, ranks] = before.parts[:, who[message]] + exchange.parts(message)

    out, into = exchange.outgoing, exchange.incoming
    time[out.ranks] += exchange.handing_over
    left.parts[1, out.ranks] += exchange.handing_over
    if costs.waits.any():
        gone, message = out.largest(np.where(costs.waits, arrival, -np.inf))
        follow(out.ranks, message, gone)
    time[into.ranks] += exchange.taking
    left.parts[1, into.ranks] += exchange.taking
    last, message = into.largest(arrival + costs.after)
    follow(into.ranks, message, last)
    if combining.any():
        time[into.ranks] += into.sums(combining)
