"""What ranks do together within a node, and beyond it: two regimes, of which a machine knows the boundary.

    ln y(p) = m(p) + r(p),     r(p) = 0 beyond a node,     r ~ GP(0, NODE_STEP^2 R)  within one

Within a node messages go through its memory and start-up through its scheduler, beyond it through an adapter that its
ranks share. Whether that matters is a hypothesis: there is one regime (r = 0), a step at the boundary (R = 1), or runs
within a node follow a law of their own (R = exp(-|u - v| / OWN_LENGTH)) and know nothing of what is beyond it. The
covariance is added to that of every other departure from the mean, and marginal likelihood weighs the three.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.model.priors import NODE_REGIMES, NODE_STEP

OWN_LENGTH = 1.0
"""E-folds of the coordinates within which a law of its own is forgotten."""


def covariance(first: Array, within: Mask, second: Array, second_within: Mask) -> Array:
    """Covariance (3, a, b) of r under each of :data:`ranksight.model.priors.NODE_REGIMES`.

    `first` (a, d) and `second` (b, d): logarithms of the coordinates. `within` (a,) and `second_within` (b,): where all
    ranks are on one node.
    """
    distance = np.sqrt(((first[:, None] - second[None]) ** 2).sum(axis=2))
    both_within = within[:, None] & second_within[None]
    each = np.stack([np.zeros_like(distance), np.ones_like(distance), np.exp(-distance / OWN_LENGTH)])
    return np.asarray(NODE_STEP**2 * np.where(both_within, each, 0.0))


def variance(within: Mask) -> Array:
    """Variance (3, a) of r where all ranks are on one node, or are not, `within` (a,)."""
    two_regimes = np.arange(len(NODE_REGIMES))[:, None] > 0
    return np.asarray(NODE_STEP**2 * np.where(two_regimes & within, 1.0, 0.0))


def prior(within: Mask) -> Array:
    """Prior weights (3,) of the regimes, where runs are on one node or are not, `within` (n,). Runs that are all within
    one have one law."""
    one, step, separate = NODE_REGIMES.values()
    return np.array([one, step + separate, 0.0] if within.all() else [one, step, separate])
