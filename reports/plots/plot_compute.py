"""Time that a rank computes, over ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.reports.palette import BAND, MEASURED, PREDICTED
from ranksight.reports.plots._axes import new_axes, second_axis, value_axis
from ranksight.reports.validation import COMPUTE, Validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.fitted_model import Model


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
