"""Terms over several coordinates: products of powers and logarithms, chosen by how they meet the values along lines.

There are too many products to list their sums. Factors of each coordinate are chosen by how they meet the values along
lines of points that differ in it alone.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.process.prevalence import FALLING, RISING
from ranksight.model.process.solve import Data
from ranksight.model.search.crosswise import lines
from ranksight.model.search.terms import DOUBLING, LIMITED, ONE, Factor, beyond_doubling, limited, values

STEP, NEAREST_ENDS = 0.1, 2
"""E-folds between the values at which a factor may end, and how many of them that meet the values best are offered."""
STEEP, VOLUME = 1.0, 3.0
"""Power beyond which what is added to divided work rarely grows, as messages to each of the others take as long as they
are many; and beyond which a parameter is rarely the side of something."""
FACTORS: tuple[Factor, ...] = (ONE, *FALLING, *RISING, *DOUBLING)
"""Factors that a product may have along any coordinate."""
NATURAL: dict[int, tuple[Factor, ...]] = {
    2: tuple((float(i), float(j), 0.0) for i, j in ((-1, 0), (-2 / 3, 0), (0, 1), (1 / 2, 0), (1, 0), (2, 0), (3, 0))),
    3: tuple((float(i), float(j), 0.0) for i, j in ((-1, 0), (0, 1), (1, 0), (2, 0), (3, 0))),
    4: tuple((float(i), float(j), 0.0) for i, j in ((-1, 0), (0, 1), (1, 0))),
}
"""Factors that every coordinate is offered, by the number of coordinates."""
CHOSEN = {2: 8, 3: 4, 4: 2}
"""Further factors of a coordinate that a series chooses, by the number of coordinates."""


def offered_along(points: Array) -> Array:
    """Factors (m, f, 3) that a product may have along each coordinate of `points` (n, m): :data:`FACTORS`, and
    divisions that end from the second value to the last but one; :data:`ONE` pads."""
    ends = [[limited(each, -1.0) for each in _ends(np.unique(x)).tolist()] for x in points.T]
    most = max(map(len, ends))
    return np.array([[*FACTORS, *each, *[ONE] * (most - len(each))] for each in ends])


def _ends(x: Array) -> Array:
    """Values up to which work may be divided: those of `x` (n,), ascending, with two on either side that are divided or
    are not, and some between them."""
    gaps = itertools.pairwise(x[1:-1])
    steps = [np.geomspace(low, high, 1 + int(np.ceil(np.log(high / low) / STEP))) for low, high in gaps]
    return np.unique(np.concatenate([x[1:-1], *steps]))


@dataclass(frozen=True)
class Products:
    """Terms of s series over m coordinates: products of one factor a coordinate."""

    offered: Array  # (m, f, 3): of :func:`offered_along`
    factors: Index  # (s, t, m): of these

    def part(self, rows: Index) -> Products:
        """Those of some series."""
        return Products(self.offered, self.factors[rows])

    @cached_property
    def terms(self) -> Array:
        """The terms (s, t, m, 3)."""
        return self.offered[np.arange(len(self.offered)), self.factors]

    def at(self, points: Array) -> Array:
        """Their values (s, t, n) at `points` (n, m)."""
        of_factor = [values(each[:, None], x[:, None]) for each, x in zip(self.offered, points.T, strict=True)]
        return np.asarray(math.prod(each[self.factors[..., axis]] for axis, each in enumerate(of_factor)))

    @cached_property
    def likely(self) -> Array:
        """Logarithm (s, t) of how likely each term is before the data. In a power of a share n^d / p of the work, d a
        whole number up to three, the power of n follows from that of p."""
        # Those that are not offered are as many as they are.
        every = np.log(sum(map(_likely, FACTORS)))
        weight = np.log([[_likely(tuple(each)) for each in along] for along in self.offered.tolist()]) - every
        each = weight[np.arange(len(weight)), self.factors]
        power, plain = self.terms[..., 0], self.terms[..., 1] == 0
        follows = np.log(priors.FACTORS["share"]) - every
        for down, up in itertools.permutations(range(power.shape[-1]), 2):
            falls = plain[..., down] & plain[..., up] & (power[..., down] < 0) & (power[..., up] > 0)
            ratio = np.where(falls, -power[..., up] / np.where(falls, power[..., down], 1.0), 0.0)
            share = (np.abs(ratio - np.round(ratio)) < 1e-6) & (ratio > 0.5) & (ratio < VOLUME + 0.5)
            each[..., up] = np.where(share, follows, each[..., up])
        return np.asarray(each.sum(axis=2))

    def numbers(self, members: Index) -> Index:
        """Numbers (s, ..., q) of terms `members` (s, ..., q) that :func:`numbered` knows; -1 pads."""
        radix = self.offered.shape[1] ** np.arange(self.factors.shape[2])
        flat = members.reshape(len(members), -1)
        number = np.take_along_axis(self.factors @ radix, np.maximum(flat, 0), axis=1)
        return np.where(flat < 0, -1, number).reshape(members.shape)

    def prior(self, members: Index) -> Array:
        """Logarithm of the prior (s, h) of sums of different terms `members` (s, h, q); -1 pads.

        The order of terms means nothing. Some sums are rare:

        - Work that is divided along one coordinate grows along another where anything does: no term falls along one and
          stays along the other, along which another term grows.
        - A coordinate divides or multiplies: no two terms fall and grow the other way round.
        - Where work is divided, what grows does not grow steeply (:data:`STEEP`).
        """
        used, which = members >= 0, np.maximum(members, 0).reshape(len(members), -1)
        each = np.take_along_axis(self.likely, which, axis=1).reshape(members.shape)
        odds = np.where(used, each, 0.0).sum(axis=-1) + special.gammaln(1.0 + used.sum(axis=-1))
        power = np.take_along_axis(self.terms[..., 0], which[..., None], axis=1)
        logs = np.take_along_axis(self.terms[..., 1], which[..., None], axis=1)
        shape = (*members.shape, power.shape[-1])
        power, logs = power.reshape(shape), logs.reshape(shape)
        falls, grows = (power < 0) & used[..., None], ((power > 0) | ((power == 0) & (logs > 0))) & used[..., None]

        def some(terms: Mask) -> Mask:
            return np.asarray(terms.any(axis=-1))

        for down, up in itertools.permutations(range(shape[-1]), 2):
            aside = falls[..., down] & ~grows[..., up] & ~falls[..., up]
            odds += np.where(some(aside) & some(grows[..., up]), priors.DIVIDED_ASIDE, 0.0)
            turned = some(falls[..., up] & grows[..., down]) & some(falls[..., down] & grows[..., up])
            odds += np.where(turned & (down < up), priors.DIVIDED_ASIDE, 0.0)
        for axis in range(shape[-1]):
            steep = some((power[..., axis] > STEEP) & used) & some(falls[..., axis])
            odds += np.where(steep, priors.DIVIDED_ASIDE, 0.0)
        return np.asarray(odds)

    def of_free_power(self, members: Index) -> Mask:
        """Which means (s, h) may have other exponents than listed: one term that falls."""
        falls = (self.terms[..., 0] < 0).any(axis=2)
        single = (members >= 0).sum(axis=-1) == 1
        return np.asarray(single & np.take_along_axis(falls, members[..., 0], axis=1))


def numbered(numbers: Index, points: Array) -> Array:
    """The terms (t, m, 3) of `numbers` (t,), of series at `points` (n, m)."""
    offered = offered_along(points)
    coordinates, radix = np.arange(len(offered)), offered.shape[1]
    return np.asarray(offered[coordinates, (numbers[:, None] // radix**coordinates) % radix])


def _likely(factor: Factor) -> float:
    """How often a factor occurs, to a constant: whole powers up to those of volumes and the logarithm more than halves
    and thirds, and these more than others, as those that double."""
    if factor == ONE:
        return priors.FACTORS["none"]
    power = Fraction(factor[0]).limit_denominator(12).denominator
    kind = "other" if power > 3 or abs(factor[0]) > VOLUME or factor[2] else "whole" if power == 1 else "half or third"
    plain = not factor[1] or factor[:2] == (0.0, 1.0) or factor[2] < 0
    return priors.FACTORS[kind] * (1.0 if plain else priors.FACTORS["logarithm"])


@lru_cache(maxsize=4)
def _offered(coordinates: int) -> Index:
    """Numbers of the factors that every coordinate is offered."""
    return np.array([FACTORS.index(each) for each in (ONE, *NATURAL[coordinates])], dtype=np.intp)


def products(points: Array, data: Data) -> Products:
    """The terms of series at `points` (n, m): of the factors that every coordinate is offered, and of those with which
    ``a + b f(x)`` meets the values best along the lines of a coordinate."""
    count, m = len(data.logs), points.shape[1]
    present = ~data.absent
    factors, chosen, offered = offered_along(points), [], _offered(m)
    for axis, along in enumerate(factors):
        at = values(along[:, None], points[:, axis, None])
        score = np.zeros((count, len(along)))
        for rows in lines(points, axis):
            measured = present[:, rows]
            logs = data.logs[:, rows]
            one = np.where(measured, np.exp(logs.mean(axis=1, keepdims=True) - logs), 0.0)
            unit = np.where(np.isfinite(at[:, rows]), at[:, rows], 0.0)
            # Logarithms of values below one are negative.
            factor = (unit / np.maximum(np.abs(unit).max(axis=1, keepdims=True), 1e-300))[None] * one[:, None]
            misfit = _misfit(one, factor, np.asarray(measured, dtype=np.float64))
            score += np.where(measured.sum(axis=1)[:, None] >= 3, misfit, 0.0)
        ends = np.flatnonzero(along[:, 2] == LIMITED)
        np.put_along_axis(score, ends[np.argsort(score[:, ends], axis=1)[:, NEAREST_ENDS:]], np.inf, axis=1)
        score[:, offered] = np.inf
        score[:, beyond_doubling(along[:, None], points[:, axis, None]) | (along == 0).all(axis=1)] = np.inf
        best = np.argsort(score, axis=1, kind="stable")[:, : CHOSEN[m]]
        chosen.append(np.concatenate([np.broadcast_to(offered, (count, len(offered))), best], axis=1))
    place = np.indices(tuple(each.shape[1] for each in chosen)).reshape(m, -1)
    return Products(factors, np.stack([each[:, place[axis]] for axis, each in enumerate(chosen)], axis=2))


def _misfit(one: Array, factor: Array, goal: Array) -> Array:
    """Sum of squares (s, f) that ``a + b f`` leaves of values: the columns `one` (s, n), `factor` (s, f, n), the `goal`
    (s, n)."""
    norm = np.maximum((one**2).sum(axis=1, keepdims=True), 1e-300)
    rest = goal - one * ((one * goal).sum(axis=1, keepdims=True) / norm)
    share = np.einsum("sfn,sn->sf", factor, one) / norm
    orthogonal = factor - share[..., None] * one[:, None]
    size = np.maximum((orthogonal**2).sum(axis=2), 1e-300)
    pull = np.einsum("sfn,sn->sf", orthogonal, rest)
    return np.asarray((rest**2).sum(axis=1, keepdims=True) - pull**2 / size)
