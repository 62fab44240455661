"""Which kernels are largest over the parameter, and where one overtakes another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.diagnosis.ranking import clear
from ranksight.core.names import short_names
from ranksight.reports.growth import crossed_at
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import percent, value
from ranksight.reports.plots import plot_ranking
from ranksight.reports.plots.plot_ranking import ranked
from ranksight.reports.sweep import RANKS, place

COUNT = 8
MOST = 8


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where fewer than two kernels have a time."""
    sweep = context.sweep
    places = ranked(sweep)
    if not sweep.timed or len(places) < 2:
        return None
    crossings = _crossings(context)
    times = sweep.breakdown.by_kernel
    total = np.nansum(times, axis=0)
    drawn = places[:COUNT]
    largest = sorted(drawn, key=lambda at: -times[at, -1])
    shown = short_names((sweep.breakdown.kernels[at] for at in largest), 40)
    names = {at: shown[sweep.breakdown.kernels[at]] for at in largest}
    rows = [(names[at], [value(float(x), "time") for x in times[at]]) for at in largest]
    figure = draw(
        "ranking",
        lambda ax: plot_ranking(sweep, COUNT, ax),
        f"Predicted time per rank of the {len(drawn)} largest kernels over {sweep.along}; at {sweep.places()[-1]} "
        f"{names[largest[0]]} is the largest with {percent(float(times[largest[0], -1] / total[-1]))}. "
        f"{len(crossings)} crossings are listed below.",
        (10.5, 4.6),
        sweep.values.tolist(),
        rows,
        sweep.places(),
        narrow=True,
    )
    return {
        "figures": [figure],
        "along": sweep.along,
        "crossings": crossings[:MOST],
        "more": max(0, len(crossings) - MOST),
        "count": len(drawn),
        "all": len(places),
        "ranks": sweep.along == RANKS,
    }


def _crossings(context: Context) -> list[dict[str, Any]]:
    """Where kernels overtake each other, those that become the largest first."""
    sweep, found = context.sweep, context.sweep.diagnosis
    if found is None or sweep.along != RANKS:
        return []
    return [
        {
            "kernel": row["kernel"],
            "over": row["over"],
            "above": place(RANKS, float(ranks)),
            "between": f"{sweep.level:.0%} interval {ends}" if ends else "",
            "largest": bool(row["largest"]),
            "beyond": row["ranks"] > sweep.trained[1],
        }
        for row in clear(found.crossovers()).to_dict("records")
        for ranks, ends in [crossed_at(row)]
    ]
