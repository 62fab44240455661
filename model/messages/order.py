"""The order in which a program makes its calls, from an event trace: what replay needs besides the message table.

The calls of a run's ranks repeat a block, a step. Its calls, with calls of one kernel and operation in a row taken as
one, are the template; ranks at borders leave some of them out. Where the first rank, the last one or every second one
has another order (a ring that rank 0 begins), it has a template of its own. A message is sent in one call of a template
and received in one of another; which, is a property of the rule that it follows (:mod:`ranksight.comm.patterns`), so
that it holds at every number of ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.core.arrays import Array, Ints, Mask, ratio
from ranksight.core.experiment import Experiment, Run
from ranksight.model.messages.entry import Entry
from ranksight.model.plaindata import Row, Stored, reading

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("rank", "kernel", "operation", "comm_size", "begin", "end", "bytes", "peer", "tag")
RECEIVING = ("recv", "irecv", "mrecv", "imrecv", "sendrecv_recv", "sendrecv_replace_recv", "isendrecv_recv")
COMPLETING = ("wait", "waitall", "waitany", "waitsome")
KINDS = ("all", "first", "last", "even")
"""Ranks that have a template: all that no other one has, rank 0, the last rank, every second one."""
LONGEST = 512
"""Calls of a step that are looked for."""
COVERED = 0.5
"""Part of a run's calls that steps must hold to stand for the program."""


@dataclass(frozen=True)
class Place(Row):
    """A call of a step, or several of one kernel and operation in a row."""

    kernel: str
    operation: str
    comm_size: int  # in the run that was traced; for collectives
    of: str  # whose template it belongs to, of :data:`KINDS`
    work: float  # part of a rank's computation in all steps that comes before it


@dataclass(frozen=True)
class Sent(Row):
    """Messages of a rule that one call sends and another receives."""

    entry: int  # of the message model, its rule, and the round of that; -1 for all
    rule: int
    round: int
    send: int  # places
    receive: int
    lag: int  # steps between the two
    count: int  # messages of a link


@dataclass(frozen=True)
class Order(Stored):
    """Calls of a step."""

    places: tuple[Place, ...]
    sent: tuple[Sent, ...]
    steps: int
    ranks: int  # of the run it was read from
    uneven: Array  # (n,): what ranks of that run compute over the mean, rank after rank
    jitter: float  # standard deviation of ln of a step's computation against the rank's mean, persistent part removed

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("an order of calls"):
            return super().from_dict(content)

    def members(self, kind: str, ranks: int) -> Mask:
        """Which of `ranks` ranks have a template, (P,)."""
        rank = np.arange(ranks)
        own = {"first": rank == 0, "last": rank == ranks - 1, "even": rank % 2 == 0}
        kinds = {place.of for place in self.places}
        if kind in own:
            return np.asarray(own[kind])
        others = [own[name] for name in kinds if name in own]
        return np.asarray(~np.any(others, axis=0)) if others else np.ones(ranks, dtype=bool)

    def _fits(self) -> bool:
        n = len(self.places)
        inside = all(0 <= one.send < n and 0 <= one.receive < n and one.lag >= 0 for one in self.sent)
        return inside and self.steps >= 1 and self.ranks >= 1 and all(place.of in KINDS for place in self.places)


@dataclass(frozen=True)
class _Rank:
    """One rank's calls in a row: tokens, seconds computed before each, and the number of the event of each call."""

    tokens: Ints
    work: Array
    of_call: Ints  # (calls,): place in `tokens` of each call kept, -1 for others


def fit_order(experiment: Experiment, entries: Sequence[Entry]) -> Order | None:
    """The order of calls of the traced run with most ranks; None where no events are kept, or no step repeats."""
    runs = [run for run in experiment.runs if set(COLUMNS) <= set(experiment.columns(run, "events"))]
    for run in sorted(runs, key=lambda run: -run.configuration.get("ranks", 0)):
        table = experiment.table(run, "events", COLUMNS)
        if table is None or not len(table) or run.configuration.get("ranks", 1) < 2:
            continue
        found = _order(table, run, entries)
        if found is not None:
            return found
    return None


