"""What remains between functions and values beyond the noise: learned from all series of a metric together.

No form of a search space is the truth. How far series stray from the form that fits them best, over what their repetitions
explain, tells how much; a batch tells it better than a series of five points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.metrics import Kind
from ranksight.model.noise import SMALLEST, Location, moderate
from ranksight.model.search import Problem, Screened, evidence

Array = NDArray[np.float64]

ALONE_FREEDOM = 2.0
"""Degrees of freedom of the prior when there are too few series to learn it."""
LARGEST = 2
"""Terms of the forms that the discrepancy is measured against: larger ones bend to the points."""
TIME = 0.01**2
"""Relative variance expected of times that were never repeated, before anything else is known."""


def configuration_variance(location: Location, kind: Kind) -> Array:
    """Relative variance (s,) of a configuration's value from noise alone; a weak guess where nothing was repeated."""
    count = np.maximum((location.repeats > 0).sum(axis=1), 1)
    repeats = location.repeats.sum(axis=1) / count
    noise = location.variance / np.where(repeats > 0, repeats, 1.0)
    guess = TIME if kind in ("time", "other") else SMALLEST**2
    return np.maximum(np.where(np.isnan(noise), guess, noise), SMALLEST**2)


def learn(problem: Problem, screened: Screened, noise: Array) -> tuple[float, float]:
    """Factor on the variance of the noise and degrees of freedom of the total variance around functions.

    Parameters
    ----------
    noise : (s,)
        From :func:`configuration_variance`.

    Returns
    -------
    factor, freedom : float
        The factor is at least one.
    """
    alone = np.full(len(noise), ALONE_FREEDOM)
    sizes = screened.sizes
    score = np.where(sizes[None, :] <= LARGEST, evidence(screened, problem.count, noise, alone), -np.inf)
    best = score.argmax(axis=1)
    rows = np.arange(len(best))
    size = sizes[best]
    freedom = (problem.count - size).astype(np.float64)
    use = np.isfinite(score[rows, best]) & (freedom > 0)
    ratio = np.where(use, screened.residual[rows, best] / np.where(freedom > 0, freedom, 1.0) / noise, np.nan)
    prior, factor = moderate(np.where(use, ratio, 0.0), np.where(use, freedom, 0.0))
    if prior <= 0:
        return 1.0, ALONE_FREEDOM
    return max(factor, 1.0), max(prior, 1.0)
