"""The terms of the resource equation over the parameter: CPI_exec, BF_mem, clock and T_others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksight.model.application.breakdown import BLOCKING, CLOCK, CPI, OTHERS, EquationTerms
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.reports.equation_terms import UNITS, ends, number
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import Figure, draw
from ranksight.reports.palette import LINES
from ranksight.reports.plots import plot_term
from ranksight.reports.sweep import Sweep

MOST = min(6, len(LINES))  # kernels that are drawn: those that take most at the target
NAME = 24  # signs of a kernel's name in a legend
TITLES = {
    CPI: "CPI_exec, cycles per instruction without memory stalls",
    BLOCKING: "BF_mem, share of the loads' latencies that the core waits for",
    CLOCK: "Clock",
    OTHERS: "T_others, time outside kernels and messages",
}
AXES = {CPI: "CPI_exec (cycles/instruction)", BLOCKING: "BF_mem (stalls/latencies)", CLOCK: "clock", OTHERS: "T_others"}


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where no equation describes a kernel and T_others is not known."""
    sweep, broken = context.sweep, context.sweep.breakdown
    if not sweep.timed or not (broken.terms.kernels or len(broken.others.value)):
        return None
    held = EquationTerms(sweep.model.parameters, sweep.points, broken.terms, broken.others, broken.terms.kernels)
    rows = held.rows()
    if not rows:
        return None
    place = {tuple(row["configuration"].items()): None for row in rows}
    last = list(place)[-1]
    now = [row for row in rows if tuple(row["configuration"].items()) == last]
    near = {
        (row["kernel"], row["term"]): row["value"]
        for row in rows
        if row["configuration"][sweep.along] == sweep.values[sweep.nearest]
    }
    each: dict[str | None, dict[str, Any]] = {}
    for row in now:
        was = near.get((row["kernel"], row["term"]))
        text, interval = number(row["term"], row["value"]), ends(row, " to ")
        each.setdefault(row["kernel"], {"method": row["method"]})[row["term"]] = {
            "value": row["value"],
            "text": text,
            "interval": interval or "–",
            "near": "–" if was is None else number(row["term"], was),
        }
    kernels = [name for name in context.kernels if name in each]
    methods = list(dict.fromkeys(each[kernel]["method"] for kernel in kernels))
    return {
        "figures": _figures(context.sweep, kernels[:MOST]),
        "rows": [
            {"kernel": kernel, **each[kernel], "note": methods.index(each[kernel]["method"]) + 1} for kernel in kernels
        ],
        "methods": methods,
        "others": each.get(None, {}).get(OTHERS),
        "level": sweep.level,
        "shaded": sweep.measured_range,
        "target": sweep.places()[-1],
        "near": sweep.places()[sweep.nearest] if sweep.nearest + 1 < len(sweep.values) else "",
    }


def _figures(sweep: Sweep, kernels: Sequence[str]) -> list[Figure]:
    """A figure for each term; one of the clock where all kernels have the same."""
    found, held = sweep.breakdown.terms, sweep.breakdown.others
    made = []
    if kernels:
        rows = [found.kernels.index(kernel) for kernel in kernels]
        for term, said in ((CPI, found.cpi), (BLOCKING, found.shown_blocking), (CLOCK, found.clock)):
            same = term == CLOCK and np.allclose(said.value[rows], said.value[rows[:1]], equal_nan=True)
            made.append(_figure(sweep, term, said, rows[:1] if same else rows, ["clock"] if same else kernels))
    if np.nanmax(held.value, initial=0.0) > 0:
        made.append(_figure(sweep, OTHERS, held, [0], ["T_others"]))
    return made


def _figure(sweep: Sweep, term: str, said: Forecast, rows: Sequence[int], names: Sequence[str]) -> Figure:
    labels = [name if len(name) <= NAME else f"{name[: NAME - 1]}…" for name in names]
    last = ", ".join(
        f"{name} {number(term, float(said.value[row, -1]))}" for name, row in zip(names, rows, strict=True)
    )
    texts = [(name, [number(term, float(x)) for x in said.value[row]]) for name, row in zip(names, rows, strict=True)]
    unit = UNITS[term] or ""
    return draw(
        f"term-{term}",
        lambda ax: plot_term(sweep, said, rows, labels, AXES[term], unit, ax),
        f"{TITLES[term]}, over {sweep.along} with its {sweep.level:.0%} interval; at {sweep.places()[-1]}: {last}.",
        (7.0 if len(rows) > 1 else 5.4, 3.4),
        sweep.values.tolist(),
        texts,
        sweep.places(),
        narrow=True,
    )