def _order(table: pd.DataFrame, run: Run, entries: Sequence[Entry]) -> Order | None:
    ranks = int(run.configuration["ranks"])
    rows = table.sort_values("rank", kind="stable").reset_index(drop=True)
    rows = rows[(rows["rank"] >= 0) & (rows["rank"] < ranks)].reset_index(drop=True)
    rows["name"] = rows["operation"].astype(str).map({n: operation_name(str(n)) for n in rows["operation"].unique()})
    is_call = rows["peer"].isna().to_numpy()
    moving = rows["name"].isin([*SENDS, *RECEIVING, *COMPLETING, *OPERATIONS]).to_numpy()
    keys = rows["kernel"].astype(str) + "\0" + rows["operation"].astype(str) + "\0" + rows["comm_size"].astype(str)
    codes, names = keys.factorize()
    collective = np.array([operation_name(str(name).split("\0")[1]) in OPERATIONS for name in names])
    each = {}
    for rank, at in rows.groupby("rank").indices.items():
        each[int(str(rank))] = _of_rank(rows.iloc[at], codes[at], (is_call & moving)[at], collective)
    if len(each) < ranks:
        return None
    templates = _templates(each, ranks)
    if templates is None:
        return None
    merged = _merged(templates, collective)
    if merged is None:
        return None
    places, position = merged
    kind_of = {rank: _kind(rank, ranks, templates) for rank in each}
    steps = templates["all"].steps
    within = {rank: _within(each[rank], templates[kind_of[rank]]) for rank in each}
    work = _work(each, within, kind_of, templates)
    shares = {kind: _shares([work[rank] for rank in each if kind_of[rank] == kind]) for kind in templates}
    listed = []
    for number, (kind, place) in enumerate(places):
        kernel, operation, size = str(names[templates[kind].block[place]]).split("\0")
        shared = [shares[other][n] for (other, n), there in position.items() if there == number]
        listed.append(Place(kernel, operation, int(size), kind, float(np.mean(shared))))
    sent = _sent(rows, is_call, each, within, kind_of, position, entries, ranks)
    sums = np.array([np.nansum(work[rank]) for rank in range(ranks)])
    uneven = ratio(sums, sums.mean(), 1.0, where=np.full(ranks, sums.mean() > 0))
    return Order(tuple(listed), tuple(sent), steps, ranks, uneven, _jitter(each, within, steps))


def _shares(work: list[Array]) -> Array:
    """Part of the computation that comes before each place: of ranks that make the most calls, those inside."""
    most = max(int(np.isfinite(each).sum()) for each in work)
    whole = np.nan_to_num(np.mean([each for each in work if np.isfinite(each).sum() == most], axis=0))
    return ratio(whole, whole.sum(), 0.0, where=np.full(whole.shape, whole.sum() > 0))


def _of_rank(rows: pd.DataFrame, codes: Ints, wanted: Mask, collective: Mask) -> _Rank:
    """Calls of a rank in a row.

    A row of calls ends where one is a collective, or has the same partner again: a rank at a border that makes no other
    calls in between begins its next step there.
    """
    of_call, tokens, work = np.full(len(codes), -1), list[int](), list[float]()
    begin, end = rows["begin"].to_numpy(dtype=float).tolist(), rows["end"].to_numpy(dtype=float).tolist()
    partners = rows["name"].astype(str) + rows["peer"].astype(str) + rows["tag"].astype(str)
    seen: set[str] = set()
    # The last call, the first of its row, what was computed before it, and whether it counts.
    last, begun, gap, mine = -1, -1, 0.0, False
    token = codes.tolist()
    for n, (call, with_whom, transfer) in enumerate(
        zip(wanted.tolist(), partners.tolist(), rows["peer"].notna().tolist(), strict=True)
    ):
        if transfer:
            if mine and with_whom in seen and of_call[last] == len(tokens) - 1 and begun != last:
                # The same partner again: the call that this belongs to begins the next row.
                tokens.append(tokens[-1])
                work.append(gap)
                work[-2] -= gap
                of_call[last] = len(tokens) - 1
                begun, seen = last, set()
            seen.add(with_whom)
            continue
        mine = call
        if not call:
            continue
        gap = 0.0 if last < 0 else max(begin[n] - end[last], 0.0)
        if not tokens or tokens[-1] != token[n] or collective[token[n]]:
            tokens.append(token[n])
            work.append(0.0)
            begun, seen = n, set()
        work[-1] += gap
        of_call[n] = len(tokens) - 1
        last = n
    return _Rank(np.array(tokens, dtype=np.int64), np.array(work), of_call)


@dataclass(frozen=True)
class _Template:
    tokens: Ints  # of the rank that it was read from
    begin: int  # where steps begin in them
    length: int
    steps: int

    @property
    def block(self) -> Ints:
        """Tokens of a step."""
        return self.tokens[self.begin : self.begin + self.length]


