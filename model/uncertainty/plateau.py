"""A time that has nearly stopped falling at few ranks: a part of it that is not divided, or a domain that is full.

The ends of the range measured are met by ``T(p) = a / p + c``, in which one rank would spend the share

    f = c / (a + c) = (r / p_0 - 1 / p_1) / (1 - r + r / p_0 - 1 / p_1),    r = T(p_1) / T(p_0),

on what is not divided. Serial shares are taken for evenly distributed before the data, so that a program has one as
large as f with probability 1 - f. Otherwise ranks share what they wait for, memory bandwidth above all, and the next
ones bring more of it: times fall ideally again, give or take half as much. At a thousand ranks a small serial part
stops a time from falling, and f is next to nothing; at ten it would have to be a third of the work. A time whose
function rises at the last ranks is held by messages or waits, and no domain; that it rises beyond, nothing showed.

Work that is not divided at all, as in weak scaling, does not fall. The fall ``x = ln T(p_0) - ln T(p_1)`` is that of
divided work with the odds of a law that is even up to the ideal one, ``X = ln(p_1 / p_0)``, to none at all, within the
scatter s of both ends,

    (1 / X) / N(x; 0, 2 s^2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.model.uncertainty.strong import IDEAL, Change

Array = NDArray[np.float64]


def plateau(low: float, high: float, ranks: Array, first: Array, last: Array, after: Array, scatter: Array) -> Change:
    """What more ranks make of times that have stopped falling.

    Parameters
    ----------
    low, high : float
        Least and most ranks measured, positive.
    ranks : (1, k)
    first, last : (s, k)
        ln T at both, other parameters as asked.
    after : (s, k)
        The same a little beyond the most ranks measured: where it rises, messages or waits keep it from falling, and no
        domain.
    scatter : (s,)
        Relative standard deviation of a time, positive.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ideal = float(np.log(high / low))
        ahead = np.log(ranks / high)
        fall = first - last
        use = (ideal > 0) & (ahead > 0) & np.isfinite(ahead) & np.isfinite(fall) & (fall > 0) & (after < last)
        fall, ahead = np.where(use, fall, 0.0), np.where(use, ahead, 0.0)
        undivided = np.maximum(np.exp(-fall) / low - 1 / high, 0.0)
        serial = np.where(use, undivided / (undivided - np.expm1(-fall)), 0.0)
        wide = np.sqrt(2) * scatter[:, None]
        odds = np.exp((fall / wide) ** 2 / 2) * np.sqrt(2 * np.pi) * wide / ideal
        falls = np.where(np.isfinite(odds), odds / (1 + odds), 1.0)
    share = np.where(use, falls * serial, 0.0)
    return Change(share, np.where(use, last, 0.0) + IDEAL * ahead, np.maximum(abs(IDEAL) / 2 * ahead, 1e-9))
