"""Quantiles of mixtures of Student's t laws, batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask

Short = NDArray[np.float32]
Real = NDArray[np.floating[Any]]
PIECE = 40_000
"""Components evaluated at a time: as many as stay in a processor's cache."""
BATCHED = 1.25
"""Mixtures are worked on together whose numbers of components lie within this factor."""
LAST = 1e-5
"""Distance from the probability wanted, on the normal scale, times the square of the step in spreads of the narrowest
component, below which the step ends at the root: what Halley's step leaves is of third order."""
NEAR = 1e-6
"""Distance that is none: what is left of seven digits in a sum."""
NARROWEST = 1e-300
"""Spread that is none."""
FINEST = 1e-15
"""The same, of the widest component or the distance of the components."""
DIGITS = 1e-7
"""Part of a distance that is rounding."""
STEPS = 90
"""Steps at most; halving alone needs forty."""
SEARCHES = 4
"""Searches at most, each from where the one before it ended."""
PIVOT = 4.0
MILLS = (
    0.75528514, -0.60789657, 0.38713768, -0.18652554, 0.06039476, -0.0075145606, -0.0034753059, 0.0015651109,
    0.0001288929, -0.00015732057,
)  # fmt: skip
"""The upper tail of the normal law from its density, to a ten millionth: ``(z + k) (1 - Phi(z)) / exp(-z^2 / 2)`` as a
polynomial of ``1 - 2 k / (z + k)``, the lowest power first, with ``k`` of :data:`PIVOT`. That maps all z that are not
negative to -1..1, where the polynomial is the least-squares one in the extrema of Chebyshev's of degree 9 (after
Schonfelder 1978, *Mathematics of Computation* 32, 1232)."""
FARTHEST = np.float32(80)
"""Largest logarithm of odds."""
CAUCHY = 1.5
"""Degrees of freedom below which the law is taken for Cauchy's."""


class Components(NamedTuple):
    """Components (c, s, k) of mixtures: weights, centres, spreads and degrees of freedom."""

    weight: Array
    centre: Array
    spread: Array
    freedom: Array


def _bend(freedom: Real) -> Any:
    """Wallace's factor of Student's t to a normal variable (1959, *Annals of Mathematical Statistics* 30, 1124): within
    0.002 of the distribution function from two degrees of freedom, and ten times cheaper than the exact one."""
    return 1 - 2 / (8 * freedom + 3)


def quantile(probability: float, weight: Array, centre: Array, spread: Array, freedom: Array) -> Array:
    """One of :func:`quantiles`, (...)."""
    return np.asarray(quantiles((probability,), weight, centre, spread, freedom)[0])


def quantiles(
    probabilities: Sequence[float],
    weight: Array,
    centre: Array,
    spread: Array,
    freedom: Array,
    start: Array | None = None,
) -> Array:
    """Quantiles (p, ...) of mixtures of t laws, to a hundred thousandth of the probability.

    A quantile lies between the least and the largest of the components'. The initial guess comes from logistic laws in
    the components' place (:meth:`_Law.guess`). Put on the normal scale, the distribution function is nearly straight,
    so that from there mostly one of Halley's steps finds its root (Gander 1985, *American Mathematical Monthly* 92,
    131); where it is not, as between components far apart, the bracket is halved. `weight`, `centre`, `spread`,
    `freedom` (c, ...): components; a weight of zero leaves one out. A mixture without weight gives NaN. `start` (p,
    ...): where the quantiles are thought to be: the nearer, the fewer steps.
    """
    flat = [part.reshape(len(weight), -1) for part in (weight, centre, spread, freedom)]
    answer = np.full((len(probabilities), flat[0].shape[1]), np.nan)
    goals = [float(special.ndtri(probability)) for probability in probabilities]
    used = np.count_nonzero(flat[0] > 0, axis=0)
    most = _most(int(used.max(initial=0)))[used]
    for count in (1 + np.flatnonzero(np.bincount(most)[1:])).tolist():
        columns = np.flatnonzero(most == count)
        parts = _held(flat, columns, count)
        law = _Law.of(*parts) if count > 1 else None
        reaches: dict[float, Array] = {}
        for row, goal in enumerate(goals):
            # the laws are symmetric: both ends of a central interval are as far
            away = round(abs(goal), 12)
            if away not in reaches:
                reaches[away] = _reach(away, parts[2], parts[3])
            ends = parts[1] + np.copysign(reaches[away], goal)
            if law is None:
                answer[row, columns] = ends[0]
                continue
            first = law.guess(goal, ends, reaches[away]) if start is None else start[row].reshape(-1)[columns]
            answer[row, columns] = law.quantile(goal, ends, first)
    return answer.reshape(len(probabilities), *weight.shape[1:])


