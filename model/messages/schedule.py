"""A predicted message table as the program that replay takes: the calls of a step, at any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, block, operation_name
from ranksight.comm.costs.pointtopoint import NEIGHBOURS, SENDS
from ranksight.comm.replay.program import Call, Channel, Kind, Program
from ranksight.core.arrays import Array, Ints, Mask, ratio
from ranksight.core.errors import InsufficientError
from ranksight.core.records import dataclass
from ranksight.model.messages.fit_order import COMPLETING
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.order import BY_PLACE, BY_RANK, Order, Place, Sent
from ranksight.model.messages.table import MessageTable, Row

EXCHANGED: tuple[Kind, ...] = ("post", "send", "receive", "complete")
"""Calls of an exchange of messages."""
BLOCKING = ("send", "ssend", "bsend", "rsend")
EXCHANGES = ("sendrecv", "sendrecv_replace")
MOST_STEPS = 100
"""Steps that are replayed; longer programs repeat them."""
MOST_CALLS = 100
"""Calls of a step where their order is assumed."""
FEW_STEPS = 20
"""Steps that are replayed then: all are the same."""
SEED = 20261
"""Of the draws that deal out what ranks compute where their pattern over ranks is not known."""
EVEN = 1e-3
"""Spread of ranks, and of steps, below which they are taken as even."""


@dataclass(frozen=True)
class Schedule:
    """A program to replay, and what it stands for."""

    program: Program
    times: float  # so many times the program's steps are the whole
    assumed: bool  # whether the order of calls is assumed, for want of an event trace


@dataclass(frozen=True)
class _Links:
    """Messages of an operation's links at the number of ranks asked for."""

    codes: Ints
    count: Array
    size: Array

    def of(self, codes: Ints) -> tuple[Array, Array]:
        """Messages of each link, and bytes of one; 0 of those that are not there."""
        at = np.minimum(np.searchsorted(self.codes, codes), max(len(self.codes) - 1, 0))
        present = self.codes[at] == codes if len(self.codes) else np.zeros(len(codes), dtype=bool)
        return np.where(present, self.count[at], 0.0), np.where(present, self.size[at], 0.0)


def schedule(messages: Messages, table: MessageTable, computing: Array) -> Schedule:
    """The program of a message table.

    Raises InsufficientError where no message of it is known.

    Parameters
    ----------
    table : MessageTable
        Predicted by `messages` at the ranks asked for.
    computing : (P,)
        Seconds that each rank computes in the whole program.
    """
    if not any(not row.reason for row in table.rows):
        reason = next((row.reason for row in table.rows if row.reason), "it holds none")
        raise InsufficientError(
            f"no message of {table.ranks:,} ranks is known: {reason}", "trace more numbers of ranks"
        )
    if not messages.order:
        return _assumed(table, computing)
    return _Builder(messages, messages.order, table, computing).schedule()


