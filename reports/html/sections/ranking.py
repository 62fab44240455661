"""Which kernels are largest over the parameter, and where one overtakes another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.reports.crossings import crossings, ranked
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import percent, shown, value
from ranksight.reports.plots import plot_ranking
from ranksight.reports.sweep import RANKS, place

COUNT = 8
TOLD = 8


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where fewer than two kernels have a time."""
    sweep = context.sweep
    places = ranked(sweep)
    if not sweep.timed or len(places) < 2:
        return None
    found = [crossing for crossing in crossings(sweep) if crossing.value > sweep.values[0]]
    times = sweep.breakdown.by_kernel
    total = np.nansum(times, axis=0)
    drawn = places[:COUNT]
    largest = sorted(drawn, key=lambda at: -times[at, -1])
    rows = [(shown(sweep.breakdown.kernels[at], 40), [value(float(x), "time") for x in times[at]]) for at in largest]
    leader = shown(sweep.breakdown.kernels[largest[0]])
    figure = draw(
        "ranking",
        lambda ax: plot_ranking(sweep, COUNT, found, ax),
        f"Predicted time per rank of the {len(drawn)} largest kernels over {sweep.along}; at {sweep.values[-1]:g} "
        f"{leader} is the largest with {percent(float(times[largest[0], -1] / total[-1]))}. "
        f"{len(found)} crossings are marked.",
        (10.5, 4.6),
        sweep.values.tolist(),
        rows,
        sweep.places(),
    )
    return {
        "figures": [figure],
        "along": sweep.along,
        "crossings": [
            {
                "above": crossing.above,
                "below": crossing.below,
                "from": _from(sweep.along, crossing.value),
                "time": value(crossing.time, "time"),
                "beyond": crossing.value > sweep.trained[1],
            }
            for crossing in found[:TOLD]
        ],
        "more": max(0, len(found) - TOLD),
        "count": len(drawn),
        "all": len(places),
    }


def _from(along: str, value: float) -> str:
    """Where a crossing lies: ranks are whole numbers."""
    return place(along, float(np.ceil(value)) if along == RANKS else float(f"{value:.3g}"))
