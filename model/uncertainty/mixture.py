"""Quantiles of mixtures of Student's t laws, batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]
Index = NDArray[np.intp]
PIECE = 20_000
"""Components evaluated at a time: as many as stay in a processor's cache."""
ALIKE = 1.25
"""Mixtures are worked on together whose numbers of components lie within this factor."""
LAST = 1e-8
"""Distance from the probability wanted, on the normal scale, times the square of the step in spreads of the narrowest
component, below which the step ends at the root: what Halley's step leaves is of third order."""
NEAR = 1e-10
"""Distance that is none."""
NARROWEST = 1e-300
"""Spread that is none."""
STEPS = 90
"""Steps at most; halving alone needs forty."""
CAUCHY = 1.5
"""Degrees of freedom below which the law is taken for Cauchy's."""


def t_cdf(t: Array, freedom: Array) -> Array:
    """Distribution function of Student's t.

    Wallace's normal approximation (1959, *Annals of Mathematical Statistics* 30, 1124), within 0.002 from two degrees
    of freedom and ten times cheaper than the exact one; exact for one.
    """
    t = np.clip(t, -1e100, 1e100)
    z = np.sqrt(freedom * np.log1p(t * t / freedom)) * _bend(freedom)
    return np.where(freedom < CAUCHY, 0.5 + np.arctan(t) / np.pi, ndtr(np.copysign(z, t)))


def _bend(freedom: Array) -> Array:
    return (8 * freedom + 1) / (8 * freedom + 3)


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
    """Quantiles (p, ...) of mixtures of t laws.

    A quantile lies between the least and the largest of the components'. Put on the normal scale, the distribution
    function is nearly straight, so that Halley's steps find its root in two or three (Gander 1985, *American
    Mathematical Monthly* 92, 131); where it is not, as between components far apart, the bracket is halved.

    Parameters
    ----------
    probabilities : sequence of float
    weight, centre, spread, freedom : (c, ...)
        Components; a weight of zero leaves one out. A mixture without weight gives NaN.
    start : (p, ...), optional
        Where the quantiles are thought to be: the nearer, the fewer steps.
    """
    flat = [part.reshape(len(weight), -1) for part in (weight, centre, spread, freedom)]
    answer = np.full((len(probabilities), flat[0].shape[1]), np.nan)
    goals = [float(ndtri(probability)) for probability in probabilities]
    used = np.count_nonzero(flat[0] > 0, axis=0)
    most = _most(int(used.max(initial=0)))[used]
    for count in np.unique(most[used > 0]):
        columns = np.flatnonzero(most == count)
        law = _Law.of(*_held(flat, columns, int(count)))
        reaches: dict[float, Array] = {}
        for row, goal in enumerate(goals):
            # the laws are symmetric: both ends of a central interval are as far
            away = round(abs(goal), 12)
            if away not in reaches:
                reaches[away] = law.reach(away)
            guess = None if start is None else start[row].reshape(-1)[columns]
            answer[row, columns] = law.quantile(goal, reaches[away] if goal >= 0 else -reaches[away], guess)
    return answer.reshape(len(probabilities), *weight.shape[1:])


def _most(largest: int) -> NDArray[np.intp]:
    """With how many components at most each number of them, from none to `largest`, is worked on together."""
    ends = [0]
    while ends[-1] < largest:
        ends.append(min(max(ends[-1] + 1, int(ends[-1] * ALIKE)), largest))
    return np.array(ends, dtype=np.intp)[np.searchsorted(ends, np.arange(largest + 1))]


def _held(flat: Sequence[Array], columns: Index, count: int) -> list[Array]:
    """The components (count, n) with a weight of some mixtures; where there are fewer, the first again without one."""
    parts = list(flat) if len(columns) == flat[0].shape[1] else [part[:, columns] for part in flat]
    weighs = parts[0] > 0
    rows = weighs.any(axis=1)
    if rows.sum() == count:  # the same ones everywhere, as nearly always
        parts, weighs = [part[rows] for part in parts], weighs[rows]
    if len(weighs) == count and weighs.all():
        return parts
    order = np.argsort(~weighs, axis=0, kind="stable")[:count]
    spare = ~np.take_along_axis(weighs, order, axis=0)
    order = np.where(spare, order[0], order)
    weight, *others = (np.take_along_axis(part, order, axis=0) for part in parts)
    return [np.where(spare, 0.0, weight), *others]