def _period(tokens: Ints) -> _Template | None:
    """The block whose repetitions cover most of a sequence, the shortest of such."""
    best: _Template | None = None
    for length in range(1, min(LONGEST, len(tokens) // 2) + 1):
        same = np.concatenate([[False], tokens[length:] == tokens[:-length], [False]])
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        begins, ends = edges[::2], edges[1::2]
        if not len(begins):
            continue
        longest = int(np.argmax(ends - begins))
        steps = int(ends[longest] - begins[longest]) // length + 1
        if steps > 1 and (best is None or steps * length > 1.02 * best.steps * best.length):
            best = _Template(tokens, int(begins[longest]), length, steps)
    return best if best is not None and best.steps * best.length >= COVERED * len(tokens) else None


def _templates(each: Mapping[int, _Rank], ranks: int) -> dict[str, _Template] | None:
    """Templates by kind of ranks; None where ranks follow no few orders."""
    longest = max(each, key=lambda rank: len(each[rank].tokens))
    plain = _period(each[longest].tokens)
    if plain is None:
        return None
    odd = [rank for rank, one in each.items() if not _holds(each[longest].tokens, one.tokens)]
    if not odd:
        return {"all": plain}
    rules: tuple[tuple[tuple[str, ...], list[int]], ...] = (
        (("first",), [0]),
        (("last",), [ranks - 1]),
        (("first", "last"), [0, ranks - 1]),
        (("even",), list(range(0, ranks, 2))),
    )
    others = [rank for rank in each if rank not in odd]
    for kinds, who in rules:
        inner = [rank for rank in each if rank not in who]
        if not inner or not (set(odd) <= set(who) or set(others) <= set(who)):
            continue
        base = max(inner, key=lambda rank: len(each[rank].tokens))
        found = {"all": _period(each[base].tokens)}
        for kind in kinds:
            mine = {"first": [0], "last": [ranks - 1], "even": who}[kind]
            found[kind] = _period(each[max(mine, key=lambda rank: len(each[rank].tokens))].tokens)
        known = {kind: one for kind, one in found.items() if one is not None}
        if len(known) == len(found) and len({one.steps for one in known.values()}) == 1:
            return known
    return None


def _holds(whole: Ints, part: Ints) -> bool:
    """Whether a sequence has another one in it, in order, with calls left out."""
    rest = iter(whole.tolist())
    return all(token in rest for token in part.tolist())


def _kind(rank: int, ranks: int, templates: Mapping[str, _Template]) -> str:
    if rank == 0 and "first" in templates:
        return "first"
    if rank == ranks - 1 and "last" in templates:
        return "last"
    return "even" if rank % 2 == 0 and "even" in templates else "all"


def _merged(
    templates: Mapping[str, _Template], collective: Mask
) -> tuple[list[tuple[str, int]], dict[tuple[str, int], int]] | None:
    """All templates in one list of (kind, place in its block), with one place for each collective; None where they have
    different collectives."""
    parts = {}
    for kind, one in templates.items():
        ends = np.flatnonzero(collective[one.block])
        parts[kind] = (one.block[ends].tolist(), np.split(np.arange(len(one.block)), ends + 1))
    first = parts["all"][0]
    if any(tokens != first for tokens, _ in parts.values()):
        return None
    places: list[tuple[str, int]] = []
    position: dict[tuple[str, int], int] = {}
    for n in range(len(first) + 1):
        shared = [(kind, int(segments[n][-1])) for kind, (_, segments) in parts.items() if n < len(first)]
        for kind, (_, segments) in parts.items():
            own = segments[n][:-1] if n < len(first) else segments[n]
            for at in own.tolist():
                position[kind, at] = len(places)
                places.append((kind, at))
        if shared:
            position |= dict.fromkeys(shared, len(places))
            places.append(next(place for place in shared if place[0] == "all"))
    return places, position


def _within(one: _Rank, template: _Template) -> tuple[Ints, Ints]:
    """Of each token of a rank its step and its place in the block; -1 outside of the steps.

    Calls are taken in order; what the block has in addition is left out by the rank.
    """
    step, place = np.full((2, len(one.tokens)), -1)
    wanted, at = template.tokens.tolist(), 0
    for n, token in enumerate(one.tokens.tolist()):
        try:
            at = wanted.index(token, at)
        except ValueError:
            break
        inside = at - template.begin
        if 0 <= inside < template.steps * template.length:
            step[n], place[n] = divmod(inside, template.length)
        at += 1
    return step, place


def _work(
    each: Mapping[int, _Rank],
    within: Mapping[int, tuple[Ints, Ints]],
    kinds: Mapping[int, str],
    templates: Mapping[str, _Template],
) -> dict[int, Array]:
    """Seconds that each rank computes in a step before each place of its block, means; NaN where it makes no call."""
    found = {}
    for rank, one in each.items():
        _, place = within[rank]
        # Before the first call of a trace nothing is known.
        kept = (place >= 0) & (np.arange(len(place)) > 0)
        length = templates[kinds[rank]].length
        sums = np.bincount(place[kept], weights=one.work[kept], minlength=length).astype(np.float64)
        found[rank] = ratio(sums, np.bincount(place[kept], minlength=length))
    return found


def _jitter(each: Mapping[int, _Rank], within: Mapping[int, tuple[Ints, Ints]], steps: int) -> float:
    """Standard deviation of ln of what ranks compute in a step, against each rank's own mean; 0 where steps are few."""
    if steps < 4:
        return 0.0
    spread = []
    for rank, one in each.items():
        step = within[rank][0]
        sums = np.bincount(step[step > 0], weights=one.work[step > 0], minlength=steps)[1:]
        if (sums > 0).all():
            spread.append(float(np.var(np.log(sums), ddof=1)))
    return float(np.sqrt(np.mean(spread))) if spread else 0.0


def _sent(
    rows: pd.DataFrame,
    is_call: Mask,
    each: Mapping[int, _Rank],
    within: Mapping[int, tuple[Ints, Ints]],
    kinds: Mapping[int, str],
    position: Mapping[tuple[str, int], int],
    entries: Sequence[Entry],
    ranks: int,
) -> list[Sent]:
    """Which call sends and which receives the messages of each rule: those that most of its links have."""
    rank_of = rows["rank"].to_numpy()
    numbers, begins = np.unique(rank_of, return_index=True)  # rows are in the order of ranks
    first = dict(zip(numbers.tolist(), begins.tolist(), strict=True))
    call = np.maximum.accumulate(np.where(is_call, np.arange(len(rows)), 0))
    token = np.array([each[int(r)].of_call[c - first[int(r)]] for r, c in zip(rank_of, call, strict=True)])

    def found(r: int, t: int) -> tuple[int, int]:
        """Step and place of a token."""
        step, place = within[r]
        return (int(step[t]), position[kinds[r], int(place[t])]) if t >= 0 and step[t] >= 0 else (-1, -1)

    ends: dict[tuple[int, ...], list[list[tuple[int, int, str, str]]]] = defaultdict(lambda: [[], []])
    peer, tag = (rows[name].to_numpy(dtype=float, na_value=-1.0).astype(np.int64) for name in ("peer", "tag"))
    name, kernel, operation = (rows[key].astype(str).to_numpy() for key in ("name", "kernel", "operation"))
    size = rows["comm_size"].to_numpy()
    for n in np.flatnonzero(~is_call & (peer >= 0)).tolist():
        r = int(rank_of[n])
        side = 0 if name[n] in SENDS else 1 if name[n] in RECEIVING else -1
        if side >= 0:
            pair = (r, int(peer[n])) if side == 0 else (int(peer[n]), r)
            ends[(*pair, int(tag[n]), int(size[n]))][side].append((*found(r, int(token[n])), kernel[n], operation[n]))
    links = _links(entries, ranks)
    votes: dict[tuple[tuple[int, int, int], str, str], Counter[tuple[int, int, int]]] = defaultdict(Counter)
    counts: Counter[tuple[tuple[int, int, int], tuple[int, int, int], int]] = Counter()
    for (source, target, tagged, _), (out, into) in ends.items():
        for (step, place, kern, op), (later, there, _, _) in zip(out, into, strict=False):
            if place < 0 or there < 0:
                continue
            for rule in links.get((kern, op, source * ranks + target), ()):
                of = entries[rule[0]].tags
                if not of or tagged in of:
                    way = (place, there, max(later - step, 0))
                    votes[rule, kinds[source], kinds[target]][way] += 1
                    counts[rule, way, step * ranks * ranks + source * ranks + target] += 1
                    break
    listed = []
    for (rule, _, _), ways in votes.items():
        most = max(ways.values())
        for way, number in ways.items():
            if number >= most / 2:
                each_link = [c for (one, w, _), c in counts.items() if (one, w) == (rule, way)]
                listed.append(Sent(*rule, *way, round(float(np.median(each_link)))))
    return listed


def _links(entries: Sequence[Entry], ranks: int) -> dict[tuple[str, str, int], list[tuple[int, int, int]]]:
    """Rules (entry, rule, round) that a link of a kernel's operation follows."""
    found: dict[tuple[str, str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, entry in enumerate(entries):
        if entry.kind != "links":
            continue
        for at, rule in enumerate(entry.explanations[0].rules):
            links = rule.links(ranks)
            several = bool(len(links.round) and links.round.max() > 0)
            for code, turn in zip(links.codes(ranks).tolist(), links.round.tolist(), strict=True):
                found[entry.kernel, entry.operation, code].append((number, at, turn if several else -1))
    return found
