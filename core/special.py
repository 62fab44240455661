"""Special functions: few of them here, all others from scipy, which is imported when one of those is needed.

Importing :mod:`scipy.special` takes longer than a prediction. The normal distribution, from Python's own library, and
sums of logarithms, which every prediction needs, are therefore here::

    from ranksight.core import special

    special.ndtri(0.95)  # does not import scipy
    special.gammaln(5.0)  # imports its compiled functions on the first call

A fit needs scipy's functions, and nothing of what the package puts around them, which takes 20 times as long to import
as they do.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from functools import cache
from statistics import NormalDist
from types import ModuleType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.arrays import Array

MANY = 1_500
"""Probabilities at once from which on scipy's quantiles are used, even if they must be imported for it."""
STANDARD = NormalDist()


@overload
def ndtr(z: float) -> float: ...
@overload
def ndtr(z: Array) -> Array: ...
def ndtr(z: float | Array) -> float | Array:
    """The standard normal distribution function; scipy's of arrays, which few commands need."""
    if isinstance(z, np.ndarray):
        return np.asarray(__getattr__("ndtr")(z))
    return np.float64(math.erfc(-z / math.sqrt(2)) / 2)  # as scipy: a float would not widen short numbers


@overload
def ndtri(probability: float) -> float: ...
@overload
def ndtri(probability: Array) -> Array: ...
def ndtri(probability: float | Array) -> float | Array:
    """Quantiles of the standard normal distribution; infinite at 0 and 1, NaN outside of them."""
    if not isinstance(probability, np.ndarray):
        return _quantile(probability)
    if probability.size >= MANY:
        return np.asarray(__getattr__("ndtri")(probability))
    return np.fromiter(map(_quantile, probability.ravel().tolist()), np.float64).reshape(probability.shape)


def _quantile(probability: float) -> float:
    if 0 < probability < 1:
        return STANDARD.inv_cdf(probability)
    return {0.0: -math.inf, 1.0: math.inf}.get(probability, math.nan)


def logsumexp(values: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Any:
    """Logarithm of the sum of the exponentials of `values` along `axis`, or of all; of nothing it is minus infinity."""
    given = np.asarray(values, dtype=np.float64)
    most = np.max(given, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        found = np.log(np.exp(given - shift).sum(axis=axis, keepdims=True)) + shift
    return found if keepdims else np.squeeze(found, axis=axis)[()]


def digamma(values: ArrayLike) -> Any:
    """The logarithmic derivative of the gamma function."""
    return __getattr__("psi")(values)


def polygamma(order: int, values: ArrayLike) -> Any:
    """The derivative of :func:`digamma` of an `order` of 1 or more (DLMF 5.15)."""
    return (-1.0) ** (order + 1) * math.factorial(order) * __getattr__("_zeta")(order + 1, values)


def __getattr__(name: str) -> Any:
    return getattr(_compiled(), name)


@cache
def _compiled() -> ModuleType:
    """The compiled functions of scipy.special: by themselves where the package is not loaded yet, as the module says.

    They ask for their package, so one without content is in its place meanwhile.
    """
    name = "scipy.special"
    if name not in sys.modules:
        import scipy

        place = ModuleType(name)
        place.__path__ = [os.path.join(folder, "special") for folder in scipy.__path__]
        sys.modules[name] = place
        try:
            return importlib.import_module(f"{name}._ufuncs")
        finally:
            del sys.modules[name]
    return importlib.import_module(f"{name}._ufuncs")
