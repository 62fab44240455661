"""Positive quantities with their uncertainty: distributions of logarithms, and how they are combined.

Between the functions of measured series and an answer everything is a :class:`Quantity`: the median of ln y, and a
standard deviation to either side, as times far from the runs have a longer tail upwards. With independent errors

    product:  ln y = sum_i ln y_i,    sd^2 = sum_i sd_i^2
    sum:      y = sum_i y_i,          d^2 = sum_i d_i^2,   d_i the distance from y_i to the end of its 90 % interval
    mixture:  the mean of ln y and its variance, within the parts and between them

Errors with one cause, such as one cache that holds what is read and what is written, go together: within a cause
deviations (products) and distances (sums) add linearly, and those of different causes in quadrature. A probability is
named once, where a quantity is answered: :meth:`Quantity.interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, log, ratio
from ranksight.core.records import dataclass

UNKNOWN = 20.0
"""Standard deviation of a logarithm that stands for no knowledge."""
LARGEST = 50.0
"""Logarithm that no end of an interval exceeds: further on, numbers say nothing and squares of them overflow."""


CENTRAL = 0.9
"""Probability of the intervals whose ends stand for a quantity until it is answered."""
EACH_END = (1 - CENTRAL) / 2
"""Probability beyond each of their ends."""


def deviations(level: float) -> float:
    """Standard deviations from the median to the ends of a central interval of probability `level`."""
    return float(special.ndtri((1 + level) / 2))


TAIL = deviations(CENTRAL)
"""Standard deviations to the ends of such an interval."""


@dataclass(frozen=True)
class Quantity:
    """Logarithms of positive quantities, any shape; NaN where there is none, minus infinity for exactly zero."""

    centre: Array  # medians of ln y
    down: Array  # standard deviations of ln y downwards
    up: Array  # the same upwards
    cause: str = ""  # what the errors come from, where other quantities have the same ones; empty for independent ones

    @classmethod
    def exact(cls, centre: Array) -> Quantity:
        """Quantities that are known."""
        return cls(centre, np.zeros(centre.shape), np.zeros(centre.shape))

    @classmethod
    def even(cls, centre: Array, deviation: Array) -> Quantity:
        """Quantities that are as uncertain upwards as downwards."""
        return cls(centre, deviation, deviation)

    @classmethod
    def of_ends(cls, value: Array, lower: Array, upper: Array) -> Quantity:
        """From medians and the ends of their central intervals of probability :data:`CENTRAL`."""
        centre = log(value)
        with np.errstate(invalid="ignore"):
            sides = (centre - log(np.fmax(lower, 0.0)), log(upper) - centre)
            down, up = (np.where(value == 0, 0.0, side) / TAIL for side in sides)
        down, up = (np.clip(np.nan_to_num(side, nan=UNKNOWN, posinf=UNKNOWN), 0.0, UNKNOWN) for side in (down, up))
        return cls(centre, down, up)

    @property
    def deviation(self) -> Array:
        """Standard deviation of ln y, the mean of both sides."""
        return (self.down + self.up) / 2

    def rows(self, index: Index) -> Quantity:
        """Some of the quantities."""
        return replace(self, centre=self.centre[index], down=self.down[index], up=self.up[index])

    def caused_by(self, cause: str) -> Quantity:
        """The same with errors that go together with those of other quantities of this cause."""
        return replace(self, cause=cause)

    def moved(self, by: Array) -> Quantity:
        """The same times exp(`by`)."""
        return replace(self, centre=self.centre + by)

    def inverse(self) -> Quantity:
        """One over the quantities."""
        return replace(self, centre=-self.centre, down=self.up, up=self.down)

    def wider(self, down: Array | float, up: Array | float | None = None) -> Quantity:
        """The same with further independent deviations downwards and upwards, equal ones when one is given."""
        return replace(self, down=np.hypot(self.down, down), up=np.hypot(self.up, down if up is None else up))

    def no_narrower(self, deviation: float) -> Quantity:
        """The same with a standard deviation of `deviation` at least."""
        return replace(self, down=np.maximum(self.down, deviation), up=np.maximum(self.up, deviation))

    def at_most(self, bound: Array | float) -> Quantity:
        """The quantities, which cannot exceed `bound`: neither the medians nor the upper ends of 90 % intervals do."""
        centre = np.minimum(self.centre, np.log(bound))
        with np.errstate(invalid="ignore"):
            up = np.minimum(self.up, (np.log(bound) - centre) / TAIL)
        # What lies beyond the bound is as far above the lower end as the bound is.
        down = np.where(np.isfinite(centre), np.maximum(self.down - (self.centre - centre) / TAIL, 0.0), self.down)
        return replace(self, centre=centre, down=down, up=up)

    def interval(self, level: float) -> tuple[Array, Array, Array]:
        """Medians and the ends of their central intervals of probability `level`."""
        z = deviations(level)
        low, high = self.centre - z * self.down, np.minimum(self.centre + z * self.up, LARGEST)
        return np.exp(self.centre), np.exp(low), np.exp(high)


def product(parts: Sequence[Quantity]) -> Quantity:
    """The product of quantities."""
    causes = [part.cause for part in parts]
    down, up = (_combined([getattr(part, side) for part in parts], causes) for side in ("down", "up"))
    return Quantity(sum((part.centre for part in parts[1:]), parts[0].centre), down, up, _common(causes))


def add(parts: Sequence[Quantity]) -> Quantity:
    """The sum of quantities; distances to the ends of its 90 % interval are those of its parts, combined."""
    causes, values = [part.cause for part in parts], [np.exp(part.centre) for part in parts]
    total = sum(values[1:], values[0])
    rise = [x * np.expm1(np.minimum(TAIL * part.up, LARGEST)) for x, part in zip(values, parts, strict=True)]
    fall = [x * -np.expm1(-TAIL * part.down) for x, part in zip(values, parts, strict=True)]
    least = parts[0].down
    for part in parts[1:]:
        least = np.fmax(least, part.down)
    # No sum falls by a larger part than the most uncertain of its terms, and a sum of positive terms not to zero.
    low = np.fmax(1 - ratio(_combined(fall, causes), total, 0.0), np.exp(-TAIL * least))
    high = np.log1p(ratio(_combined(rise, causes), total, 0.0))
    return Quantity(log(total), -log(low) / TAIL, high / TAIL, _common(causes))


def mix(parts: Sequence[Quantity], weights: Array) -> Quantity:
    """The mixture of quantities (a of them) with `weights` (a, ...), by its moments; of those that there are."""
    centres = np.stack([part.centre for part in parts])
    used = np.isfinite(centres)
    weights = np.where(used, weights, 0.0)
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = weights / total
    centres = np.where(used, centres, 0.0)
    mean = (weights * centres).sum(axis=0)
    between = (weights * (centres - mean) ** 2).sum(axis=0)
    down, up = (
        np.sqrt((weights * np.where(used, sides, 0.0) ** 2).sum(axis=0) + between)
        for sides in (np.stack([part.down for part in parts]), np.stack([part.up for part in parts]))
    )
    return Quantity(np.where(total > 0, mean, np.nan), down, up)


def larger(first: Quantity, second: Quantity) -> Quantity:
    """The larger of two quantities; the first where there is no second. An end follows whichever is larger there."""
    known = np.isfinite(second.centre)
    centre = np.fmax(first.centre, second.centre)
    up = np.fmax(first.centre + first.up, second.centre + second.up) - centre
    down = centre - np.fmax(first.centre - first.down, second.centre - second.down)
    return Quantity(
        np.where(known & (second.centre > first.centre), second.centre, first.centre),
        np.where(known, down, first.down),
        np.where(known, up, first.up),
    )


def _combined(sizes: Sequence[Array], causes: Sequence[str]) -> Array:
    """Size of the sum of errors of these `sizes`: linear within a cause, in quadrature between causes."""
    groups: dict[str | int, Array] = {}
    for at, (size, cause) in enumerate(zip(sizes, causes, strict=True)):
        key = cause or at
        groups[key] = groups[key] + size if key in groups else size
    first, *others = groups.values()
    for size in others:
        first = np.hypot(first, size)
    return first


def _common(causes: Sequence[str]) -> str:
    """The one cause of all, if there is one."""
    return causes[0] if len(set(causes)) == 1 else ""
