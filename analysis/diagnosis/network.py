"""What the network costs a program at ranks that nobody ran: its predicted messages replayed.

The message table at the ranks asked for is replayed on the model's network (:mod:`ranksight.comm.replay`). Changes of
the network, of an algorithm or of the placement are replayed too, so that what they cost or gain holds what ranks wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.fabric import DISTRIBUTIONS, Fabric
from ranksight.comm.costs.selection import algorithms_of
from ranksight.comm.replay.laid import MOST_CELLS, Laid
from ranksight.comm.replay.path import Path, critical_path
from ranksight.comm.replay.program import Program
from ranksight.comm.replay.replayed import Replayed
from ranksight.comm.replay.wires import places_of, slower
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.records import dataclass
from ranksight.model.application.network import Network
from ranksight.model.application.replayed import Question, settled
from ranksight.model.messages.order import Order
from ranksight.model.messages.schedule import Schedule, dealt_out, schedule

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

MICROSECOND = 1e-6
TOLERATED = 0.01
"""Part of the time that a tolerance is for."""
GAIN = 0.005
"""Part of the time from which a change is named."""
MOST_TRIED = 1 << 21
"""Ranks times calls up to which other algorithms are tried."""


@dataclass(frozen=True)
class Gain:
    """What a change would gain."""

    change: str
    part: float  # of the time


@dataclass(frozen=True)
class NetworkDiagnosis:
    """What the network costs at one configuration."""

    configuration: Mapping[str, float]
    ranks: int
    time: float  # seconds of the program's steps, with waiting
    ends: tuple[float, float]  # the same where the network's shape is uncertain, at both ends
    communication: float  # seconds of a rank that it does not compute, mean
    waits: Mapping[tuple[str, str], float]  # seconds by kernel and cause, mean over ranks
    longest: int  # rank that waits longest, and its seconds
    longest_seconds: float
    compute: Mapping[str, float]  # seconds on the critical path, by kernel: of computation and of messages
    messages: Mapping[str, float]
    of_ranks: Array  # (P,): seconds of the critical path that each rank spends
    latency: float  # seconds of time for one more microsecond of latency between nodes
    overhead: float  # the same of overhead
    bandwidth: float  # seconds gained by twice the bandwidth
    tolerance: float  # seconds of latency that cost 1 % of the time; infinite where none does
    balanced: float  # seconds of time where all ranks compute the same
    gains: tuple[Gain, ...]
    topology: str
    assumed: bool  # whether the order of calls is assumed

    def sentences(self) -> list[str]:
        """The diagnosis in words, most important first."""
        p, at = self.time, f"at {self.ranks:,} ranks"
        share = 100 * self.communication / p if p > 0 else 0.0
        waiting = sum(self.waits.values())
        sentences = [
            f"Ranks spend {share:.3g} % of {_seconds(p)} in messages {at}, {100 * waiting / p:.3g} % waiting."
            if p > 0
            else f"No time is predicted {at}.",
            f"1 us more latency costs {100 * self.latency / p:.2g} % {at}; tolerance 1 %: {_seconds(self.tolerance)}.",
            f"1 us more overhead costs {100 * self.overhead / p:.2g} %; twice the bandwidth gains "
            f"{100 * self.bandwidth / p:.2g} %.",
        ]
        for (kernel, cause), seconds in sorted(self.waits.items(), key=lambda item: -item[1]):
            if seconds >= GAIN * p:
                sentences.append(
                    f"{kernel}: ranks wait {100 * seconds / p:.2g} % of the time, mean over ranks ({cause})."
                )
        if waiting >= GAIN * p:
            sentences.append(
                f"Rank {self.longest} waits longest, {100 * self.longest_seconds / p:.2g} %; rank "
                f"{int(np.argmax(self.of_ranks))} has the largest part of the critical path, "
                f"{100 * float(self.of_ranks.max()) / p:.3g} %."
            )
        if p - self.balanced >= GAIN * p:
            sentences.append(f"Balanced computation would gain {100 * (1 - self.balanced / p):.2g} %.")
        sentences += [f"{one.change} would gain {100 * one.part:.2g} %." for one in self.gains]
        if self.topology:
            low, high = self.ends
            between = f"; the time is {_seconds(low)} to {_seconds(high)}" if high > low * (1 + 1e-3) else ""
            sentences.append(f"Network: {self.topology}{between}.")
        if self.assumed:
            sentences.append(
                "The order of calls is assumed: no event trace is known. Measure with --collector pmpi-events for who "
                "waits for whom."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """As plain data that JSON can hold."""
        return {
            "configuration": dict(self.configuration),
            "seconds": self.time,
            "seconds_fastest": self.ends[0],
            "seconds_slowest": self.ends[1],
            "communication": self.communication,
            "waits": [
                {"kernel": kernel, "cause": cause, "seconds": seconds}
                for (kernel, cause), seconds in self.waits.items()
            ],
            "longest_waiting_rank": self.longest,
            "critical_path": {
                "compute": dict(self.compute),
                "messages": dict(self.messages),
                "ranks": {str(r): float(self.of_ranks[r]) for r in np.argsort(-self.of_ranks)[:16] if self.of_ranks[r]},
            },
            "latency_1us": self.latency,
            "overhead_1us": self.overhead,
            "bandwidth_doubled": self.bandwidth,
            "latency_tolerance_1_percent": self.tolerance if np.isfinite(self.tolerance) else None,
            "seconds_balanced": self.balanced,
            "gains": [{"change": one.change, "part": one.part} for one in self.gains],
            "topology": self.topology,
            "order": "assumed" if self.assumed else "traced",
            "sentences": self.sentences(),
        }


def _seconds(value: float) -> str:
    if not np.isfinite(value):
        return "unlimited"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1 or unit == "us":
            return f"{value * factor:.3g} {unit}"
    return ""


def diagnose_network(model: Model, point: Array, places: Ints | None = None) -> NetworkDiagnosis:
    """What the network costs the program at `point` (m,).

    Raises what :func:`prepared` raises, InputError where the placement is of other ranks or the replay deadlocks.

    Parameters
    ----------
    places : (P,) int, optional
        The node of each rank (:func:`ranksight.comm.topology.places.read_places`).
    """
    return prepared(model, point, places).diagnosis()


def prepared(model: Model, point: Array, places: Ints | None = None, mean: float | None = None) -> ReplayedNetwork:
    """The program at `point` (m,), ready to be replayed.

    Raises InputError where the model has no network or no traced messages, the placement is of other ranks, or the
    network cannot hold the ranks; InsufficientError where no message is known. `mean`: seconds that a rank computes,
    where they were predicted already.
    """
    equation = model.equation
    communication, network = equation.communication, equation.network
    if not communication.messages or not network:
        raise InputError(
            "the model has no messages on a network",
            "trace runs (--collector pmpi-events), and fit with --platform NAME or FILE that describes the network",
        )
    messages = communication.messages
    ranks = int(point[list(model.parameters).index("ranks")])
    _check(network, messages.order, ranks, places)
    table = messages.predict(point)
    if mean is None:
        mean = float(model.breakdown(point).computing[0])
    if not mean >= 0:
        raise InsufficientError("the time of computation is not predicted here", "measure the kernels' times")
    made = schedule(messages, table, dealt_out(messages.order, table.ranks, mean))
    question = Question.of(network, table, mean)

    def laid() -> Laid:
        """The program on the network: as predictions have it, or with its ranks placed by hand."""
        if places is None:
            return settled(messages, network, question, made)
        return Laid(made.program, network.fabric(), places).settled(network.choice())

    return ReplayedNetwork(network, made, dict(table.configuration), places, laid)


def _check(network: Network, order: Order, ranks: int, places: Ints | None) -> None:
    """Raise InputError, before any call is laid out, where the placement is of other ranks, the network cannot hold
    them, or one step has more calls than are replayed."""
    if places is not None and len(places) != ranks:
        raise InputError(f"the placement has {len(places):,} ranks, {ranks:,} are asked for", "place each once")
    calls = len(order.places) or 1
    if ranks * calls > MOST_CELLS:
        raise InputError(f"{ranks:,} ranks x {calls} calls a step are too many to replay", "ask for fewer ranks")
    fabric = network.fabric()
    if fabric.topology is not None:
        nodes = int(places_of(fabric, ranks, places).max()) + 1
        fabric.topology.holds(nodes, f"a job of {ranks:,} ranks")


class ReplayedNetwork:
    """Replays one program under changes."""

    def __init__(
        self,
        network: Network,
        made: Schedule,
        configuration: Mapping[str, float],
        places: Ints | None,
        lay: Callable[[], Laid],
    ) -> None:
        """`lay`: lays the program out on the network."""
        self.network, self.made, self.configuration, self.lay = network, made, configuration, lay
        self.fabric = network.fabric()
        ranks = made.program.ranks
        self.places = places_of(self.fabric, ranks, places)
        self.placed = places is not None

    @cached_property
    def laid(self) -> Laid:
        """The program laid out on the network."""
        return self.lay()

    @cached_property
    def replayed(self) -> Replayed:
        """The program replayed as it is."""
        return self.laid.replay(self.network.choice())

    @property
    def cells(self) -> int:
        """Calls of all ranks in all steps, which the time of a replay goes with."""
        program = self.made.program
        return program.ranks * program.steps * len(program.calls)

    def slower(self, latency: float) -> float:
        """Seconds of the program with so many seconds more latency between nodes."""
        return self.laid.slower(latency).replay(self.network.choice(), tracked=False).time

    def _on(self, fabric: Fabric) -> float:
        """Seconds of the program on other links, shared as these are."""
        return self.laid.on(fabric).replay(self.network.choice(), tracked=False).time

    def time(self, fabric: Fabric | None = None, program: Program | None = None, places: Ints | None = None) -> float:
        """Seconds of the program with changes."""
        laid = Laid(program or self.made.program, fabric or self.fabric, self.places if places is None else places)
        return laid.replay(self.network.choice(), tracked=False).time

    def diagnosis(self) -> NetworkDiagnosis:
        """All of it."""
        replayed, times = self.replayed, self.made.times
        path = critical_path(replayed)
        more = self.slower(MICROSECOND)
        busy, wide = (
            self._on(slower(self.fabric, **change)) for change in ({"overhead": MICROSECOND}, {"bandwidth": 2.0})
        )
        ends = (replayed.time, replayed.time)
        if self.fabric.topology is not None and self.fabric.topology.uncertain:
            ends = self.time(self.fabric.at("fast")), self.time(self.fabric.at("slow"))
        longest = int(np.argmax(replayed.waiting))
        return NetworkDiagnosis(
            configuration=self.configuration,
            ranks=self.made.program.ranks,
            time=replayed.time * times,
            ends=(min(*ends, replayed.time) * times, max(*ends, replayed.time) * times),
            communication=float(replayed.communication.mean()) * times,
            waits={key: float(seconds.mean()) * times for key, seconds in replayed.waits.items()},
            longest=longest,
            longest_seconds=float(replayed.waiting[longest]) * times,
            compute={kernel: seconds * times for kernel, seconds in path.compute.items() if seconds > 0},
            messages={kernel: seconds * times for kernel, seconds in path.messages.items() if seconds > 0},
            of_ranks=path.of_ranks * times,
            latency=(more - replayed.time) * times,
            overhead=(busy - replayed.time) * times,
            bandwidth=(replayed.time - wide) * times,
            tolerance=self._tolerance(replayed, path),
            balanced=self._balanced(replayed) * times,
            gains=self._gains(replayed),
            topology="" if self.fabric.topology is None else self.fabric.topology.text,
            assumed=self.made.assumed,
        )

    def _tolerance(self, replayed: Replayed, path: Path) -> float:
        """Seconds of latency that cost 1 %: time grows with latency in straight pieces, ever steeper."""
        if path.latencies <= 0 or replayed.time <= 0:
            return float("inf")
        wanted = TOLERATED * replayed.time
        guess = wanted / path.latencies
        for _ in range(3):
            cost = self.slower(guess) - replayed.time
            if cost <= wanted * 1.005:
                break
            guess *= wanted / cost
        return guess

    def _balanced(self, replayed: Replayed) -> float:
        """Seconds where all ranks compute the mean of all."""
        if np.ptp(replayed.program.computing) <= 0:
            return replayed.time
        calls = tuple(
            call
            if call.seconds is None
            else replace(call, seconds=np.where(call.seconds > 0, call.seconds[call.seconds > 0].mean(), 0.0))
            for call in replayed.program.calls
        )
        return self.time(program=replace(replayed.program, calls=calls))

    def _gains(self, replayed: Replayed) -> tuple[Gain, ...]:
        """Algorithms of collectives and distributions of ranks that would gain most."""
        program, gains = replayed.program, list[Gain]()
        if self.cells > MOST_TRIED:
            return ()
        named = {operation_name(call.operation) for call in program.calls if call.what == "collective"}
        # What many messages of one rank cost is not known without its overhead or gap.
        known = self.fabric.far.gap is not None or self.fabric.far.send_overhead is not None
        for name in sorted(named & set(OPERATIONS)) if known else ():
            # No algorithm gains more than leaving the operation out.
            others = [call for call in program.calls if operation_name(call.operation) != name]
            if others and 1 - self.time(program=replace(program, calls=tuple(others))) / replayed.time < GAIN:
                continue
            ways = [way for way in algorithms_of(name) if way != "hierarchical"]
            choices = {way: self.network.stating({name: way}).choice() for way in ways}
            tried = {way: self.laid.replay(choice, tracked=False).time for way, choice in choices.items()}
            best = min(tried, key=lambda way: tried[way])
            gains.append(Gain(f"{name} by {best}", 1 - tried[best] / replayed.time))
        if not self.placed:
            for other in (one for one in DISTRIBUTIONS if one != self.fabric.distribution):
                nodes = self.network.placed(None, other).fabric().node_of(np.arange(program.ranks), program.ranks)
                if (nodes != self.places).any():
                    gains.append(Gain(f"{other} distribution of ranks", 1 - self.time(places=nodes) / replayed.time))
        return tuple(sorted((one for one in gains if one.part >= GAIN), key=lambda one: -one.part))
