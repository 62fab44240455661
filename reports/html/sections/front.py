"""The front: the answer in one sentence, what stands in the way, how far it can be trusted, and the prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.reports.answer import loss_words, parts_of, target_words
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import percent, value
from ranksight.reports.palette import NAMES
from ranksight.reports.plots import plot_prediction
from ranksight.reports.plots._axes import micro
from ranksight.reports.sweep import RANKS, carried
from ranksight.reports.trust import trust

MOST = 5


def build(context: Context) -> dict[str, Any]:
    """What the front's template needs."""
    sweep = context.sweep
    figures = [_figure(context)] if sweep.timed else []
    return {
        "answer": micro(context.answer),
        "carried": sweep.timed and carried(sweep.total),
        "target": target_words(sweep),
        "obstacles": _obstacles(context),
        "help": _help(context),
        "facts": trust(sweep, context.measured),
        "figures": figures,
        "table": _table(context) if sweep.timed else None,
        "given": bool(context.experiments),
        "held": sweep.where(),
        "along": sweep.along,
    }


def _obstacles(context: Context) -> dict[str, Any]:
    """What takes the time that ideal scaling would not take; without ideal scaling, what takes the time."""
    sweep, against = context.sweep, context.ideal
    total = float(sweep.total.value[0, -1])
    if not sweep.timed:
        return {"lead": "No times were measured, so nothing can be said of them.", "rows": []}
    if against is not None and context.losses:
        lost = sum(loss.seconds for loss in context.losses)
        rows = [
            {
                "kernel": loss.kernel,
                "what": loss_words(loss),
                "value": value(loss.seconds, "time"),
                "share": loss.seconds / total if total > 0 else float("nan"),
                "width": loss.share,
            }
            for loss in context.losses[:MOST]
        ]
        lead = (
            f"Against ideal {against.kind} scaling from {sweep.places()[against.reference]} on, "
            f"told by the {against.told_by}, "
            f"{value(lost, 'time')} of {value(total, 'time')} are spent on growth:"
        )
        return {"lead": lead, "rows": rows}
    rows = [
        {"kernel": None, "what": NAMES[name], "value": value(seconds, "time"), "share": share, "width": share}
        for name, seconds, share in parts_of(sweep)[:MOST]
    ]
    return {"lead": "The predicted time is made of:", "rows": rows}


def _help(context: Context) -> list[dict[str, Any]]:
    """What saves most of the time, each trouble and each kernel once."""
    found = context.sweep.diagnosis
    if found is None or context.sweep.along != RANKS:
        return []
    rows = found.advice().to_dict("records")
    return [
        {"kernel": row["kernel"], "kind": row["kind"], "text": row["text"], "saves": row["saves"]}
        for row in rows[:MOST]
    ]


def _figure(context: Context) -> Any:
    sweep, against, found = context.sweep, context.ideal, context.measured
    total = sweep.total
    rows = [
        ("predicted", [value(x, "time") for x in total.value[0]]),
        (
            f"{sweep.level:.0%} interval",
            [f"{value(a, 'time')} to {value(b, 'time')}" for a, b in zip(total.lower[0], total.upper[0], strict=True)],
        ),
    ]
    if against is not None:
        rows.append((f"ideal {against.kind} scaling", [value(x, "time") for x in against.time]))
        rows.append(("efficiency", [percent(x) for x in against.efficiency(sweep)]))
    low, high = sweep.trained
    alternative = (
        f"Predicted time over {sweep.along}, both axes logarithmic: {value(float(total.value[0, 0]), 'time')} at "
        f"{sweep.values[0]:g}, {value(float(total.value[0, -1]), 'time')} at {sweep.values[-1]:g}; measured from "
        f"{low:g} to {high:g}. The table below has the numbers."
    )
    return draw(
        "prediction",
        lambda ax: plot_prediction(sweep, found, against, ax),
        alternative,
        (10.5, 4.4),
        sweep.values.tolist(),
        rows,
        sweep.places(),
    )


def _table(context: Context) -> dict[str, Any]:
    """The numbers of the figure."""
    sweep, against = context.sweep, context.ideal
    measured: dict[float, str] = {}
    if context.measured is not None:
        times, _ = context.measured.total(context.model)
        here = context.measured.along(context.model, sweep.along, dict(sweep.held)) & np.isfinite(times)
        column = context.measured.points[:, context.model.parameters.index(sweep.along)]
        measured = {float(x): value(float(y), "time") for x, y in zip(column[here], times[here], strict=True)}
    heads = [
        sweep.along,
        "predicted",
        "from",
        "to",
        *(["measured"] if measured else []),
        *(["ideal"] if against else []),
    ]
    rows = []
    for k, x in enumerate(sweep.values):
        row = [
            f"{x:g}",
            *(value(float(getattr(sweep.total, end)[0, k]), "time") for end in ("value", "lower", "upper")),
        ]
        if measured:
            row.append(measured.get(float(x), ""))
        if against is not None:
            row.append(value(float(against.time[k]), "time"))
        rows.append({"cells": row, "reason": str(sweep.total.reason[0, k])})
    return {"heads": heads, "rows": rows, "caption": f"Predicted time over {sweep.along}"}
