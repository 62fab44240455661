"""One side of a comparison: values of every kernel's metrics at some configurations, measured or predicted, with their
standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.model.model import Model
from ranksight.model.series.poisson import HALF
from ranksight.model.series.series import Series
from ranksight.model.uncertainty import forecast

Array = NDArray[np.float64]
Key = tuple[str, str]

ONCE = 0.05
"""Relative standard deviation of a time that was never repeated, where no series was."""
COUNTED = 1e-3
"""Least relative standard deviation of a count: initialisation and the library's own differ from run to run."""
EXACT = 1e6
"""Degrees of freedom of what is not known from repetitions."""


@dataclass(frozen=True)
class Side:
    """Values at k configurations.

    Attributes
    ----------
    name : str
        What it is called in tables.
    rows : mapping of (kernel, metric) to int
        :data:`ranksight.core.experiment.WHOLE` is the program.
    value : (s, k)
        NaN where there is none.
    error : (s, k)
        Relative standard error.
    freedom : (s, k)
        Its degrees of freedom.
    sound : (s, k) bool
        Whether the evidence carries the value.
    """

    name: str
    rows: dict[Key, int]
    value: Array
    error: Array
    freedom: Array
    sound: NDArray[np.bool_]

    def of(self, kernel: str, name: str) -> Array:
        """Values (k,) of a kernel's metric; NaN where it has none."""
        row = self.rows.get((kernel, name))
        return np.full(self.value.shape[1], np.nan) if row is None else self.value[row]


def measured_side(name: str, series: Series, points: Array, scatter: float) -> Side:
    """What was measured at `points` (k, m), which the series has.

    The standard error of a mean over n repetitions of relative deviation d is ``sqrt(d^2 / n + scatter^2)``; d is
    pooled over the configurations of a series, and of all times where a series was never repeated. A value of m samples
    has a standard error of ``1 / sqrt(m)`` beside (:mod:`ranksight.core.sampled`).

    Parameters
    ----------
    scatter : float
        Relative standard deviation of times between jobs, which repetitions within one do not show.
    """
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    index = [places[tuple(point)] for point in points.tolist()]
    values, kernels, names = _with_totals(series)
    count = np.isfinite(values).sum(axis=2)
    with np.errstate(all="ignore"):
        mean = np.nansum(values, axis=2) / count
        squares = np.nansum((values / mean[:, :, None] - 1) ** 2, axis=2)
    squares = np.where(np.isfinite(squares) & (count > 1), squares, 0.0)
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    kinds = np.array([metric(each).kind for each in names], dtype=object)
    timed = (kinds == "time") | (kinds == "other")
    pooled = freedom[timed].sum()
    typical = np.sqrt(squares[timed].sum() / pooled) if pooled else ONCE
    with np.errstate(all="ignore"):
        deviation = np.sqrt(squares.sum(axis=1) / freedom)
    least = np.where(timed, 0.0, COUNTED)
    own = freedom > 0
    deviation = np.maximum(np.where(own, deviation, np.where(timed, typical if pooled else ONCE, 0.0)), least)
    between = np.where(timed, scatter, 0.0)[:, None]
    few = _sampled(series, mean, names)
    error = np.sqrt(deviation[:, None] ** 2 / np.maximum(count, 1) + between**2 + few)
    # Scatter within jobs is known from few repetitions, that between jobs is given (Welch and Satterthwaite).
    part = (deviation[:, None] ** 2 / np.maximum(count, 1)) / np.maximum(error**2, 1e-300)
    known = np.where(own, freedom, EXACT)[:, None]
    nu = known / np.maximum(part**2, 1e-9)
    rows = {key: at for at, key in enumerate(zip(kernels, names, strict=True))}
    mean = np.where(count > 0, mean, np.nan)
    return Side(name, rows, mean[:, index], error[:, index], nu[:, index], np.isfinite(mean[:, index]))


def _sampled(series: Series, mean: Array, names: tuple[str, ...]) -> Array:
    """Relative variance (s, n) of values from the number of their samples, and of the sums behind them; zero where
    values are not made of samples."""
    found = np.zeros(mean.shape)
    if series.worth is None:
        return found
    own = len(series)
    found[:own] = np.nan_to_num(1 / np.maximum(series.samples, HALF))
    every = np.array(series.metrics, dtype=object)
    for row in range(own, len(mean)):
        mine = np.flatnonzero(every == names[row])
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = np.nansum(found[mine] * mean[mine] ** 2, axis=0) / mean[row] ** 2
        found[row] = np.nan_to_num(sums, posinf=1 / HALF)
    return found


def _with_totals(series: Series) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """Values with a row of sums over kernels for every additive metric that has none, repetition by repetition."""
    kernels, names = list(series.kernels), list(series.metrics)
    held, every = set(zip(kernels, names, strict=True)), np.array(names, dtype=object)
    blocks = [series.values]
    for name in dict.fromkeys(series.metrics):
        if metric(name).additive and metric(name).kind != "ratio" and (WHOLE, name) not in held:
            mine = series.values[every == name]
            total = np.where(np.isfinite(mine).any(axis=0), np.nansum(mine, axis=0), np.nan)
            blocks.append(total[None])
            kernels.append(WHOLE)
            names.append(name)
    return np.concatenate(blocks), tuple(kernels), tuple(names)


def predicted_side(name: str, model: Model, points: Array) -> Side:
    """What a model says at `points` (k, m); standard errors are those of its intervals."""
    said = model.forecast(points)
    rows = dict(model.functions.rows)
    value, low, high, status = said.value, said.lower, said.upper, said.status
    missing = [
        each
        for each in dict.fromkeys(model.fitted.metrics)
        if metric(each).additive and metric(each).kind != "ratio" and (WHOLE, each) not in rows
    ]
    answers = model.predict_at(points, metrics=missing, kernels=[WHOLE]).answers if missing else ()
    for each in missing:
        whole = [answer for answer in answers if answer.kernel is None and answer.metric == each]
        if len(whole) != len(points):
            continue
        rows[WHOLE, each] = len(value)
        value = np.concatenate([value, [[answer.value for answer in whole]]])
        low = np.concatenate([low, [[answer.lower for answer in whole]]])
        high = np.concatenate([high, [[answer.upper for answer in whole]]])
        status = np.concatenate([status, [[answer.status for answer in whole]]])
    with np.errstate(all="ignore"):
        half = np.where(low > 0, np.log(high / low) / 2, (high - low) / 2 / np.abs(value))
    error = half / forecast.TAIL
    sound = (status == forecast.OK) & np.isfinite(value) & np.isfinite(error)
    # A sum whose parts have no answer is none.
    value = np.where((status != forecast.OK) & (value == 0), np.nan, value)
    return Side(name, rows, value, np.where(np.isfinite(error), error, np.inf), np.full(value.shape, EXACT), sound)


def common_points(first: Array, second: Array) -> Array:
    """Configurations (k, m) that both have, in ascending order."""
    both = {tuple(point) for point in first.tolist()} & {tuple(point) for point in second.tolist()}
    return np.array(sorted(both), dtype=np.float64).reshape(-1, first.shape[1])


def time_metric(sides: Sequence[Side]) -> str | None:
    """The metric that tells time on all sides: time, else cycles, else another clock."""
    for name in ("time", "cycles", "compute_cpu_time", "cpu_time", "wall_time", "time_inclusive"):
        if all(any(each == name for _, each in side.rows) for side in sides):
            return name
    return None
