"""Read the order of calls from an event trace (:mod:`ranksight.model.messages.order`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.core.arrays import Array, Ints, Mask, ratio
from ranksight.core.experiment import Experiment, Run
from ranksight.model.messages.entry import Entry
from ranksight.model.messages.order import BY_CHANCE, BY_PLACE, BY_RANK, NO_ORDER, Order, Place, Sent
from ranksight.model.messages.templates import (
    CallsOfRank,
    Template,
    find_templates,
    kind_of_rank,
    merged_places,
    places_within,
)

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("rank", "kernel", "operation", "comm_size", "begin", "end", "bytes", "peer", "tag")
RECEIVING = ("recv", "irecv", "mrecv", "imrecv", "sendrecv_recv", "sendrecv_replace_recv", "isendrecv_recv")
COMPLETING = ("wait", "waitall", "waitany", "waitsome")
UNLIKE, FEWEST_ALIKE = 0.2, 4
"""Part of the variance over ranks that two runs may differ in where they compute the same, and ranks that show it."""


def fit_order(experiment: Experiment, entries: Sequence[Entry]) -> Order:
    """The order of calls of the traced run with most ranks."""
    runs = [run for run in experiment.runs if set(COLUMNS) <= set(experiment.columns(run, "events"))]
    for run in sorted(runs, key=lambda run: -run.configuration.get("ranks", 0)):
        table = experiment.table(run, "events", COLUMNS)
        if table is None or not len(table) or run.configuration.get("ranks", 1) < 2:
            continue
        order = _order(table, run, entries)
        if order:
            fewer = [one for one in runs if FEWEST_ALIKE <= one.configuration.get("ranks", 1) < order.ranks]
            if fewer:
                other = max(fewer, key=lambda one: one.configuration["ranks"])
                table = experiment.table(other, "events", COLUMNS)
                order = replace(order, pattern=pattern_of(_computed(table, other), order.uneven))
            return order
    return NO_ORDER


def _computed(table: pd.DataFrame | None, run: Run) -> Array:
    """Seconds (P,) that ranks of a run spend between their calls."""
    if table is None:
        return np.zeros(0)
    calls = table[table["peer"].isna().to_numpy()]
    of = (calls["end"] - calls["begin"]).groupby(calls["rank"].to_numpy()).sum()
    span = calls.groupby("rank")["end"].max() - calls.groupby("rank")["begin"].min()
    return (span - of).reindex(range(int(run.configuration["ranks"]))).to_numpy(dtype=float)


def pattern_of(fewer: Array, more: Array) -> str:
    """What computation goes with (:data:`.order.PATTERNS`), by that of a run of fewer ranks (n,) and of more (m,)."""
    count = len(fewer)
    if not FEWEST_ALIKE <= count < len(more) or not np.isfinite(fewer).all():
        return BY_CHANCE
    at = (np.arange(count) + 0.5) / count
    stretched = np.interp(at, (np.arange(len(more)) + 0.5) / len(more), more)
    measured = fewer / fewer.mean() if fewer.mean() > 0 else np.ones(count)
    whole = ((measured - 1) ** 2).sum()
    left = {
        name: ((measured - other / other.mean()) ** 2).sum()
        for name, other in ((BY_RANK, more[:count]), (BY_PLACE, stretched))
    }
    best = min(left, key=lambda name: left[name])
    return best if left[best] < UNLIKE * whole else BY_CHANCE


def _order(table: pd.DataFrame, run: Run, entries: Sequence[Entry]) -> Order:
    ranks = int(run.configuration["ranks"])
    rows = table.sort_values("rank", kind="stable").reset_index(drop=True)
    rows = rows[(rows["rank"] >= 0) & (rows["rank"] < ranks)].reset_index(drop=True)
    rows["name"] = rows["operation"].astype(str).map({n: operation_name(str(n)) for n in rows["operation"].unique()})
    is_call = rows["peer"].isna().to_numpy()
    moving = rows["name"].isin([*SENDS, *RECEIVING, *COMPLETING, *OPERATIONS]).to_numpy()
    keys = rows[["kernel", "operation", "comm_size"]].astype({"kernel": str, "operation": str})
    codes = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy().astype(np.int64)
    names = list(keys.drop_duplicates().itertuples(index=False, name=None))
    collective = np.array([operation_name(operation) in OPERATIONS for _, operation, _ in names])
    each = {}
    for rank, at in rows.groupby("rank").indices.items():
        each[int(str(rank))] = _of_rank(rows.iloc[at], codes[at], (is_call & moving)[at], collective)
    if len(each) < ranks:
        return NO_ORDER
    templates = find_templates(each, ranks)
    if not templates:
        return NO_ORDER
    merged = merged_places(templates, collective)
    if not merged[0]:
        return NO_ORDER
    places, position = merged
    kind_of = {rank: kind_of_rank(rank, ranks, templates) for rank in each}
    steps = templates["all"].steps
    within = {rank: places_within(each[rank], templates[kind_of[rank]]) for rank in each}
    work = _work(each, within, kind_of, templates)
    shares = {kind: _shares([work[rank] for rank in each if kind_of[rank] == kind]) for kind in templates}
    listed = []
    for number, (kind, place) in enumerate(places):
        kernel, operation, size = names[templates[kind].block[place]]
        shared = [shares[other][n] for (other, n), merged_place in position.items() if merged_place == number]
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


def _of_rank(rows: pd.DataFrame, codes: Ints, wanted: Mask, collective: Mask) -> CallsOfRank:
    """Calls of a rank in a row.

    A row of calls ends where one is a collective, or has the same partner again: a rank at a border that makes no other
    calls in between begins its next step there.
    """
    of_call, tokens, work = np.full(len(codes), -1), list[int](), list[float]()
    begin, end = rows["begin"].to_numpy(dtype=float).tolist(), rows["end"].to_numpy(dtype=float).tolist()
    partners = rows["name"].astype(str) + rows["peer"].astype(str) + rows["tag"].astype(str)
    seen: set[str] = set()
    # The last call, the first of its row, what was computed before it, and whether it counts.
    last, begun, gap, counts = -1, -1, 0.0, False
    token = codes.tolist()
    for n, (call, with_whom, transfer) in enumerate(
        zip(wanted.tolist(), partners.tolist(), rows["peer"].notna().tolist(), strict=True)
    ):
        if transfer:
            if counts and with_whom in seen and of_call[last] == len(tokens) - 1 and begun != last:
                # The same partner again: the call that this belongs to begins the next row.
                tokens.append(tokens[-1])
                work.append(gap)
                work[-2] -= gap
                of_call[last] = len(tokens) - 1
                begun, seen = last, set()
            seen.add(with_whom)
            continue
        counts = call
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
    return CallsOfRank(np.array(tokens, dtype=np.int64), np.array(work), of_call)


def _work(
    each: Mapping[int, CallsOfRank],
    within: Mapping[int, tuple[Ints, Ints]],
    kinds: Mapping[int, str],
    templates: Mapping[str, Template],
) -> dict[int, Array]:
    """Seconds that each rank computes in a step before each place of its block, means; NaN where it makes no call."""
    seconds = {}
    for rank, one in each.items():
        _, place = within[rank]
        # Before the first call of a trace nothing is known.
        counted = (place >= 0) & (np.arange(len(place)) > 0)
        length = templates[kinds[rank]].length
        sums = np.bincount(place[counted], weights=one.work[counted], minlength=length).astype(np.float64)
        seconds[rank] = ratio(sums, np.bincount(place[counted], minlength=length))
    return seconds


def _jitter(each: Mapping[int, CallsOfRank], within: Mapping[int, tuple[Ints, Ints]], steps: int) -> float:
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
    each: Mapping[int, CallsOfRank],
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

    def step_and_place(r: int, t: int) -> tuple[int, int]:
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
            ends[(*pair, int(tag[n]), int(size[n]))][side].append(
                (*step_and_place(r, int(token[n])), kernel[n], operation[n])
            )
    links = _links(entries, ranks)
    votes: dict[tuple[tuple[int, int, int], str, str], Counter[tuple[int, int, int]]] = defaultdict(Counter)
    counts: Counter[tuple[tuple[int, int, int], tuple[int, int, int], int]] = Counter()
    for (source, target, tagged, _), (out, into) in ends.items():
        for (step, place, kern, op), (later, receive, _, _) in zip(out, into, strict=False):
            if place < 0 or receive < 0:
                continue
            for rule in links.get((kern, op, source * ranks + target), ()):
                of = entries[rule[0]].tags
                if not of or tagged in of:
                    way = (place, receive, max(later - step, 0))
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
    rules: dict[tuple[str, str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, entry in enumerate(entries):
        if entry.kind != "links":
            continue
        for at, rule in enumerate(entry.explanations[0].rules):
            links = rule.links(ranks)
            several = bool(len(links.round) and links.round.max() > 0)
            for code, turn in zip(links.codes(ranks).tolist(), links.round.tolist(), strict=True):
                rules[entry.kernel, entry.operation, code].append((number, at, turn if several else -1))
    return rules
