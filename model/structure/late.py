"""Parts that begin late: times that are zero up to a boundary, such as the first node, and one or two values beyond it.

No function of the search is zero and then is not. Up to the last zero the part takes no time. From its first value on

    ln y = a + sum_j g_j ln x_j + e

over the coordinates, with slopes whose prior is what parts of programs do: fall as the work is divided, stay, or grow
as fast as the ranks. One value leaves the slopes to the prior, two replace it where they lie apart. Between the last
zero and the first value the part may have begun or not.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.metrics import metric
from ranksight.core.units import format_si, in_full, in_words
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.priors import BETWEEN_JOBS, LATE_SLOPE, REPEATED
from ranksight.model.quantity import TAIL
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

MOST = 2
"""Values beyond the boundary from which on a function is fitted to them as to any others."""
FEWEST = 2
"""Zeros that make a boundary: at a single one, such as one rank, anything may be zero."""
LEVEL = 30.0
"""Standard deviation of the logarithm of a time before anything is known of it, 1: nothing is known."""


@dataclass(frozen=True)
class Late(Structure):
    """s times that begin late, of n configurations."""

    parameters: tuple[str, ...]
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    axes: tuple[int, ...]  # parameter along which each begins
    last: Array  # (s,): largest value of that parameter at which it took no time
    points: Array  # (n, m)
    logs: Array  # (s, n): logarithms of times; NaN where there was none
    errors: Array  # (s, n): their standard errors

    def predict(self, points: Array) -> Forecast:
        """Forecast the times at `points` (k, m)."""
        shape = (len(self.kernels), len(points))
        mean, deviation = (np.empty(shape) for _ in range(2))
        begun, none = (np.zeros(shape, dtype=bool) for _ in range(2))
        asked = _coordinates(points)
        for i, axis in enumerate(self.axes):
            known = np.isfinite(self.logs[i])
            mean[i], deviation[i] = _line(
                _coordinates(self.points[known]), self.logs[i, known], self.errors[i, known], asked
            )
            none[i] = points[:, axis] <= self.last[i]
            begun[i] = points[:, axis] >= self.points[known, axis].min()
        reach = np.exp(TAIL * np.hypot(deviation, REPEATED))
        value = np.where(none, 0.0, np.exp(mean))
        lower = np.where(begun, value / reach, 0.0)
        forecast_late = Forecast.settled(np.where(begun, value, value / 2), lower, value * reach, form=1.0)
        factor = np.where(none, 1.0, np.where(begun, reach**2, np.inf))
        forecast_late.status[:], forecast_late.reason[:] = forecast.judged_by_width(
            factor, forecast_late.status, forecast_late.reason
        )
        return forecast_late

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """Times that begin late, everywhere."""
        times = self.predict(points)
        return choose(answer, times, fitted.indices(self.keys), np.ones(times.value.shape, dtype=bool))

    def formula(self, i: int) -> str:
        """Time `i` as people read it."""
        first = np.flatnonzero(np.isfinite(self.logs[i]))[0]
        value = format_si(float(np.exp(self.logs[i, first])), metric(self.metrics[i]).unit)
        at = " at " + in_words(dict(zip(self.parameters, self.points[first].tolist(), strict=True)))
        return f"0 up to {self.parameters[self.axes[i]]} {in_full(self.last[i])}, {value}{at}"

    def _fits(self) -> bool:
        s, n = len(self.kernels), len(self.points)
        shapes = self.logs.shape == self.errors.shape == (s, n) and self.points.shape == (n, len(self.parameters))
        known = np.isfinite(self.logs).any(axis=1).all() and np.isfinite(self.errors[np.isfinite(self.logs)]).all()
        return bool(
            shapes
            and known
            and len(self.metrics) == len(self.axes) == len(self.last) == s
            and all(0 <= axis < len(self.parameters) for axis in self.axes)
        )


NOTHING_LATE = Late((), (), (), (), np.empty(0), *np.empty((3, 0, 0)))


def fit_late(series: Series) -> Late:
    """The times of `series` that begin late."""
    values = reduce(series.values, "mean", axis=2)
    count = np.maximum(np.isfinite(series.values).sum(axis=2), 1)
    axes: dict[int, int] = {}
    for i, name in enumerate(series.metrics):
        zero, several = values[i] == 0, values[i] > 0
        if np.isfinite(series.worth[i]).any():
            continue  # a zero is a time that no sample fell on
        if metric(name).kind != "time" or not 1 <= several.sum() <= MOST or zero.sum() < FEWEST:
            continue
        if (axis := _boundary(series.points, zero, several)) is not None:
            axes[i] = axis
    if not axes or not (series.points > 0).all():
        return NOTHING_LATE
    rows = list(axes)
    part = values[rows]
    used = (part > 0).any(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(part > 0, np.log(part), np.nan)
        scatter = reduce(np.abs(series.values[rows] - part[..., None]), "mean", axis=2) / part
    # A single run may be as far off as runs of different jobs are.
    scatter = np.where(count[rows] > 1, np.hypot(scatter, REPEATED), BETWEEN_JOBS)
    errors = np.where(part > 0, scatter / np.sqrt(count[rows]), 0.0)
    last = [series.points[values[i] == 0, axis].max() for i, axis in axes.items()]
    kernels, metrics = (tuple(column[i] for i in rows) for column in (series.kernels, series.metrics))
    start = tuple(axes.values()), np.array(last, dtype=np.float64)
    return Late(series.parameters, kernels, metrics, *start, series.points[used], logs[:, used], errors[:, used])


def _boundary(points: Array, zero: Mask, several: Mask) -> int | None:
    """The first parameter below a value of which all times are zero, and from which on none is; None without one."""
    low, high = points[zero].max(axis=0), points[several].min(axis=0)
    rising = np.array([len(np.unique(column)) > 1 for column in points[zero].T])
    axes = np.flatnonzero((low < high) & rising)
    return int(axes[0]) if len(axes) else None


def _coordinates(points: Array) -> Array:
    return np.log(np.maximum(np.asarray(points, dtype=np.float64), np.finfo(float).tiny))


def _line(inputs: Array, logs: Array, errors: Array, asked: Array) -> tuple[Array, Array]:
    """Means and standard deviations (k,) of the line through `logs` (n,) at `inputs` (n, m), at `asked` (k, m)."""
    centre = inputs.mean(axis=0)
    design, at = (np.column_stack([np.ones(len(x)), x - centre]) for x in (inputs, asked))
    weights = 1 / errors**2
    prior = np.diag([LEVEL**-2, *np.full(inputs.shape[1], LATE_SLOPE**-2)])
    covariance = np.linalg.inv(prior + design.T @ (weights[:, None] * design))
    mean = at @ covariance @ design.T @ (weights * logs)
    return mean, np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", at, covariance, at), 0.0))
