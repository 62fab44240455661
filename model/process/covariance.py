"""Covariance of what a series leaves its mean by: a sum of named parts over the logarithms of the coordinates.

    k(u, v) = local^2 exp(-|u - v|) + slope^2 min(u, v)^2 (3 max(u, v) - min(u, v)) / 6 + power^2 u v + jobs^2 [u = v]

with u, v in e-folds from the first value of a coordinate: local departures that are forgotten within an e-fold
(Ornstein and Uhlenbeck's process), a change of slope that accumulates with the distance (the integrated Wiener process;
Wahba 1978, *Journal of the Royal Statistical Society B* 40, 364), an exponent that is none of those listed (the mean
times x^d, d normal), and scatter between jobs. Several coordinates add their parts. On the other side of the origin the
change of slope is another, independent one.

A law that held at every run may be another one ahead: with a probability the slope of ln y is one that no run shows,
normal about a flatter one than that of the law (:class:`Turn`). Laws that runs keep to closely turn less often than
those that they scatter around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.priors import FAR, REPEATED, UNSEEN

PARTS = ("local", "slope", "power", "jobs")
"""Names of the parts, in the order in which scales are given: each is a standard deviation of ln y, of the departure,
of the slope after one e-fold, of the exponent, and of one job."""


SCATTER, LEAST_SCATTER = 0.03, 0.003
"""Standard deviation of ln y, of runs around their law, that :class:`Turn` is stated for; and the smallest that
differs from none, as in the table of prevalence."""


class Turn(NamedTuple):
    """How often the law of the runs turns into another one beyond them, 1, where they scatter by :data:`SCATTER`; the
    power of the scatter that the odds grow with; the share of its slope, of 1 at most, that is lost in the mean; and
    the standard deviation of the change of its slope, of ln y per e-fold."""

    often: float
    power: float
    flatter: float
    slope: float

    def probability(self, scatter: Array) -> Array:
        """How often laws turn that runs `scatter` around, the standard deviation of ln y."""
        odds = self.often / (1 - self.often) * (np.maximum(scatter, LEAST_SCATTER) / SCATTER) ** self.power
        return np.asarray(odds / (1 + odds))


def smooth(u: Array, v: Array) -> Array:
    """Covariance (3, n, k) of the local departure, the change of slope and the exponent of unit scale, at `u` (n, m)
    and `v` (k, m) in e-folds from the origin."""
    total = np.zeros((3, len(u), len(v)))
    for axis in range(u.shape[1]):
        a, b = u[:, axis][:, None], v[:, axis][None, :]
        low, high = np.minimum(np.abs(a), np.abs(b)), np.maximum(np.abs(a), np.abs(b))
        same = np.sign(a) * np.sign(b) > 0
        total[0] += np.exp(-np.abs(a - b))
        total[1] += np.where(same, low**2 * (3 * high - low) / 6, 0.0)
        total[2] += a * b
    return total


def variance(v: Array) -> Array:
    """Variance (3, k) of the three at `v` (k, m)."""
    distance = np.abs(v)
    parts = np.full(len(v), float(v.shape[1])), (distance**3 / 3).sum(axis=1), (distance**2).sum(axis=1)
    return np.stack(parts)


def within(points: Array, runs: Array) -> Array:
    """The nearest of points (k, d) within the range of the runs (n, d)."""
    return np.clip(points, runs.min(axis=0), runs.max(axis=0))


def beyond(points: Array, runs: Array) -> Array:
    """E-folds (k,) of points (k, d) beyond the range of the runs (n, d), both in e-folds."""
    return np.asarray(np.sqrt(((points - within(points, runs)) ** 2).sum(axis=1)))


def unseen(points: Array, runs: Array) -> Array:
    """Standard deviation (k,) of the logarithm of a time at `points` (k, d) that runs at `runs` (n, d) do not show.

    With d the distance in e-folds beyond the range of the runs, REPEATED and UNSEEN d sqrt(1 + (d / FAR)^2) together.
    """
    squared = beyond(points, runs) ** 2
    return np.asarray(np.sqrt(REPEATED**2 + UNSEEN**2 * squared * (1 + squared / FAR**2)))
