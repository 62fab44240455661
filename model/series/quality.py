"""Quality of repeated measurements: is there a signal, and how many repetitions would show it.

Scatter within configurations is compared with the differences between them (Calotoiu et al. 2013, section 2): a series
whose configurations do not differ by more than their repetitions do says nothing about growth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.model.series.noise import Location

SIGNIFICANT = 0.05
MOST = 1000
"""Repetitions that nobody runs: larger numbers are reported as this one."""


@dataclass(frozen=True)
class Quality:
    """What repetitions say about s series.

    Attributes
    ----------
    within : (s,)
        Relative standard deviation of one repetition; NaN where nothing was repeated.
    between : (s,)
        Relative standard deviation between configurations, beyond what repetitions explain; zero where there is none.
    chance : (s,)
        Probability of differences between configurations as large as these when there are none (F test).
    repetitions : (s,)
        Repetitions of every configuration with which the standard error would be half of the difference between
        configurations; NaN where nothing was repeated or nothing differs.
    """

    within: Array
    between: Array
    chance: Array
    repetitions: Array

    @property
    def noisy(self) -> Mask:
        """Series whose noise is above their signal."""
        return np.asarray(~np.isnan(self.within) & ~(self.chance < SIGNIFICANT))


def judge(location: Location) -> Quality:
    """Judge located values."""
    scale, repeats, variance = location.scale, location.repeats, location.variance
    present = repeats > 0
    values = np.where(present, location.values, 0.0)
    count = present.sum(axis=1)
    relative = np.where(present, values / np.median(scale, axis=1, keepdims=True), 0.0)
    weight = np.where(present, repeats, 0.0)
    total = np.where(weight.sum(axis=1) > 0, weight.sum(axis=1), 1.0)
    mean = (weight * relative).sum(axis=1) / total
    square = (weight * (relative - mean[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    # Of the size of the values: scatter is proportional to them.
    size = (weight * relative**2).sum(axis=1) / total
    noise = variance * size
    repeated = ~np.isnan(variance) & (count > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = square / noise
        # What samples scatter by is known without repetitions.
        freedom = np.where(np.isfinite(location.samples), location.freedom, weight.sum(axis=1) - count)
        chance = special.fdtrc(count - 1, np.maximum(freedom, 1), ratio)
        mean_repeats = weight.sum(axis=1) / np.maximum(count, 1)
        between = np.sqrt(
            np.maximum(square - np.where(repeated, noise, 0.0), 0.0) / np.where(mean_repeats > 0, mean_repeats, 1.0)
        )
        needed = np.ceil(4 * noise / between**2)
    chance = np.where(repeated, np.where(noise > 0, chance, 0.0), np.nan)
    reps = np.where(repeated & (between > 0), np.clip(needed, 1, MOST), np.nan)
    return Quality(np.sqrt(variance), between, np.where((square == 0) & repeated, 1.0, chance), reps)
