"""Covariances that rates may have, one a hypothesis, and those of what ranks do within a node and beyond it.

These are two regimes, of which a machine knows the boundary.

    ln y(p) = m(p) + r(p),     r(p) = 0 beyond a node,     r ~ GP(0, NODE_STEP^2 R)  within one

Within a node messages go through its memory and start-up through its scheduler, beyond it through an adapter that its
ranks share. Whether that matters is a hypothesis: there is one regime (r = 0), a step at the boundary (R = 1), or runs
within a node follow a law of their own (R = exp(-|u - v| / OWN_LENGTH)) and know nothing of what is beyond it. The
covariance is added to that of every other departure from the mean, and marginal likelihood weighs the three.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.priors import (
    NODE_REGIMES,
    NODE_STEP,
    RATE_CENTRES,
    RATE_KNEE,
    RATE_LENGTHS,
    RATE_LEVELS,
    RATE_NOISE,
    RATE_SCALES,
    RATE_SHAPE,
    RATE_SLOPE,
    RATE_SMOOTH_SHARE,
)


@dataclass(frozen=True)
class Hypotheses:
    """The grid of hypotheses of a rate, h of them over d coordinates."""

    active: Mask  # (h, d): coordinates that act
    slope: Array  # (h,): s_b
    scale: Array  # (h,): s
    length: Array  # (h,): the length of R, in e-folds
    noise: Array  # (h,): q
    rough: Mask  # (h,): whether R is of smoothness 1/2
    prior: Array  # (h,)
    knee: Array  # (h,): e-folds from its centre at which a rate levels off; 0 where it follows a power law
    centre: Array  # (h,): where it changes fastest

    @classmethod
    def over(cls, variants: tuple[tuple[bool, ...], ...]) -> Hypotheses:
        """The grid for the sets of coordinates in `variants`, which have equal priors."""
        rows = []
        changes = [(0.0, 1.0, False, 1 - RATE_SMOOTH_SHARE)]
        each = RATE_SMOOTH_SHARE / (len(RATE_SCALES) * len(RATE_LENGTHS))
        changes += [(s, length, rough, each) for s, (rough, length) in product(RATE_SCALES, RATE_LENGTHS)]
        even = 1 / (2 * len(variants) * len(RATE_NOISE))
        for variant, slope, (s, length, rough, share), q in product(variants, (0.0, RATE_SLOPE), changes, RATE_NOISE):
            share *= (1 - RATE_LEVELS) if slope and not s else 1.0
            rows.append((*variant, slope, s, length, rough, q, share * even, 0.0, 0.0))
        each = (1 - RATE_SMOOTH_SHARE) * RATE_LEVELS / len(RATE_CENTRES)
        rough, length = RATE_LENGTHS[-1]
        for variant, centre, q in product(variants, RATE_CENTRES, RATE_NOISE):
            rows.append((*variant, RATE_SLOPE, RATE_SHAPE, length, rough, q, each * even, RATE_KNEE, centre))
        table = np.array(rows, dtype=np.float64)
        d = len(variants[0])
        slope, scale, length, rough, noise, prior, knee, centres = table[:, d:].T
        return cls(table[:, :d] > 0, slope, scale, length, noise, rough > 0, prior, knee, centres)

    def select(self, which: Index) -> Hypotheses:
        """Some of the hypotheses."""
        return Hypotheses(*(getattr(self, each.name)[which] for each in fields(self)))

    def variance(self, points: Array) -> Array:
        """Variance (h, k) of ln r - a at the points (k, d), with the noise between configurations."""
        squares = np.einsum("hd,hkd->hk", self.active.astype(np.float64), self._followed(points) ** 2)
        scatter = self.scale**2 + self.noise**2
        return np.asarray(self.slope[:, None] ** 2 * squares + scatter[:, None])

    def covariance(self, first: Array, second: Array) -> Array:
        """Covariance (h, a, b) of ln r - a, without noise, between the points (a, d) and (b, d)."""
        acting = self.active.astype(np.float64)
        distance = np.sqrt(np.einsum("hd,abd->hab", acting, (first[:, None] - second[None]) ** 2))
        distance /= self.length[:, None, None]
        root = np.sqrt(3.0) * distance
        matern = np.where(self.rough[:, None, None], np.exp(-distance), (1 + root) * np.exp(-root))
        linear = np.einsum("hd,had,hbd->hab", acting, self._followed(first), self._followed(second))
        return np.asarray(self.slope[:, None, None] ** 2 * linear + self.scale[:, None, None] ** 2 * matern)

    def _followed(self, points: Array) -> Array:
        """Coordinates (h, k, d) that a rate is linear in: the points (k, d), or what levels off with them."""
        knee = np.where(self.knee > 0, self.knee, 1.0)[:, None, None]
        centre = self.centre[:, None, None]
        level = knee * (np.tanh((points - centre) / knee) + np.tanh(centre / knee))
        return np.asarray(np.where(self.knee[:, None, None] > 0, level, points))


OWN_LENGTH = 1.0
"""E-folds of the coordinates within which a law of its own is forgotten."""


def covariance_of_regimes(first: Array, within: Mask, second: Array, second_within: Mask) -> Array:
    """Covariance (3, a, b) of r under each of :data:`ranksight.model.priors.NODE_REGIMES`.

    `first` (a, d) and `second` (b, d): logarithms of the coordinates. `within` (a,) and `second_within` (b,): where all
    ranks are on one node.
    """
    distance = np.sqrt(((first[:, None] - second[None]) ** 2).sum(axis=2))
    both_within = within[:, None] & second_within[None]
    each = np.stack([np.zeros_like(distance), np.ones_like(distance), np.exp(-distance / OWN_LENGTH)])
    return np.asarray(NODE_STEP**2 * np.where(both_within, each, 0.0))


def variance_of_regimes(within: Mask) -> Array:
    """Variance (3, a) of r where all ranks are on one node, or are not, `within` (a,)."""
    two_regimes = np.arange(len(NODE_REGIMES))[:, None] > 0
    return np.asarray(NODE_STEP**2 * np.where(two_regimes & within, 1.0, 0.0))


def prior_of_regimes(within: Mask) -> Array:
    """Prior weights (3,) of the regimes, where runs are on one node or are not, `within` (n,). Runs that are all within
    one have one law."""
    one, step, separate = NODE_REGIMES.values()
    return np.array([one, step + separate, 0.0] if within.all() else [one, step, separate])
