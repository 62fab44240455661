"""Parts of a time over numbers of ranks, stacked: the critical path, and what ranks wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.reports.plots._axes import legend, new_axes, number
from ranksight.reports.plots.plot_breakdown import EDGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_shares(
    ranks: Array, parts: Sequence[tuple[str, str, Array]], ylabel: str, whole: bool = False, ax: Axes | None = None
) -> Any:
    """Stack `parts` (label, colour, parts of 1 (k,)) over `ranks` (k,); returns the axes.

    `whole`: whether the parts are of all of it, so that the axis ends at 100 %.
    """
    ax = new_axes(ax)
    places, bottom, bars = np.arange(len(ranks)), np.zeros(len(ranks)), []
    for _, colour, part in parts:
        bars.append(ax.bar(places, 100 * part, 0.78, bottom=100 * bottom, color=colour, edgecolor=EDGE, lw=0.5)[0])
        bottom = bottom + part
    ax.set_xticks(places, [number(x) for x in ranks])
    ax.set_xlabel("ranks")
    ax.set_ylabel(ylabel)
    ax.set_ylim(0, 100 if whole else None)
    ax.yaxis.set_major_formatter("{x:g} %")
    legend(ax, bars[::-1], [label for label, *_ in parts][::-1], fontsize="medium")
    return ax
