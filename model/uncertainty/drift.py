"""Drift: how far a program leaves its function per step of extrapolation.

A function that holds in the measured range need not hold beyond it (caches, switches, contention): a relative standard
deviation ``tau ln(x / x_max)`` allows for that.

A composite parameter such as the work per rank may stay in the range measured while those behind it, ranks and sizes,
leave it. No measurement shows how functions depend on those, so physics bounds it. Times in proportion to the work per
rank are divided work: they do not depend on the number of ranks and may drift either way. The rest, communication and
waiting, does not shrink when ranks are added: trees grow by logarithms of their number, gathering and imbalance in
proportion to it. With a share b of the rest and d e-folds beyond the range, a time may therefore rise by
``ln(1 + b (exp(UNDIVIDED d) - 1))``, and as many e-folds below the range fall by the same rule.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, log_ratio
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.series.noise import behaviours
from ranksight.model.series.poisson import HALF

STEADIEST, USUAL = 0.003, 0.03
"""Relative scatter below which a series is not believed to keep to its function any better, and that with the usual
pace."""
EXACT = 1e-6
"""Scatter around functions, relative, up to which counts meet them exactly."""
SPARE = 1.0
"""Values that the choice among hypotheses takes beyond those of the coefficients."""
KEPT = 0.01
"""Pace of counts that meet a function exactly with values to spare."""
CHANCE = 2.0
"""Times the variance of samples up to which values are taken to scatter as samples do."""


def pace(around: Array, freedom: Array, metrics: tuple[str, ...], samples: Array) -> Array:
    """How much faster than usual (s,) series leave their functions.

    Counts that meet a function exactly with values to spare keep to it. What scatters little around its function with
    values to spare leaves it as much slower, but for counts that caches decide, which change where a working set meets
    a capacity.

    Parameters
    ----------
    around : (s,)
        Relative variance around the functions.
    freedom : (s,)
        Degrees of freedom that the functions leave.
    samples : (s,)
        Behind the value of a configuration; infinite where there are none.
    """
    scatter = np.sqrt(np.maximum(around - CHANCE / np.maximum(samples, HALF), 0.0))
    kept = np.where(scatter < EXACT, KEPT, 1.0)
    requirements = {name: metric(name).kind == "requirement" for name in set(metrics)}
    decided = np.array([requirements[name] for name in metrics])
    followed = np.where(decided, 1.0, np.minimum(np.hypot(STEADIEST, scatter) / USUAL, 1.0))
    counted = behaviours(metrics, samples) == "requirement"
    return np.where(freedom > SPARE, np.where(counted, kept, followed), 1.0)


def beyond(hidden: Array, ranges: Array) -> tuple[Array, Array]:
    """E-folds (k,) that values (k, h) lie above and below the ranges measured (h, 2).

    Hidden parameters move together: the one that is farthest out counts.
    """
    out = log_ratio(hidden, ranges[:, 1]), log_ratio(ranges[:, 0], hidden)
    above, below = (np.where(np.isfinite(side), np.maximum(side, 0.0), 0.0).max(axis=1, initial=0.0) for side in out)
    return above, below


def spreads(above: Array, below: Array, rest: Array, pace: Array) -> tuple[Array, Array]:
    """Relative standard deviations (s, k) that hidden parameters add to times, downwards and upwards.

    `above`, `below` (k,): from :func:`beyond`. `rest` (s, k): share that is not divided work. `pace` (s,): how much
    faster than usual series leave their functions (:func:`pace`).
    """
    rate = priors.HIDDEN_UNDIVIDED
    either = priors.HIDDEN_DIVIDED * pace[:, None] * np.maximum(above, below)
    with np.errstate(over="ignore", invalid="ignore"):
        rise = np.log1p(rest * np.expm1(rate * above))
        fall = -np.log1p(rest * np.expm1(-rate * below))
    return np.hypot(either, np.where(np.isfinite(fall), fall, 0.0)), np.hypot(either, rise)
