"""Positive quantities by their logarithms, with a standard deviation to either side, and how they combine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, log
from ranksight.model.uncertainty.forecast import TAIL, Forecast

WIDEST = 20.0
"""Standard deviation of a logarithm that stands for no knowledge."""


@dataclass(frozen=True)
class Spread:
    """Logarithms of positive quantities, with a standard deviation to either side, (K, k) each; NaN where there is
    none."""

    centre: Array
    down: Array
    up: Array

    @classmethod
    def exact(cls, centre: Array) -> Spread:
        """Quantities that are known."""
        return cls(centre, np.zeros(centre.shape), np.zeros(centre.shape))

    @classmethod
    def of(cls, given: Forecast, index: Index | None = None) -> Spread:
        """The rows `index` (K,) of a forecast, all when not given; NaN where the index is negative."""
        index = np.arange(len(given.value)) if index is None else index
        z = float(special.ndtri((1 + given.level) / 2))
        value = np.where(index[:, None] >= 0, given.value[index], np.nan)
        centre = log(np.where(value > 0, value, np.nan))
        down, up = centre - log(np.fmax(given.lower[index], 0.0)), log(given.upper[index]) - centre
        sides = (np.nan_to_num(side / z, nan=WIDEST, posinf=WIDEST) for side in (down, up))
        return cls(centre, *(np.clip(side, 0.0, WIDEST) for side in sides))

    def rows(self, index: Index) -> Spread:
        """Some of the quantities."""
        return Spread(self.centre[index], self.down[index], self.up[index])

    def interval(self, level: float) -> tuple[Array, Array, Array]:
        """Values and the ends of their central intervals of probability `level`."""
        z = float(special.ndtri((1 + level) / 2))
        low, high = self.centre - z * self.down, np.minimum(self.centre + z * self.up, 50.0)
        return np.exp(self.centre), np.exp(low), np.exp(high)

    def plus(self, other: Spread) -> Spread:
        """The product of two independent quantities."""
        return Spread(self.centre + other.centre, np.hypot(self.down, other.down), np.hypot(self.up, other.up))

    def moved(self, by: Array) -> Spread:
        """The same times exp(`by`)."""
        return Spread(self.centre + by, self.down, self.up)

    def wider(self, down: Array, up: Array | None = None) -> Spread:
        """The same with further deviations downwards and upwards, the same to both sides when one is given."""
        return Spread(self.centre, np.hypot(self.down, down), np.hypot(self.up, down if up is None else up))


def average(parts: Sequence[Spread], weights: Array) -> Spread:
    """The mixture of quantities (a of them) with `weights` (a, K, k), by its moments; of those that there are."""
    centres = np.stack([part.centre for part in parts])
    used = np.isfinite(centres)
    weights = np.where(used, weights, 0.0)
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = weights / total
    centres = np.where(used, centres, 0.0)
    mean = (weights * centres).sum(axis=0)
    apart = (weights * (centres - mean) ** 2).sum(axis=0)

    def side(name: str) -> Array:
        own = np.stack([getattr(part, name) for part in parts])
        return np.asarray(np.sqrt((weights * np.where(used, own, 0.0) ** 2).sum(axis=0) + apart))

    return Spread(np.where(total > 0, mean, np.nan), side("down"), side("up"))


def added(first: Spread, second: Spread) -> Spread:
    """The sum of two independent quantities; distances to its ends are those of its parts in quadrature."""
    one, two = np.exp(first.centre), np.exp(second.centre)
    total = one + two
    up = np.hypot(*(x * np.expm1(np.minimum(TAIL * part.up, 50.0)) for x, part in ((one, first), (two, second))))
    down = np.hypot(*(x * -np.expm1(-TAIL * part.down) for x, part in ((one, first), (two, second))))
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.fmax(1 - down / total, np.exp(-TAIL * np.fmax(first.down, second.down)))
        return Spread(np.log(total), -np.log(low) / TAIL, np.log1p(up / total) / TAIL)


def longer(first: Spread, second: Spread) -> Spread:
    """The larger of two quantities; the first where there is no second. An end follows whichever is larger there."""
    known = np.isfinite(second.centre)
    centre = np.fmax(first.centre, second.centre)
    up = np.fmax(first.centre + first.up, second.centre + second.up) - centre
    down = centre - np.fmax(first.centre - first.down, second.centre - second.down)
    return Spread(
        np.where(known & (second.centre > first.centre), second.centre, first.centre),
        np.where(known, down, first.down),
        np.where(known, up, first.up),
    )
