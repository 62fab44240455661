"""Through two values of what a program counts, at two levels of a parameter, to any other level.

What a program does is counted by loops, so a count is a sum of integer powers of the problem's extent with no negative
coefficients. Among all such sums through two points, with no power above the next integer over the slope between them,
the slowest growth is that of the two adjacent powers around the slope and the fastest that of a constant and the
highest power (the powers form a Chebyshev system: Karlin and Studden, *Tchebycheff Systems*, 1966, chapter II). The
first is the value, since loops nest: surfaces come with volumes. Both are the interval. A sum with a constant has a
small slope where the constant is most of it, at many ranks, and its power shows at few: the highest power is the next
integer over the steepest slope at any configuration. Times have no such law; theirs takes half a power more or less.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask


def bridge(
    levels: tuple[float, float], values: Array, at: Array, counted: Mask, steepest: Array | float = -np.inf
) -> tuple[Array, Array, Array]:
    """Carry values at two levels of a parameter to other levels.

    Parameters
    ----------
    levels : (low, high), both above zero
    values : (s, k, 2)
        At the two levels.
    at : (k,)
        Levels asked for.
    counted : (s,) bool
        Whether loops count the metric.
    steepest : (s, 1), optional
        Steepest slope (:func:`slopes`) between the two levels seen anywhere.

    Returns
    -------
    value, lower, upper : (s, k)
        NaN where one of the two values is missing, zero while the other is not, or their signs differ.
    """
    low, high = levels
    first, second = values[..., 0], values[..., 1]
    slope = slopes(levels, values)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.floor(np.where(np.isfinite(slope), slope, 0.0))
        value = _pair(levels, first, second, below, below + 1, at)
        # At whole slopes the pair is one pure power, which the general formula gives as well.
        power = np.ceil(np.maximum(slope, steepest))
        fastest = np.where(slope > 0, _pair(levels, first, second, 0 * below, power, at), value)
        ratio = at / high
        sorting = _sorting(levels, first, second, below, at)
        # Nothing changes its sign: the last does far below the levels, and is none there; the others by rounding alone.
        sorting = np.where(sorting * first < 0, np.nan, sorting)
        value, fastest = (np.where(x * first < 0, 0.0, x) for x in (value, fastest))
        spread = np.abs(np.log(np.where(at > high, ratio, np.where(at < low, at / low, 1.0)))) * 0.5
        edge = np.where(counted[:, None], 0.0, spread)
        lower = np.where(counted[:, None], np.fmin(np.minimum(value, fastest), sorting), value * np.exp(-edge))
        upper = np.where(counted[:, None], np.fmax(np.maximum(value, fastest), sorting), value * np.exp(edge))
    known = np.isfinite(slope)
    zero = (first == 0) & (second == 0)
    result = []
    for x in (value, lower, upper):
        x = np.where(zero, 0.0, np.where(known, x, np.nan))
        # At a level itself its own value stands, whatever the other's is.
        result.append(np.where(at == low, first, np.where(at == high, second, x)))
    return result[0], result[1], result[2]


def slopes(levels: tuple[float, float], values: Array) -> Array:
    """Slopes (...) of the logarithms of values (..., 2) between two levels; none is finite where a value is not."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = np.log(values[..., 1] / values[..., 0]) / np.log(levels[1] / levels[0])
        # A slope that is whole up to rounding is whole, or the powers around it would be the wrong ones.
        return np.asarray(np.where(np.abs(slope - np.round(slope)) < 1e-9, np.round(slope), slope))


def _pair(levels: tuple[float, float], first: Array, second: Array, i: Array, j: Array, at: Array) -> Array:
    """Value at `at` of ``a x^i + b x^j`` through the two points; a pure power where i = j."""
    x = levels[1] / levels[0]
    t = at / levels[0]
    same = i == j
    j = np.where(same, j + 1, j)
    b = (second - first * x**i) / (x**j - x**i)
    return np.asarray(np.where(same, first * t**i, (first - b) * t**i + b * t**j), dtype=np.float64)


def _sorting(levels: tuple[float, float], first: Array, second: Array, i: Array, at: Array) -> Array:
    """Value at `at` of ``x^i (a + b log x)`` through the two points."""
    x, t = levels[1] / levels[0], at / levels[0]
    return np.asarray(t**i * (first + (second / x**i - first) * np.log(t) / np.log(x)), dtype=np.float64)