class _Builder:
    """Puts the calls of a step together."""

    def __init__(self, messages: Messages, order: Order, table: MessageTable, computing: Array) -> None:
        self.messages, self.order, self.table, self.computing = messages, order, table, computing
        self.names = [operation_name(place.operation) for place in order.places]
        self.channels: list[Channel] = []
        self.calls: dict[int, list[list[Call]]] = {n: [[], [], [], []] for n in range(len(order.places))}
        self.steps: list[float] = []
        self.made: dict[tuple[object, ...], list[tuple[Ints, Array, Array]]] = {}

    def schedule(self) -> Schedule:
        """The program."""
        together: dict[tuple[object, ...], list[Sent]] = {}
        places = self.order.places
        for one in self.order.sent:
            ends = one.send, one.receive, one.lag, places[one.send].of, places[one.receive].of
            together.setdefault(ends, []).append(one)
        for each in together.values():
            if self._in_turn(each):
                self._exchanges(each[0])
            else:
                self._channel(each)
        for n, place in enumerate(self.order.places):
            if self.names[n] in OPERATIONS:
                self._collective(n, place)
        self.steps += [_steps(made) for made in self.made.values()]
        whole = float(np.median(self.steps)) if self.steps else float(self.order.steps)
        steps = int(np.clip(round(whole), 1, MOST_STEPS))
        calls: list[Call] = []
        works = _works(self.computing / max(whole, 1.0), steps, self.order.jitter)
        for n, place in enumerate(self.order.places):
            if place.work > 0:
                work = np.where(self._has(n, place), place.work, 0.0)
                calls.append(Call("compute", place.kernel, seconds=works * work))
            calls += [call for part in self.calls[n] for call in part]
        return Schedule(Program(self.table.ranks, tuple(calls), tuple(self.channels), steps), whole / steps, False)

    def _has(self, n: int, place: Place) -> Mask:
        if self.names[n] in OPERATIONS:
            return np.ones(self.table.ranks, dtype=bool)
        return self.order.members(place.of, self.table.ranks)

    def _rows(self, kernel: str, operation: str, tags: tuple[int, ...] = ()) -> list[Row]:
        text = " ".join(map(str, tags))
        return [row for row in self.table.rows if row.key == (kernel, operation) and row.tags == text]

    def _channel(self, together: list[Sent]) -> None:
        """Messages that leave in the same call and are received in the same one."""
        parts = [part for part in map(self._messages, together) if part is not None]
        if not parts:
            return
        source, target, size = (np.concatenate([part[n] for part in parts]) for n in range(3))
        self.channels.append(Channel(source, target, size, together[0].lag))
        self._sends(together[0].send, len(self.channels) - 1)
        self._receives(together[0].receive, len(self.channels) - 1)

    def _in_turn(self, together: list[Sent]) -> bool:
        """Whether they are rounds of one rule in calls that send and receive at once: each waits for the one before."""
        one = together[0]
        rules = {(each.entry, each.rule) for each in together}
        blocks = self.names[one.send] in EXCHANGES and one.send == one.receive and not one.lag
        return blocks and len(together) > 1 and len(rules) == 1 and all(each.round >= 0 for each in together)

    def _exchanges(self, one: Sent) -> None:
        """All rounds of its rule at the ranks asked for, one after the other."""
        links = self.messages.entries[one.entry].explanations[0].rules[one.rule].links(self.table.ranks)
        for turn in np.unique(links.round).tolist():
            part = self._messages(replace(one, round=turn))
            if part is not None:
                self.channels.append(Channel(*part))
                at = len(self.channels) - 1
                self.calls[one.send][0] += [self._call(what, one.send, at) for what in EXCHANGED]

    def _messages(self, one: Sent) -> tuple[Ints, Ints, Array] | None:
        """Sources, targets and bytes of the messages of a rule in a step; None where there are none."""
        entry, ranks = self.messages.entries[one.entry], self.table.ranks
        links = entry.explanations[0].rules[one.rule].links(ranks)
        used = np.ones(len(links.source), dtype=bool) if one.round < 0 else links.round == one.round
        kinds = self.order.places[one.send].of, self.order.places[one.receive].of
        sender, receiver = (self.order.members(kind, ranks) for kind in kinds)
        used &= sender[links.source] & receiver[links.target] & (links.source != links.target)
        source, target = links.source[used], links.target[used]
        count, size = _linked(self._rows(entry.kernel, entry.operation, entry.tags)).of(source * ranks + target)
        several = count > 1e-9
        if not several.any():
            return None
        each = max(one.count, 1)
        made = (source * ranks + target)[several], count[several], np.full(int(several.sum()), float(each))
        self.made.setdefault((entry.kernel, entry.operation, entry.tags), []).append(made)
        return np.repeat(source[several], each), np.repeat(target[several], each), np.repeat(size[several], each)

    def _call(self, what: str, n: int, channel: int) -> Call:
        place = self.order.places[n]
        return Call(what, place.kernel, place.operation, channel)  # type: ignore[arg-type]

    def _sends(self, n: int, channel: int) -> None:
        self.calls[n][1].append(self._call("send", n, channel))
        if self.names[n] in (*BLOCKING, *EXCHANGES):
            end = n
        else:
            kind = self.order.places[n].of
            later = range(n + 1, len(self.names))
            ends = [k for k in later if self.names[k] in COMPLETING and self.order.places[k].of == kind]
            if not ends:
                return
            end = ends[0]
        self.calls[end][3].append(self._call("complete", end, channel))

    def _receives(self, n: int, channel: int) -> None:
        post = n
        if self.names[n] in COMPLETING:
            kind = self.order.places[n].of
            posts = [k for k in range(n) if self.names[k] == "irecv" and self.order.places[k].of == kind]
            post = posts[-1] if posts else n
        self.calls[post][0].append(self._call("post", post, channel))
        self.calls[n][2].append(self._call("receive", n, channel))

    def _collective(self, n: int, place: Place) -> None:
        rows = [
            row for row in self._rows(place.kernel, place.operation) if row.comm_size or len(self.order.places) == 1
        ]
        # Those of the communicators that had as many ranks in the traced run, where several kinds are distinguished.
        traced = [row for row in rows if row.communicator and row.communicator.at(self.order.ranks) == place.comm_size]
        rows = traced or rows
        if not rows:
            return
        before = sum(
            1
            for other in self.order.places
            if (other.kernel, other.operation) == (place.kernel, place.operation)
            and (not traced or other.comm_size == place.comm_size)
        )
        call, count = _collective(rows, self.table.ranks)
        self.steps.append(count / before)
        self.calls[n][0].append(call)


