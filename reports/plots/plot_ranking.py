"""Which kernels take most, over a parameter, and where one overtakes another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.analysis.diagnosis.ranking import clear
from ranksight.core.names import short_names
from ranksight.reports.palette import LINES
from ranksight.reports.plots._axes import log_values, new_axes, second_axis, value_axis
from ranksight.reports.sweep import RANKS, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEADER = {"arrowstyle": "-", "lw": 1.2, "shrinkA": 0, "shrinkB": 0, "relpos": (0.0, 0.5)}


def ranked(sweep: Sweep) -> list[int]:
    """Positions of the kernels in the breakdown, by their larger share at the start or at the target."""
    times = np.nan_to_num(sweep.breakdown.by_kernel)
    total = np.maximum(times.sum(axis=0), np.finfo(float).tiny)
    share = np.maximum(times[:, 0] / total[0], times[:, -1] / total[-1])
    return [int(at) for at in np.argsort(-share, kind="stable") if share[at] > 0]


def plot_ranking(sweep: Sweep, count: int = 8, ax: Axes | None = None) -> Any:
    """Time per rank of the kernels that are largest at either end, with their crossings; returns the axes."""
    ax = new_axes(ax)
    shown = ranked(sweep)[:count]
    times = sweep.breakdown.by_kernel
    ends = []
    names = short_names((sweep.breakdown.kernels[place] for place in shown), 28)
    for at, place in enumerate(shown):
        colour, style = LINES[at % len(LINES)], ("-", "--", ":")[at // len(LINES) % 3]
        y = np.where(times[place] > 0, times[place], np.nan)
        ax.plot(sweep.values, y, color=colour, ls=style, lw=1.8)
        known = np.flatnonzero(np.isfinite(y))
        if len(known):
            ends.append((float(y[known[-1]]), names[sweep.breakdown.kernels[place]], colour))
    value_axis(ax, sweep.along, sweep.values)
    if ends:
        log_values(ax)
    second_axis(ax, "s")
    ax.set_ylabel("predicted time per rank")
    found = sweep.diagnosis
    drawn = {sweep.breakdown.kernels[place] for place in shown}
    for row in [] if found is None or sweep.along != RANKS else clear(found.crossovers()).to_dict("records"):
        if {row["kernel"], row["over"]} <= drawn:
            y = np.interp(
                np.log(row["ranks"]), np.log(sweep.values), times[sweep.breakdown.kernels.index(row["kernel"])]
            )
            ax.plot(row["ranks"], y, "o", ms=7, mfc="none", mec="#000000", mew=1.2)
    # The names stand where the lines end.
    ax.set_xlim(right=float(sweep.values.max()))
    _label(ax, ends)
    return ax


def _label(ax: Any, ends: list[tuple[float, str, str]]) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    if not ends:
        return
    low, high = np.log(ax.get_ylim())
    order = sorted(ends)
    wanted = np.array([(np.log(y) - low) / (high - low) for y, _, _ in order])
    gap = 0.062
    places = wanted.copy()
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + gap)
    excess = places[-1] - 1.0
    if excess > 0:
        places[-1] -= excess
        for at in range(len(places) - 2, -1, -1):
            places[at] = min(places[at], places[at + 1] - gap)
    for place, at, (_, name, colour) in zip(places, wanted, order, strict=True):
        ax.annotate(
            name,
            (1.0, at),
            (1.035, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize="medium",
            parse_math=False,
            arrowprops={**LEADER, "color": colour},
        )
