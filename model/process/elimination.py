"""Elimination of many small matrices at once, entry by entry, and by LAPACK where they are large."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array

LARGE = 32
"""Rows from which on a call of LAPACK a matrix is faster than steps over all matrices."""


def column_of(joint: Array, at: int) -> Array:
    """A column (m, ...) of symmetric matrices whose lower triangle is in `joint` (m, m, ...)."""
    return np.concatenate([joint[at, :at], joint[at:, at]])


def mirrored(joint: Array) -> None:
    """Fill the upper triangle of symmetric matrices (m, m, ...)."""
    for at in range(len(joint)):
        joint[:at, at] = joint[at, :at]


TOGETHER = 4096
"""Matrices at once: those of few rows stay in a core's cache, and a step takes longer than its call."""


def in_cache(joint: Array) -> list[slice]:
    """Parts of :data:`TOGETHER` of matrices (m, m, f)."""
    return [slice(start, start + TOGETHER) for start in range(0, joint.shape[2], TOGETHER)]


def swept(joint: Array, count: int, least: float) -> Array:
    """Sweep the first `count` pivots of positive definite matrices in place, of which the lower triangles are in
    `joint` (m, m, f); the logarithm of the product of the pivots (f,), none of them smaller than `least`.

    What was swept then holds minus the inverse; the last row, the solution; the rest, the Schur complement.
    Elimination without pivoting is stable for positive definite matrices (Higham, *Accuracy and Stability of Numerical
    Algorithms*, 10.1), and for few rows many times faster than a call a matrix: its steps are operations on whole
    arrays, entry by entry of all matrices.
    """
    log_determinant = np.zeros(joint.shape[2:])
    for at in range(count):
        pivot = np.maximum(joint[at, at], least)
        log_determinant += np.log(pivot)
        column = column_of(joint, at)
        row = column / pivot
        for place, factor in enumerate(column):
            if place != at:
                joint[place, : place + 1] -= factor * row[: place + 1]
        joint[at, :at] = row[:at]
        joint[at:, at] = row[at:]
        joint[at, at] = -1 / pivot
    return log_determinant


def inverses(total: Array, least: float) -> tuple[Array, Array]:
    """Inverses (k, n, n) and logarithms of the determinants (k,) of positive definite matrices (n, n, k), which are
    overwritten; no pivot is taken for smaller than `least`."""
    count = len(total)
    if count >= LARGE:
        each = np.ascontiguousarray(np.moveaxis(total, 2, 0))
        return np.asarray(np.linalg.inv(each), dtype=np.float64), log_determinants(each)
    parts = [swept(total[:, :, part], count, least) for part in in_cache(total)]
    mirrored(total)
    return np.negative(np.moveaxis(total, 2, 0), order="C"), np.concatenate(parts or [np.empty(0)])


def log_determinants(total: Array) -> Array:
    """Logarithms of the determinants (k,) of positive definite matrices (k, n, n)."""
    return np.asarray(2 * np.log(np.einsum("knn->kn", np.linalg.cholesky(total))).sum(axis=1))
