"""Quantiles of mixtures of Student's t laws, batched.

Components stand one after the other, those of a mixture together, so that mixtures may have any number of them. The law
of a component is evaluated with Wallace's transformation of Student's t to a normal variable (1959, *Annals of
Mathematical Statistics* 30, 1124),

    z^2 = b^2 nu ln(1 + t^2 / nu),   b = 1 - 2 / (8 nu + 3),

within 0.002 of the distribution function from two degrees of freedom on; below, Cauchy's law is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass

CAUCHY = 1.5
"""Degrees of freedom below which the law is taken for Cauchy's."""
NARROWEST = 1e-300
"""Spread that is none."""
FOUND, CLOSE = 1e-6, 1e-3
"""Distances from the probability wanted, on Tukey's scale, at which a root is found, and from which one more of
Newton's steps finds it where it is short, a part :data:`SHORT` of the narrowest component's spread."""
SHORT = 0.1
DIGITS = 1e-14
"""Part of a quantile, and of the distance of the components', that is rounding."""
LARGEST = 1e15
"""Distance in spreads beyond which the tail is the same, whose square is a number of seven digits."""
STEPS = 100
"""Steps at most; halving alone needs fifty."""
PIECE = 60_000
"""Components worked on at a time: as many as stay in a processor's cache."""
UNKNOWN = np.array(np.nan)
"""Of a start that nothing is known of."""
LAMBDA = 0.135
"""Power of Tukey's lambda law that is nearest to the normal one: ``F^l - (1 - F)^l`` is nearly straight in x for a
distribution F that is nearly normal (Tukey 1960; Hastings et al. 1947, *Annals of Mathematical Statistics* 18, 413)."""
PIVOT = 4.0
MILLS = (
    0.75528514, -0.60789657, 0.38713768, -0.18652554, 0.06039476, -0.0075145606, -0.0034753059, 0.0015651109,
    0.0001288929, -0.00015732057,
)  # fmt: skip
"""The upper tail of the normal law from its density, to a ten millionth: ``(z + k) (1 - Phi(z)) / exp(-z^2 / 2)`` as a
polynomial of ``1 - 2 k / (z + k)``, the lowest power first, with ``k`` of :data:`PIVOT`. That maps all z that are not
negative to -1..1, where the polynomial is the least-squares one in the extrema of Chebyshev's of degree 9 (after
Schonfelder 1978, *Mathematics of Computation* 32, 1232)."""


class Components(NamedTuple):
    """Components (c, s, k) of mixtures: weights, centres, spreads and degrees of freedom."""

    weight: Array
    centre: Array
    spread: Array
    freedom: Array


def quantile(probability: float, weight: Array, centre: Array, spread: Array, freedom: Array) -> Array:
    """One of :func:`quantiles`, (...)."""
    return np.asarray(quantiles((probability,), weight, centre, spread, freedom)[0])


