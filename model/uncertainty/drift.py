"""Drift: how far a program leaves its function per step of extrapolation.

A function that holds in the measured range need not hold beyond it (caches, switches, contention): a relative standard
deviation ``tau ln(x / x_max)`` allows for that. What departs little from its function within the range departs little
beyond it: tau is counted in multiples of each series' discrepancy, as the amplitude of a discrepancy is one inside and
outside of the data (Kennedy and O'Hagan 2001, *Journal of the Royal Statistical Society B* 63, 425).

A composite parameter such as the work per rank may stay in the range measured while those behind it, ranks and sizes,
leave it. No measurement shows how functions depend on those, so physics bounds it. Times in proportion to the work per
rank are divided work: they do not depend on the number of ranks and may drift either way. The rest, communication and
waiting, does not shrink when ranks are added: trees grow by logarithms of their number, gathering and imbalance in
proportion to it. With a share b of the rest and d e-folds beyond the range, a time may therefore rise by
``ln(1 + b (exp(UNDIVIDED d) - 1))``, and as many e-folds below the range fall by the same rule.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask, log_ratio
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.series.noise import behaviours
from ranksight.model.series.poisson import HALF

STEADIEST = 0.003
"""Discrepancy below which a series is not believed to keep to its function any better."""
EXACT = 1e-6
"""Scatter around functions, relative, up to which counts meet them exactly."""
KEPT = 0.01
"""Pace of counts that meet a function exactly with values to spare."""
CHANCE = 2.0
"""Times the variance of samples up to which values are taken to scatter as samples do."""


def pace(
    discrepancy: Array, around: Array, freedom: Array, repeated: Mask, metrics: tuple[str, ...], samples: Array
) -> Array:
    """How much faster than usual (s,) series leave their functions: as many times as their discrepancy is larger.

    What was never repeated has the usual pace at most, as nothing parts its noise from departures; counts that caches
    decide have the usual one, as they change where a working set meets a capacity. Counts that meet a function exactly
    with values to spare keep to it; others have the usual pace.

    Parameters
    ----------
    discrepancy : (s,)
        Its standard deviation (:func:`ranksight.model.uncertainty.discrepancy.scale`).
    around : (s,)
        Relative variance around the functions.
    freedom : (s,)
        Degrees of freedom that the functions leave.
    repeated : (s,) bool
    samples : (s,)
        Behind the value of a configuration; infinite where there are none.
    """
    kinds = behaviours(metrics, samples)
    counted = kinds == "requirement"
    scatter = np.sqrt(np.maximum(around - CHANCE / np.maximum(samples, HALF), 0.0))
    exact = (scatter < EXACT) & (freedom > priors.DISCREPANCY_CHOSEN)
    counts = np.where(exact & counted, KEPT, 1.0)
    departing = np.hypot(STEADIEST, discrepancy) / priors.DISCREPANCY
    requirements = {name: metric(name).kind == "requirement" and not metric(name).steady for name in set(metrics)}
    cached = np.array([requirements[name] for name in metrics])
    departing = np.where(repeated, departing, np.where(cached, 1.0, np.minimum(departing, 1.0)))
    return np.where(counted | (kinds == "sampled"), counts, departing)


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
