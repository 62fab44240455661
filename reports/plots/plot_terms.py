"""One term of the resource equation over a parameter, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.reports.palette import LINES
from ranksight.reports.plots._axes import legend, new_axes, second_axis, value_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.uncertainty.forecast import Forecast


def plot_term(
    sweep: Sweep, said: Forecast, rows: Sequence[int], labels: Sequence[str], name: str, unit: str = "",
    ax: Axes | None = None,
) -> Any:  # fmt: skip
    """Some rows of a term's forecast with their intervals over the parameter; returns the axes.

    Parameters
    ----------
    said : Forecast
        At the points of the sweep.
    rows : sequence of int
        Those drawn, at most as many as there are colours.
    labels : sequence of str
        What each is called; no legend where there is one.
    name, unit : str
        Of the value axis.
    """
    ax = new_axes(ax)
    handles: list[Any] = []
    for at, row in enumerate(rows):
        value, low, high = (np.maximum(getattr(said, end)[row], 0.0) for end in ("value", "lower", "upper"))
        colour = LINES[at % len(LINES)]
        ax.fill_between(sweep.values, low, high, color=colour, alpha=0.2, lw=0)
        handles += ax.plot(sweep.values, value, color=colour, lw=1.8)
    low, high = sweep.trained
    ax.axvspan(low, high, color="#7f7f7f", alpha=0.12, lw=0, zorder=-1)
    value_axis(ax, sweep.along, sweep.values)
    ax.set_ylim(bottom=0.0)
    second_axis(ax, unit)
    ax.set_ylabel(name)
    if len(rows) > 1:
        legend(ax, handles, labels, fontsize="medium")
    return ax