def _steps(made: list[tuple[Ints, Array, Array]]) -> float:
    """Steps that an operation's messages are of: links with their messages in the whole program, and in a step, each
    time that a step has some of them; two neighbours may be one rank."""
    codes, count, each = (np.concatenate(parts) for parts in zip(*made, strict=True))
    _, first, back = np.unique(codes, return_index=True, return_inverse=True)
    return float(np.median(count[first] / np.bincount(back.reshape(-1), weights=each)))


def _works(seconds: Array, steps: int, jitter: float) -> Array:
    """Seconds of a step of each rank, (P,), or (steps, P) where steps differ."""
    if jitter < EVEN:
        return seconds
    draws = np.random.default_rng(SEED).normal(0.0, jitter, (steps, len(seconds)))
    return np.asarray(seconds * np.exp(draws - jitter**2 / 2))


def _linked(rows: list[Row]) -> _Links:
    """Messages of all size classes of an operation, by link."""
    if not rows:
        return _Links(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    codes = np.concatenate([row.links for row in rows])
    each, back = np.unique(codes, return_inverse=True)
    count, volume = (
        np.bincount(back.reshape(-1), weights=np.concatenate(parts), minlength=len(each))
        for parts in ([row.link_count for row in rows], [row.link_bytes for row in rows])
    )
    return _Links(each, np.asarray(count, dtype=float), ratio(volume, count, 0.0))


def _collective(rows: list[Row], ranks: int) -> tuple[Call, float]:
    """One call of a collective, with the mean size of its rows; and how often a rank calls it."""
    size = rows[0].comm_size or ranks
    name = operation_name(rows[0].operation)
    count, volume = (float(sum(getattr(row, part).sum() for row in rows)) for part in ("count", "bytes"))
    handed = volume / count if count > 0 else 0.0
    # The root of a scatter hands over the blocks of all, the others theirs.
    scatters = name in ("scatter", "scatterv")
    bytes_ = handed * size / (2 * size - 1) if scatters else float(block(name, size, handed))
    known = rows[0].communicator
    groups = np.arange(ranks) // size if known is None or not rows[0].comm_size else known.groups(ranks)
    return Call("collective", rows[0].kernel, rows[0].operation, groups=groups, size=bytes_), count / ranks


def _assumed(table: MessageTable, computing: Array) -> Schedule:
    """Kernel by kernel: messages sent and received together, then collectives, each as often as it is called.

    A step is what the rarest operation repeats, but no more than MOST_CALLS; those called in fewer than half of the
    steps then are left out.
    """
    ranks, channels, calls = table.ranks, list[Channel](), list[Call]()
    rows = [row for row in table.rows if not row.reason]
    made = [
        each
        for kernel in dict.fromkeys(row.kernel for row in rows)
        for key in dict.fromkeys(row.operation for row in rows if row.kernel == kernel)
        if (each := _repeated([row for row in rows if (row.kernel, row.operation) == (kernel, key)], ranks)) is not None
    ]
    if not made:
        raise InsufficientError("partners of no message are known", "trace runs with --collector pmpi-events")
    counts = np.array([count for *_, count in made])
    frequent = np.sort(counts)
    whole = max(float(frequent[np.argmax(counts.sum() <= MOST_CALLS * frequent)]), 1.0)
    for first, channel, count in made:
        times = round(count / whole)
        if channel is None:
            calls += [replace(first, count=times)] * bool(times)
            continue
        for _ in range(times):
            channels.append(channel)
            calls += [replace(first, what=what, channel=len(channels) - 1) for what in EXCHANGED]
    repeated = int(np.clip(round(whole), 1, FEW_STEPS))
    work = Call("compute", calls[0].kernel, seconds=computing / whole)
    return Schedule(Program(ranks, (work, *calls), tuple(channels), repeated), whole / repeated, True)


def _repeated(rows: list[Row], ranks: int) -> tuple[Call, Channel | None, float] | None:
    """A call of an operation, the messages of one where it has some, and how often a rank calls it; None where its
    messages are not known."""
    name, first = operation_name(rows[0].operation), rows[0]
    if name in OPERATIONS:
        call, count = _collective(rows, ranks)
        return call, None, count
    if name not in SENDS and name not in NEIGHBOURS:
        return None
    links = _linked(rows)
    distinct = links.codes // ranks != links.codes % ranks
    if not distinct.any():
        return None
    channel = Channel(links.codes[distinct] // ranks, links.codes[distinct] % ranks, links.size[distinct])
    return Call("send", first.kernel, first.operation), channel, float(np.median(links.count[distinct]))


def drawn(order: Order, ranks: int) -> bool:
    """Whether what each of `ranks` ranks computes is drawn by chance."""
    if len(order.uneven) == ranks or order.pattern == BY_PLACE:
        return False
    return bool(np.std(order.uneven) >= EVEN)


def dealt_out(order: Order, ranks: int, mean: float, draw: int = 0) -> Array:
    """Seconds that each rank computes, (P,), where their mean is `mean`: spread as the ranks of the traced run were.

    On as many ranks the pattern is that of the run. On others it is stretched where what ranks compute goes with their
    place; else they draw from its quantiles, but for ranks of the run where each computes as much on any number.
    `draw`: which of the draws.
    """
    if np.std(order.uneven) < EVEN:
        return np.full(ranks, mean)
    if len(order.uneven) == ranks:
        return np.asarray(mean * order.uneven)
    known = order.uneven[:ranks] if order.pattern == BY_RANK else order.uneven[:0]
    spread = order.uneven if order.pattern == BY_PLACE else np.sort(order.uneven)
    others = ranks - len(known)
    places = (np.arange(others) + 0.5) / max(others, 1) * len(spread) - 0.5
    shares = np.interp(places, np.arange(len(spread)), spread)
    if order.pattern != BY_PLACE:
        shares = np.random.default_rng(SEED + draw).permutation(shares)
    shares = np.concatenate([known, shares])
    return np.asarray(mean * shares / shares.mean())
