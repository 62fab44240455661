"""Replay of a program on a network: ranks make their calls when what these wait for is there.

All ranks that can make a call make it together, call after call, until none can go on; where some have not ended then,
they wait for each other in a cycle, which is an error of the program (or of its order of calls as it was inferred).
The time of a rank after a call is the largest of its own and of what the call waited for; which of them it was is kept,
so that the way back from the last rank's end is the critical path. Sources: Ino et al., "LogGPS", PPoPP 2001; Hoefler,
Schneider and Lumsdaine, "LogGOPSim", HPDC 2010; Geimer et al., CCPE 22 (2010) 702 (wait states).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.cost import Choice
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.deliver import Exchange, Sorted
from ranksight.comm.replay.program import Call, Channel, Program
from ranksight.comm.replay.rounds import Rounds, algorithms
from ranksight.comm.replay.wires import places_of, wires
from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.errors import InputError

CAUSES = ("late sender", "late receiver", "collective")
"""Why a rank waits: the message is not sent yet; nobody has asked for it yet; others have not entered yet."""
MOST_CELLS = 1 << 27
"""Calls of all ranks in all steps that are kept."""
SAME = 1e-9
"""Relative difference of steps that take the same time."""
MOST_PASSES = 6
"""How often a program is replayed again for when its messages are sent."""
SETTLED = 1e-3
"""Relative change of the time below which it is not."""


@dataclass(frozen=True)
class Replayed:
    """A program that was replayed: its first steps one by one, the others as the last of these repeated."""

    program: Program
    end: Array  # (P,): when each rank has made its last call, seconds
    waits: Mapping[tuple[str, str], Array]
    """Seconds (P,) that ranks wait, by kernel and one of :data:`CAUSES`."""
    period: float  # seconds of each step that was not replayed itself
    after: Array = field(repr=False)  # (n, P): when each rank has made its n-th call
    origin: NDArray[np.int32] = field(repr=False)  # (n, P): rank whose call before decided that
    number: NDArray[np.int32] = field(repr=False)  # (n, P): number of that call; the way begins when it is made
    parts: NDArray[np.float32] = field(repr=False)  # (3, n, P) of the way, :data:`.deliver.PARTS`

    @property
    def time(self) -> float:
        """Seconds until the last rank has ended."""
        return float(self.end.max())

    @property
    def waiting(self) -> Array:
        """Seconds that each rank waits, (P,)."""
        return np.asarray(sum(self.waits.values(), np.zeros(self.program.ranks)))

    @property
    def communication(self) -> Array:
        """Seconds of each rank that are no computation, (P,)."""
        return np.asarray(self.end - self.program.computing)

    def repeats(self, at: int) -> int:
        """Steps from the call of that number back to the one that was replayed for it."""
        calls = len(self.program.calls)
        return max((at - len(self.after)) // calls + 1, 0)

    def made(self, at: int, rank: int) -> float:
        """When a rank has made the call of that number; 0 before the first."""
        if at < 0:
            return 0.0
        back = self.repeats(at)
        return float(self.after[at - back * len(self.program.calls), rank]) + back * self.period


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
        self.channels = [self._exchange(one) for one in program.channels]
        self._latency, self._settled = 0.0, False
        self._rounds: dict[tuple[int, tuple[str, ...]], Rounds] = {}

    def _exchange(self, one: Channel, begin: Array | None = None) -> Exchange:
        return Exchange(wires(self.fabric, one.source, one.target, one.size, self.nodes, begin))

    def slower(self, latency: float) -> Laid:
        """The same on a network with so many seconds more latency between nodes; messages share links as they did."""
        everywhere, other = self.fabric.inter is None, copy(self)
        other._latency += latency
        other.channels = [one.slower(latency, everywhere) for one in self.channels]
        return other

    def settled(self, choice: Choice) -> Laid:
        """The same where messages share links with those that are under way when they are sent."""
        if self._settled or not _staggered(self.program):
            return self
        other, collectives, before = copy(self), self.collectives(choice), 0.0
        other._settled = True
        for _ in range(MOST_PASSES):
            machine = _Machine(self.program, other.channels, collectives, False)
            time = machine.run().time
            if abs(time - before) <= SETTLED * time:
                break
            before, middle = time, min(self.program.steps // 2, machine.steps - 1)
            # Half of the change: all of it makes messages come together and apart by turns.
            other.channels = [
                one.between(self._exchange(channel, sent[middle]))
                for channel, one, sent in zip(self.program.channels, other.channels, machine.sent, strict=True)
            ]
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
        return _Machine(laid.program, laid.channels, laid.collectives(choice), tracked).run()


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


def _staggered(program: Program) -> bool:
    """Whether ranks send at different times: they compute longer than others, or receive before they send."""
    if not program.channels:
        return False
    if np.ptp(program.computing) > 0:
        return True
    received = False
    for call in program.calls:
        received |= call.what == "receive"
        if call.what == "send" and received:
            return True
    return False


class _Machine:
    """Ranks that make their calls, step after step.

    Times of a step follow from those of the step before by sums and maxima, so once a step ends on all ranks the same
    time later than the step before, all further steps do where ranks compute the same in each of them. Source:
    Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", 1992, chapter 3.
    """

    def __init__(
        self, program: Program, channels: list[Exchange], collectives: dict[int, Rounds], tracked: bool
    ) -> None:
        self.program, self.channels, self.collectives, self.tracked = program, channels, collectives, tracked
        self.steps = program.steps  # that are replayed one by one
        self.repeating = not any(call.seconds is not None and call.seconds.ndim > 1 for call in program.calls)
        self.now = np.zeros(program.ranks)
        self.ended: list[Array] = []
        self.sent = [np.full((program.steps, len(one.costs.source)), np.inf) for one in channels]
        self.asked = [np.full((program.steps, len(one.costs.source)), np.inf) for one in channels]
        self.sender = [self._call("send", at) for at in range(len(channels))]
        self.poster = [self._call("post", at) for at in range(len(channels))]
        self.waits: dict[tuple[str, str], Array] = {}
        rows = program.steps * len(program.calls) if tracked else 0
        shape = rows, program.ranks
        self.after, self.parts = np.zeros(shape), np.zeros((3, *shape), dtype=np.float32)
        self.origin = np.broadcast_to(np.arange(program.ranks, dtype=np.int32), shape).copy()
        self.number = np.broadcast_to(np.arange(rows, dtype=np.int32)[:, None] - 1, shape).copy()

    def _call(self, what: str, channel: int) -> int:
        places = [at for at, call in enumerate(self.program.calls) if call.what == what and call.channel == channel]
        if len(places) > 1:
            raise InputError(f"channel {channel} has {len(places)} calls of {what}", "give each channel one")
        return places[0] if places else -1

    def run(self) -> Replayed:
        """Make all calls."""
        calls, period = len(self.program.calls), 0.0
        waiting: dict[int, Index] = {0: np.arange(self.program.ranks)}
        for step in range(1, self.program.steps + 1):
            waiting = self._until(step * calls, waiting)
            together = set(waiting) == {step * calls}
            self.ended.append(self.now.copy() if together else np.full(self.program.ranks, np.nan))
            if step < self.program.steps and (later := self._later(step)) is not None:
                self.steps, period = step, later
                break
        rest, n = self.program.steps - self.steps, self.steps * calls if self.tracked else 0
        waits = {key: seconds.sum(axis=0) + rest * seconds[self.steps - 1] for key, seconds in self.waits.items()}
        rows = self.after[:n], self.origin[:n], self.number[:n], self.parts[:, :n]
        return Replayed(self.program, self.now + rest * period, waits, period, *rows)

    def _until(self, limit: int, waiting: dict[int, Index]) -> dict[int, Index]:
        """Let ranks make calls up to the one of number `limit`, where those wait that have come so far."""
        calls, moved = len(self.program.calls), True
        while moved:
            moved, blocked = False, dict[int, Index]()
            while waiting and (at := min(waiting)) < limit:
                who = waiting.pop(at)
                go = self._can(at // calls, self.program.calls[at % calls], who)
                if not go.all():
                    blocked[at] = who[~go]
                    who = who[go]
                if not len(who):
                    continue
                moved = True
                self._make(at, who)
                if self.tracked:
                    self.after[at, who] = self.now[who]
                waiting[at + 1] = np.concatenate([waiting[at + 1], who]) if at + 1 in waiting else who
            waiting |= blocked
            moved &= bool(blocked)
        ended = limit == self.program.steps * calls or limit not in waiting
        if ended and (blocked := {at: who for at, who in waiting.items() if at < limit}):
            raise self._deadlock(blocked)
        return waiting

    def _later(self, step: int) -> float | None:
        """Seconds by which a step ends later than the one before, where all of it does; otherwise None."""
        lag = max((one.lag for one in self.program.channels), default=0)
        if not self.repeating or step < 2 + lag:
            return None
        later = [self.ended[-1] - self.ended[-2]]
        for one, sent in zip(self.program.channels, self.sent, strict=True):
            for at in range(step - one.lag, step):
                later.append(sent[at] - sent[at - 1])
        seconds = np.concatenate(later)
        least, most = float(seconds.min()), float(seconds.max())
        return most if most - least <= SAME * most else None

    def _can(self, step: int, call: Call, who: Index) -> Mask:
        """Which ranks can make a call now."""
        if call.what in ("receive", "complete"):
            mine, there = self._needed(step, call)
            late = np.zeros(self.program.ranks, dtype=bool)
            late[mine.ranks] = mine.most(there) == np.inf
            return np.asarray(~late[who])
        if call.what == "collective":
            assert call.groups is not None
            groups = call.groups
            present = np.bincount(groups[who] + 1, minlength=int(groups.max()) + 2)
            whole = np.bincount(groups + 1, minlength=len(present))
            full = present == whole
            full[0] = True
            return np.asarray(full[groups[who] + 1])
        return np.ones(len(who), dtype=bool)

    def _needed(self, step: int, call: Call) -> tuple[Sorted, Array]:
        """Messages that a call waits for by rank, and when each is sent or asked for; infinite where it is not yet."""
        one = self.channels[call.channel]
        if call.what == "receive":
            step -= self.program.channels[call.channel].lag
            return one.incoming, self.sent[call.channel][step] if step >= 0 else np.zeros(len(one.costs.source))
        lag = self.program.channels[call.channel].lag
        asked = self.asked[call.channel][step] if step + lag < self.program.steps else np.zeros(len(one.costs.source))
        return one.outgoing, np.where(one.costs.waits, asked, 0.0)

    def _make(self, at: int, who: Index) -> None:
        calls = self.program.calls
        step, call = at // len(calls), calls[at % len(calls)]
        if call.what == "compute":
            assert call.seconds is not None
            self.now[who] += (call.seconds[step] if call.seconds.ndim > 1 else call.seconds)[who]
        elif call.what == "collective":
            self._collective(at, call, who)
        elif call.what == "post":
            step -= self.program.channels[call.channel].lag
            target = self.channels[call.channel].costs.target
            mine = self._among(who)[target] & (step >= 0)
            self.asked[call.channel][step, mine] = self.now[target[mine]]
        elif call.what == "send":
            self._send(at, step, call, who)
        else:
            self._wait(at, step, call, who)

    def _among(self, who: Index) -> Mask:
        """Whether each rank is one of those, (P,)."""
        among = np.zeros(self.program.ranks, dtype=bool)
        among[who] = True
        return among

    def _send(self, at: int, step: int, call: Call, who: Index) -> None:
        one = self.channels[call.channel]
        among = self._among(who)
        mine = among[one.costs.source]
        self.sent[call.channel][step, mine] = self.now[one.costs.source[mine]] + one.costs.before[mine]
        out = among[one.outgoing.ranks]
        ranks, seconds = one.outgoing.ranks[out], one.handing_over[out]
        self.now[ranks] += seconds
        if self.tracked:
            self.parts[1, at, ranks] = seconds

    def _wait(self, at: int, step: int, call: Call, who: Index) -> None:
        """Wait for messages to come, or to go where they wait for their receiver."""
        one, receives = self.channels[call.channel], call.what == "receive"
        costs, mine = one.costs, one.incoming if receives else one.outgoing
        chosen = self._among(who)[mine.ranks]
        step -= self.program.channels[call.channel].lag if receives else 0
        if not chosen.any() or step < 0:
            return
        sent, asked = self.sent[call.channel][step], self.asked[call.channel][step]
        asked = np.where(costs.waits & np.isfinite(asked), asked, -np.inf)
        with np.errstate(invalid="ignore"):
            arrival = np.maximum(sent, asked) + one.flight
        arrival = arrival + costs.after if receives else np.where(costs.waits, arrival, -np.inf)
        last, message = mine.largest(arrival)
        ranks, last, message = mine.ranks[chosen], last[chosen], message[chosen]
        begin = self.now[ranks]
        own = begin + (one.taking[chosen] if receives else 0.0)
        late = last > own
        self.now[ranks] = np.maximum(last, own)
        blocked, since = (sent, "late sender") if receives else (asked, "late receiver")
        # The message that begins last need not be the last to arrive.
        latest = mine.most(blocked)[chosen]
        waited = np.maximum(np.minimum(latest, last) - begin, 0.0)
        self._waited(at // len(self.program.calls), call.kernel, since, ranks, waited)
        if not self.tracked:
            return
        self.parts[1, at, ranks] = own - begin
        ranks, message = ranks[late], message[late]
        by_receiver = asked[message] > sent[message]
        self.origin[at, ranks] = np.where(by_receiver, costs.target[message], costs.source[message])
        source = np.where(by_receiver, self.poster[call.channel], self.sender[call.channel])
        sent_at = np.where(by_receiver & receives, self.program.channels[call.channel].lag, 0)
        self.number[at, ranks] = (step + sent_at) * len(self.program.calls) + source - 1
        self.parts[:, at, ranks] = one.parts(message)

    def _collective(self, at: int, call: Call, who: Index) -> None:
        assert call.groups is not None
        groups = call.groups
        who = who[groups[who] >= 0]
        if not len(who):
            return
        entered = np.where(self._among(who), self.now, -np.inf)
        latest = np.full(int(groups.max()) + 1, -np.inf)
        np.maximum.at(latest, groups[who], entered[who])
        calls = len(self.program.calls)
        left = self.collectives[at % calls].run(np.where(np.isfinite(entered), entered, 0.0), self.tracked)
        # Nobody waits longer than it stays in the call.
        wait = np.minimum(latest[groups[who]], left.time[who]) - self.now[who]
        self._waited(at // calls, call.kernel, "collective", who, np.maximum(wait, 0.0))
        self.now[who] = left.time[who]
        if left.origin is not None and left.parts is not None:
            self.origin[at, who], self.parts[:, at, who] = left.origin[who], left.parts[:, who]
            self.number[at, who] = at - 1

    def _waited(self, step: int, kernel: str, cause: str, ranks: Ints, seconds: Array) -> None:
        each = self.waits.setdefault((kernel, cause), np.zeros((self.program.steps, self.program.ranks)))
        each[step, ranks] += seconds

    def _deadlock(self, held: dict[int, Index]) -> InputError:
        """Who waits for whom, from the first rank that waits around the cycle."""
        calls = self.program.calls
        place = {int(rank): at for at, ranks in held.items() for rank in ranks}
        rank, seen, chain = min(place), list[int](), dict[int, str]()
        while rank in place and rank not in seen:
            seen.append(rank)
            at = place[rank]
            step, call = at // len(calls), calls[at % len(calls)]
            name = call.operation or call.what
            if call.what == "collective":
                assert call.groups is not None
                group = np.flatnonzero(call.groups == call.groups[rank])
                other = next(int(one) for one in group if place.get(int(one)) != at)
            else:
                one = self.channels[call.channel].costs
                mine, there = (one.target, one.source) if call.what == "receive" else (one.source, one.target)
                _, known = self._needed(step, call)
                other = int(there[np.flatnonzero((mine == rank) & ~np.isfinite(known))[0]])
            chain[rank] = f"rank {rank} waits for rank {other} in {name} of {call.kernel}"
            rank = other
        cycle = seen[seen.index(rank) :] if rank in seen else seen
        words = ", ".join(chain[one] for one in cycle[:4])
        more = f", and {len(cycle) - 4} more ranks up to rank {max(cycle)}" if len(cycle) > 4 else ""
        ended = "" if rank in seen else ", which has made all of its calls"
        return InputError(
            f"the replay deadlocks: {words}{more}{ended}",
            "messages from eager_limit on wait for their receiver: order sends and receives, or use MPI_Sendrecv",
        )