def _most(largest: int) -> Index:
    """With how many components at most each number of them, from none to `largest`, is worked on together."""
    ends = [0]
    while ends[-1] < largest:
        ends.append(min(max(ends[-1] + 1, int(ends[-1] * BATCHED)), largest))
    return np.array(ends, dtype=np.intp)[np.searchsorted(ends, np.arange(largest + 1))]


def _held(flat: Sequence[Array], columns: Index, count: int) -> list[Array]:
    """The components (count, n) with a weight of some mixtures; where there are fewer, the first again without one."""
    parts = list(flat) if len(columns) == flat[0].shape[1] else [part.take(columns, axis=1) for part in flat]
    weighs = parts[0] > 0
    rows = weighs.any(axis=1)
    if rows.sum() == count < rows.size:  # the same ones everywhere, as nearly always
        parts, weighs = [part[rows] for part in parts], weighs[rows]
    if len(weighs) == count and weighs.all():
        return parts
    order = np.argsort(~weighs, axis=0, kind="stable")[:count]
    spare = ~np.take_along_axis(weighs, order, axis=0)
    order = np.where(spare, order[0], order)
    weight, *others = (np.take_along_axis(part, order, axis=0) for part in parts)
    return [np.where(spare, 0.0, weight), *others]


def _reach(goal: float, spread: Array, freedom: Array) -> Array:
    """Distance of each component's quantile at `goal`, none below the median, from its centre."""
    if goal == 0:
        return np.zeros_like(spread)
    with np.errstate(over="ignore"):
        square = np.expm1(goal**2 / (_bend(freedom) ** 2 * freedom))
        square *= freedom
    reach: Array = np.sqrt(square, out=square)
    flat = freedom < CAUCHY
    if flat.any():
        reach = np.where(flat, np.tan(np.pi * (special.ndtr(goal) - 0.5)), reach)
    reach *= spread
    # What does not spread has all of its quantiles at its centre, to the last digit.
    reach[spread <= NARROWEST] = 0.0
    return reach