@dataclass(frozen=True)
class _Law:
    """Mixtures (c, n) prepared for evaluation.

    With Wallace's ``z^2 = b^2 nu ln u``, ``u = 1 + t^2 / nu``, the density of a component is ``phi(z) b^2 t / (u z)``.
    """

    weight: Array
    centre: Array
    scale: Array
    per: Array
    factor: Array
    height: Array
    cauchy: NDArray[np.bool_] | None

    @classmethod
    def of(cls, weight: Array, centre: Array, spread: Array, freedom: Array) -> _Law:
        scale = 1 / np.maximum(spread, NARROWEST)
        square = _bend(freedom) ** 2
        flat = freedom < CAUCHY
        return cls(
            weight,
            centre,
            scale,
            1 / freedom,
            square * freedom,
            weight * square * scale,
            flat if flat.any() else None,
        )

    def reach(self, goal: float) -> Array:
        """Distance of each component's quantile at `goal`, none below the median, from its centre."""
        if goal == 0:
            return np.zeros_like(self.centre)
        with np.errstate(over="ignore"):
            square = np.expm1(goal**2 / self.factor)
            square /= self.per
        reach = np.sqrt(square, out=square)
        if self.cauchy is not None:
            reach = np.where(self.cauchy, np.tan(np.pi * (ndtr(goal) - 0.5)), reach)
        reach /= self.scale
        # What does not spread has all of its quantiles at its centre, to the last digit.
        reach[self.scale >= 1 / NARROWEST] = 0.0
        return reach

    def at(self, x: Array, which: Index | None) -> tuple[Array, Array, Array]:
        """Distribution function at `x` (n,) of all mixtures, or of some, and its first two derivatives times the square
        root of 2 pi.

        The second derivative is that of the exact law, ``-(nu + 1) t / (nu u)`` times the first.
        """
        found = np.empty((3, len(x)))
        size = max(1, PIECE // len(self.weight))
        for start in range(0, len(x), size):
            some = slice(start, start + size)
            columns = some if which is None else which[some]
            found[:, some] = self._piece(x[some], columns)
        return found[0], found[1], found[2]

    def _piece(self, x: Array, columns: Index | slice) -> tuple[Array, Array, Array]:
        def of(part: Array) -> Array:
            return part[:, columns] if isinstance(columns, slice) else part.take(columns, axis=1)

        weight, scale, per = of(self.weight), of(self.scale), of(self.per)
        t = x - of(self.centre)
        t *= scale
        np.clip(t, -1e100, 1e100, out=t)
        square = t * t
        square += 1e-200
        part = square * per
        u = part + 1
        # log1p(part) in half of its time: what the rounding of u took is put back
        z_square = np.log(u)
        part -= u - 1
        part /= u
        z_square += part
        z_square *= of(self.factor)
        ratio = np.divide(z_square, square, out=part)
        np.sqrt(ratio, out=ratio)
        below = ndtr(np.multiply(t, ratio, out=square), out=square)
        ratio *= u
        z_square *= -0.5
        density = np.exp(z_square, out=z_square)
        density *= of(self.height)
        density /= ratio
        if self.cauchy is not None:
            flat = self.cauchy[:, columns]
            below = np.where(flat, 0.5 + np.arctan(t) / np.pi, below)
            density = np.where(flat, weight * scale * np.sqrt(2 / np.pi) / (1 + t * t), density)
        t *= scale
        t /= u
        t *= per + 1
        return _sum(weight, below), density.sum(axis=0), -_sum(t, density)

    def quantile(self, goal: float, reach: Array, guess: Array | None = None) -> Array:
        """The quantiles (n,) at `goal` on the normal scale; `reach` (c, n) is that of the components."""
        ends = self.centre + reach
        if len(ends) == 1:
            return np.asarray(ends[0])
        low, high = ends.min(axis=0), ends.max(axis=0)
        finest = self.scale.max(axis=0)
        if guess is None:  # each component taken for straight around its own quantile
            slope = self.weight * (self.scale / finest)
            guess = _sum(slope, ends) / slope.sum(axis=0)
        x = answer = np.asarray(np.clip(guess, low, high))
        furthest = np.maximum(reach.max(axis=0), -reach.min(axis=0))
        least = 1e-12 * (furthest + high - low) + 4e-16 * np.maximum(np.abs(low), np.abs(high))
        before = np.full(len(answer), np.inf)
        left, which = high - low > least, None
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for _ in range(STEPS):
                if not left.all():
                    which = np.flatnonzero(left) if which is None else which[left]
                    x, low, high, least, before, finest = (part[left] for part in (x, low, high, least, before, finest))
                if not len(x):
                    break
                below, density, slope = self.at(x, which)
                y = ndtri(np.clip(below, 1e-300, 1 - 1e-16))
                off = y - goal
                # Derivatives on the normal scale, their common factor of the normal density taken in.
                normal = np.exp(-0.5 * y * y)
                first = density / normal
                newton = off / first
                curve = 0.5 * newton * (slope / normal + y * first * first) / first
                over = off > 0
                low, high = np.where(over, low, x), np.where(over, x, high)
                near = x - newton / np.maximum(1 - curve, 0.5)
                size = np.abs(off)
                there = size < NEAR
                # Steps that leave the bracket or gain little are replaced by halving it.
                good = (near > low) & (near < high) & (size <= 0.5 * before)
                straight = good & (size * ((near - x) * finest) ** 2 < LAST)
                x = np.where(good, near, np.where(there, x, low + (high - low) / 2))
                if which is None:
                    answer = x
                else:
                    answer[which] = x
                left = ~(straight | there | (high - low <= least))
                before = size
        return answer


def _sum(weight: Array, values: Array) -> Array:
    """Weighted sum over the components, (n,)."""
    return np.asarray(np.einsum("cn,cn->n", weight, values))
