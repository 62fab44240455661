"""Replay of a program on a network: ranks make their calls when what these wait for is there.

All ranks that can make a call make it together, call after call, until none can go on; where some have not ended then,
they wait for each other in a cycle, which is an error of the program (or of its order of calls as it was inferred).
The time of a rank after a call is the largest of its own and of what the call waited for; which of them it was is kept,
so that the way back from the last rank's end is the critical path. Sources: Ino et al., "LogGPS", PPoPP 2001; Hoefler,
Schneider and Lumsdaine, "LogGOPSim", HPDC 2010; Geimer et al., CCPE 22 (2010) 702 (wait states).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.cost import Choice
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.deliver import Exchange, Sorted
from ranksight.comm.replay.program import Call, Program
from ranksight.comm.replay.rounds import Rounds
from ranksight.comm.replay.wires import places_of, wires
from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.errors import InputError

CAUSES = ("late sender", "late receiver", "collective")
"""Why a rank waits: the message is not sent yet; nobody has asked for it yet; others have not entered yet."""
MOST_CELLS = 1 << 27
"""Calls of all ranks in all steps that are kept."""


@dataclass(frozen=True)
class Replayed:
    """A program that was replayed."""

    program: Program
    end: Array  # (P,): when each rank has made its last call, seconds
    waits: Mapping[tuple[str, str], Array]
    """Seconds (P,) that ranks wait, by kernel and one of :data:`CAUSES`."""
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
    if program.ranks * program.steps * len(program.calls) > MOST_CELLS:
        raise InputError(
            f"{program.ranks:,} ranks x {program.steps:,} steps x {len(program.calls)} calls are too many to replay",
            "replay fewer steps",
        )
    nodes = places_of(fabric, program.ranks, places)
    if fabric.topology is not None:
        fabric.topology.holds(int(nodes.max()) + 1, f"a job of {program.ranks:,} ranks")
    channels = [Exchange(wires(fabric, one.source, one.target, one.size, nodes)) for one in program.channels]
    first = _Machine(program, channels, fabric, choice, nodes)
    found = first.run()
    if not _staggered(program):
        return found
    # Messages of ranks that go one after the other do not share links: look at when they are sent, and replay again.
    middle = program.steps // 2
    for at, (one, sent) in enumerate(zip(program.channels, first.sent, strict=True)):
        channels[at] = Exchange(wires(fabric, one.source, one.target, one.size, nodes, sent[middle]))
    return _Machine(program, channels, fabric, choice, nodes, first.collectives).run()


def _staggered(program: Program) -> bool:
    """Whether ranks send at different times: they compute longer than others, or receive before they send."""
    if np.ptp(program.computing) > 0:
        return True
    received = False
    for call in program.calls:
        received |= call.what == "receive"
        if call.what == "send" and received:
            return True
    return False


class _Machine:
    """Ranks that make their calls."""

    def __init__(
        self,
        program: Program,
        channels: list[Exchange],
        fabric: Fabric,
        choice: Choice,
        nodes: Ints,
        collectives: dict[int, Rounds] | None = None,
    ) -> None:
        self.program, self.channels = program, channels
        steps, calls, ranks = program.steps, len(program.calls), program.ranks
        self.collectives = collectives or {
            at: Rounds(call, fabric, choice, nodes)
            for at, call in enumerate(program.calls)
            if call.what == "collective"
        }
        self.now = np.zeros(ranks)
        shape = steps * calls, ranks
        self.after, self.parts = np.zeros(shape), np.zeros((3, *shape), dtype=np.float32)
        self.origin = np.broadcast_to(np.arange(ranks, dtype=np.int32), shape).copy()
        self.number = np.broadcast_to(np.arange(steps * calls, dtype=np.int32)[:, None] - 1, shape).copy()
        self.sent = [np.full((steps, len(one.costs.source)), np.inf) for one in channels]
        self.asked = [np.full((steps, len(one.costs.source)), np.inf) for one in channels]
        self.sender = [self._call("send", at) for at in range(len(channels))]
        self.poster = [self._call("post", at) for at in range(len(channels))]
        self.waits: dict[tuple[str, str], Array] = {}

    def _call(self, what: str, channel: int) -> int:
        found = [at for at, call in enumerate(self.program.calls) if call.what == what and call.channel == channel]
        if len(found) > 1:
            raise InputError(f"channel {channel} has {len(found)} calls of {what}", "give each channel one")
        return found[0] if found else -1

    def run(self) -> Replayed:
        """Make all calls."""
        total, calls = len(self.after), len(self.program.calls)
        waiting: dict[int, Index] = {0: np.arange(self.program.ranks)}
        while waiting:
            moved = False
            at = min(waiting)
            held: dict[int, Index] = {}
            while waiting:
                at = min(waiting)
                who = waiting.pop(at)
                go = self._can(at // calls, self.program.calls[at % calls], who)
                if not go.all():
                    held[at] = who[~go]
                who = who[go]
                if not len(who):
                    continue
                moved = True
                self._make(at, who)
                self.after[at, who] = self.now[who]
                if at + 1 < total:
                    waiting[at + 1] = np.concatenate([waiting[at + 1], who]) if at + 1 in waiting else who
            if held and not moved:
                raise self._deadlock(held)
            waiting = held
        return Replayed(self.program, self.now, self.waits, self.after, self.origin, self.number, self.parts)

    def _can(self, step: int, call: Call, who: Index) -> Mask:
        """Which ranks can make a call now."""
        if call.what in ("receive", "complete"):
            mine, there = self._needed(step, call)
            missing = mine.ranks[mine.sums((~np.isfinite(there)).astype(float)) > 0]
            return np.asarray(~np.isin(who, missing))
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
            mine = np.isin(self.channels[call.channel].costs.target, who) & (step >= 0)
            self.asked[call.channel][step, mine] = self.now[self.channels[call.channel].costs.target[mine]]
        elif call.what == "send":
            self._send(at, step, call, who)
        else:
            self._wait(at, step, call, who)

    def _send(self, at: int, step: int, call: Call, who: Index) -> None:
        one = self.channels[call.channel]
        mine = np.isin(one.costs.source, who)
        self.sent[call.channel][step, mine] = self.now[one.costs.source[mine]] + one.costs.before[mine]
        out = np.isin(one.outgoing.ranks, who)
        ranks, seconds = one.outgoing.ranks[out], one.handing_over[out]
        self.now[ranks] += seconds
        self.parts[1, at, ranks] = seconds

    def _wait(self, at: int, step: int, call: Call, who: Index) -> None:
        """Wait for messages to come, or to go where they wait for their receiver."""
        one, receives = self.channels[call.channel], call.what == "receive"
        costs, mine = one.costs, one.incoming if receives else one.outgoing
        chosen = np.isin(mine.ranks, who)
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
        self.parts[1, at, ranks] = own - begin
        blocked, since = (sent, "late sender") if receives else (asked, "late receiver")
        # The message that begins last need not be the last to arrive.
        latest = mine.largest(blocked)[0][chosen]
        self._waited(call.kernel, since, ranks, np.maximum(np.minimum(latest, last) - begin, 0.0))
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
        entered = np.where(np.isin(np.arange(len(groups)), who), self.now, -np.inf)
        latest = np.full(int(groups.max()) + 1, -np.inf)
        np.maximum.at(latest, groups[who], entered[who])
        left = self.collectives[at % len(self.program.calls)].run(np.where(np.isfinite(entered), entered, 0.0))
        # Nobody waits longer than it stays in the call.
        wait = np.minimum(latest[groups[who]], left.time[who]) - self.now[who]
        self._waited(call.kernel, "collective", who, np.maximum(wait, 0.0))
        self.now[who] = left.time[who]
        self.origin[at, who], self.parts[:, at, who] = left.origin[who], left.parts[:, who]
        self.number[at, who] = at - 1

    def _waited(self, kernel: str, cause: str, ranks: Ints, seconds: Array) -> None:
        found = self.waits.setdefault((kernel, cause), np.zeros(self.program.ranks))
        found[ranks] += seconds

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
