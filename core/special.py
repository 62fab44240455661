"""Special functions: few of them here, all others from scipy, which is imported when one of those is needed.

Importing :mod:`scipy.special` takes longer than a prediction. The normal distribution, from Python's own library, and
sums of logarithms, which every prediction needs, are therefore here::

    from ranksight.core import special

    special.ndtri(0.95)  # does not import scipy
    special.gammaln(5.0)  # imports it on the first call
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.arrays import Array

MANY = 100_000
"""Probabilities at once from which on scipy's quantiles are faster, their import included."""
STANDARD = NormalDist()
LEAST = -35.0
"""Deviations below which the distribution function is zero in double precision, and its logarithm is finite."""


@overload
def ndtr(z: float) -> float: ...
@overload
def ndtr(z: Array) -> Array: ...
def ndtr(z: float | Array) -> float | Array:
    """The standard normal distribution function."""
    if isinstance(z, np.ndarray):
        if z.size >= MANY or "scipy.special" in sys.modules:
            return np.asarray(__getattr__("ndtr")(z))
        return _tails(z) / 2
    return np.float64(math.erfc(-z / math.sqrt(2)) / 2)  # as scipy: a float would not widen short numbers


@overload
def ndtri(probability: float) -> float: ...
@overload
def ndtri(probability: Array) -> Array: ...
def ndtri(probability: float | Array) -> float | Array:
    """Quantiles of the standard normal distribution; infinite at 0 and 1, NaN outside of them."""
    if not isinstance(probability, np.ndarray):
        return _quantile(probability)
    if probability.size >= MANY or "scipy.special" in sys.modules:
        return np.asarray(__getattr__("ndtri")(probability))
    return np.fromiter(map(_quantile, probability.ravel().tolist()), np.float64).reshape(probability.shape)


def _quantile(probability: float) -> float:
    if 0 < probability < 1:
        return STANDARD.inv_cdf(probability)
    return {0.0: -math.inf, 1.0: math.inf}.get(probability, math.nan)


def log_ndtr(z: Array) -> Array:
    """Logarithm of the standard normal distribution function."""
    if z.size >= MANY or "scipy.special" in sys.modules or (z.size and float(z.min()) < LEAST):
        return np.asarray(__getattr__("log_ndtr")(z))
    return np.asarray(np.log(_tails(z) / 2))


def _tails(z: Array) -> Array:
    """Twice the distribution function."""
    return np.fromiter(map(math.erfc, (-z / math.sqrt(2)).ravel().tolist()), np.float64, z.size).reshape(z.shape)


def logsumexp(values: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Any:
    """Logarithm of the sum of the exponentials of `values` along `axis`, or of all; of nothing it is minus infinity."""
    given = np.asarray(values, dtype=np.float64)
    most = np.max(given, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        found = np.log(np.exp(given - shift).sum(axis=axis, keepdims=True)) + shift
    return found if keepdims else np.squeeze(found, axis=axis)[()]


def __getattr__(name: str) -> Any:
    import scipy.special

    return getattr(scipy.special, name)
