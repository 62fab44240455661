"""Replay of a program on a network, as it is and under changes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from ranksight.comm.costs.cost import Choice
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.deliver import Exchange
from ranksight.comm.replay.machine import Machine
from ranksight.comm.replay.program import Program
from ranksight.comm.replay.replayed import Replayed
from ranksight.comm.replay.rounds import Rounds, algorithms
from ranksight.comm.replay.settling import Settling
from ranksight.comm.replay.wires import places_of, unshared, wires
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError

MOST_CELLS = 1 << 27
"""Calls of all ranks in all steps that are kept."""


class Laid:
    """A program laid out on a network: what its replays with other choices of algorithms share."""

    def __init__(self, program: Program, fabric: Fabric, places: Ints | None = None) -> None:
        """As :func:`replay` takes them, and with its errors for them."""
        ranks, steps, calls = program.ranks, program.steps, len(program.calls)
        if ranks * steps * calls > MOST_CELLS:
            what = f"{ranks:,} ranks x {steps:,} steps x {calls} calls are too many to replay"
            raise InputError(what, "replay fewer steps")
        self.program, self.fabric = program, fabric
        self.nodes = places_of(fabric, ranks, places)
        if fabric.topology is not None:
            fabric.topology.holds(int(self.nodes.max()) + 1, f"a job of {ranks:,} ranks")
        self.channels = [
            Exchange(wires(fabric, one.source, one.target, one.size, self.nodes)) for one in program.channels
        ]
        self._latency, self._settled = 0.0, False
        self._rounds: dict[tuple[int, tuple[tuple[tuple[str, str], ...], ...]], Rounds] = {}

    def slower(self, latency: float) -> Laid:
        """The same on a network with so many seconds more latency between nodes; messages share links as they did."""
        everywhere, other = self.fabric.inter is None, copy(self)
        other._latency += latency
        other.channels = [one.slower(latency, everywhere) for one in self.channels]
        return other

    def settled(self, choice: Choice) -> Laid:
        """The same where messages share links with those that are under way when they are sent."""
        if self._settled or not any(len(one.source) for one in self.program.channels):
            return self
        return self.sharing(
            Settling(self.program, self.fabric, self.nodes, self.channels, self.collectives(choice)).settle()
        )

    def sharing(self, wires: Sequence[Sequence[Array]]) -> Laid:
        """The same where bytes of each channel's messages take so long, by step, (e,) each, as :attr:`wires` has it."""
        other = copy(self)
        other._settled = True
        other.channels = [one.sharing(each) for one, each in zip(self.channels, wires, strict=True)]
        return other

    @property
    def wires(self) -> list[list[Array]]:
        """Seconds of the bytes of each channel's messages by step, (e,); all further steps are as the last."""
        return [one.wires for one in self.channels]

    def on(self, fabric: Fabric) -> Laid:
        """The same on a network with other links; messages that share them take longer in the same proportion."""
        other = copy(self)
        other.fabric, other._rounds, other.channels = fabric, {}, []
        for one, each in zip(self.program.channels, self.channels, strict=True):
            before, costs = (unshared(on, one.source, one.target, one.size, self.nodes) for on in (self.fabric, fabric))
            timed, base = before.wire > 0, np.where(before.wire > 0, before.wire, 1.0)
            longer = [np.where(timed, wire / base * costs.wire, wire + costs.wire) for wire in each.wires]
            other.channels.append(Exchange(costs, longer))
        return other

    def collectives(self, choice: Choice) -> dict[int, Rounds]:
        """The collectives by number of their call."""
        each = {}
        for at, call in enumerate(self.program.calls):
            if call.what == "collective":
                key = at, algorithms(call, self.fabric, choice)
                rounds = self._rounds.get(key) or Rounds(call, self.fabric, choice, self.nodes)
                if not rounds.fixed:  # a cost may depend on the choice of other operations
                    self._rounds[key] = rounds
                each[at] = rounds.slower(self._latency, self.fabric.inter is None) if self._latency else rounds
        return each

    def replay(self, choice: Choice, tracked: bool = True) -> Replayed:
        """Replay it; see :func:`replay`. `tracked`: whether the ways that decide times are followed, too."""
        laid = self.settled(choice)
        return Machine(laid.program, laid.channels, laid.collectives(choice), tracked).run()


def replay(
    program: Program,
    fabric: Fabric,
    choice: Choice = "openmpi-5.0",
    places: Ints | None = None,
) -> Replayed:
    """Replay a program.

    Raises InputError for a deadlock, naming the ranks of the cycle; where the network's shape cannot hold the ranks; or
    for more calls than are kept (:data:`MOST_CELLS`).

    Parameters
    ----------
    fabric, choice
        The network, and the choice of collective algorithms.
    places : (P,) int, optional
        The node of each rank; as the fabric deals them out where not given.
    """
    return Laid(program, fabric, places).replay(choice)