@dataclass(frozen=True)
class _Law:
    """Mixtures (c, n) prepared for evaluation.

    With Wallace's ``z^2 = b^2 nu ln u``, ``u = 1 + t^2 / nu``, the density of a component is ``phi(z) b^2 t / (u z)``.

    The distribution is evaluated in numbers of seven digits, at a third of the time. Those of a distance from an origin
    are enough where the origin lies near, and of a probability in the lower tail; the upper tail is that of the mirror
    image. Distances are in units (n,) of each mixture.
    """

    weight: Short
    centre: Array
    unit: Array
    scale: Short
    per: Short
    bend: Short
    cauchy: Mask | None

    @classmethod
    def of(cls, weight: Array, centre: Array, spread: Array, freedom: Array) -> _Law:
        unit = np.maximum(np.maximum(spread.max(axis=0), np.ptp(centre, axis=0)), NARROWEST)
        share, wide, free = (part.astype(np.float32) for part in (weight, spread * (1 / unit), freedom))
        one, flat = np.float32(1), free < CAUCHY
        scale = np.reciprocal(np.maximum(wide, np.float32(FINEST)))
        return cls(share, centre, unit, scale, one / free, _bend(free) ** 2, flat if flat.any() else None)

    def guess(self, goal: float, ends: Array, reach: Array) -> Array:
        """Where the quantiles (n,) at `goal` are thought to be.

        Each component's distribution function is taken for straight around its own quantile, one of `ends` (c, n) that
        lies at a distance of `reach` from its centre, and then for the logistic one of the same value and slope there:
        one of Newton's steps on the logistic scale.
        """
        below, above = special.ndtr(goal), special.ndtr(-goal)
        rate = np.exp(-0.5 * goal**2) / np.sqrt(2 * np.pi) / (below * above)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            t = (reach * (1 / self.unit)).astype(np.float32)
            t *= self.scale
            # dz / dx of Wallace's z
            steep = t * self.bend / (abs(goal) * (1 + t * t * self.per)) if goal else np.sqrt(self.bend)
            steep *= self.scale
            dense = self.weight * steep
            found = _sum(dense, ends) / dense.sum(axis=0)
            off = ((ends - found) * (1 / self.unit)).astype(np.float32)
            off *= steep
            off *= np.float32(rate)
            np.minimum(off, FARTHEST, out=off)
            odds = np.exp(off, out=off)
            odds *= np.float32(above / below)
            share = np.float32(1) / (1 + odds)
            reached = np.clip(_sum(self.weight, share), 1e-6, 1 - 1e-6)
            share *= 1 - share
            slope = rate * _sum(dense, share)
            lacking = np.log(below / above * (1 - reached) / reached)
            found = found + lacking * reached * (1 - reached) / slope * self.unit
        return np.asarray(found)

    def quantile(self, goal: float, ends: Array, guess: Array) -> Array:
        """The quantiles (n,) at `goal` on the normal scale, looked for from `guess` on; `ends` (c, n) are those of the
        components."""
        low, high = ends.min(axis=0), ends.max(axis=0)
        answer = np.where(np.isfinite(guess), np.clip(guess, low, high), low + (high - low) / 2)
        least = 1e-12 * (high - low) + 4e-16 * np.maximum(np.abs(low), np.abs(high))
        which = np.flatnonzero(high - low > least)
        for _ in range(SEARCHES):
            if not len(which):
                break
            found = self._search(goal, which, *(part[which] for part in (answer, low, high, least)))
            answer[which], blurred = found
            which = which[blurred]
        return answer

    def _search(
        self, goal: float, columns: Index, origin: Array, low: Array, high: Array, least: Array
    ) -> tuple[Array, Mask]:
        """The quantiles of the mixtures in some `columns`, looked for from `origin` on between `low` and `high`, and
        which of them are not resolved by the digits of their distance from it."""
        unit, every = self.unit[columns], len(columns) == len(self.unit)
        side = unit if goal <= 0 else -unit
        which: Index | slice = slice(None) if every else columns
        apart = (self.centre if every else self.centre.take(columns, axis=1)) - origin
        apart *= 1 / side
        short = apart.astype(np.float32)
        low, high = ((end - origin) / side for end in ((low, high) if goal <= 0 else (high, low)))
        goal, least = -abs(goal), least / unit
        x, finest = np.zeros(len(columns)), self.scale[:, which].max(axis=0)
        answer, blurred = x.copy(), np.zeros(len(columns), dtype=bool)
        before, place = np.full(len(columns), np.inf), np.arange(len(columns))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
            for _ in range(STEPS):
                below, density, slope = self._at(x, short, place, columns)
                y = special.ndtri(np.clip(below, 1e-300, 1 - 1e-16))
                off = y - goal
                # Derivatives on the normal scale, their common factor of the normal density taken in.
                normal = np.exp(-0.5 * y * y)
                first = density / normal
                newton = off / first
                curve = 0.5 * newton * (slope / normal + y * first * first) / first
                over = off > 0
                low, high = np.where(over, low, x), np.where(over, x, high)
                near = x - newton / np.maximum(1 - curve, 0.5)
                size, digits = np.abs(off), DIGITS * np.abs(x)
                there = size < NEAR
                # Steps that leave the bracket or gain little are replaced by halving it.
                good = (near > low) & (near < high) & (size <= 0.5 * before)
                straight = good & (size * ((near - x) * finest) ** 2 < LAST)
                caught = high - low <= least + digits
                x = np.where(good, near, np.where(there, x, low + (high - low) / 2))
                answer[place], blurred[place] = x, digits * np.where(caught, finest, first) > NEAR
                left = ~(straight | there | caught)
                if not left.any():
                    break
                place, x, low, high, least, before, finest = (
                    part[left] for part in (place, x, low, high, least, size, finest)
                )
        return origin + answer * side, blurred

    def _at(self, x: Array, apart: Short, place: Index, columns: Index) -> tuple[Array, Array, Array]:
        """Distribution function at `x` (n,) of the mixtures at `place`, whose components lie `apart` (c, all), and its
        first two derivatives times the square root of 2 pi.

        The second derivative is that of the exact law, ``-(nu + 1) t / (nu u)`` times the first.
        """
        found = np.empty((3, len(x)))
        size = max(1, PIECE // len(self.weight))
        for start in range(0, len(x), size):
            some = place[start : start + size]
            found[:, start : start + size] = self._piece(x[start : start + size], apart, some, columns[some])
        return found[0], found[1], found[2]

    def _piece(self, x: Array, apart: Short, place: Index, columns: Index) -> tuple[Real, Real, Real]:
        def of(part: Short, which: Index = columns) -> Short:
            first, last = int(which[0]), int(which[-1])
            return part[:, first : last + 1] if last - first + 1 == len(which) else part.take(which, axis=1)

        weight, scale, per = of(self.weight), of(self.scale), of(self.per)
        t = x.astype(np.float32) - of(apart, place)
        t *= scale
        away = np.abs(t)
        square = np.minimum(away, 1e15)
        square *= square
        square += 1e-30
        part = square * per
        u = part + 1
        # log1p(part) in half of its time: what the rounding of u took is put back
        z_square = np.log(u)
        part -= u - 1
        part /= u
        z_square += part
        bend = of(self.bend)
        z_square *= bend
        z_square /= per
        ratio = np.divide(z_square, square, out=square)
        np.sqrt(ratio, out=ratio)
        away *= ratio
        tail = _mills(away)
        ratio *= u
        z_square *= -0.5
        density = np.exp(z_square, out=z_square)
        tail *= density
        density *= weight
        density *= scale
        density *= bend
        density /= ratio
        if self.cauchy is not None:
            flat = self.cauchy[:, columns]
            tail = np.where(flat, np.arctan2(np.float32(1), np.abs(t)) / np.float32(np.pi), tail)
            density = np.where(flat, weight * scale * np.float32(np.sqrt(2 / np.pi)) / (1 + t * t), density)
        below = np.subtract(~np.signbit(t), np.copysign(tail, t, out=tail), out=tail)
        t /= u
        t *= scale
        t *= per + 1
        return _sum(weight, below), density.sum(axis=0), -_sum(t, density)


def _sum(weight: Real, values: Real) -> Any:
    """Weighted sum over the components, (n,)."""
    return np.einsum("cn,cn->n", weight, values)


def _mills(z: Short) -> Short:
    """``(1 - Phi(z)) / exp(-z^2 / 2)`` of z (c, n), none negative: a tenth of the distribution function's time where
    the density is at hand."""
    share = np.float32(1) / (z + np.float32(PIVOT))
    place: Short = np.float32(1) - np.float32(2 * PIVOT) * share
    found = np.full_like(place, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        found *= place
        found += np.float32(coefficient)
    found *= share
    return found
