"""Learn who sends what to whom, and how much, from the traces of a few numbers of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.patterns.find_grids import cartesian_grids
from ranksight.comm.patterns.recognition import Explanation, distinct_explanations, explain
from ranksight.comm.patterns.rule import EdgeSet
from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.experiment import Experiment
from ranksight.model.messages.entry import Entry, Part
from ranksight.model.messages.fit_order import fit_order
from ranksight.model.messages.message_model import NO_MESSAGES, Messages
from ranksight.model.messages.observations import Observed, Traced, observed, tag_classes, traced
from ranksight.model.messages.sharing import Shares, basis, incidence, per_rank, profile, share_links, share_ranks
from ranksight.model.messages.volumes import find_law, fit_volumes
from ranksight.model.structure.stated import NOTHING_STATED, Stated

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class _Collected:
    """Volumes as they are found: rows of values over the configurations, and what each is of."""

    configurations: int
    values: list[Array] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    steps: list[Step | None] = field(default_factory=list)

    def add(self, name: str, metric: str, places: Iterable[int], volumes: list[float], step: Step | None) -> int:
        row = np.full(self.configurations, np.nan)
        row[list(places)] = volumes
        self.values.append(row)
        self.names.append((f"{name} #{len(self.names)}", metric))
        self.steps.append(step)
        return len(self.values) - 1

    def parts(
        self, one: Observed, population: int, shares: dict[int, Shares], steps: Sequence[Step | None]
    ) -> list[Part]:
        """Parts of one population, for each rule or kind of rank, by their volumes in each configuration."""
        name, parts = f"{one.kernel}: {one.operation}", []
        for who, step in enumerate(steps):
            # A rule that has no link at a number of ranks says nothing of its volume there.
            linked = {place: each[who] for place, each in shares.items() if each[who].size}
            count_profile, count = profile([count for count, _ in linked.values()])
            size_profile, size = profile([ratio(volume, count, 0.0) for count, volume in linked.values()])
            at = self.add(name, "messages", linked, count, step), self.add(name, "bytes_sent", linked, size, step)
            parts.append(Part(who, population, *at, count_profile, size_profile))
        return parts


def fit_messages(experiment: Experiment, stated: Stated = NOTHING_STATED, **settings: Any) -> Messages:
    """Model the message table of an experiment by its traced runs, where it has traces with ``ranks``.

    `stated`: how volumes go on beyond what was traced. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`, for volumes that follow no exact law.
    """
    if "ranks" not in experiment.parameters:
        return NO_MESSAGES
    runs, points = traced(experiment)
    patterns = [pattern for one in observed(runs) for pattern in _patterns(one, runs)]
    if not patterns:
        return NO_MESSAGES
    operations, explanations = [one for one, _ in patterns], [rules for _, rules in patterns]
    counts = {run.place: run.ranks for run in runs}
    grid = _grid(explanations)
    collected = _Collected(len(runs))
    elsewhere = np.delete(points, experiment.parameters.index("ranks"), axis=1)
    groups = np.unique(elsewhere, axis=0, return_inverse=True)[1].reshape(-1)
    entries = []
    for one, rules in zip(operations, explanations, strict=True):
        # Where rules say who is silent, silence is no lack.
        placed = {*one.rows, *(one.silent if rules else ())}
        missing = max((p for place, p in counts.items() if p > 1 and place not in placed), default=0)
        if rules:
            made = _linked(one, rules, counts, groups, collected)
        else:
            others = [e for o, e in zip(operations, explanations, strict=True) if o.kernel == one.kernel and e]
            made = _ranked(one, counts, groups, grid, others, collected)
        entries.append(Entry(one.kernel, one.operation, one.communicator, gone=missing, tags=one.tags, **made))
    values = np.array(collected.values)
    volumes = fit_volumes(experiment.parameters, points, values, collected.names, collected.steps, **settings)
    trained = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
    measured = tuple(sorted(set(counts.values())))
    order = fit_order(experiment, entries)
    return Messages(tuple(entries), volumes, grid, measured, trained, stated, order)


def _patterns(one: Observed, runs: list[Traced]) -> list[tuple[Observed, tuple[Explanation, ...]]]:
    """An operation with the rules behind its partners; where tags distinguish several patterns, each of them."""
    whole = _explained(one, runs)
    ranks = {run.place: run.ranks for run in runs}
    classes = tag_classes(one.peers, ranks) if _countable(one, runs) else []
    if len(classes) < 2 or _one_halo(whole, one.peers, classes, ranks):
        return [(one, whole)]
    return [(part, _explained(part, runs)) for part in map(one.tagged, classes)]


def _countable(one: Observed, runs: list[Traced]) -> bool:
    """Whether every call with a partner is one message to it, in every run that records partners."""
    pairs = [
        (one.rows[run.place], one.peers.get(run.place))
        for run in runs
        if run.peers is not None and run.place in one.rows
    ]
    return all(p is not None and int(p["count"].sum()) == int(r["count"].sum()) for r, p in pairs)


def _one_halo(
    explanations: tuple[Explanation, ...],
    peers: dict[int, pd.DataFrame],
    classes: list[tuple[int, ...]],
    ranks: dict[int, int],
) -> bool:
    """Whether tags number the directions of one exchange on one grid: each link has one tag, all are neighbours."""
    rules = explanations[0].rules if explanations else ()
    if len({len(rule.vector) if isinstance(rule, Step) else 0 for rule in rules} | {0}) != 2:
        return False
    largest = max(peers, key=lambda place: ranks[place])
    links = [
        peers[largest].loc[peers[largest]["tag"].isin(tags), ["rank", "peer"]].drop_duplicates() for tags in classes
    ]
    return sum(map(len, links)) == len(peers[largest][["rank", "peer"]].drop_duplicates())


def _explained(one: Observed, runs: list[Traced]) -> tuple[Explanation, ...]:
    """Rules behind an operation's partners, where every call with a partner is one message to it."""
    if not _countable(one, runs):
        return ()
    edge_sets = []
    for run in runs:
        peers = one.peers.get(run.place)
        if peers is not None:
            edge_sets.append(EdgeSet.of(run.ranks, peers["rank"].to_numpy(), peers["peer"].to_numpy()))
        elif run.peers is not None and one.peers and (run.ranks == 1 or run.place in one.silent):
            # One rank alone that is silent says that nobody sends to itself.
            edge_sets.append(EdgeSet(run.ranks, np.zeros(0, dtype=np.int64)))
    distinct = {(edges.ranks, edges.codes.tobytes()): edges for edges in edge_sets}
    if len({edges.ranks for edges in edge_sets}) < len(distinct):
        return ()  # partners depend on more than the number of ranks
    explanations = explain(list(distinct.values()))
    flat = bool(explanations) and all(isinstance(rule, Step) and rule.straight for rule in explanations[0].rules)
    return distinct_explanations([*explanations, *_boxes(one, runs)]) if flat else explanations


def _boxes(one: Observed, runs: list[Traced]) -> list[Explanation]:
    """Neighbours in boxes that runs cut as a grid of fewer dimensions; bytes show their edges."""
    sent: dict[int, dict[tuple[int, int], float]] = {}
    for run in runs:
        if run.place in one.peers and run.ranks not in sent:
            pairs = one.peers[run.place].groupby(["rank", "peer"])[["bytes", "count"]].sum()
            sent[run.ranks] = dict(zip(pairs.index.tolist(), (pairs["bytes"] / pairs["count"]).tolist(), strict=True))
    grids = cartesian_grids(list(sent.items()))
    if all(grid.domain for grid in grids):
        return []
    return [Explanation(Step.of_box(grid)) for grid in grids if grid.domain and grid.ring != "peers"]


def _grid(explanations: list[tuple[Explanation, ...]]) -> tuple[int, ...]:
    """Dimensions and order of the extents of the process grid that most operations go by; empty where none does."""
    seen = Counter(
        (len(rule.vector), int(rule.rising))
        for each in explanations
        if each
        for rule in each[0].rules[:1]
        if isinstance(rule, Step) and len(rule.vector) > 1
    )
    return seen.most_common(1)[0][0] if seen else ()


def _populations(tables: dict[int, pd.DataFrame]) -> list[dict[int, pd.DataFrame]]:
    """Messages of the smallest size class of each run, of the next, ...; all together where runs differ in how many."""
    classes = {place: np.unique(table["size_class"].to_numpy()) for place, table in tables.items()}
    if len({len(sizes) for sizes in classes.values()}) != 1:
        return [tables]
    n = len(next(iter(classes.values())))
    if n == 1:
        return [tables]
    return [{place: t[t["size_class"] == classes[place][j]] for place, t in tables.items()} for j in range(n)]


def _linked(
    one: Observed, explanations: tuple[Explanation, ...], ranks: dict[int, int], groups: Index, collected: _Collected
) -> dict[str, Any]:
    """Volumes of an operation with partners, per link of its rules."""
    parts, spreads = list[Part](), [0.0]
    once = _once(explanations[0], one.peers, ranks, groups)
    for j, tables in enumerate(_populations(one.peers)):
        linked = {place: share_links(table, explanations[0], ranks[place], once) for place, table in tables.items()}
        spreads += [spread for _, spread in linked.values()]
        steps = [rule if isinstance(rule, Step) else None for rule in explanations[0].rules]
        parts += collected.parts(one, j, {place: shares for place, (shares, _) in linked.items()}, steps)
    return {"kind": "links", "explanations": explanations, "parts": tuple(parts), "once": once, "spread": max(spreads)}


def _once(chosen: Explanation, peers: dict[int, pd.DataFrame], ranks: dict[int, int], groups: Index) -> bool:
    """Whether two rules that meet in one link carry one message there: where only that makes counts follow a law."""
    if all((incidence(chosen, ranks[place], False)[1].sum(axis=1) <= 1).all() for place in peers):
        return False  # no two rules meet
    separate, together = (
        {place: share_links(table, chosen, ranks[place], once)[0] for place, table in peers.items()}
        for once in (False, True)
    )
    return _lawless(together, ranks, groups) < _lawless(separate, ranks, groups)


def _lawless(shares: dict[int, Shares], ranks: dict[int, int], groups: Index) -> int:
    """Rules, or kinds of rank, whose counts follow no law of the ranks."""
    rows = np.full((len(next(iter(shares.values()))), len(groups)), np.nan)
    for place, each in shares.items():
        rows[:, place] = [count.mean() if count.size else np.nan for count, _ in each]
    at = np.array([ranks.get(place, 1) for place in range(len(groups))])
    return sum(not find_law(at, groups, row) for row in rows)


def _ranked(
    one: Observed,
    ranks: dict[int, int],
    groups: Index,
    grid: tuple[int, ...],
    others: list[tuple[Explanation, ...]],
    collected: _Collected,
) -> dict[str, Any]:
    """Volumes of an operation without partners, per kind of rank: the simplest kind that is exact and has most laws.

    `others` are the explanations of the kernel's other operations: a wait for each message follows their partners.
    """
    values = [
        {place: per_rank(table, ranks[place]) for place, table in tables.items()} for tables in _populations(one.rows)
    ]

    def shared(kind: str, follows: tuple[Explanation, ...]) -> tuple[list[dict[int, Shares]], float]:
        """Volumes of each population, and the largest spread."""
        each: list[dict[int, Shares]] = []
        spreads = []
        for population in values:
            each.append({})
            for place, measured in population.items():
                columns = basis(kind, len(measured), grid, follows[0] if follows else None)
                each[-1][place], spread = share_ranks(measured, columns)
                spreads.append(spread)
        return each, max(spreads)

    kinds: list[tuple[str, tuple[Explanation, ...]]] = [("all", ()), ("root", ()), ("last", ())]
    kinds += [("degree", partners) for partners in others]
    kinds += [("grid", ())] if grid else []
    best, least = None, np.inf
    for kind, follows in kinds:
        shares, spread = shared(kind, follows)
        lawless = sum(_lawless(each, ranks, groups) for each in shares) if spread == 0.0 else np.inf
        if lawless < least:
            best, least = (kind, follows, shares, spread), lawless
        if least == 0:
            break
    kind, follows, shares, spread = best or ("mean", (), *shared("mean", ()))
    parts: list[Part] = []
    for j, each in enumerate(shares):
        parts += collected.parts(one, j, each, [None] * len(next(iter(each.values()))))
    extents = grid if kind == "grid" else ()
    return {"kind": kind, "explanations": follows, "parts": tuple(parts), "spread": spread, "grid": extents}
