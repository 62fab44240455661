"""The search: how well every hypothesis explains every series, and the few that carry the weight.

Errors are relative to the value: ``y_i = f(x_i) (1 + e_i)``, e normal with variance v. With coefficients uniform over
shares of the whole (what each term contributes at the point where it contributes most) and v scaled inverse
chi-squared with d0 degrees of freedom around v0, the marginal likelihood of a hypothesis with k terms on n points is

    ln M = k/2 ln 2 pi - 1/2 ln |G| + ln Gamma(nu/2) - nu/2 ln((RSS + d0 v0)/2),   nu = n - k + d0

with G the normal matrix of the terms scaled to shares (standard conjugate analysis: Gelman et al., *Bayesian Data
Analysis*, 3rd ed., 14.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ranksight.metrics import Kind
from ranksight.model import leastsquares
from ranksight.model.noise import SMALLEST, Location
from ranksight.model.terms import Hypotheses, values

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

KEPT = 16
"""Hypotheses kept a series: those that carry the posterior weight."""
NEGATIVE = 3.0
"""What a negative coefficient costs in logarithms of odds; parts of a whole rarely subtract."""


@dataclass(frozen=True)
class Problem:
    """Series and terms, scaled for solving.

    Attributes
    ----------
    shape : (t, n)
        Terms at the points, at most one in size; zero for those that have no value somewhere.
    norm : (t,)
        ``term = norm * shape``.
    usable : (t,) bool
    weights, values : (s, n)
        Relative weights, zero where missing.
    count : (s,)
        Points of each series.
    positive : (s,) bool
        Series whose function must stay above zero.
    parts : (s,) bool
        Series whose terms add up as parts of a whole, like times.
    """

    shape: Array
    norm: Array
    usable: Mask
    weights: Array
    values: Array
    count: NDArray[np.intp]
    positive: Mask
    parts: Mask


@dataclass(frozen=True)
class Screened:
    """Sums of squares of all hypotheses on all series, and what else enters their likelihood.

    Attributes
    ----------
    residual : (s, h)
        Relative residual sum of squares.
    offset : (s, h)
        Prior, determinant and penalties; -inf where the hypothesis is impossible.
    """

    residual: Array
    offset: Array


@dataclass(frozen=True)
class Found:
    """The hypotheses kept for each series.

    Attributes
    ----------
    chosen : (s, c) intp
        Index into the hypotheses, the leading one first; -1 where fewer were possible.
    weight : (s, c)
        Posterior weights, adding up to one (zero where nothing could be fitted).
    coefficients : (s, c, q)
    root : (s, c, q, q)
        See :class:`ranksight.model.leastsquares.Refined`.
    variance : (s, c)
        Relative variance of a value around the function.
    freedom : (s, c)
        Its degrees of freedom.
    press, residual : (s, c)
        Mean squared relative leave-one-out error; sum of squared relative residuals.
    """

    chosen: NDArray[np.intp]
    weight: Array
    coefficients: Array
    root: Array
    variance: Array
    freedom: Array
    press: Array
    residual: Array


def pose(space: Hypotheses, points: Array, location: Location, positive: Mask, kind: Kind) -> Problem:
    """Evaluate terms at the points and weigh the values."""
    at = values(space.terms, points)
    usable = np.isfinite(at).all(axis=1) & (np.abs(at).max(axis=1, initial=0.0) > 0)
    shape = np.where(usable[:, None], at, 0.0)
    norm = np.where(usable, np.abs(shape).max(axis=1, initial=0.0), 1.0)
    present = location.repeats > 0
    count = present.sum(axis=1)
    mean_repeats = location.repeats.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None]
    weights = np.where(
        present, location.repeats / np.where(mean_repeats > 0, mean_repeats, 1.0) / location.scale**2, 0.0
    )
    return Problem(
        shape / norm[:, None],
        norm,
        usable,
        weights,
        np.where(present, location.values, 0.0),
        count,
        positive,
        positive & (kind in ("time", "other", "state")),
    )


def screen(space: Hypotheses, problem: Problem) -> Screened:
    """Solve all hypotheses on all series."""
    shape, weights = problem.shape, problem.weights
    share = np.sqrt((weights[:, None, :] * shape[None, :, :] ** 2).max(axis=2, initial=0.0))
    log_share = np.log(np.where(share > 0, share, 1.0))
    residual = np.full((len(weights), len(space.members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    growing = (space.terms.sum(axis=1) > 0).any(axis=1)
    usable = np.where(space.members >= 0, problem.usable[space.members], True).all(axis=1)
    for size in np.unique(space.sizes):
        rows = np.flatnonzero((space.sizes == size) & usable)
        if not len(rows) or size > shape.shape[1]:
            continue
        members = space.members[rows, :size]
        solution = leastsquares.solve(np.moveaxis(shape[members], 1, 2), weights, problem.values)
        negative = solution.coefficients < 0
        # A function whose fastest growing term is negative turns negative somewhere.
        falls = negative[:, :, -1] & (growing[members[:, -1]][None, :] | (size == 1))
        # Parts of a time add up; only what a whole tends to (c - a/p) or starts from (a log p - c) may be negative.
        inner = (negative & growing[members][None, :, :]).any(axis=2) | (negative.any(axis=2) & (size > 2))
        allowed = (problem.count[:, None] > size) | (size == 1)
        allowed = allowed & ~(problem.positive[:, None] & falls) & np.isfinite(solution.residual)
        allowed = allowed & ~(problem.parts[:, None] & inner)
        determinant = solution.determinant
        for a in range(size):
            determinant = determinant - 2 * log_share[:, members[:, a]]
        known = space.prior[rows] + size / 2 * np.log(2 * np.pi) - NEGATIVE * negative.sum(axis=2)
        residual[:, rows] = solution.residual
        offset[:, rows] = np.where(allowed, known - determinant / 2, -np.inf)
    return Screened(residual, offset)


def evidence(space: Hypotheses, screened: Screened, count: NDArray[np.intp], v0: Array, d0: Array) -> Array:
    """Log marginal likelihoods (s, h) of all hypotheses, given the prior of the variance (s,)."""
    nu = np.maximum(count[:, None] - space.sizes[None, :] + d0[:, None], 0.5)
    floor = (d0 * v0 + count * SMALLEST**2)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return screened.offset + gammaln(nu / 2) - nu / 2 * np.log((screened.residual + floor) / 2)


def keep(space: Hypotheses, problem: Problem, evidence: Array, v0: Array, d0: Array, kept: int = KEPT) -> Found:
    """Solve the heaviest hypotheses again, to full precision, and weigh them."""
    kept = min(kept, evidence.shape[1])
    top = np.argpartition(-evidence, kept - 1, axis=1)[:, :kept]
    score = np.take_along_axis(evidence, top, axis=1)
    possible = np.isfinite(score)
    members = np.where(possible[..., None], space.members[top], -1)
    used = members >= 0
    design = np.moveaxis(np.where(used[..., None], problem.shape[members], 0.0), 2, 3)
    refined = leastsquares.refine(design, used, problem.weights, problem.values)
    size = used.sum(axis=2)
    # Positive at every measured point, too.
    fitted = np.einsum("scnk,sck->scn", design, refined.coefficients)
    below = ((problem.weights > 0)[:, None, :] & (fitted <= 0)).any(axis=2)
    possible &= ~(problem.positive[:, None] & below & (np.abs(problem.values).max(axis=1) > 0)[:, None])
    best = np.where(possible, score, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    weight = np.where(possible, np.exp(score - np.where(np.isfinite(best), best, 0.0)), 0.0)
    total = weight.sum(axis=1, keepdims=True)
    weight = weight / np.where(total > 0, total, 1.0)
    freedom = np.maximum(problem.count[:, None] - size + d0[:, None], 1.0)
    variance = (refined.residual + (d0 * v0)[:, None]) / freedom
    scale = np.where(used, problem.norm[members], 1.0)
    order = np.argsort(-_precedence(space, top, weight), axis=1, kind="stable")

    def sort(array: Array) -> Array:
        return np.take_along_axis(array, order.reshape(order.shape + (1,) * (array.ndim - 2)), axis=1)

    return Found(
        np.where(sort(weight) > 0, np.take_along_axis(top, order, axis=1), -1),
        sort(weight),
        sort(refined.coefficients / scale),
        sort(refined.root / scale[..., :, None]),
        sort(np.where(np.isfinite(variance), variance, np.inf)),
        sort(freedom),
        sort(refined.press),
        sort(refined.residual),
    )


def _precedence(space: Hypotheses, top: NDArray[np.intp], weight: Array) -> Array:
    """Order of the hypotheses kept: the leading one is the heaviest within the neighbourhood of most weight.

    The neighbourhood of a hypothesis are those whose fastest growing term has the same exponents within a quarter: single
    hypotheses next to each other split their weight, and the heaviest alone may lie apart from most of it.
    """
    last = np.take_along_axis(space.members, (space.sizes - 1)[:, None], axis=1)[:, 0]
    exponent = space.terms[last][:, :, 0][top]
    near = (np.abs(exponent[:, :, None, :] - exponent[:, None, :, :]) <= 0.25 + 1e-9).all(axis=3)
    around = (near * weight[:, None, :]).sum(axis=2)
    # Sort by the heaviest neighbourhood's members first, then by weight.
    centre = np.where(weight > 0, around, -1.0).argmax(axis=1)
    within = np.take_along_axis(near, centre[:, None, None], axis=1)[:, 0]
    return weight + 2.0 * (within & (weight > 0))
