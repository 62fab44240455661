"""One side of a comparison: values of every kernel's metrics at some configurations, measured or predicted, with their
standard errors.

Also kernels that seem to be one under two names: absent on one side, new on the other, and similar. Two kernels are
similar when a count of both agrees at every configuration, or when their names are nearly the same: a suffix of another
compiler, a signature written out. A rename is reported and never assumed; the user confirms it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitted_model import Model
from ranksight.model.series.poisson import HALF
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

Key = tuple[str, str]

ONCE = 0.05
"""Relative standard deviation of a time that was never repeated, where no series was."""
COUNTED = 1e-3
"""Least relative standard deviation of a count: initialisation and the library's own differ from run to run."""
EXACT = 1e6
"""Degrees of freedom of what is not known from repetitions."""
NEARLY = 0.75
"""Likeness of two names (Ratcliff and Obershelp's, 0 to 1) from which on they are nearly the same."""
EQUAL = 0.01
"""Relative difference within which counts of one kernel, compiled twice, agree."""
MOST = 200
"""Kernels of one side only, beyond which pairs are not looked for: two other programs, not a renamed one."""


@dataclass(frozen=True)
class Side:
    """Values at k configurations."""

    name: str  # what it is called in tables
    rows: dict[Key, int]  # mapping of (kernel, metric) to int: :data:`ranksight.core.experiment.WHOLE` is the program
    value: Array  # (s, k): NaN where there is none
    error: Array  # (s, k): relative standard error
    freedom: Array  # (s, k): its degrees of freedom
    sound: Mask  # (s, k): whether the data suffice for the value

    def of(self, kernel: str, name: str) -> Array:
        """Values (k,) of a kernel's metric; NaN where it has none."""
        row = self.rows.get((kernel, name))
        return np.full(self.value.shape[1], np.nan) if row is None else self.value[row]


