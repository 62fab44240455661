"""Times that fall as ideally as work is divided, and then hit a ceiling: what ranks share is full.

The cores of a memory domain divide its bandwidth. Up to s ranks it is no limit, from there on it is the time's:

    T(p) = c ((1/p)^k + (1/s)^k)^(1/k),

the sharper the larger k. The ranks after the last ones measured may fill the domain further, which brings nothing, or
bring domains of their own, which divides the time again. Sums of terms meet such a knee by a part that grows, and
foretell a growth that nothing showed, or by a break and a constant, and foretell that no rank will ever help again.

Ceilings of all k, and of all s (evenly in the logarithm) up to the cores that a domain may have, stand against the
functions of the search and against breaks (:mod:`ranksight.model.search.segments`) by their marginal likelihoods, with
the odds :data:`ranksight.model.search.regimes.RARE` before the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ranksight.core.metrics import Kind
from ranksight.model.search import leastsquares
from ranksight.model.search.problem import Problem
from ranksight.model.search.regimes import LEAST, RARE
from ranksight.model.search.search import CANCELLED, Screened, average, evidence, likelihood, shares
from ranksight.model.search.segments import Breaks
from ranksight.model.uncertainty.strong import IDEAL, Change

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST = 256
"""Ranks that share one memory domain at most: what bends beyond is held by messages or serial work."""
STEP = 0.03
"""Between logarithms of the ranks s that are tried: times follow s in proportion, and scatter by as much."""
SHARPNESS = np.geomspace(2.0, 16.0, 7)
"""Powers k: of what overlaps in part, up to what overlaps wholly."""
BELOW = 2
"""Values that show the fall to a ceiling."""


def full(
    points: Array, problem: Problem, positive: Mask, kind: Kind, whole: Screened, breaks: Breaks, v0: Array, d0: Array
) -> Array:
    """How likely times (s,) have hit a ceiling within the ranks measured.

    Parameters
    ----------
    points : (n, 1)
    problem, whole
        The series, and hypotheses without a ceiling on them.
    breaks : Breaks
        What else happens suddenly.
    v0, d0 : (s,)
        Prior of the relative variance, of each series by itself: where all have the same knee, all stray from every
        form, and what they have in common would call that usual.
    """
    chance, x = np.zeros(len(positive)), points[:, 0]
    if kind != "time" or (x <= 0).any() or x.min(initial=MOST) >= MOST:
        return chance
    rows = np.flatnonzero(positive & _bends(x, problem, np.sqrt(v0)))
    if not len(rows):
        return chance
    score = evidence(whole.part(rows), problem.count[rows], v0[rows], d0[rows])
    others = average(score, whole.prior)
    ceiling = _evidence(x, problem.part(rows), v0[rows], d0[rows])
    chance[rows] = np.nan_to_num(expit(RARE + ceiling - np.logaddexp(others, others + breaks.odds[rows])))
    return np.where(chance > LEAST, chance, 0.0)


def _bends(x: Array, problem: Problem, scatter: Array) -> Mask:
    """Which series (s,) fall as a ceiling allows: at least half as ideally from the first to the second value, and less
    than ideally from the first to the last, by what is left of the sharpest ceiling at the last one."""
    present = problem.weights > 0
    place = np.argsort(np.where(present, x, np.inf), axis=1)
    end = np.maximum(present.sum(axis=1) - 1, 0)
    place = np.stack([place[:, 0], place[:, min(1, len(x) - 1)], place[np.arange(len(end)), end]], axis=1)
    values = np.take_along_axis(problem.values, place, axis=1)
    at = np.log(x)[place]
    use = (end >= BELOW) & (values > 0).all(axis=1)
    y = np.log(np.where(use[:, None], values, 1.0))
    falls = y[:, 0] - y[:, 1] > (at[:, 1] - at[:, 0]) / 2 - 2 * scatter
    bends = (y + at)[:, 2] - (y + at)[:, 0] > np.log(2) / SHARPNESS[-1] - 2 * scatter
    return np.asarray(use & falls & bends)


def _evidence(x: Array, problem: Problem, v0: Array, d0: Array) -> Array:
    """Log marginal likelihoods (s,) of ceilings that the values could show, as a part of all; -inf where none could."""
    places = np.exp(np.arange(np.log(x.min()), np.log(min(x.max(), MOST)) + STEP, STEP))
    place, sharp = (each.reshape(-1) for each in np.meshgrid(places, SHARPNESS, indexing="ij"))
    shape = np.exp(np.logaddexp(-sharp[:, None] * np.log(x), -(sharp * np.log(place))[:, None]) / sharp[:, None])
    shape /= shape.max(axis=1, keepdims=True)
    solved = leastsquares.solve(shape[:, :, None], problem.weights, problem.values)
    fit = likelihood(solved.residual, np.ones((1, len(shape)), dtype=np.intp), problem.count, v0, d0, CANCELLED)
    fit = fit + np.log(2 * np.pi) / 2 - solved.determinant / 2 + shares(problem, shape)
    present = problem.weights > 0
    last = np.where(present, x, -np.inf).max(axis=1)
    seen = (present[:, None, :] & (x < place[:, None])).sum(axis=2) >= BELOW
    possible = seen & (place <= last[:, None]) & (solved.coefficients[..., 0] > 0) & np.isfinite(fit)
    every = len(SHARPNESS) * np.log(MOST) / STEP
    return np.asarray(logsumexp(np.where(possible, fit, -np.inf), axis=1) - np.log(every))


def between(high: float, ranks: Array, last: Array, chance: Array) -> Change:
    """What more ranks make of times that have hit a ceiling: anything between nothing and their ideal share.

    Parameters
    ----------
    high : float
        Most ranks measured.
    ranks : (1, k)
    last : (s, k)
        ln T there, other parameters as asked.
    chance : (s,)
        From :func:`full`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.log(ranks / high)
    use = (ahead > 0) & np.isfinite(ahead) & np.isfinite(last)
    ahead = np.where(use, ahead, 0.0)
    return Change(
        np.where(use, chance[:, None], 0.0),
        np.where(use, last, 0.0) + IDEAL / 2 * ahead,
        np.maximum(abs(IDEAL) / 2 * ahead, 1e-9),
    )
