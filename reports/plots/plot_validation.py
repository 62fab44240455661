"""Predictions held against runs: counts of every kernel, and the time that a rank computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.reports.palette import BAND, MEASURED, PARTS, PREDICTED
from ranksight.reports.plots._axes import new_axes, second_axis, si_ticks, value_axis
from ranksight.reports.validation import COMPUTE, Validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.fitted_model import Model


def plot_validation(validation: Validation, ax: Axes | None = None) -> Any:
    """Predicted over measured counts of all kernels, with the line where both are equal; returns the axes."""
    ax = new_axes(ax)
    rows = validation.requirements()
    names = [name for name in dict.fromkeys(rows["metric"]) if (rows["metric"] == name).any()]
    markers = "osD^v<>Phx+"
    for at, name in enumerate(names):
        part = rows[(rows["metric"] == name) & (rows["measured"] > 0) & (rows["predicted"] > 0)]
        ax.plot(
            part["measured"],
            part["predicted"],
            markers[at % len(markers)],
            ms=5,
            alpha=0.8,
            label=f"{name} ({metric(name).unit})" if metric(name).unit else name,
            color=list(PARTS.values())[at % len(PARTS)],
            mec="black",
            mew=0.3,
        )
    ax.set(xscale="log", yscale="log", xlabel="measured, per rank", ylabel="predicted, per rank")
    si_ticks(ax.xaxis)
    si_ticks(ax.yaxis)
    if len(rows):
        low, high = ax.get_xlim()
        ax.plot([low, high], [low, high], color="black", lw=0.8, zorder=0)
        ax.set_xlim(low, high)
        ax.legend(fontsize="x-small", loc="upper left")
    ax.set_title("Counts of every kernel at scales not trained on", fontsize="medium")
    return ax


def plot_compute(
    model: Model, trained: Validation, checked: Validation, size: dict[str, float], ax: Axes | None = None
) -> Any:
    """Time that a rank computes over ranks: measured points, prediction with its interval, training range shaded."""
    ax = new_axes(ax)
    at = model.parameters.index("ranks")
    most = float(model.training[:, at].max())
    far = max([most, *checked.table["ranks"]]) * 2
    ranks = np.unique(np.round(np.geomspace(1.0, far, 40))).astype(np.float64)
    points = np.array([[ranks_ if name == "ranks" else size[name] for name in model.parameters] for ranks_ in ranks])
    broken = model.breakdown(points)
    value = broken.computing
    ratio = value / broken.total.value[0]
    ax.axvspan(1, most, color="0.93", label="measured range")
    ax.fill_between(
        ranks,
        broken.total.lower[0] * ratio,
        broken.total.upper[0] * ratio,
        color=BAND,
        alpha=0.35,
        label="90 % interval",
    )
    ax.plot(ranks, value, color=PREDICTED, label="predicted")
    for which, marker, label in ((trained, "o", "measured, trained on"), (checked, "s", "measured, predicted before")):
        rows = which.table[(which.table["kernel"] == WHOLE) & (which.table["metric"] == COMPUTE)]
        for name, number in size.items():
            rows = rows[rows[name] == number]
        if len(rows):
            ax.plot(
                rows["ranks"],
                rows["measured"],
                marker,
                color=MEASURED,
                mfc="none" if marker == "o" else MEASURED,
                label=label,
            )
    value_axis(ax, "ranks", ranks)
    second_axis(ax, "s")
    ax.set(ylabel="compute time per rank", ylim=(0, None))
    ax.legend(fontsize="x-small")
    said = ", ".join(f"{name} {number:g}" for name, number in size.items())
    ax.set_title(f"Compute time per rank{', ' + said if said else ''}", fontsize="medium")
    return ax
