"""Change points: where a series of values in time steps from one level to another.

The logarithms y_t of a series, with standard errors e_t, are divided into segments of one mean each. Of all divisions
the one is taken that minimises

    sum_t ((y_t - mean of its segment) / e_t)^2 + penalty * (number of changes),

found exactly by dynamic programming (optimal partitioning: Jackson et al. 2005, *IEEE Signal Processing Letters* 12,
105). A change at a given place lowers the sum by a chi-squared variable of one degree of freedom when there is none.
The penalty is the quantile that the largest of all places and series exceeds with probability ``1 - level``
(Bonferroni): of twenty histories without a change, one shows a change at a level of 0.95.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask

ENOUGH = 6
"""Values from which on their scatter from one to the next is estimated."""
NORMAL = 1.4826
"""Standard deviation over the median absolute value, of a normal distribution centred at zero."""


def noise(values: Array, errors: Array, scatter: float = 0.0) -> Array:
    """Standard errors (s, n) of logarithms, not below what the series shows.

    Repetitions within an experiment do not show what differs from day to day. The median of absolute differences of
    successive values does, and a few changes of level do not move it. Where there are too few values for it, a scatter
    is assumed.

    `values` (s, n): logarithms; NaN where there is none. `errors` (s, n): their standard errors, from repetitions; each
    is known from few, so none is taken below their quadratic mean. `scatter`: assumed of series with fewer than
    :data:`ENOUGH` values.
    """
    known = np.isfinite(values)
    with np.errstate(all="ignore"):
        count = known.sum(axis=1)
        pooled = np.sqrt((np.where(known, errors, 0.0) ** 2).sum(axis=1) / np.maximum(count, 1))
    daily = np.hypot(pooled, scatter)
    for row in np.flatnonzero(count >= ENOUGH):
        shown = NORMAL * np.median(np.abs(np.diff(values[row, known[row]]))) / np.sqrt(2)
        daily[row] = max(pooled[row], shown)
    return np.asarray(np.maximum(np.where(known, errors, np.inf), daily[:, None]))


def changepoints(values: Array, errors: Array, level: float = 0.95) -> Mask:
    """Where (s, n) a segment begins, apart from the first of each series.

    `values` (s, n): in their order in time; NaN where there is none. `errors` (s, n): standard errors above zero.
    `level`: probability that no change is marked in all s series when there is none.
    """
    count, n = values.shape
    known = np.isfinite(values) & np.isfinite(errors)
    centre = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    weight = np.where(known, 1 / np.where(known, errors, 1.0) ** 2, 0.0)
    weighted = weight * np.where(known, values - centre[:, None], 0.0)
    zero = np.zeros((count, 1))
    weights, sums = (np.concatenate([zero, np.cumsum(x, axis=1)], axis=1) for x in (weight, weighted))
    places = np.maximum(known.sum(axis=1) - 1, 1)
    penalty = special.chdtri(1, (1 - level) / (places * max(count, 1)))
    # best[:, j] is the least cost of the first j values; last[:, j] is where its last segment begins.
    best, last = np.zeros((count, n + 1)), np.zeros((count, n + 1), dtype=np.intp)
    best[:, 0] = -penalty
    rows = np.arange(count)
    for end in range(1, n + 1):
        mass = weights[:, end, None] - weights[:, :end]
        gained = (sums[:, end, None] - sums[:, :end]) ** 2 / np.where(mass > 0, mass, 1.0)
        # What has no value in it is no segment.
        cost = best[:, :end] + np.where(mass > 0, -gained + penalty[:, None], np.inf)
        cost[:, 0] = np.where(mass[:, 0] > 0, cost[:, 0], best[:, 0] + penalty)
        last[:, end] = cost.argmin(axis=1)
        best[:, end] = cost[rows, last[:, end]]
    begins = np.zeros((count, n), dtype=bool)
    at = np.full(count, n)
    while n and (at > 0).any():
        at = last[rows, at]
        begins[rows[at > 0], at[at > 0]] = True
    return _at_values(begins, known)


def _at_values(begins: Mask, known: Mask) -> Mask:
    """Each begin at the first value of its segment, where values are missing in front of it."""
    n = begins.shape[1]
    if not n:
        return begins
    next_known = np.where(known, np.arange(n), n)
    next_known = np.minimum.accumulate(next_known[:, ::-1], axis=1)[:, ::-1]
    moved = np.zeros_like(begins)
    rows, at = np.nonzero(begins)
    following = next_known[rows, at]
    inside = following < n
    moved[rows[inside], following[inside]] = True
    return moved


def levels(values: Array, errors: Array, begins: Mask) -> Array:
    """Weighted mean (s, n) of the segment that each value is in; NaN of segments without one."""
    known = np.isfinite(values) & np.isfinite(errors)
    weight = np.where(known, 1 / np.where(known, errors, 1.0) ** 2, 0.0)
    segment = np.cumsum(begins, axis=1)
    key = segment + np.arange(len(values))[:, None] * (values.shape[1] + 1)
    size = len(values) * (values.shape[1] + 1)
    mass = np.bincount(key.ravel(), weight.ravel(), size)
    total = np.bincount(key.ravel(), (weight * np.where(known, values, 0.0)).ravel(), size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((total / mass)[key])
