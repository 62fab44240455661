"""What remains between functions and values beyond the noise: learned from all series of a metric together.

No hypothesis of a search space is exact. The distance of series from their best hypothesis, beyond what their
repetitions explain, estimates this error; a batch estimates it better than a series of five points.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import Screened, evidence
from ranksight.model.series.noise import SMALLEST, Location, moderate

ALONE_FREEDOM = 2.0
"""Degrees of freedom of the prior when there are too few series to learn it."""
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
ROUNDS = 20
"""Of expectation maximisation."""
MOST = 0.1**2
"""Relative variance beyond which the discrepancy of others is not scatter but a form outside the hypothesis space."""


def configuration_variance(location: Location, kind: Kind) -> Array:
    """Relative variance (s,) of a configuration's value from noise alone; a weak guess where nothing was repeated."""
    count = np.maximum((location.repeats > 0).sum(axis=1), 1)
    repeats = location.repeats.sum(axis=1) / count
    noise = location.variance / np.where(repeats > 0, repeats, 1.0)
    guess = priors.BETWEEN_JOBS**2 if kind in ("time", "other") else SMALLEST**2
    return np.maximum(np.where(np.isnan(noise), guess, noise), SMALLEST**2)


def learn(problem: Problem, screened: Screened, noise: Array, known: Array) -> tuple[float, float] | None:
    """Factor on the variance of the noise, at least one, and degrees of freedom of the total variance around functions;
    None when there are too few series to learn from.

    `noise` (s,): from :func:`configuration_variance`. `known` (s,): degrees of freedom behind it.
    """
    ratio, freedom = misfit(problem, screened, noise, known)
    # Repetitions show by themselves what noise is, but say nothing of forms where the choice takes all the freedom.
    ratio = np.where((known > 0) & (freedom <= priors.DISCREPANCY_CHOSEN), by_chance(freedom), 1.0) * ratio
    prior, factor = moderate(np.where(freedom > 0, ratio, 0.0), freedom)
    if prior <= 0:
        return None
    # Noise estimated from repetitions is a lower bound; a guess is none.
    least = 1.0 if (known > 0).any() else 0.0
    return max(factor, least), max(prior, 1.0)


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
    """Variance v0 and degrees of freedom d0 (s,) of series that have no others to learn from.

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


SCALES = np.array([1e-5, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25])
"""Standard deviations of the discrepancy that are tried, 1."""
CERTAIN = 1e6
"""Degrees of freedom of what is known."""


def scale(ratio: Array, freedom: Array, noise: Array, known: Array, law: Array | None) -> tuple[Array, Array]:
    """Standard deviation (s,) of the discrepancy of each series, and its law (g,) over all series (empirical Bayes).

    The residual variance around a form, on nu degrees of freedom, is that of the noise and of the discrepancy,
    ``s^2 / (n^2 + d^2) ~ F(nu, m)``, with m the degrees of freedom that the noise is known with.

    Parameters
    ----------
    ratio, freedom : (s,)
        Residual variance of the best hypothesis over that of the noise, and its degrees of freedom.
    noise, known : (s,)
        Variance of a configuration's value from noise alone, and its degrees of freedom; zero where nothing was
        repeated, and all that is left may be discrepancy.
    law : (g,), optional
        The law where it was learned from other series of the metric before.
    """
    freedom = freedom - priors.DISCREPANCY_CHOSEN
    use, squares = (freedom > 0) & np.isfinite(ratio), ratio * noise
    noise, known = np.where(known > 0, noise, SMALLEST**2), np.where(known > 0, known, CERTAIN)
    nu, total = np.maximum(freedom, 1.0)[:, None], noise[:, None] + SCALES**2
    part = (noise[:, None] / total) ** 2
    m = np.minimum(known[:, None] / np.maximum(part, 1e-6), CERTAIN)
    x = np.maximum(squares, SMALLEST**2)[:, None] / total
    with np.errstate(divide="ignore", invalid="ignore"):
        density = (nu / 2 - 1) * np.log(x) - (nu + m) / 2 * np.log1p(nu * x / m) + nu / 2 * np.log(nu / m)
        density += special.gammaln((nu + m) / 2) - special.gammaln(nu / 2) - special.gammaln(m / 2) - np.log(total)
    density = np.where(use[:, None], density, 0.0)
    if law is None:
        step = np.gradient(SCALES)
        before = step / (1 + (SCALES / priors.DISCREPANCY) ** 2 / 3) ** 2
        law = common_law(density, before / before.sum(), priors.WORTH)
    return law_of_each(density, law) @ SCALES, law


def common_law(density: Array, prior: Array, pseudo: float) -> Array:
    """The law (g,) that series have in common, from log-densities (s, g) of what each shows (empirical Bayes, by
    expectation maximisation).

    `density` (s, g): all zero for series that show nothing; each of the others counts as one. `prior` (g,): the law
    before the data, which counts for `pseudo` series.
    """
    density = density[density.any(axis=1)]
    if not len(density):
        return prior
    likelihood = np.exp(density - density.max(axis=1, keepdims=True))
    law = prior
    for _ in range(ROUNDS):
        law = (pseudo * prior + _shares(likelihood, law).sum(axis=0)) / (pseudo + len(density))
    return law


def law_of_each(density: Array, law: Array) -> Array:
    """The law (s, g) of each series, its own log-densities (s, g) included."""
    return _shares(np.exp(density - density.max(axis=1, keepdims=True)), law)


def _shares(likelihood: Array, law: Array) -> Array:
    share = likelihood * law
    return np.asarray(share / share.sum(axis=1, keepdims=True))
