"""The predicted time over a parameter: measured points, interval, what was measured, ideal scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.reports.ideal import Ideal
from ranksight.reports.measured import COMPUTED, Measured
from ranksight.reports.palette import BAND, COMPUTATION, IDEAL, MEASURED, PREDICTED, RANGE
from ranksight.reports.plots._axes import ROOM, clamp_values, legend, log_values, new_axes, second_axis, value_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_prediction(
    sweep: Sweep, found: Measured | None = None, against: Ideal | None = None, ax: Axes | None = None
) -> Any:
    """Predicted time of the program, log-log; returns the axes.

    `found`: points: filled where they were used in the fit, open squares where they were held out. `against`: drawn as
    a dotted line.
    """
    ax = new_axes(ax)
    x, total = sweep.values, sweep.total
    value, low, high = total.value[0], total.lower[0], total.upper[0]
    handles, labels = [], []

    def keep(handle: Any, label: str) -> None:
        handles.append(handle)
        labels.append(label)

    begin, end = sweep.trained
    shade = ax.axvspan(begin, end, color=RANGE, lw=0, zorder=0) if end > begin else ax.axvline(end, color=RANGE, lw=6)
    band = ax.fill_between(x, low, high, color=BAND, alpha=0.35, lw=0)
    (line,) = ax.plot(x, value, color=PREDICTED, lw=2)
    keep(line, "predicted")
    keep(band, f"{sweep.level:.0%} interval")
    apart = sweep.breakdown.parts["communication"] + sweep.breakdown.parts["imbalance"]
    measured, what = found.total(sweep.model) if found is not None else (np.empty(0), "")
    if what == COMPUTED and (apart > 0.01 * value).any():
        (inner,) = ax.plot(x, value - apart, color=COMPUTATION, lw=1.4, ls=(0, (5, 2)))
        keep(inner, "predicted computation")
    if against is not None:
        (best,) = ax.plot(x, against.time, color=IDEAL, lw=1.4, ls=":")
        keep(best, f"ideal {against.kind} scaling")
    if found is not None:
        here = found.along(sweep.model, sweep.along, dict(sweep.held)) & np.isfinite(measured)
        column = found.points[:, sweep.model.parameters.index(sweep.along)]
        for mask, marker, label in (
            (here & found.trained, "o", f"{what}, used in the fit"),
            (here & ~found.trained, "s", f"{what}, held out"),
        ):
            if mask.any():
                face = MEASURED if marker == "o" else "none"
                (dots,) = ax.plot(column[mask], measured[mask], marker, color=MEASURED, mfc=face, ms=5.5, mew=1.4)
                keep(dots, label)
    keep(shade, sweep.measured_range)
    if (next_ := sweep.beyond) is not None:
        span = [z for z in (next_.low, next_.high) if np.isfinite(z) and z > 0]
        if span:
            (bar,) = ax.plot([next_.value] * len(span), span, color=IDEAL, lw=6, alpha=0.5, solid_capstyle="butt")
            keep(bar, "insufficient data")
    value_axis(ax, sweep.along, x if sweep.beyond is None else np.append(x, sweep.beyond.value))
    positive = value[np.isfinite(value) & (value > 0)]
    if len(positive):
        near = np.concatenate([low, high, value, *([] if against is None else [against.time])])
        near = near[np.isfinite(near) & (near > 0)]
        if sweep.beyond is not None:
            ax.set_ylim(near.min() / 1.2, near.max() * ROOM)
        log_values(ax)
        here = found.along(sweep.model, sweep.along, dict(sweep.held)) if found is not None else np.empty(0, bool)
        clamp_values(ax, sweep, measured[here & np.isfinite(measured)] if len(here) else ())
    second_axis(ax, "s")
    ax.set_ylabel("time")
    legend(ax, handles, labels, fontsize="medium")
    return ax
