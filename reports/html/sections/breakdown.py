"""What the time is made of, over the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.core.units import in_full
from ranksight.reports.answer import parts_of
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import in_one_unit, percent, value
from ranksight.reports.palette import NAMES
from ranksight.reports.plots import plot_breakdown

APART = 0.2
"""How far the sum of the kernels may lie from the program's time before the page says so."""


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None without times."""
    sweep = context.sweep
    if not sweep.timed:
        return None
    parts = sweep.parts
    total = np.sum([np.nan_to_num(parts[name]) for name in NAMES], axis=0)
    known = [
        name for name in NAMES if np.nanmax(np.nan_to_num(parts[name]), initial=0.0) > 1e-4 * total.max(initial=0.0)
    ]
    if not known:
        return None
    rows = [
        (
            NAMES[name],
            [f"{value(float(x), 'time')} ({percent(float(x / t))})" for x, t in zip(parts[name], total, strict=True)],
        )
        for name in known
    ]
    first = ", ".join(f"{NAMES[name]} {percent(share)}" for name, _, share in parts_of(sweep)[:4])
    figure = draw(
        "breakdown",
        lambda ax: plot_breakdown(sweep, ax),
        f"Predicted time over {sweep.along}, stacked by its parts; at {in_full(sweep.values[-1])}: {first}.",
        (10.5, 3.9),
        list(range(len(sweep.values))),
        [("all", [value(float(t), "time") + mark for t, mark in zip(total, sweep.marks, strict=True)]), *rows],
        sweep.places(),
        narrow=True,
    )
    unit, texts = in_one_unit(np.concatenate([total, *(parts[name] for name in known)]).tolist(), "time")
    numbers = np.array(texts).reshape(-1, len(total)).T.tolist()
    return {
        "figures": [figure],
        "caption": f"Parts of the predicted time{sweep.legend}",
        "lead": f"At {sweep.places()[-1]}: {first}.",
        "heads": [sweep.along, f"all, {unit}", *(NAMES[name] for name in known)],
        "rows": [
            [in_full(x), f"{all_parts}{mark}", *parts]
            for x, mark, (all_parts, *parts) in zip(sweep.values, sweep.marks, numbers, strict=True)
        ],
        "notes": _notes(context, total),
    }


def _notes(context: Context, total: Any) -> list[str]:
    sweep, equation = context.sweep, context.model.equation
    notes = []
    if not equation.resources and not equation.counted:
        notes.append(
            "Execution and memory are separated where instructions, loads by cache level and time were measured and "
            "a platform was given to the fit. Here they were not, so all of it counts as kernels without counters."
        )
    if equation.communication and not equation.communication.priced(equation.network):
        notes.append("Messages were traced but no network was described, so their time is missing here.")
    elif not equation.communication:
        notes.append("No messages were traced: time in MPI is part of the kernels that call it, where it was measured.")
    if equation.imbalances is not None:
        notes += [f"{text[0].upper()}{text[1:]}." for text in equation.imbalances.remarks(sweep.points[-1:])]
    whole = float(sweep.total.value[0, -1])
    if whole > 0 and abs(total[-1] / whole - 1) > APART:
        notes.append(
            f"The kernels add up to {total[-1] / whole:.2g} times the program's time: their times overlap, as those of "
            "nested timers do, or not all were measured. Shares here are of their sum."
        )
    return notes
