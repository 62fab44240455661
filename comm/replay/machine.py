"""Ranks that make the calls of a program when what these wait for is there.

All ranks that can make a call make it together, call after call, until none can go on; where some have not ended then,
they wait for each other in a cycle, which is an error of the program (or of its order of calls as it was inferred).
The time of a rank after a call is the largest of its own and of what the call waited for; which of them it was is kept,
so that the way back from the last rank's end is the critical path. Sources: Ino et al., "LogGPS", PPoPP 2001; Hoefler,
Schneider and Lumsdaine, "LogGOPSim", HPDC 2010; Geimer et al., CCPE 22 (2010) 702 (wait states).
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.replay.deadlock import deadlock
from ranksight.comm.replay.deliver import Exchange, Sorted
from ranksight.comm.replay.program import Call, Program
from ranksight.comm.replay.replayed import Replayed
from ranksight.comm.replay.rounds import Rounds
from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.errors import InputError

SAME = 1e-9
"""Relative difference of steps that take the same time."""


class Machine:
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
            raise deadlock(self.program, self.channels, self._needed, blocked)
        return waiting

    def _later(self, step: int) -> float | None:
        """Seconds by which a step ends later than the one before, where all of it does; otherwise None."""
        lag = max((one.lag for one in self.program.channels), default=0)
        if not self.repeating or step < max(2 + lag, *(one.steps for one in self.channels), 0):
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
            arrival = np.maximum(sent, asked) + one.flight(step)
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
        self.parts[:, at, ranks] = one.parts(message, step)

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
