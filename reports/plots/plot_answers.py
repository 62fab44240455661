"""What was asked and what was measured, as it comes: the plots of a prediction's and of an experiment's ``plot()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.errors import InputError, nearest
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import metric as described
from ranksight.core.units import in_full
from ranksight.reports.measured import measured
from ranksight.reports.palette import LINES
from ranksight.reports.plots._axes import WIDE, legend, log_values, new_axes, second_axis, value_axis
from ranksight.reports.plots.plot_prediction import plot_prediction
from ranksight.reports.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from ranksight.model.fitted_model import Model
    from ranksight.model.prediction import Prediction

MOST = 8  # lines of one plot


def plot_model(
    model: Model,
    along: str | None = None,
    to: float | None = None,
    at: Mapping[str, float] | None = None,
    experiment: Experiment | None = None,
    ax: Axes | None = None,
) -> Any:
    """Predicted time of the program along one parameter, with its interval; returns the axes.

    Parameters
    ----------
    along, to, at
        As :func:`ranksight.reports.sweep.sweep` takes them.
    experiment : Experiment, optional
        Whose measured times are drawn as points.
    """
    found = None if experiment is None else measured(model, [model.view(experiment)])
    return plot_prediction(sweep(model, along=along, to=to, at=at), found, ax=new_axes(ax, WIDE))


def plot_answers(prediction: Prediction, ax: Axes | None = None) -> Any:
    """Predicted values with their intervals over the parameter asked at most values; returns the axes.

    One metric is drawn: the time where it was asked for, otherwise the first. One line for the program, or for each of
    the largest :data:`MOST` kernels where no value of the whole program is known. Values with insufficient data are
    hollow.
    """
    ax = new_axes(ax, WIDE)
    table = prediction.table()
    names = list(dict.fromkeys(table["metric"]))
    name = "time" if "time" in names else names[0]
    table = table[(table["metric"] == name) & np.isfinite(table["value"])]
    over = max(prediction.parameters, key=lambda each: table[each].nunique())
    whole = table[table["kernel"].isna() | (table["kernel"] == WHOLE)]
    shown = table if whole.empty else whole
    others = [each for each in prediction.parameters if each != over and shown[each].nunique() > 1]
    groups = list(shown.groupby([shown["kernel"].fillna("program"), *others], sort=False))
    groups = sorted(groups, key=lambda group: -float(group[1]["value"].max()))[:MOST]
    handles, labels = [], []
    for at, (key, rows) in enumerate(groups):
        rows = rows.sort_values(over)
        colour = LINES[at % len(LINES)]
        x, y = rows[over].to_numpy(), rows["value"].to_numpy()
        ends = np.clip(np.abs(np.stack([y - rows["lower"], rows["upper"] - y])), 0.0, None)
        (line,) = ax.plot(x, y, color=colour, lw=1.4)
        fine = (rows["status"] == "ok").to_numpy()
        for mask, face in ((fine, colour), (~fine, "none")):
            if mask.any():
                ax.errorbar(x[mask], y[mask], ends[:, mask], fmt="o", color=colour, mfc=face, capsize=3, lw=1.2)
        handles.append(line)
        labels.append(", ".join([key[0], *(f"{n} {in_full(v)}" for n, v in zip(others, key[1:], strict=True))]))
    _finish(ax, over, np.unique(shown[over].to_numpy(dtype=float)), name, described(name).unit)
    if len(groups) > 1:
        legend(ax, handles, labels)
    return ax


def plot_runs(
    experiment: Experiment, metric: str | None = None, kernel: str | None = None, ax: Axes | None = None
) -> Any:
    """Measured values over the parameter with most values, all repetitions; returns the axes.

    `metric`: reduced over ranks in its own way and summed over kernels; the time where it was measured, otherwise the
    first. `kernel`: of this kernel alone. Raises InputError when nothing measured the metric, or no kernel has the
    name.
    """
    known = [name for name in ("time", "wall_time", *experiment.metrics()) if name in experiment.metrics()]
    name = metric or (known[0] if known else "time")
    if name not in known:
        raise InputError(f"{experiment.path} has no metric {name!r}", nearest(name, known))
    table = experiment.counters()
    table = table[np.isfinite(table[name])]
    if kernel is not None:
        if not (table["kernel"] == kernel).any():
            raise InputError(f"no kernel {kernel!r} has {name}", nearest(kernel, table["kernel"].unique()))
        table = table[table["kernel"] == kernel]
    elif (table["kernel"] == WHOLE).any():
        table = table[table["kernel"] == WHOLE]
    unit = described(name)
    how = unit.over_ranks if unit.over_ranks in ("mean", "max", "sum", "min", "median") else "mean"
    values = table.groupby(["run", "kernel"])[name].agg(how).groupby("run").sum()
    runs = {run.id: run.configuration for run in experiment.runs}
    over = max(experiment.parameters, key=lambda each: len({runs[run][each] for run in values.index}))
    lines: dict[tuple[float, ...], list[tuple[float, float]]] = {}
    for run, value in values.items():
        rest = tuple(runs[run][each] for each in experiment.parameters if each != over)
        lines.setdefault(rest, []).append((runs[run][over], float(value)))
    ax = new_axes(ax, WIDE)
    handles, labels = [], []
    others = [each for each in experiment.parameters if each != over]
    for at, (rest, points) in enumerate(sorted(lines.items())[:MOST]):
        x, y = np.array(sorted(points)).T
        (dots,) = ax.plot(x, y, "o-", color=LINES[at % len(LINES)], lw=1.0, ms=5)
        handles.append(dots)
        labels.append(", ".join(f"{n} {in_full(v)}" for n, v in zip(others, rest, strict=True)))
    every = np.unique([x for points in lines.values() for x, _ in points])
    summed = f"{name}, sum of kernels" if table["kernel"].nunique() > 1 else name
    _finish(ax, over, every, summed if kernel is None else f"{name} of {kernel}", unit.unit)
    if len(lines) > 1:
        legend(ax, handles, labels)
    return ax


def _finish(ax: Any, over: str, values: Any, what: str, unit: str) -> None:
    if len(values):
        value_axis(ax, over, values)
        if (
            ax.get_lines()
            and min(float(np.min(line.get_ydata())) for line in ax.get_lines() if len(line.get_ydata())) > 0
        ):
            log_values(ax)
    second_axis(ax, unit)
    ax.set_ylabel(what, parse_math=False)
