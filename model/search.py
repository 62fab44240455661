"""The search: weight of every hypothesis given the data, and the few that carry it.

Errors are relative to the value: ``y_i = f(x_i) (1 + e_i)``, e normal with variance v. With coefficients uniform over
shares of the whole (what each term contributes at the point where it contributes most) and v scaled inverse
chi-squared with d0 degrees of freedom around v0, the marginal likelihood of a hypothesis with k terms on n points is

    ln M = k/2 ln 2 pi - 1/2 ln |G| + ln Gamma(nu/2) - nu/2 ln((RSS + d0 v0)/2),   nu = n - k + d0

with G the normal matrix of the terms scaled to shares (standard conjugate analysis: Gelman et al., *Bayesian Data Analysis*, 3rd ed., 14.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ranksight.model import leastsquares
from ranksight.model.noise import SMALLEST, Location
from ranksight.model.terms import Hypotheses, values
from scipy.special import gammaln

Array = NDArray[np.float64]

KEPT = 12
"""Hypotheses kept a series: those that carry the posterior weight."""


@dataclass(frozen=True)
class Found:
    """The hypotheses kept for each series.

    Attributes
    ----------
    chosen : (s, c) intp
        Index into the hypotheses, heaviest first; -1 where fewer were possible.
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


def prior_variance(location: Location, points: int) -> tuple[Array, Array]:
    """Variance v0 of a configuration's value around the true function, and its degrees of freedom d0, before the fit."""
    repeats = np.where(location.repeats > 0, location.repeats, np.nan)
    mean_repeats = np.nanmean(np.where(np.isnan(repeats).all(axis=1, keepdims=True), 1.0, repeats), axis=1)
    known = ~np.isnan(location.variance)
    base = np.where(known, location.variance, 0.0) / mean_repeats
    return np.maximum(base, SMALLEST**2), np.where(known, np.minimum(location.freedom, 4.0), 1.0)


def search(
    space: Hypotheses, points: Array, location: Location, *, positive: NDArray[np.bool_], kept: int = KEPT
) -> Found:
    """Weigh all hypotheses of `space` on all series and keep the heaviest.

    Parameters
    ----------
    space : Hypotheses
    points : (n, m)
    location : Location
        Values of s series at the points.
    positive : (s,) bool
        Series whose function must not fall below zero.
    """
    term_values = values(space.terms, points)
    usable_term = np.isfinite(term_values).all(axis=1) & (np.abs(term_values).max(axis=1, initial=0.0) > 0)
    shape = np.where(usable_term[:, None], term_values, 0.0)
    norm = np.where(usable_term, np.abs(shape).max(axis=1, initial=0.0), 1.0)
    shape = shape / norm[:, None]
    present = location.repeats > 0
    y = np.where(present, location.values, 0.0)
    relative = np.where(present, 1.0 / location.scale**2, 0.0)
    mean_repeats = np.maximum(location.repeats.sum(axis=1, keepdims=True), 1.0) / np.maximum(
        present.sum(axis=1, keepdims=True), 1
    )
    weights = relative * location.repeats / mean_repeats
    count = present.sum(axis=1)
    v0, d0 = prior_variance(location, len(points))
    # Largest share of each term, for the scale of its coefficient's prior.
    share = (np.sqrt(weights)[:, None, :] * np.abs(shape)[None, :, :]).max(axis=2, initial=0.0)
    log_share = np.log(np.where(share > 0, share, 1.0))
    evidence = np.full((len(y), len(space.members)), -np.inf)
    growing = (space.terms.sum(axis=1) > 0).any(axis=1)
    for size in np.unique(space.sizes):
        rows = np.flatnonzero(
            (space.sizes == size) & np.where(space.members >= 0, usable_term[space.members], True).all(axis=1)
        )
        if not len(rows) or size > len(points):
            continue
        members = space.members[rows, :size]
        solution = leastsquares.solve(np.moveaxis(shape[members], 1, 2), weights, y)
        nu = count[:, None] - size + d0[:, None]
        determinant = solution.determinant - 2 * log_share[:, members].sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_marginal = (
                size / 2 * np.log(2 * np.pi)
                - determinant / 2
                + gammaln(np.maximum(nu, 0.1) / 2)
                - nu / 2 * np.log((solution.residual + (d0 * v0)[:, None] + count[:, None] * SMALLEST**2) / 2)
            )
        negative = solution.coefficients < 0
        log_marginal -= 3.0 * negative[:, :, :-1].sum(axis=2)
        allowed = (count[:, None] > size) | (size == 1)
        # A function whose fastest growing term is negative turns negative somewhere.
        falls = negative[:, :, -1] & (growing[members[:, -1]][None, :] | (size == 1))
        allowed = allowed & ~(positive[:, None] & falls) & np.isfinite(log_marginal)
        evidence[:, rows] = np.where(allowed, log_marginal + space.prior[rows], -np.inf)
    return _keep(space, shape, norm, weights, y, count, v0, d0, evidence, positive, kept)


def _keep(
    space: Hypotheses,
    shape: Array,
    norm: Array,
    weights: Array,
    y: Array,
    count: NDArray[np.intp],
    v0: Array,
    d0: Array,
    evidence: Array,
    positive: NDArray[np.bool_],
    kept: int,
) -> Found:
    kept = min(kept, evidence.shape[1])
    top = np.argpartition(-evidence, kept - 1, axis=1)[:, :kept]
    score = np.take_along_axis(evidence, top, axis=1)
    order = np.argsort(-score, axis=1, kind="stable")
    top, score = np.take_along_axis(top, order, axis=1), np.take_along_axis(score, order, axis=1)
    possible = np.isfinite(score)
    members = np.where(possible[..., None], space.members[top], -1)
    used = members >= 0
    design = np.moveaxis(np.where(used[..., None], shape[members], 0.0), 2, 3)
    refined = leastsquares.refine(design, used, weights, y)
    size = used.sum(axis=2)
    # Positive at every measured point, too.
    fitted = np.einsum("scnk,sck->scn", design, refined.coefficients)
    present = (weights > 0)[:, None, :]
    possible &= ~(positive[:, None] & (present & (fitted <= 0)).any(axis=2) & (np.abs(y).max(axis=1) > 0)[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = np.exp(score - np.where(possible, score, -np.inf).max(axis=1, keepdims=True, initial=-np.inf))
        weight = np.where(possible, weight, 0.0)
        weight = weight / np.where(weight.sum(axis=1, keepdims=True) > 0, weight.sum(axis=1, keepdims=True), 1.0)
    freedom = np.maximum(count[:, None] - size + d0[:, None], 1.0)
    variance = (refined.residual + (d0 * v0)[:, None]) / freedom
    scale = np.where(used, norm[members], 1.0)
    order = np.argsort(-weight, axis=1, kind="stable")

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
