"""Predicted over measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranksight.core.metrics import metric
from ranksight.reports.palette import PARTS
from ranksight.reports.plots._axes import new_axes, si_ticks
from ranksight.reports.validation import Validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
