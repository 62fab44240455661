"""What a search is asked: series of values at points, weighted and scaled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log
from ranksight.core.metrics import Kind
from ranksight.core.records import dataclass
from ranksight.model.search.basis import AHEAD, Basis
from ranksight.model.series.noise import Location


@dataclass(frozen=True)
class Problem:
    """Series and terms, scaled for solving."""

    basis: Basis  # terms at the points
    weights: Array  # (s, n): relative weights, zero where missing, and values in units of `unit`
    values: Array  # (s, n)
    unit: Array  # (s,): largest size of each series
    count: Index  # (s,): points of each series
    positive: Mask  # (s,): series whose function must stay above zero
    parts: Mask  # (s,): series whose terms add up as parts of a whole, like times
    exact: bool  # whether the values are deterministic
    levels: Index  # (s, m): distinct values of each parameter, without those where a count is zero throughout
    rise: Array  # (s, m)
    """How far the values have risen where the points end along each axis, as a logarithm and as far as
    :data:`ranksight.model.search.basis.AHEAD` goes: zero where the last value is the lowest of all lines of the axis,
    infinite for an axis that never varied alone."""

    def part(self, which: slice | Index) -> Problem:
        """The same problem of some series."""
        names = ("weights", "values", "unit", "count", "positive", "parts", "levels", "rise")
        return replace(self, **{name: getattr(self, name)[which] for name in names})


def pose(basis: Basis, points: Array, location: Location, positive: Mask, kind: Kind) -> Problem:
    """Weigh the values of series at the points of a basis."""
    present = location.repeats > 0
    count = present.sum(axis=1)
    mean_repeats = location.repeats.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None]
    relative = location.repeats / np.where(mean_repeats > 0, mean_repeats, 1.0)
    y = np.where(present, location.values, 0.0)
    unit = np.abs(y).max(axis=1, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)[:, None]
    return Problem(
        basis,
        np.where(present, relative * (unit / location.scale) ** 2, 0.0),
        y / unit,
        unit[:, 0],
        count,
        positive,
        positive & (kind in ("time", "other", "state", "sampled")),
        kind in ("requirement", "state"),
        _levels(points, present & (y != 0) if kind == "requirement" else present),
        _rise(points, present, y),
    )


def _levels(points: Array, shown: Mask) -> Index:
    """Distinct values (s, m) of each parameter that a series is `shown` (s, n) at."""
    levels = np.zeros((len(shown), points.shape[1]), dtype=np.intp)
    for axis, x in enumerate(points.T):
        for value in np.unique(x):
            levels[:, axis] += shown[:, x == value].any(axis=1)
    return levels


def _rise(points: Array, present: Mask, y: Array) -> Array:
    """Largest rise (s, m) of ln |y| from the least to the last value of the lines of each axis, scaled to
    :data:`search.basis.AHEAD`."""
    size = log(np.abs(y))
    result = np.zeros((len(y), points.shape[1]))
    for axis, x in enumerate(points.T):
        _, group = np.unique(np.delete(points, axis, axis=1), axis=0, return_inverse=True)
        if np.bincount(group.reshape(-1)).max(initial=0) < 2:
            # Varied together with others only: nothing could show what it does alone.
            result[:, axis] = np.inf
            continue
        for line in range(int(group.max(initial=-1)) + 1):
            along = np.flatnonzero(group.reshape(-1) == line)
            along = along[np.argsort(x[along], kind="stable")]
            use = present[:, along] & np.isfinite(size[:, along])
            end = len(along) - 1 - use[:, ::-1].argmax(axis=1)
            last = np.take_along_axis(size[:, along], end[:, None], axis=1)[:, 0]
            least = np.where(use, size[:, along], np.inf).min(axis=1, initial=np.inf)
            rise = np.subtract(last, least, out=np.zeros(len(y)), where=use.any(axis=1))
            result[:, axis] = np.maximum(result[:, axis], rise)
        if (x > 0).all() and x.size and x.max() > x.min():
            result[:, axis] *= max(1.0, np.log(AHEAD) / np.log(x.max() / x.min()))
    return result
