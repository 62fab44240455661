"""Repeated sequences in one rank's trace: loops of loops, found without knowing the source.

A trace is a sequence of symbols, one a call. Where it equals itself moved by `p` places over a stretch of `l >= p`
places, a body of `p` symbols stands there ``l // p + 1`` times in a row. The period that explains most of the sequence
is folded into one symbol, the loop, whatever the number of its turns; then the rest is searched again, until no
sequence follows itself. Phases are what remains between the ends of loops: stretches of calls without a loop in them,
the bodies of loops among these. Stretches of the same calls are one phase.

Source: the search follows the idea of PAS2P (Wong et al. 2015; Panadero et al. 2015, section 2.1), that repeated
patterns of communication and computation are phases, with the times they occur as weights.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass

_COST = 2
"""Symbols that it takes to write a loop, its mark and its number of turns: shorter repetitions are no loops."""
_AHEAD = 4
_PERIODS = 48
_MOST_FOLDS = 10_000


@dataclass(slots=True)
class Node:
    """A call, or a loop."""

    symbol: int  # calls of one symbol are equal; so are loops, whose turns may differ in number
    first: int  # places in the trace, `last` not included
    last: int
    turns: list[list[Node]] = field(default_factory=list)  # each turn of a loop; empty for a call


@dataclass(frozen=True, slots=True)
class Phases:
    """Phases of one sequence."""

    bodies: tuple[tuple[int, ...], ...]  # symbols of each phase, in the order of their first occurrence
    phase: Ints  # (n,): phase of each place
    occurrence: Ints  # (n,): how often its phase had occurred before, at each place

    @property
    def weights(self) -> Ints:
        """How often each phase occurs."""
        weights: Ints = np.zeros(len(self.bodies), dtype=np.int64)
        np.maximum.at(weights, self.phase, self.occurrence + 1)
        return weights


def find_phases(symbols: Ints, work: Array | None = None) -> Phases:
    """Find the phases of a trace.

    `symbols` (n,): of each call; not negative. `work` (n,): computation before each call. Where a loop may begin at
    several places, as its turns can be cut at any of their calls, it decides: the first turn shall compute as the
    others do.
    """
    symbols = np.asarray(symbols, dtype=np.int64)
    nodes = _fold(symbols, np.zeros(len(symbols)) if work is None else work, {})
    phase = np.zeros(len(symbols), dtype=np.int64)
    occurrence = np.zeros(len(symbols), dtype=np.int64)
    numbers: dict[tuple[int, ...], int] = {}
    counts: list[int] = []
    for first, last in _stretches(nodes):
        body = tuple(int(symbol) for symbol in symbols[first:last])
        number = numbers.setdefault(body, len(numbers))
        if number == len(counts):
            counts.append(0)
        phase[first:last] = number
        occurrence[first:last] = counts[number]
        counts[number] += 1
    return Phases(tuple(numbers), phase, occurrence)


def _stretches(nodes: list[Node]) -> list[tuple[int, int]]:
    """Stretches without a loop in them, in the order of the trace."""
    stretches: list[tuple[int, int]] = []
    stack: list[tuple[list[Node], int]] = [(nodes, 0)]
    begin = -1
    while stack:
        level, at = stack.pop()
        while at < len(level) and not level[at].turns:
            begin = level[at].first if begin < 0 else begin
            at += 1
        if begin >= 0:
            stretches.append((begin, level[at - 1].last))
            begin = -1
        if at < len(level):
            stack.append((level, at + 1))
            stack.extend((turn, 0) for turn in reversed(level[at].turns))
    return stretches


def _fold(symbols: Ints, work: Array, loops: dict[tuple[int, ...], int]) -> list[Node]:
    """Fold a sequence; the nodes' places are those of `symbols`. Symbols from ``-1`` down are those of `loops`."""
    nodes = [Node(symbol, at, at + 1) for at, symbol in enumerate(symbols.tolist())]
    total = np.concatenate([[0.0], np.cumsum(work)])
    for _ in range(_MOST_FOLDS):
        period, runs = _best(
            np.array([node.symbol for node in nodes], dtype=np.int64), max(_COST, len(symbols) // 1000)
        )
        if not runs:
            break
        folded: list[Node] = []
        done = 0
        for (begin, _), each in zip(runs, _cut(nodes, runs, period, total), strict=True):
            count, shift, work_of_turns = each
            begin += shift
            turns = [nodes[at : at + period] for at in range(begin, begin + count * period, period)]
            body = tuple(node.symbol for node in turns[0])
            # A loop found first may hold others: what holds for one turn holds for all.
            inner = _fold(np.array(body), work_of_turns.mean(axis=0), loops) if period > 1 else []
            if any(node.turns for node in inner):
                turns = [_apply(inner, turn) for turn in turns]
            folded.extend(nodes[done:begin])
            symbol = loops.setdefault(body, -1 - len(loops))
            folded.append(Node(symbol, turns[0][0].first, turns[-1][-1].last, turns))
            done = begin + count * period
        nodes = folded + nodes[done:]
    return nodes


def _apply(structure: list[Node], turn: list[Node]) -> list[Node]:
    """The nodes of a turn in the structure that was found for its places."""
    return [
        Node(node.symbol, turn[node.first].first, turn[node.last - 1].last, [_apply(each, turn) for each in node.turns])
        if node.turns
        else turn[node.first]
        for node in structure
    ]


def _cut(nodes: list[Node], runs: list[tuple[int, int]], period: int, total: Array) -> list[tuple[int, int, Array]]:
    """Turns of each run, where the first begins, and the work of each turn's places, (turns, period).

    A run that holds a few places more than whole turns can be cut at several. It is cut where turns take equal times,
    and all runs of a loop are cut at the same place, as the times of one run scatter.
    """
    works = [
        np.array([total[node.last] - total[node.first] for node in nodes[begin : begin + length]])
        for begin, length in runs
    ]
    off: dict[tuple[int, ...], Array] = {}
    keys: list[tuple[int, ...]] = []
    for (begin, length), work in zip(runs, works, strict=True):
        turns, spare = divmod(length, period)
        key = (spare, *(node.symbol for node in nodes[begin : begin + period]))
        keys.append(key)
        if spare == 0:
            continue
        costs = np.empty(spare + 1)
        for shift in range(spare + 1):
            each = work[shift : shift + turns * period].reshape(turns, period)
            costs[shift] = np.abs(each - np.median(each, axis=0)).sum()
        off[key] = off.get(key, np.zeros(spare + 1)) + costs
    cuts = []
    for key, (_, length), work in zip(keys, runs, works, strict=True):
        turns = length // period
        # Rounding shall not decide between equal cuts.
        shift = int(np.flatnonzero(off[key] <= off[key].min() * (1 + 1e-9))[0]) if key in off else 0
        cuts.append((turns, shift, work[shift : shift + turns * period].reshape(turns, period)))
    return cuts


def _best(symbols: Ints, least: int) -> tuple[int, list[tuple[int, int]]]:
    """The period whose folding shortens the sequence most, with the runs where it holds: begin and length.

    None where it saves no more than `least` symbols: what explains less than a thousandth of a trace is no phase of it,
    and a trace without order would be folded for ever.
    """
    best: tuple[int, int, list[tuple[int, int]]] = (least, 0, [])
    for period in _periods(symbols):
        runs = [run for run in _runs(symbols, period) if (run[1] // period - 1) * period > _COST]
        saved = sum((length // period - 1) * period for _, length in runs)
        if saved > best[0]:
            best = (saved, period, runs)
    return best[1], best[2]


def _periods(symbols: Ints) -> list[int]:
    """Distances at which symbols come again, the most frequent ones, shortest first."""
    order = np.argsort(symbols, kind="stable")
    place, ordered = order, symbols[order]
    gaps = [
        (place[k:] - place[:-k])[ordered[k:] == ordered[:-k]] for k in range(1, min(_AHEAD, max(len(order) - 1, 0)) + 1)
    ]
    if not gaps:
        return []
    periods, count = np.unique(np.concatenate(gaps), return_counts=True)
    fits = periods <= len(symbols) // 2
    periods, count = periods[fits], count[fits]
    # A long period that comes seldom may explain as much as a short one that comes often.
    chosen = np.argsort(-(count * periods.astype(np.float64)), kind="stable")[: _PERIODS // 2]
    often = np.argsort(-count, kind="stable")[: _PERIODS // 2]
    return sorted({int(periods[at]) for at in np.concatenate([chosen, often])})


def _runs(symbols: Ints, period: int) -> list[tuple[int, int]]:
    """Stretches of at least two periods in which the sequence equals itself moved by a period; none overlap."""
    same = np.concatenate([[False], symbols[:-period] == symbols[period:], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    begins, ends = edges[::2], edges[1::2]
    runs: list[tuple[int, int]] = []
    free = 0
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        begin = max(begin, free)
        if end - begin >= period:
            length = end - begin + period
            runs.append((begin, length))
            free = begin + length
    return runs