def measured_side(name: str, series: Series, points: Array, scatter: float) -> Side:
    """What was measured at `points` (k, m), which the series has.

    The standard error of a mean over n repetitions of relative deviation d is ``sqrt(d^2 / n + scatter^2)``; d is
    pooled over the configurations of a series, and of all times where a series was never repeated. A value of m samples
    has a standard error of ``1 / sqrt(m)`` in addition (:mod:`ranksight.core.sampled`). `scatter`: relative standard
    deviation of times between jobs, which repetitions within one do not show.
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
    repeated = freedom > 0
    deviation = np.maximum(np.where(repeated, deviation, np.where(timed, typical if pooled else ONCE, 0.0)), least)
    between = np.where(timed, scatter, 0.0)[:, None]
    few = _sampled(series, mean, names)
    error = np.sqrt(deviation[:, None] ** 2 / np.maximum(count, 1) + between**2 + few)
    # Scatter within jobs is known from few repetitions, that between jobs is given (Welch and Satterthwaite).
    part = (deviation[:, None] ** 2 / np.maximum(count, 1)) / np.maximum(error**2, 1e-300)
    known = np.where(repeated, freedom, EXACT)[:, None]
    nu = known / np.maximum(part**2, 1e-9)
    rows = {key: at for at, key in enumerate(zip(kernels, names, strict=True))}
    mean = np.where(count > 0, mean, np.nan)
    return Side(name, rows, mean[:, index], error[:, index], nu[:, index], np.isfinite(mean[:, index]))


def _sampled(series: Series, mean: Array, names: tuple[str, ...]) -> Array:
    """Relative variance (s, n) of values from the number of their samples, and of the sums behind them; zero where
    values are not made of samples."""
    errors = np.zeros(mean.shape)
    if not series.sampled.any():
        return errors
    count = len(series)
    errors[:count] = np.nan_to_num(1 / np.maximum(series.samples, HALF))
    every = np.array(series.metrics, dtype=object)
    for row in range(count, len(mean)):
        rows = np.flatnonzero(every == names[row])
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = np.nansum(errors[rows] * mean[rows] ** 2, axis=0) / mean[row] ** 2
        errors[row] = np.nan_to_num(sums, posinf=1 / HALF)
    return errors


def _with_totals(series: Series) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """Values with a row of sums over kernels for every additive metric that has none, repetition by repetition."""
    kernels, names = list(series.kernels), list(series.metrics)
    present, every = set(zip(kernels, names, strict=True)), np.array(names, dtype=object)
    blocks = [series.values]
    for name in dict.fromkeys(series.metrics):
        if metric(name).additive and metric(name).kind != "ratio" and (WHOLE, name) not in present:
            values = series.values[every == name]
            total = np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), np.nan)
            blocks.append(total[None])
            kernels.append(WHOLE)
            names.append(name)
    return np.concatenate(blocks), tuple(kernels), tuple(names)


def predicted_side(name: str, model: Model, points: Array) -> Side:
    """What a model says at `points` (k, m); standard errors are those of its intervals."""
    forecast = model.forecast(points)
    rows = dict(model.functions.rows)
    missing = [
        each
        for each in dict.fromkeys(model.fitted.metrics)
        if metric(each).additive and metric(each).kind != "ratio" and (WHOLE, each) not in rows
    ]
    wholes = model.programs(points, missing) if missing else {}
    rows |= {(WHOLE, each): at for at, each in enumerate(wholes, len(forecast.value))}
    return forecast_side(name, rows, [forecast, *wholes.values()])


def forecast_side(name: str, rows: dict[Key, int], parts: Sequence[Forecast]) -> Side:
    """What forecasts say, whose series follow each other in the order of `rows`."""
    value, low, high, status = (
        np.concatenate([getattr(part, end) for part in parts]) for end in ("value", "lower", "upper", "status")
    )
    with np.errstate(all="ignore"):
        half = np.where(low > 0, np.log(high / low) / 2, (high - low) / 2 / np.abs(value))
    error = half / forecast.TAIL
    sound = (status == forecast.OK) & np.isfinite(value) & np.isfinite(error)
    # A sum whose parts have no answer is none.
    value = np.where((status != forecast.OK) & (value == 0), np.nan, value)
    return Side(name, rows, value, np.where(np.isfinite(error), error, np.inf), np.full(value.shape, EXACT), sound)


def joined(side: Side, other: Side) -> Side:
    """The side with the series of another one that it lacks."""
    rows = {key: len(side.value) + row for key, row in other.rows.items()} | side.rows
    return Side(
        side.name,
        rows,
        *(
            np.concatenate([getattr(each, which) for each in (side, other)])
            for which in ("value", "error", "freedom", "sound")
        ),
    )


def common_points(first: Array, second: Array) -> Array:
    """Configurations (k, m) that both have, in ascending order."""
    shared = {tuple(point) for point in first.tolist()} & {tuple(point) for point in second.tolist()}
    return np.array(sorted(shared), dtype=np.float64).reshape(-1, first.shape[1])


def time_metric(sides: Sequence[Side]) -> str | None:
    """The metric that is the time on all sides: time, else cycles, else another clock."""
    for name in ("time", "cycles", "compute_cpu_time", "cpu_time", "wall_time", "time_inclusive"):
        if all(any(each == name for _, each in side.rows) for side in sides):
            return name
    return None


def renamed(side: Side, names: Mapping[str, str]) -> Side:
    """The side with kernels called otherwise.

    Raises InputError when it has no such kernel, or already one of the new name.
    """
    kernels = {kernel for kernel, _ in side.rows}
    for old, new in names.items():
        if old not in kernels:
            raise InputError(f"{side.name} has no kernel {old!r} to rename", "write --rename BEFORE=AFTER")
        if new in kernels:
            raise InputError(f"{side.name} has the kernels {old!r} and {new!r}", "two kernels are not one")
    return replace(side, rows={(names.get(kernel, kernel), name): row for (kernel, name), row in side.rows.items()})


def same_kernels(before: Side, after: Side) -> tuple[tuple[str, str], ...]:
    """Pairs of a kernel of `before` only and one of `after` only that seem to be one, each other's best."""
    kernels = [dict.fromkeys(kernel for kernel, _ in side.rows if kernel != WHOLE) for side in (before, after)]
    removed = [kernel for kernel in kernels[0] if kernel not in kernels[1]]
    new = [kernel for kernel in kernels[1] if kernel not in kernels[0]]
    if not removed or not new or max(len(removed), len(new)) > MOST:
        return ()
    score = np.array([[_likeness(before, after, old, other) for other in new] for old in removed])
    best, back = score.argmax(axis=1), score.argmax(axis=0)
    return tuple((removed[i], new[j]) for i, j in enumerate(best.tolist()) if score[i, j] > 0 and back[j] == i)


def _likeness(before: Side, after: Side, old: str, new: str) -> float:
    """Of two kernels: from 1 where counts agree, that of their names where it is high, else 0."""
    names = SequenceMatcher(None, old, new).ratio()
    counts = [name for kernel, name in before.rows if kernel == old and metric(name).kind == "requirement"]
    for name in counts:
        if (new, name) not in after.rows:
            continue
        pair = before.of(old, name), after.of(new, name)
        known = np.isfinite(pair[0]) & np.isfinite(pair[1]) & (pair[0] > 0)
        if known.any() and (np.abs(pair[1][known] / pair[0][known] - 1) <= EQUAL).all():
            return 1 + names
    return names if names >= NEARLY else 0.0
