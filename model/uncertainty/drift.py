"""Drift: how far a program leaves its function per step of extrapolation.

A function that holds in the measured range need not hold beyond it (caches, switches, contention): a relative standard
deviation ``tau ln(x / x_max)`` allows for that. What departs little from its function within the range departs little
beyond it: tau is counted in multiples of each series' discrepancy, as the amplitude of a discrepancy is one inside and
outside of the data (Kennedy and O'Hagan 2001, *Journal of the Royal Statistical Society B* 63, 425).
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask
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
    held = {name: metric(name).kind == "requirement" and not metric(name).steady for name in set(metrics)}
    cached = np.array([held[name] for name in metrics])
    departing = np.where(repeated, departing, np.where(cached, 1.0, np.minimum(departing, 1.0)))
    return np.where(counted | (kinds == "sampled"), counts, departing)
