"""Plots of predictions; every function draws into the axes it is given, or into new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.experiment import WHOLE
from ranksight.metrics import metric
from ranksight.reports.palette import BAND, MEASURED, NAMES, PARTS, PREDICTED
from ranksight.reports.validation import COMPUTE, Validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.model import Model


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.5), layout="constrained").add_subplot()


def plot_validation(validation: Validation, ax: Axes | None = None) -> Any:
    """Predicted over measured counts of all kernels, with the line where both are equal; returns the axes."""
    ax = _axes(ax)
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
    ax = _axes(ax)
    at = model.parameters.index("ranks")
    most = float(model.training[:, at].max())
    far = max([most, *checked.table["ranks"]]) * 2
    ranks = np.unique(np.round(np.geomspace(1, far, 40)))
    points = np.array([[ranks_ if name == "ranks" else size[name] for name in model.parameters] for ranks_ in ranks])
    broken = model.breakdown(points)
    value = broken.total.value[0] - broken.parts["imbalance"] - broken.parts["communication"]
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
    ax.set_xscale("log", base=2)
    ax.set(xlabel="ranks", ylabel="compute time per rank (s)", ylim=(0, None))
    ax.legend(fontsize="x-small")
    said = ", ".join(f"{name} {number:g}" for name, number in size.items())
    ax.set_title(f"Compute time per rank{', ' + said if said else ''}", fontsize="medium")
    return ax


def plot_breakdown(model: Model, ranks: Sequence[float], size: dict[str, float], ax: Axes | None = None) -> Any:
    """Predicted time over ranks, stacked by what it is made of; returns the axes."""
    ax = _axes(ax)
    points = np.array([[p if name == "ranks" else size[name] for name in model.parameters] for p in ranks])
    parts = model.breakdown(points).parts
    bottom = np.zeros(len(points))
    for name, seconds in parts.items():
        if not np.nan_to_num(seconds).max(initial=0.0) > 0:
            continue
        height = np.maximum(np.nan_to_num(seconds), 0.0)
        ax.bar(
            range(len(points)), height, bottom=bottom, color=PARTS[name], label=NAMES[name], edgecolor="white", lw=0.4
        )
        bottom += height
    ax.set_xticks(range(len(points)), [f"{p:g}" for p in ranks])
    ax.set(xlabel="ranks", ylabel="predicted time (s)")
    ax.legend(fontsize="x-small")
    said = ", ".join(f"{name} {number:g}" for name, number in size.items())
    ax.set_title(f"What the time is made of{', ' + said if said else ''}", fontsize="medium")
    return ax


def save_figure(figure: Any, path: Any) -> None:
    """Write a figure to PNG or SVG; text in an SVG stays text that can be searched."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranksight"}):
        figure.savefig(path, dpi=140)
