"""Names of the types of arrays, quotients and logarithms of them where some have none, and tables over a column."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
Ints = NDArray[np.int64]


def ratio(part: ArrayLike, whole: ArrayLike, otherwise: ArrayLike = np.nan, where: ArrayLike | None = None) -> Array:
    """``part / whole``, broadcast, where the whole is above zero, or `where` that holds; `otherwise` elsewhere."""
    known = np.asarray(whole) > 0 if where is None else where
    return np.asarray(np.where(known, np.asarray(part) / np.where(known, whole, 1.0), otherwise))


def log(values: ArrayLike) -> Array:
    """``ln(values)`` without warnings: minus infinity of zero, NaN of what is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values))


def log_ratio(part: ArrayLike, whole: ArrayLike) -> Array:
    """``ln(part / whole)``, broadcast, without warnings: not finite where one is zero or both have not one sign."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.log(np.asarray(part) / np.asarray(whole)))


def along_column(points: Array, at: int, values: Array) -> tuple[Array, Array]:
    """The different numbers (x,) in one column of `points` (n, m), all different, and `values` (s, n) as a table
    (s, x, g) over them and over what the other columns have together; NaN where there is no such point."""
    x, of_x = np.unique(points[:, at], return_inverse=True)
    others, of_others = np.unique(np.delete(points, at, axis=1), axis=0, return_inverse=True)
    table = np.full((len(values), len(x), len(others)), np.nan)
    table[:, of_x, of_others.ravel()] = values
    return x, table
