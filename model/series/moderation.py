"""The law behind many sample variances: their common variance and how closely they agree with it."""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array

LEAST = 4
"""Variances needed to estimate a law."""
MOST = 100.0
"""Most degrees of freedom of a law."""


def laws(variance: Array, freedom: Array) -> tuple[Array, Array]:
    """Degrees of freedom and variance (s,) of the scaled inverse chi-squared laws behind rows of sample variances.

    The empirical-Bayes estimate of Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, section
    6.2). `variance` and `freedom` (s, n): used where both are positive.

    Returns
    -------
    freedom, variance : (s,)
        Zero where fewer than :data:`LEAST` variances are there to learn from; at most :data:`MOST` degrees of freedom.
    """
    use = (freedom > 0) & (variance > 0) & np.isfinite(variance)
    count = use.sum(axis=1)
    many = np.maximum(count, 1)
    half = np.where(use, freedom, 2.0) / 2
    logs = np.where(use, np.log(np.where(use, variance, 1.0)) - special.digamma(half) + np.log(half), 0.0)
    mean = logs.sum(axis=1) / many
    apart = (np.where(use, logs - mean[:, None], 0.0) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    spread = apart - np.where(use, special.polygamma(1, half), 0.0).sum(axis=1) / many
    least = float(special.polygamma(1, MOST / 2))
    equal = spread <= least
    prior = np.full(len(spread), MOST)
    prior[~equal] = 2 * _inverse_trigamma(spread[~equal])
    centre = np.exp(mean + np.where(equal, 0.0, special.digamma(prior / 2) - np.log(prior / 2)))
    enough = count >= LEAST
    return np.where(enough, prior, 0.0), np.where(enough, centre, 0.0)


def _inverse_trigamma(value: Array) -> Array:
    """Solve ``trigamma(x) = value`` by Newton's method (Smyth 2004, appendix)."""
    x = np.asarray(0.5 + 1.0 / value)
    left = np.arange(len(x))
    for _ in range(30):
        tri = special.polygamma(1, x[left])
        step = tri * (1 - tri / value[left]) / special.polygamma(2, x[left])
        x[left] += step
        left = left[np.abs(step) >= 1e-8 * x[left]]
        if not len(left):
            break
    return x