def quantiles(
    probabilities: Sequence[float],
    weight: Array,
    centre: Array,
    spread: Array,
    freedom: Array,
    start: Array = UNKNOWN,
) -> Array:
    """Quantiles (p, ...) of mixtures of t laws, to a hundred thousandth of the probability.

    A quantile lies between the least and the largest of the components'. Newton's steps find it on the scale of
    Tukey's lambda law (:data:`LAMBDA`); where one leaves the bracket or gains little, the bracket is halved. `weight`,
    `centre`, `spread`, `freedom` (c, ...): components; a weight of zero leaves one out. A mixture without weight gives
    NaN. `start` (p, ...): where the quantiles are thought to be, NaN where nothing is: the nearer, the fewer steps.
    """
    flat = [np.moveaxis(part, 0, -1).reshape(-1, len(weight)) for part in (weight, centre, spread, freedom)]
    live = flat[0] > 0
    count = np.count_nonzero(live, axis=1)
    answer = np.full((len(probabilities), len(count)), np.nan)
    first = np.broadcast_to(start, (len(probabilities), *weight.shape[1:])).reshape(answer.shape)
    step = max(1, PIECE // max(int(count.max(initial=1)), 1))
    for some in (slice(at, at + step) for at in range(0, len(count), step)):
        used = np.flatnonzero(count[some])
        if not len(used):
            continue
        mixtures = _Mixtures(count[some][used], *(part[some][live[some]] for part in flat))
        for row, probability in enumerate(probabilities):
            answer[row, some.start + used] = mixtures.quantile(probability, first[row, some][used])
    return answer.reshape(len(probabilities), *weight.shape[1:])


@dataclass(frozen=True)
class _Mixtures:
    """Components (l,) of n mixtures, one mixture after the other; `count` (n,) is how many each has."""

    count: Index
    weight: Array
    centre: Array
    spread: Array
    freedom: Array

    def quantile(self, probability: float, first: Array) -> Array:
        """The quantiles (n,) at a probability, looked for from `first` (n,) on where that is known."""
        starts = self._starts
        ends = self.centre + self._reach(probability)
        low, high = np.minimum.reduceat(ends, starts), np.maximum.reduceat(ends, starts)
        total = np.add.reduceat(self.weight, starts)
        first = np.where(np.isnan(first), np.add.reduceat(self.weight * ends, starts) / total, first)
        answer = np.where(np.isfinite(first), np.clip(first, low, high), low + (high - low) / 2)
        least = DIGITS * (np.maximum(np.abs(low), np.abs(high)) + (high - low))
        open_ = high - low > least
        unsettled, place = self._part(open_), np.flatnonzero(open_)
        narrowest = np.minimum.reduceat(self.spread, starts)
        x, low, high, least, narrowest = (part[open_] for part in (answer, low, high, least, narrowest))
        before = np.full(len(place), np.inf)
        for _ in range(STEPS):
            if not len(place):
                break
            off, slope = unsettled._off(x, probability)
            over = off > 0
            low, high = np.where(over, low, x), np.where(over, x, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                near = x - off / slope
            size = np.abs(off)
            good = (near > low) & (near < high) & (size <= 0.5 * before)
            last = good & (size < CLOSE) & (np.abs(near - x) < SHORT * narrowest)
            done = last | (size < FOUND) | (high - low <= least)
            x = np.where(size < FOUND, x, np.where(good, near, low + (high - low) / 2))
            answer[place] = x
            unsettled = unsettled._part(~done)
            left = ~done
            place, x, low, high, least, narrowest, before = (
                part[left] for part in (place, x, low, high, least, narrowest, size)
            )
        return answer

    @property
    def _starts(self) -> Index:
        return np.cumsum(self.count) - self.count

    def _part(self, some: Mask) -> _Mixtures:
        """Some of the mixtures, a mask (n,)."""
        if some.all():
            return self
        live = np.repeat(some, self.count)
        columns = (part[live] for part in (self.weight, self.centre, self.spread, self.freedom))
        return _Mixtures(self.count[some], *columns)

    def _reach(self, probability: float) -> Array:
        """Distance (l,) of each component's quantile from its centre."""
        goal = float(special.ndtri(probability))
        with np.errstate(over="ignore"):
            t = np.sqrt(self.freedom * np.expm1(goal**2 / (_bend(self.freedom) ** 2 * self.freedom)))
        flat = self.freedom < CAUCHY
        if flat.any():
            t = np.where(flat, np.abs(np.tan(np.pi * (probability - 0.5))), t)
        # What does not spread has all of its quantiles at its centre, to the last digit.
        return np.where(self.spread > NARROWEST, np.copysign(t, goal) * self.spread, 0.0)

    def _off(self, x: Array, probability: float) -> tuple[Array, Array]:
        """How far the mixtures' distribution at `x` (n,) is from the probability on Tukey's scale, and its slope."""
        starts, scale = self._starts, 1 / np.maximum(self.spread, NARROWEST)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            t = np.clip((np.repeat(x, self.count) - self.centre) * scale, -LARGEST, LARGEST)
            # Seven digits of a probability are enough, and take a third of the time.
            tail, density = _law(np.abs(t).astype(np.float32), self.freedom.astype(np.float32))
            below = np.where(t < 0, tail, 1 - tail)
            above = np.where(t < 0, 1 - tail, tail)
            lower, upper, dense = (
                np.add.reduceat(self.weight * part, starts) for part in (below, above, density * scale)
            )
            off = lower**LAMBDA - upper**LAMBDA - (probability**LAMBDA - (1 - probability) ** LAMBDA)
            return off / LAMBDA, dense * (lower ** (LAMBDA - 1) + upper ** (LAMBDA - 1))


def _bend(freedom: Array) -> Array:
    """Wallace's factor b."""
    return 1 - 2 / (8 * freedom + 3)


def _law(t: Array, freedom: Array) -> tuple[Array, Array]:
    """Upper tail and density (l,) of Student's t at `t` (l,), none negative."""
    part, bend = t * t / freedom, _bend(freedom)
    z = bend * np.sqrt(freedom * np.log1p(part))
    share = 1 / (z + PIVOT)
    place = 1 - 2 * PIVOT * share
    tail = np.full_like(place, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        tail *= place
        tail += coefficient
    normal = np.exp(-0.5 * z * z)
    tail *= share * normal
    # dz / dt = b^2 t / (z (1 + t^2 / nu)), which is b at the centre.
    steep = np.where(z > 0, bend * bend * t / (np.where(z > 0, z, 1.0) * (1 + part)), bend)
    density = normal * steep / np.sqrt(2 * np.pi)
    flat = freedom < CAUCHY
    if flat.any():
        tail = np.where(flat, np.arctan2(1.0, t) / np.pi, tail)
        density = np.where(flat, 1 / (np.pi * (1 + t * t)), density)
    return tail, density
