"""Timings of messages summarised per size: a quantile, and how well it is known.

Timings have heavy tails (interrupts, other jobs, routes), so a low quantile is taken, not the mean, and its
uncertainty is that of an order statistic, not a standard deviation. The default is the first quartile, as in Shudler
et al., ICS 2015.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

QUANTILE = 0.25
_NEIGHBOURS = 7
"""Sizes in the running median that measures how far sizes scatter around their neighbours."""


@dataclass(frozen=True, slots=True)
class SizeTable:
    """One operation's time by message size, sizes rising."""

    size: Array  # array of float, shape (n,): bytes
    time: Array  # array of float, shape (n,): the quantile of the durations in seconds
    error: Array
    """array of float, shape (n,): its relative standard error, from the order statistics that bracket it and the
    scatter between sizes."""
    weight: Array
    """array of float, shape (n,): weight of a squared relative residual: ``1 / error^2``, less for a size far off its
    neighbours."""

    def __len__(self) -> int:
        return len(self.size)

    def take(self, index: Mask) -> SizeTable:
        """The sizes where `index` is true."""
        return SizeTable(self.size[index], self.time[index], self.error[index], self.weight[index])


def order_statistics(count: int, quantile: float) -> tuple[int, int]:
    """Ranks (from 0) of the order statistics that bracket a quantile with at least 95 %, if `count` allows.

    The number of values below the quantile is binomial, so its own quantiles give the ranks, whatever the distribution.
    Source: David and Nagaraja, Order Statistics, 3rd ed., section 7.1.
    """
    from scipy.special import bdtr  # takes longer to import than most files to read

    below = bdtr(np.arange(count + 1), count, quantile)
    low = int(np.searchsorted(below, 0.025)) - 1
    high = int(np.searchsorted(below, 0.975))
    return max(low, 0), min(high, count - 1)


def summarise(timings: pd.DataFrame, quantile: float = QUANTILE) -> SizeTable:
    """Summarise timings of one operation by size.

    `timings`: ``bytes`` and ``duration`` (s), a row a measurement. `quantile`: which quantile stands for a size. Raises
    InputError when a size is negative or a duration is not positive and finite.
    """
    size = timings["bytes"].to_numpy(dtype=float)
    duration = timings["duration"].to_numpy(dtype=float)
    if not len(size):
        raise InputError("there are no timings to fit", "measure or import some")
    if not (np.isfinite(size).all() and (size >= 0).all()):
        raise InputError("timings hold a size that is not a number of bytes")
    if not (np.isfinite(duration).all() and (duration > 0).all()):
        raise InputError(
            "timings hold a duration that is not positive", "the clock is too coarse, or the file is of another kind"
        )
    order = np.lexsort((duration, size))
    size, duration = size[order], duration[order]
    sizes, start, count = np.unique(size, return_index=True, return_counts=True)
    time = np.array([np.quantile(duration[a : a + n], quantile) for a, n in zip(start, count, strict=True)])
    # Rank brackets depend on the count alone, and most sizes share one.
    brackets = {int(n): order_statistics(int(n), quantile) for n in np.unique(count)}
    low, high = np.array([brackets[int(n)] for n in count]).T
    width = np.log(duration[start + high] / duration[start + low])
    within = width / (2 * NormalDist().inv_cdf(0.975))
    off = np.log(time) - _running_median(np.log(time))
    # The median absolute deviation is 0.6745 standard deviations of a normal distribution.
    scatter = float(np.median(np.abs(off))) / 0.6745
    between = max(scatter**2 - float(np.median(within**2)), 0.0)
    error = np.sqrt(within**2 + between + np.finfo(float).eps)
    far = np.abs(off) / np.maximum(error, scatter + np.finfo(float).eps)
    # Huber's weights (1.345 standard deviations: 95 % efficiency at the normal), Ann. Math. Stat. 35 (1964) 73.
    return SizeTable(sizes, time, error, np.minimum(1.0, 1.345 / np.maximum(far, 1e-9)) / error**2)


def _running_median(values: Array) -> Array:
    half = _NEIGHBOURS // 2
    if len(values) <= _NEIGHBOURS:
        return np.full(len(values), np.median(values)) if len(values) < 3 else _short_median(values)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, half, mode="reflect"), _NEIGHBOURS)
    return np.asarray(np.median(windows, axis=1))


def _short_median(values: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, 1, mode="reflect"), 3)
    return np.asarray(np.median(windows, axis=1))
