"""Special functions: few of them here, all others from scipy, which is imported when one of those is needed.

Importing :mod:`scipy.special` takes longer than a prediction. The normal distribution and sums of logarithms, which
every prediction needs, are therefore computed here::

    from ranksight.core import special

    special.ndtri(0.95)  # does not import scipy
    special.gammaln(5.0)  # imports it on the first call
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

CENTRAL, FAR = 0.425, 5.0
"""Distance from the median, as a probability, and square root of the logarithm of the tail where the next ratio of
polynomials applies."""
RATIOS = (
    (
        (2.5090809287301226727e3, 5.2264952788528545610e3), (3.3430575583588128105e4, 2.8729085735721942674e4),
        (6.7265770927008700853e4, 3.9307895800092710610e4), (4.5921953931549871457e4, 2.1213794301586595867e4),
        (1.3731693765509461125e4, 5.3941960214247511077e3), (1.9715909503065514427e3, 6.8718700749205790830e2),
        (1.3314166789178437745e2, 4.2313330701600911252e1), (3.3871328727963666080e0, 1.0),
    ),
    (
        (7.74545014278341407640e-4, 1.05075007164441684324e-9), (2.27238449892691845833e-2, 5.47593808499534494600e-4),
        (2.41780725177450611770e-1, 1.51986665636164571966e-2), (1.27045825245236838258e0, 1.48103976427480074590e-1),
        (3.64784832476320460504e0, 6.89767334985100004550e-1), (5.76949722146069140550e0, 1.67638483018380384940e0),
        (4.63033784615654529590e0, 2.05319162663775882187e0), (1.42343711074968357734e0, 1.0),
    ),
    (
        (2.01033439929228813265e-7, 2.04426310338993978564e-15), (2.71155556874348757815e-5, 1.42151175831644588870e-7),
        (1.24266094738807843860e-3, 1.84631831751005468180e-5), (2.65321895265761230930e-2, 7.86869131145613259100e-4),
        (2.96560571828504891230e-1, 1.48753612908506148525e-2), (1.78482653991729133580e0, 1.36929880922735805310e-1),
        (5.46378491116411436990e0, 5.99832206555887937690e-1), (6.65790464350110377720e0, 1.0),
    ),
)  # fmt: skip
"""Coefficients of numerators and denominators, the highest power first: around the median, in the tails, far out."""


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
    """Quantiles of the standard normal distribution, to 15 digits (Wichura 1988, *Applied Statistics* 37, 477).

    Infinite at 0 and 1, NaN outside of them.
    """
    if isinstance(probability, np.ndarray):
        scipy = sys.modules.get("scipy.special")  # several times faster, once it is there
        return _quantiles(probability) if scipy is None else np.asarray(scipy.ndtri(probability))
    return _quantile(float(probability))


@lru_cache(maxsize=64)
def _quantile(probability: float) -> float:
    """Of one number; few different ones are asked for."""
    return float(_quantiles(np.array([probability]))[0])


def _quantiles(p: Array) -> Array:
    off = p - 0.5
    size = np.abs(off)
    with np.errstate(divide="ignore", invalid="ignore"):
        tails = size > CENTRAL
        if not tails.any():
            return off * _ratio(0, CENTRAL**2 - off * off)
        away = np.sqrt(-np.log(np.minimum(p, 1 - p)[tails]))
        found = _ratio(1, away - 1.6)
        far = away > FAR
        if far.any():
            found[far] = np.where(np.isinf(away[far]), np.inf, _ratio(2, away[far] - FAR))
        found = np.copysign(found, off[tails])
        if len(found) == size.size:
            return found.reshape(p.shape)
        answer = off * _ratio(0, CENTRAL**2 - off * off)
        answer[tails] = found
        return answer


def _ratio(which: int, x: Array) -> Array:
    """One of :data:`RATIOS` at each x, numerators and denominators in one array."""
    first, *others = RATIOS[which]
    both = np.full((*x.shape, 2), first)
    x = x[..., None]
    for pair in others:
        both *= x
        both += pair
    return np.asarray(both[..., 0] / both[..., 1])


def logsumexp(values: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Any:
    """Logarithm of the sum of the exponentials of `values` along `axis`, or of all; of nothing it is minus infinity."""
    given = np.asarray(values, dtype=np.float64)
    most = np.max(given, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(given - shift).sum(axis=axis, keepdims=True)) + shift
    return found if keepdims else np.squeeze(found, axis=axis)[()]


def __getattr__(name: str) -> Any:
    import scipy.special

    return getattr(scipy.special, name)
