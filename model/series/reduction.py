"""Reductions of repetitions and of ranks to one number; NaN is missing and is skipped."""

from __future__ import annotations

import warnings

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError

NAMES = ("mean", "median", "min", "max", "sum", "q1", "gmean", "midrange")


def reduce(values: Array, how: str, axis: int = -1) -> Array:
    """Reduce `values` along `axis`, skipping NaN; a slice without numbers gives NaN.

    `how` ({"mean", "median", "min", "max", "sum", "q1", "gmean", "midrange"}): first quartile and median interpolate
    linearly; the geometric mean of a slice with a value at or below zero is NaN, except that a zero among non-negative
    values gives zero. Raises InputError when `how` is unknown.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        if how == "mean":
            return np.asarray(np.nanmean(values, axis=axis))
        if how == "median":
            return median(values, axis)
        if how == "min":
            return np.asarray(np.nanmin(values, axis=axis))
        if how == "midrange":
            return np.asarray((np.nanmin(values, axis=axis) + np.nanmax(values, axis=axis)) / 2)
        if how == "max":
            return np.asarray(np.nanmax(values, axis=axis))
        if how == "sum":
            total = np.nansum(values, axis=axis)
            return np.where(np.isnan(values).all(axis=axis), np.nan, total)
        if how == "q1":
            return np.asarray(np.nanquantile(values, 0.25, axis=axis))
        if how == "gmean":
            return np.asarray(np.exp(np.nanmean(np.log(values), axis=axis)))
    raise InputError(f"no reduction is named {how!r}", f"known: {', '.join(NAMES)}")


def median(values: Array, axis: int = -1) -> Array:
    """The median of `values` along `axis`, skipping NaN; a slice without numbers gives NaN.

    numpy's own takes masked arrays for slices as short as repetitions are, and six times as long.
    """
    size = values.shape[axis]
    if not size:
        return np.full(np.delete(values.shape, axis), np.nan)
    ordered = np.sort(values, axis=axis)  # NaN last
    count = size - np.isnan(values).sum(axis=axis, keepdims=True)
    ends = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, size - 1)
    low, high = (np.take_along_axis(ordered, at, axis=axis) for at in ends)
    return np.asarray(np.squeeze((low + high) / 2, axis=axis))
