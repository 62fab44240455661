"""What the model holds of kernels, over a parameter: a metric with its points and residuals, a term of the equation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.metrics import metric
from ranksight.core.names import short_names
from ranksight.reports.measured import Measured
from ranksight.reports.palette import BAND, LINES, MEASURED, PREDICTED, RANGE
from ranksight.reports.plots._axes import legend, new_axes, second_axis, value_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.uncertainty.forecast import Forecast


def _row(sweep: Sweep, kernel: str, name: str) -> int:
    row = sweep.model.functions.rows.get((kernel, name))
    if row is None:
        raise InputError(f"the model has no {name} of {kernel!r}", "model.fitted.kernels and .metrics list what it has")
    return row


def plot_kernel(
    sweep: Sweep, kernel: str, name: str = "time", found: Measured | None = None, ax: Axes | None = None
) -> Any:
    """A metric of a kernel over the parameter of the sweep; returns the axes.

    Raises InputError when the model has no such kernel or metric.
    """
    ax = new_axes(ax)
    row = _row(sweep, kernel, name)
    said = sweep.shown
    ax.axvspan(*sweep.trained, color=RANGE, lw=0, zorder=0)
    band = ax.fill_between(sweep.values, said.lower[row], said.upper[row], color=BAND, alpha=0.35, lw=0)
    (line,) = ax.plot(sweep.values, said.value[row], color=PREDICTED, lw=2)
    handles, labels = [line, band], ["model", f"{sweep.level:.0%} interval"]
    if found is not None:
        here = found.along(sweep.model, sweep.along, dict(sweep.held)) & np.isfinite(found.value[row])
        x = found.points[here, sweep.model.parameters.index(sweep.along)]
        middle, low, high = (part[row][here] for part in (found.value, found.low, found.high))
        dots = ax.errorbar(x, middle, [middle - low, high - middle], fmt="o", color=MEASURED, ms=5, lw=1)
        handles.append(dots[0])
        labels.append("measured")
    value_axis(ax, sweep.along, sweep.values)
    values = said.value[row]
    if np.nanmin(values, initial=np.inf) > 0 and np.nanmax(values, initial=0.0) > 4 * np.nanmin(values, initial=np.inf):
        ax.set_yscale("log")
    second_axis(ax, metric(name).unit)
    ax.set_ylabel(f"{name} per rank")
    ax.set_title(short_names([kernel], 60)[kernel], fontsize="medium", parse_math=False)
    legend(ax, handles, labels, outside=False, fontsize="medium")
    return ax


def plot_residuals(sweep: Sweep, kernel: str, name: str, found: Measured, ax: Axes | None = None) -> Any:
    """What a model misses at every configuration measured, relative to what was measured; returns the axes."""
    ax = new_axes(ax, (6.0, 2.2))
    row = _row(sweep, kernel, name)
    said = sweep.model.forecast(found.points, sweep.level).value[row]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = 100 * (said / found.value[row] - 1)
    x = found.points[:, sweep.model.parameters.index(sweep.along)]
    ax.axhline(0, color="#7f7f7f", lw=0.8)
    for mask, face in ((found.trained, MEASURED), (~found.trained, "none")):
        ax.plot(x[mask], error[mask], "o", color=MEASURED, mfc=face, ms=5)
    value_axis(ax, sweep.along, np.unique(np.concatenate([x, sweep.trained])))
    ax.set_ylabel("model / measured − 1 (%)")
    return ax


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
