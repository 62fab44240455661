"""The terms of the resource equation as people read them: CPI_exec, BF_mem, clock and T_others with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.core.units import format_factor, format_si, in_full
from ranksight.model.application.breakdown import BLOCKING, CLOCK, CPI, OTHERS
from ranksight.reports.terminal import Cell, Column, Table

UNITS = {CPI: None, BLOCKING: None, CLOCK: "Hz", OTHERS: "s"}
"""Unit of each term; None is a plain ratio."""
HEADS = {CPI: "CPI_exec", BLOCKING: "BF_mem", CLOCK: "clock", OTHERS: "T_others"}


KERNELS, PLACES = 4, 3  # kernels and configurations that the terms are shown for
ROUNDING = 1e-9  # ratios below this are what rounding leaves of 0


def number(term: str, value: float) -> str:
    """A term's value with its unit."""
    unit = UNITS[term]
    value = 0.0 if unit is None and abs(value) < ROUNDING else value
    return format_factor(value) if unit is None else format_si(value, unit)


def ends(row: Mapping[str, Any], between: str = " .. ") -> str:
    """A term's interval; empty where it has none, or none that its digits show."""
    if row["lower"] is None:
        return ""
    low, high = (number(row["term"], row[end]) for end in ("lower", "upper"))
    return "" if low == high else f"{low}{between}{high}"


def spread_over(count: int, most: int) -> list[int]:
    """Positions of at most `most` of `count` configurations: the ends and what is evenly between."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int)).tolist() if count else []


Rows = Sequence[Mapping[str, Any]]


def largest(rows: Rows, kernels: Iterable[str], level: float, most: int = KERNELS) -> list[Table]:
    """:func:`tables` of the first of `kernels` that have terms, at a few configurations: the ends and between."""
    places = list({tuple(row["configuration"].items()): None for row in rows})
    kept = {places[at] for at in spread_over(len(places), PLACES)}
    described = {row["kernel"] for row in rows}
    chosen = [kernel for kernel in kernels if kernel in described][: min(KERNELS, most)]
    return tables([row for row in rows if tuple(row["configuration"].items()) in kept], chosen, level)


def tables(rows: Rows, kernels: Sequence[str], level: float, indent: int = 2) -> list[Table]:
    """CPI_exec and BF_mem of `kernels`, a line for each configuration, then clock and T_others; none without rows.

    A clock that all kernels share is shown once for each configuration.

    `rows` (sequence of rows of :data:`ranksight.model.application.breakdown.TERMS`). `kernels`: those shown, in
    their order. `level`: probability of the intervals.
    """
    varied = _varied([row["configuration"] for row in rows])
    each: Held = {}
    for row in rows:
        place = tuple(in_full(row["configuration"][name]) for name in varied)
        if row["kernel"] is None or row["kernel"] in kernels:
            each.setdefault((row["kernel"] or "", place), {})[row["term"]] = row
    clocks: dict[tuple[str, ...], set[float]] = {}
    for (kernel, place), found in list(each.items()):
        if kernel and CLOCK in found:
            clocks.setdefault(place, set()).add(found[CLOCK]["value"])
            each.setdefault(("", place), {}).setdefault(CLOCK, found[CLOCK])
    shared = all(len(values) == 1 for values in clocks.values())
    own = (CPI, BLOCKING) if shared else (CPI, BLOCKING, CLOCK)
    of_all = (CLOCK, OTHERS) if shared else (OTHERS,)
    made = [_table(each, kernels, own, varied, level, indent), _table(each, [""], of_all, varied, level, indent)]
    return [table for table in made if table.rows]


Held = dict[tuple[str, tuple[str, ...]], dict[str, Mapping[str, Any]]]
"""Terms of a kernel (none: of the program) at a configuration."""


def _table(
    each: Held, kernels: Sequence[str], terms: Sequence[str], varied: Sequence[str], level: float, indent: int
) -> Table:
    """A line for each of `kernels` and configuration that has one of `terms`."""
    lines: list[list[str | Cell]] = []
    for kernel in kernels:
        name = kernel
        for (_, place), found in ((key, found) for key, found in each.items() if key[0] == kernel):
            if any(term in found for term in terms):
                line: list[str | Cell] = [name, *place]
                for term in terms:
                    line += [number(term, found[term]["value"]), ends(found[term])] if term in found else ["", ""]
                lines.append(line)
                name = ""
    heads = [head for term in terms for head in (HEADS[term], f"{level:.0%} interval:word")]
    return Table(["kernel:name", *map(Column, varied), *heads], lines, indent)


def _varied(places: Sequence[Mapping[str, float]]) -> list[str]:
    """Parameters that take several values; all where there is one configuration only."""
    values: dict[str, set[float]] = {}
    for place in places:
        for name, value in place.items():
            values.setdefault(name, set()).add(value)
    return [name for name, several in values.items() if len(several) > 1] or list(values)
