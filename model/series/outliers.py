"""Outliers: single repetitions that no scatter of the others explains, as where something else ran at the same time.

One such repetition makes the scatter of its configuration meaningless, and that of its series with it. Of each
configuration the repetition x farthest from the median is compared with the r - 1 others by the moderated t statistic
of Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, section 4),

    t = (x - mean) / sqrt(v r / (r - 1)),    v = (d0 v0 + d s^2) / (d0 + d),

with s^2 the variance of the others, of d degrees of freedom, and d0, v0 the law of the variances of the series'
configurations: where each scatters in its own way d0 is small, and its own repetitions decide. The first law is that
of the variances without what is farthest; the second, which decides, has it back in all configurations but those where
the first identifies an outlier. Where more than one repetition in :data:`MOST` would be an outlier, the series scatters
that way, and all are kept.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.model.series.reduction import median

LEVEL = 1e-4
"""Level of the test, shared by the repetitions of a series. What is farthest leaves others that seem closer than they
are: one series of normal scatter in three hundred loses a repetition."""
MOST = 10
"""Repetitions of which one may be an outlier."""
LEAST = 4
"""Repetitions of a configuration needed to find which of them differs from the others."""
VARIANCES = 4
"""Variances needed to estimate a law."""
FREEST = 100.0
"""Most degrees of freedom of a law."""


def without_outliers(values: Array) -> Array:
    """Repetitions (s, n, r) with NaN where one is an outlier of its configuration."""
    known = ~np.isnan(values)
    count = known.sum(axis=2)
    if not (count >= LEAST).any():
        return values
    middle = np.where(count > 0, median(values, axis=2), 0.0)[..., None]
    size = np.where(middle != 0, np.abs(middle), 1.0)
    deviations = np.where(known & (count >= LEAST)[..., None], (values - middle) / size, np.nan)
    farthest = np.where(np.isnan(deviations), -1.0, np.abs(deviations)).argmax(axis=2)[..., None]
    x = np.take_along_axis(deviations, farthest, axis=2)[..., 0]
    others = deviations.copy()
    np.put_along_axis(others, farthest, np.nan, axis=2)
    mean, rest, freedom = _variance(others)
    _, every, more = _variance(deviations)
    tests = np.where(count >= LEAST, count, 0).sum(axis=1)
    level = LEVEL / np.maximum(tests, 1)
    outlying = np.ones(x.shape, dtype=bool)
    for _ in range(2):
        d0, v0 = laws(np.where(outlying, rest, every), np.where(outlying, freedom, more))
        freely = d0[:, None] + freedom
        pooled = (d0 * v0)[:, None] + freedom * rest
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (x - mean) / np.sqrt(pooled / freely * count / (count - 1))
            outlying = (d0 > 0)[:, None] & (2 * special.stdtr(freely, -np.abs(t)) < level[:, None])
    outlying &= (outlying.sum(axis=1) * MOST <= tests)[:, None]
    cleaned = values.copy()
    cleaned[(*np.nonzero(outlying), farthest[outlying, 0])] = np.nan
    return cleaned


def _variance(deviations: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and its degrees of freedom (s, n) of repetitions; zero where there are too few."""
    known = ~np.isnan(deviations)
    count = known.sum(axis=2)
    mean = np.where(known, deviations, 0.0).sum(axis=2) / np.maximum(count, 1)
    squares = np.where(known, (deviations - mean[..., None]) ** 2, 0.0).sum(axis=2)
    freedom = np.maximum(count - 1, 0)
    return mean, squares / np.maximum(freedom, 1), freedom.astype(np.float64)


def laws(variance: Array, freedom: Array) -> tuple[Array, Array]:
    """Degrees of freedom and variance (s,) of the scaled inverse chi-squared laws behind rows of sample variances.

    The empirical-Bayes estimate of Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, section
    6.2). `variance` and `freedom` (s, n) are used where both are positive. Zero where fewer than :data:`VARIANCES`
    of them are there to learn from; :data:`FREEST` degrees of freedom at most.
    """
    use = (freedom > 0) & (variance > 0) & np.isfinite(variance)
    count = use.sum(axis=1)
    many = np.maximum(count, 1)
    half = np.where(use, freedom, 2.0) / 2
    logs = np.where(use, np.log(np.where(use, variance, 1.0)) - special.digamma(half) + np.log(half), 0.0)
    mean = logs.sum(axis=1) / many
    squares = (np.where(use, logs - mean[:, None], 0.0) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    spread = squares - np.where(use, special.polygamma(1, half), 0.0).sum(axis=1) / many
    least = float(special.polygamma(1, FREEST / 2))
    equal = spread <= least
    prior = np.full(len(spread), FREEST)
    prior[~equal] = 2 * _inverse_trigamma(spread[~equal])
    centre = np.exp(mean + np.where(equal, 0.0, special.digamma(prior / 2) - np.log(prior / 2)))
    enough = count >= VARIANCES
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
