"""Segments: a change of behaviour within the range measured.

A cache that no longer fits, a protocol that switches, a node boundary: below and above, the function is another one.
Every
place between two values of the parameter is tried as a break, both sides with forms of one term, and compared with
the whole
by the marginal likelihood of :mod:`ranksight.model.search.screening` with one variance for both sides,

    ln M = sum of both sides' priors and determinants + ln Gamma(nu/2) - nu/2 ln((RSS_l + RSS_r + d0 v0)/2) -
    ln(places).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind
from ranksight.model.search import leastsquares
from ranksight.model.search.offer import Listed
from ranksight.model.search.screening import CANCELLED, Screened, average, evidence, likelihood
from ranksight.model.search.terms import ONE, Factor, hypotheses
from ranksight.model.series.noise import Location

SURE = 4.0
"""Logarithm of the odds that a break must have: below one false alarm in fifty smooth series of 7 to 15 points."""
LEFT, RIGHT = 3, 4
"""Least points below and above a break; what is extrapolated needs more."""
_SIDE: tuple[Factor, ...] = tuple((n / 4, 0.0, 0.0) for n in range(-8, 13) if n) + tuple(
    (i, j, 0.0) for i in (0.0, 0.5, 1.0, 1.5, 2.0) for j in (1.0, 2.0)
)


@lru_cache(maxsize=1)
def _forms() -> Listed:
    forms: list[tuple[tuple[Factor, ...], ...]] = [((ONE,),)]
    for factor in _SIDE:
        forms += [((factor,),), ((ONE,), (factor,))]
    prior = np.zeros(len(forms))
    return Listed(hypotheses(forms, list(prior - np.log(len(forms)))))


def find(points: Array, location: Location, positive: Mask, kind: Kind, whole: Screened, v0: Array, d0: Array) -> Array:
    """Value of the parameter (s,) at which the behaviour of each series changes, NaN where it does not.

    `points` (n, 1). `whole`: hypotheses without a break. `v0`, `d0` (s,): prior of the relative variance.
    """
    x = points[:, 0]
    present = location.repeats > 0
    count = present.sum(axis=1)
    if count.max(initial=0) < LEFT + RIGHT:
        return np.full(len(count), np.nan)
    none = average(evidence(whole, count, v0, d0), whole.prior)
    none = np.logaddexp(none, _smooth(x, location, positive, count, v0, d0))
    values = np.unique(x)
    places = (values[1:] + values[:-1]) / 2 if (values <= 0).any() else np.sqrt(values[1:] * values[:-1])
    odds = np.full((len(count), len(places)), -np.inf)
    for number, place in enumerate(places):
        left, right = present & (x < place), present & (x > place)
        enough = (left.sum(axis=1) >= LEFT) & (right.sum(axis=1) >= RIGHT)
        rows = np.flatnonzero(enough)
        if len(rows):
            sides = [_sides(points, location.part(rows), side[rows], positive[rows], kind) for side in (left, right)]
            odds[rows, number] = _split(sides, count[rows], v0[rows], d0[rows]) - none[rows] - np.log(len(places))
    if not len(places):
        return np.full(len(count), np.nan)
    top = odds.max(axis=1)
    return np.where(top > SURE, places[odds.argmax(axis=1)], np.nan)


def _smooth(x: Array, location: Location, positive: Mask, count: Index, v0: Array, d0: Array) -> Array:
    """Log marginal likelihood (s,) of a curve that bends without breaking: a polynomial of log y in log x, by its BIC.

    No search space holds every smooth function; a break must be sharper than a polynomial can be.
    """
    present = location.repeats > 0
    best = np.full(len(count), -np.inf)
    if (x <= 0).any() or not positive.any():
        return best
    place = np.log(x)
    place = (2 * place - place.max() - place.min()) / max(float(np.ptp(place)), 1e-300)
    use = present & positive[:, None] & (np.where(present, location.values, 0.0) > 0)
    y = np.log(np.where(use, location.values, 1.0))
    for degree in (3, 4):
        design = np.polynomial.chebyshev.chebvander(place, degree)[None]
        solved = leastsquares.solve(design, use.astype(np.float64), y)
        size = np.array([[degree + 1]])
        fit = likelihood(solved.residual, size, count, v0, d0, CANCELLED)[:, 0]
        score = fit - (degree + 1) / 2 * np.log(np.maximum(count, 2))
        enough = use.all(axis=1, where=present) & (count > degree + 1) & np.isfinite(score)
        best = np.where(enough, np.fmax(best, score), best)
    return best


def _sides(points: Array, location: Location, side: Mask, positive: Mask, kind: Kind) -> dict[int, tuple[Array, Array]]:
    """For each number of terms the least residual sum of squares (s,) on one side, and the offset of that form."""
    side_location = replace(location, repeats=np.where(side, location.repeats, 0.0))
    _, screened = _forms().screen(points, side_location, positive, kind)
    rows = np.arange(len(side))
    solved = {}
    for size in (1, 2):
        fits = (screened.sizes == size)[None, :] & np.isfinite(screened.offset)
        residual = np.where(fits, screened.residual, np.inf)
        chosen = residual.argmin(axis=1)
        solved[size] = residual[rows, chosen], np.where(fits.any(axis=1), screened.offset[rows, chosen], -np.inf)
    return solved


def _split(sides: list[dict[int, tuple[Array, Array]]], count: Index, v0: Array, d0: Array) -> Array:
    """Log marginal likelihood (s,) of the best pair of forms."""
    left, right = sides
    best = np.full(len(count), -np.inf)
    for a, (residual_a, offset_a) in left.items():
        for b, (residual_b, offset_b) in right.items():
            joint = likelihood((residual_a + residual_b)[:, None], np.array([[a + b]]), count, v0, d0, CANCELLED)[:, 0]
            with np.errstate(invalid="ignore"):
                score = offset_a + offset_b + joint
            best = np.fmax(best, np.where(np.isnan(score), -np.inf, score))
    return best
