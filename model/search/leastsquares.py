"""Relative least squares of many hypotheses on many series at once.

All hypotheses share their design matrices over series, so normal equations are products of matrices, and systems of up
to three unknowns are solved in closed form, element by element (no loop over series or hypotheses).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass


@dataclass(frozen=True)
class Solution:
    """Coefficients and residuals of h hypotheses of k terms on s series."""

    coefficients: Array  # (s, h, k)
    residual: Array  # (s, h): weighted sum of squared residuals, at least zero
    determinant: Array  # (s, h): logarithm of the determinant of the normal matrix; -inf where it is singular


def solve(design: Array, weights: Array, values: Array) -> Solution:
    """Minimise ``sum_i w_i (y_i - sum_a c_a X_ia)^2`` for every hypothesis and series.

    `design` (h, n, k): columns should be of order one. `weights` and `values` (s, n): a weight of zero leaves a point
    out.
    """
    unknowns = design.shape[2]
    weighted = weights * values
    pairs = {
        (a, b): weights @ np.ascontiguousarray((design[:, :, a] * design[:, :, b]).T)
        for a in range(unknowns)
        for b in range(a + 1)
    }
    right = [weighted @ np.ascontiguousarray(design[:, :, a].T) for a in range(unknowns)]
    return cholesky(pairs, right, (weighted * values).sum(axis=1))


def cholesky(pairs: Mapping[tuple[int, int], Array], right: Sequence[Array], total: Array) -> Solution:
    """Solve normal equations element by element.

    `pairs` (mapping of (a, b <= a) to (s, h)): entries of X'WX. `right` (sequence of (s, h)): entries of X'Wy. `total`
    (s,): y'Wy.
    """
    unknowns = len(right)
    lower: dict[tuple[int, int], Array] = {}
    forward: list[Array] = []
    product = np.ones_like(right[0])
    explained = np.zeros_like(product)
    with np.errstate(divide="ignore", invalid="ignore"):
        for a in range(unknowns):
            pivot = pairs[a, a]
            for c in range(a):
                pivot = pivot - lower[a, c] ** 2
            pivot = np.where(pivot > 1e-13 * pairs[a, a], pivot, np.nan)
            root = np.sqrt(pivot)
            lower[a, a] = root
            for b in range(a + 1, unknowns):
                rest = pairs[b, a]
                for c in range(a):
                    rest = rest - lower[b, c] * lower[a, c]
                lower[b, a] = rest / root
            step = right[a]
            for c in range(a):
                step = step - lower[a, c] * forward[c]
            step = step / root
            forward.append(step)
            product *= pivot
            explained += step**2
        solved: list[Array] = [forward[-1]] * unknowns
        for a in reversed(range(unknowns)):
            back = forward[a]
            for c in range(a + 1, unknowns):
                back = back - lower[c, a] * solved[c]
            solved[a] = back / lower[a, a]
        determinant = np.log(product)
    singular = ~np.isfinite(determinant)
    residual = np.where(singular, np.inf, np.maximum(total[:, None] - explained, 0.0))
    # Term by term in memory, as they are looked at.
    return Solution(np.moveaxis(np.stack(solved), 0, 2), residual, np.where(singular, -np.inf, determinant))


@dataclass(frozen=True)
class Refined:
    """Chosen hypotheses solved again, to full precision."""

    coefficients: Array  # (s, c, k): zero for padded terms
    root: Array  # (s, c, k, k): triangular R^-1 with ``(X'WX)^-1 = R^-1 R^-T``
    residual: Array  # (s, c): weighted sum of squared residuals
    press: Array  # (s, c)
    """Mean squared leave-one-out residual, ``mean_i w_i (r_i / (1 - h_ii))^2``; infinite when a point decides alone."""


def refine(design: Array, used: Mask, weights: Array, values: Array) -> Refined:
    """Solve by QR decomposition, which keeps the digits that normal equations lose.

    Gram and Schmidt's, of all hypotheses at once; twice is enough (Giraud, Langou and Rozloznik 2005, *Computers and
    Mathematics with Applications* 50, 1069).

    `design` (s, c, n, k): zero in padded columns. `used` (s, c, k): which columns are terms. `weights`, `values` (s,
    n).
    """
    unknowns = design.shape[3]
    # Points first in memory: sums over them are then sums of whole arrays.
    root_weight = np.sqrt(weights).T[:, :, None]
    scaled = np.ascontiguousarray(np.moveaxis(design, (3, 2), (0, 1))) * root_weight
    target = np.where(weights > 0, values, 0.0).T[:, :, None] * root_weight
    r = np.zeros((unknowns, unknowns, *design.shape[:2]))
    q = np.empty_like(scaled)
    for k in range(unknowns):
        rest = scaled[k]
        for _ in range(2 if k else 0):
            for j in range(k):
                along = (q[j] * rest).sum(axis=0)
                r[j, k] += along
                rest = rest - along * q[j]
        size = np.sqrt((rest**2).sum(axis=0))
        r[k, k] = np.where(used[..., k], size, 1.0)
        q[k] = rest / np.where(size > 0, size, 1.0)
    diagonal = np.stack([r[k, k] for k in range(unknowns)])
    bad = (diagonal <= 1e-12 * np.maximum(diagonal.max(axis=0), 1e-300)).any(axis=0)
    inverse = _inverse(np.where(bad, np.eye(unknowns)[:, :, None, None], r))
    projected = (q * target).sum(axis=1)
    coefficients = np.where(np.moveaxis(used, 2, 0), (inverse * projected).sum(axis=1), 0.0)
    residuals = target - (scaled * coefficients[:, None]).sum(axis=0)
    leverage = (q**2).sum(axis=0)
    present = (weights > 0).T[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left_out = np.where(leverage < 1 - 1e-9, residuals / (1 - leverage), np.inf)
        press = np.where(present, left_out**2, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    residual = np.where(bad, np.inf, (residuals**2).sum(axis=0))
    mask = used[..., :, None] & used[..., None, :]
    return Refined(
        np.moveaxis(coefficients, 0, 2),
        np.where(mask, np.moveaxis(inverse, (0, 1), (2, 3)), 0.0),
        residual,
        np.where(bad, np.inf, press),
    )


def _inverse(r: Array) -> Array:
    """Inverses of upper triangular matrices (k, k, ...), element by element."""
    inverse = np.zeros_like(r)
    for k in range(len(r)):
        inverse[k, k] = 1 / r[k, k]
        for j in range(k):
            inverse[j, k] = -(inverse[j, j:k] * r[j:k, k]).sum(axis=0) / r[k, k]
    return inverse
