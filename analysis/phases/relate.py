"""Phases of different ranks and rank counts, related by the order in which they occur.

The order follows from how the program was written and not from the number of ranks. Ranks with the same sequence of
calls have the same phases. Where sequences differ but hold as many phases, the first is the first, and so on. Else the
sequence is read with the bodies of the reference, the longest first, and what none of them explains stays unrelated.

Source: Panadero et al. 2015, section 2.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import Calls, rank_rows
from ranksight.analysis.phases.repeats import Phases, find_phases
from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass

Token = tuple[str, str]
UNRELATED = -1


@dataclass(frozen=True)
class Related:
    """Phases of a program over several rank counts."""

    bodies: tuple[tuple[Token, ...], ...]
    """Tokens (kernel and operation) of each phase, in order of occurrence, as the reference has them."""
    labelled: tuple[pd.DataFrame, ...]
    """The table of each of the given :class:`Calls` with ``phase`` and ``occurrence``."""
    how: dict[str, int]
    """Over how many ranks (of all rank counts) phases were related: ``same sequence``, ``order``, ``bodies``."""


def relate(traces: Sequence[Calls]) -> Related:
    """Find and relate the phases of several rank counts.

    The reference is the sequence that most ranks have; of those equally frequent, that of the largest rank count.
    """
    symbols: dict[Token, int] = {}
    sequences: dict[bytes, tuple[Ints, list[Array]]] = {}
    places: list[dict[int, bytes]] = []
    holders: dict[bytes, int] = {}
    for calls in traces:
        code_of: dict[int, bytes] = {}
        tokens, ranks = calls.sequences()
        numbers = np.array([symbols.setdefault(token, len(symbols)) for token in tokens], dtype=np.int64)
        for rank, codes, work in ranks:
            coded = numbers[codes]
            key = coded.tobytes()
            scale = work.sum()
            sequences.setdefault(key, (coded, []))[1].append(work / scale if scale > 0 else work)
            code_of[rank] = key
            holders[key] = holders.get(key, 0) + 1
        places.append(code_of)
    phases_of = {key: find_phases(coded, np.median(work, axis=0)) for key, (coded, work) in sequences.items()}
    reference = max(reversed(list(sequences)), key=lambda key: holders[key])
    known = list(symbols)
    bodies = tuple(tuple(known[symbol] for symbol in body) for body in phases_of[reference].bodies)
    how = {"same sequence": 0, "order": 0, "bodies": 0}
    read: dict[bytes, tuple[Ints, Ints]] = {}
    for key, phases in phases_of.items():
        if key == reference:
            kind, read[key] = "same sequence", (phases.phase, phases.occurrence)
        elif len(phases.bodies) == len(bodies):
            kind, read[key] = "order", (phases.phase, phases.occurrence)
        else:
            kind, read[key] = "bodies", _read(sequences[key][0], phases_of[reference])
        how[kind] += holders[key]
    labelled = []
    for calls, code_of in zip(traces, places, strict=True):
        table = calls.table
        phase, occurrence = np.empty(len(table), dtype=np.int64), np.empty(len(table), dtype=np.int64)
        token, whose = table["token"].to_numpy(), table["rank"].to_numpy()
        for begin, end in rank_rows(whose):
            one, times = read[code_of[int(whose[begin])]]
            phase[begin:end], occurrence[begin:end] = one[token[begin:end]], times[token[begin:end]]
        labelled.append(table.assign(phase=phase, occurrence=occurrence))
    return Related(bodies, tuple(labelled), how)


def _read(symbols: Ints, reference: Phases) -> tuple[Ints, Ints]:
    """Phase and occurrence of each place of a sequence that is read with the reference's bodies."""
    phase = np.full(len(symbols), UNRELATED, dtype=np.int64)
    occurrence = np.zeros(len(symbols), dtype=np.int64)
    text = symbols.tolist()
    longest = sorted(range(len(reference.bodies)), key=lambda at: -len(reference.bodies[at]))
    starting: dict[int, list[int]] = {}
    for number in longest:
        starting.setdefault(reference.bodies[number][0], []).append(number)
    counts = [0] * len(reference.bodies)
    at = 0
    while at < len(text):
        for number in starting.get(text[at], ()):
            body = reference.bodies[number]
            if tuple(text[at : at + len(body)]) == body:
                phase[at : at + len(body)], occurrence[at : at + len(body)] = number, counts[number]
                counts[number] += 1
                at += len(body)
                break
        else:
            at += 1
    return phase, occurrence
