"""What remains between functions and values beyond the noise.

No hypothesis of a search space is exact. The distance of a series from its best hypothesis, beyond what its repetitions
explain, shows this error.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import Screened, evidence
from ranksight.model.series.noise import SMALLEST, Location

ALONE_FREEDOM = 2.0
"""Degrees of freedom of a variance of which little is known."""
MOST_FREEDOM = 20.0
"""More is never believed: no scatter is exactly proportional to the values."""
STRAYS = 0.05
CHOICES = 10.0
"""Forms of one term that are really different from each other."""
LARGEST = 2
"""Terms of the forms that the discrepancy is measured against: larger ones bend to the points. One more where values
are exact."""
LEVELS = (1.0, 1 / 30, 1e-3, 1e-6)
"""Scatter of what was never repeated, in units of what is expected: as expected, or exact to so many digits."""


def configuration_variance(location: Location, kind: Kind) -> Array:
    """Relative variance (s,) of a configuration's value from noise alone; a weak guess where nothing was repeated."""
    count = np.maximum((location.repeats > 0).sum(axis=1), 1)
    repeats = location.repeats.sum(axis=1) / count
    noise = location.variance / np.where(repeats > 0, repeats, 1.0)
    guess = priors.BETWEEN_JOBS**2 if kind in ("time", "other") else SMALLEST**2
    return np.maximum(np.where(np.isnan(noise), guess, noise), SMALLEST**2)


def misfit(problem: Problem, screened: Screened, noise: Array, known: Array) -> tuple[Array, Array]:
    """Residual variance of the best small form over the variance of the noise, and its degrees of freedom (zero: none).

    What was never repeated may be as scattered as expected or exact: the scatter is that of :data:`LEVELS` under which
    the values are most likely, and what is exact may have a form of any size.
    """
    sizes = screened.sizes
    prior = np.clip(known, ALONE_FREEDOM, MOST_FREEDOM)
    small = sizes[None, :] <= LARGEST + problem.exact
    rows = np.arange(len(noise))
    best, top = np.zeros(len(noise), dtype=np.intp), np.full(len(noise), -np.inf)
    guessed = known == 0
    for level in LEVELS if guessed.any() else LEVELS[:1]:
        # The density of the variance before the data depends on the level, too.
        score = evidence(screened, problem.count, noise * level**2, prior) + (prior * np.log(level))[:, None]
        if level == 1:
            score = np.where(small, score, -np.inf)
        place = score.argmax(axis=1)
        better = (score[rows, place] > top) & (guessed | (level == 1))
        best, top = np.where(better, place, best), np.where(better, score[rows, place], top)
    freedom = (problem.count - sizes[best]).astype(np.float64)
    use = np.isfinite(top) & (freedom > 0)
    ratio = np.where(use, screened.residual[rows, best] / np.where(freedom > 0, freedom, 1.0) / noise, 1.0)
    return np.where(guessed & use, by_chance(freedom), 1.0) * ratio, np.where(use, freedom, 0.0)


def by_chance(freedom: Array) -> Array:
    """Factor (s,) by which the best of many forms is too near to values that leave so many degrees of freedom: the
    least of h chi-squared variables of nu degrees is smaller by about h^(2/nu)."""
    return np.asarray(CHOICES ** (2 / np.maximum(freedom, 1.0)))


def alone(problem: Problem, screened: Screened, noise: Array, known: Array) -> tuple[Array, Array]:
    """Prior of the variance around functions, v0, and its degrees of freedom d0, (s,).

    Repetitions give the noise. Where the best small hypothesis differs from the values by no more than that (F test),
    the noise is all there is, with the freedom that repetitions give it. Where it differs by more, or nothing was
    repeated, little is known.
    """
    ratio, freedom = misfit(problem, screened, noise, known)
    with np.errstate(invalid="ignore"):
        chance = special.fdtrc(np.maximum(freedom, 1.0), np.maximum(known, 1.0), ratio)
    trusted = (known > 0) & (freedom > 0) & (chance > STRAYS)
    # What was never repeated is as exact as it looks, at most as scattered as expected.
    looks = np.minimum(ratio, np.maximum(priors.BETWEEN_JOBS**2 / noise, 1.0))
    factor = np.where(known == 0, looks, np.where(trusted, 1.0, np.maximum(ratio, 1.0)))
    return noise * factor, np.where(trusted, np.clip(known, ALONE_FREEDOM, MOST_FREEDOM), ALONE_FREEDOM)
