"""What the predicted time is made of, over a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.palette import NAMES, PARTS
from ranksight.reports.plots._axes import clamp_values, legend, new_axes, number, second_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_breakdown(sweep: Sweep, ax: Axes | None = None) -> Any:
    """Predicted time stacked by its parts: execution, each memory level, imbalance, communication, the rest;
    returns the axes."""
    ax = new_axes(ax)
    parts = sweep.parts
    places = np.arange(len(sweep.values))
    bottom = np.zeros(len(places))
    handles, labels = [], []
    most = float(np.nanmax(sum(np.nan_to_num(parts[name]) for name in NAMES), initial=0.0))
    for name in NAMES:
        height = np.maximum(np.nan_to_num(parts[name]), 0.0)
        if not height.max(initial=0.0) > 1e-4 * most:
            continue
        bars = ax.bar(places, height, 0.78, bottom=bottom, color=PARTS[name], edgecolor=EDGE, lw=0.5)
        handles.append(bars[0])
        labels.append(NAMES[name])
        bottom = bottom + height
    within = sweep.nearest + 1
    if 0 < within < len(places):
        ax.axvline(within - 0.5, color="#7f7f7f", lw=1, ls="--")
        ax.annotate(
            " beyond what was measured",
            (within - 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            fontsize="small",
            va="bottom",
        )
    values = [number(x) for x in sweep.values]
    ticks = ax.set_xticks(places, values)
    room = ax.get_window_extent().width / ax.figure.dpi * 72
    longest = max(map(len, values), default=0) + 1
    if len(values) * longest * GLYPH * float(ticks[0].label1.get_fontsize()) > room:
        ax.tick_params(axis="x", labelrotation=45)
    ax.set_xlabel(sweep.along)
    ax.set_ylabel("predicted time")
    second_axis(ax, "s")
    ax.set_ylim(0, None)
    clamp_values(ax, sweep, bottom[sweep.total.status[0] == OK])
    legend(ax, handles[::-1], labels[::-1], fontsize="medium")
    return ax


EDGE = "#fefefe"
GLYPH = 0.62  # width of a digit over the size of its font
