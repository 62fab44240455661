"""Noise: how much a value scatters when the same configuration runs again, pooled over configurations and series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ranksight.model.reduction import reduce
from scipy.special import digamma, polygamma

Array = NDArray[np.float64]

# Variance of a location estimate from r normal values, relative to the mean's; the mean for what has no closed form.
_INEFFICIENCY = {"median": np.pi / 2}
SMALLEST = 1e-9
"""Relative scatter below which values are taken as exact: a few hundred roundings of a double."""


@dataclass(frozen=True)
class Location:
    """One value a configuration, with what is known of its scatter.

    Attributes
    ----------
    values : (s, n)
        Reduced over repetitions; NaN where missing.
    scale : (s, n)
        Size that relative errors refer to, positive.
    repeats : (s, n)
        Number of repetitions.
    variance : (s,)
        Relative variance of one repetition, moderated by the other series; NaN where nothing was repeated.
    freedom : (s,)
        Degrees of freedom behind `variance`.
    """

    values: Array
    scale: Array
    repeats: Array
    variance: Array
    freedom: Array


def locate(values: Array, how: str) -> Location:
    """Reduce repetitions (s, n, r) and estimate their relative scatter.

    The scatter of each series is moderated towards that of all series with the empirical-Bayes variance of Smyth (2004,
    *Statistical Applications in Genetics and Molecular Biology* 3, eq. 5 and section 6.2), since a series alone has few repetitions.
    """
    repeats = (~np.isnan(values)).sum(axis=2).astype(np.float64)
    located = reduce(values, how, axis=2)
    size = np.abs(located)
    largest = np.nanmax(np.where(repeats > 0, size, 0.0), axis=1, keepdims=True, initial=0.0)
    scale = np.where(repeats > 0, np.maximum(size, 0.01 * largest), 1.0)
    scale = np.where(scale > 0, scale, 1.0)
    centre = reduce(values, "mean", axis=2)
    squares = np.nansum(((values - centre[..., None]) / scale[..., None]) ** 2, axis=2)
    freedom = np.where(repeats > 1, repeats - 1, 0.0).sum(axis=1)
    total = np.where(repeats > 1, squares, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(freedom > 0, total / np.where(freedom > 0, freedom, 1.0), np.nan)
    prior_freedom, prior_variance = moderate(variance, freedom)
    known = freedom > 0
    moderated = np.where(
        known,
        (prior_freedom * prior_variance + freedom * np.where(known, variance, 0.0))
        / np.where(known, prior_freedom + freedom, 1.0),
        np.nan,
    )
    inefficiency = _INEFFICIENCY.get(how, 1.0)
    return Location(
        located,
        scale,
        np.where(repeats > 2, repeats / inefficiency, repeats),
        moderated,
        freedom + np.where(known, prior_freedom, 0.0),
    )


def moderate(variance: Array, freedom: Array) -> tuple[float, float]:
    """Degrees of freedom and variance of the scaled inverse chi-squared law behind many sample variances.

    Returns
    -------
    freedom, variance : float
        ``(0, 0)`` when there are fewer than four positive variances to learn from; at most 100 degrees of freedom.
    """
    use = (freedom > 0) & (variance > SMALLEST**2)
    if use.sum() < 4:
        return 0.0, 0.0
    half = freedom[use] / 2
    logs = np.log(variance[use]) - digamma(half) + np.log(half)
    spread = logs.var(ddof=1) - polygamma(1, half).mean()
    if spread <= polygamma(1, 50.0):
        return 100.0, float(np.exp(logs.mean()))
    prior = 2 * _inverse_trigamma(float(spread))
    return prior, float(np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2)))


def _inverse_trigamma(value: float) -> float:
    """Solve ``trigamma(x) = value`` by Newton's method (Smyth 2004, appendix)."""
    x = 0.5 + 1.0 / value
    for _ in range(30):
        tri = float(polygamma(1, x))
        step = tri * (1 - tri / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x
