"""What functions may not do: turn negative, subtract parts of a whole, separate too many terms, explode unseen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.search.problem import Problem


def admissible(problem: Problem, coefficients: Array, terms: Index, unseen: Array) -> tuple[Mask, Array]:
    """Which solutions (s, h) respect the physics of their series, and what their negative coefficients and their growth
    cost.

    `coefficients` (s, h, k). `terms` (h, k) or (s, h, k): terms of the basis, the fastest growing last. `unseen` (s,
    h): growth that no point has shown (:func:`unseen`).
    """
    size = terms.shape[-1]
    negative = coefficients < 0
    any_negative = negative.any(axis=2)
    # A function whose fastest growing term is negative, the constant below what decays, turns negative somewhere.
    falls = negative[:, :, -1]
    allowed = problem.count[:, None] > size
    if size == 1:
        # One value determines the constant only.
        allowed = allowed | (problem.basis.factors_of(terms[..., 0]) == 0).all(axis=-1)
    allowed = allowed & ~(problem.positive[:, None] & falls)
    if size > 2:
        allowed &= ~(problem.parts[:, None] & any_negative)
    elif size == 2:
        # Parts of a time add up; only what a whole tends to (c - a/p) or starts from (a log p - c) may be negative: a
        # term that grows along an axis must there grow as the leading one does.
        grows = problem.basis.grows(terms)
        differs = ((grows[..., 0, :] != 0) & (grows[..., 0, :] != grows[..., 1, :])).any(axis=-1)
        same = (grows[..., 0, :] == grows[..., 1, :]).all(axis=-1) & (problem.basis.order(terms[..., 0]) > 0)
        allowed &= ~(problem.parts[:, None] & negative[:, :, 0] & (differs | same))
    # A parameter of n values distinguishes at most n - 2 ways of growth for each way of the other parameters, which
    # distinguish terms as well (n^3 / p and n^2); one is always considered.
    factors = problem.basis.factors_of(terms)
    for axis, count in enumerate(problem.levels.T):
        most = np.maximum(count - 2, 1)[:, None]
        if (size > most).any():
            allowed = allowed & (_per_others(factors, axis) <= most)
    doubt = priors.GROWTH_UNSEEN * problem.levels.shape[1] * max(size - 1, 1)
    return allowed, priors.NEGATIVE * negative.sum(axis=2) + doubt * unseen


def cancelling(coefficients: Array, log_share: Sequence[Array]) -> Array:
    """What coefficients (s, h, k) cost (s, h) whose terms exceed the whole.

    `log_share` (k arrays (s, h)): logarithm of the largest share that each term with a coefficient of one has at any
    point.
    """
    most = np.full(coefficients.shape[:2], -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k, share in enumerate(log_share):
            most = np.fmax(most, np.log(np.abs(coefficients[..., k])) + share)
    return np.asarray(priors.CANCELLING * np.fmax(most, 0.0))


def _per_others(factors: Index, axis: int) -> Index:
    """How many different factors (...) other than none terms (..., k, m) have along an axis at most, of those that are
    the same along the others."""
    others = np.delete(factors, axis, axis=-1)
    equal = (others[..., :, None, :] == others[..., None, :, :]).all(axis=-1)
    of_axis = np.where(equal, factors[..., None, :, axis], 0)
    return np.asarray(_distinct(of_axis).max(axis=-1))


def _distinct(numbers: Index) -> Index:
    """How many different numbers other than zero stand along the last axis."""
    order = np.zeros(numbers.shape[:-1], dtype=np.intp)
    for a in range(numbers.shape[-1]):
        new = numbers[..., a] != 0
        for b in range(a):
            new &= numbers[..., a] != numbers[..., b]
        order += new
    return order


def unseen(problem: Problem, coefficients: Array, ahead: Sequence[Array]) -> Array:
    """Growth (s, h) ahead, in e-folds, beyond what was seen along the same axis within the points.

    `coefficients` (s, h, k). `ahead` (k arrays (1 + m, s or 1, h)): each term at the largest values of all parameters,
    and farther along each of them (:meth:`ranksight.model.search.basis.Basis.ahead`).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        now, *farther = (
            np.abs(sum(coefficients[..., k] * term[corner] for k, term in enumerate(ahead)))
            for corner in range(len(ahead[0]))
        )
        total = np.zeros(coefficients.shape[:2])
        for axis, beyond in enumerate(farther):
            seen = now * np.exp(problem.rise[:, axis, None])
            total += np.log(np.fmax(beyond / seen, 1.0))
    return np.where(np.isfinite(total), total, 0.0)
