"""Change of slope: the growth of a time beyond the measured values may turn into another one at any place ahead.

Functions know nothing of what comes after the last measured value: work that is divided ever further falls into a
cache or meets the cost of messages, memory domains fill up and others follow, neighbours to exchange with are no more
from some ranks on. Changes come at a constant rate per e-fold of a parameter. After D measured e-folds, n changes of
which showed, one falls into the next d e-folds with the probability

    1 - (D / (D + d))^(1 + n)

(rule of succession of a Poisson process: Jaynes, *Probability Theory*, 6.9 and 18.6), at a place that is even in the
logarithm. From there on the slope of ln y over ln x follows a normal law (:data:`ranksight.model.priors.SLOPE_AFTER`).

Only as far as a time leaves the values that were measured does it have d e-folds ahead: where another parameter grows
along, the work per rank stays within what was measured, and functions are as good as within the range.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.dims import largest_prime
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search import leastsquares
from ranksight.model.search.gridterms import MOST_RANKS
from ranksight.model.series.noise import Location
from ranksight.model.uncertainty.mixture import Components

LEAST_POINTS = 4
"""Values that show a change of slope."""
NORMAL = 100.0
"""Degrees of freedom from which Student's law is normal."""
DIVIDING = ("ranks", "nodes", "p", "processes")
"""Parameters that divide work and add neighbours."""
EVEN = 7
"""Prime factors up to which numbers of ranks divide domains evenly, as libraries for Fourier transforms have it."""


def primes_of(points: Array, parameters: Sequence[str]) -> Index:
    """Largest prime factor (k, m) of whole numbers of ranks or nodes among `points` (k, m), which divide work the less
    evenly the larger it is; 1 for all else."""
    primes = np.ones(points.shape, dtype=np.intp)
    for axis, name in enumerate(parameters):
        x = points[:, axis]
        if name in DIVIDING and ((x >= 1) & (x == np.round(x)) & (x < MOST_RANKS)).all():
            primes[:, axis] = [largest_prime(int(each)) for each in x.tolist()]
    return primes


def shows(low: float, metrics: Collection[str]) -> bool:
    """Whether runs from `low` ranks on show what ranks of one domain take from each other: with one rank, or where
    nothing but times was measured, whose falls then are all that is known of the work. Counted work differs from times
    by imbalance and waiting as well."""
    return low < 2 or not {"instructions", "flops_dp", "flops_sp"} & set(metrics)


def filled(low: float, high: float) -> float:
    """Probability that costs of work stay those of runs on `low` to `high` ranks, which may have filled a memory domain
    of a node that no platform describes. The more ranks they had the likelier it is that they did. Runs from one rank
    on show what ranks take from each other; further ones do where they lie within one domain."""
    if not 0 < low < high <= priors.WHOLE_NODES:
        return 0.0
    inside = np.clip(np.log(priors.WHOLE_NODES / high) / np.log(priors.WHOLE_NODES / priors.ONE_DOMAIN), 0.0, 1.0)
    reached = min(np.log(high) / np.log(priors.ONE_DOMAIN), 1.0)
    return float(priors.FULL_NODE * reached * (1.0 if low < 2 else inside))


@dataclass(frozen=True)
class Change:
    """Changes of slope of s series at k points: c more components of their mixtures.

    `share`, `centre`, `spread` (c, s, k): probability of each, and the normal law of ln y after it.
    """

    share: Array
    centre: Array
    spread: Array

    def of(self, rows: Index) -> Change:
        """The same of some series."""
        return Change(self.share[:, rows], self.centre[:, rows], self.spread[:, rows])


def turned(points: Array, location: Location, positive: Mask, kind: Kind) -> Array:
    """Changes of slope (s,) that times of one parameter show: how much the slope of a parabola of ln y in ln x changes
    over the measured range. Between ideal scaling and none lies one."""
    x, none = points[:, 0], np.zeros(len(location.values))
    if kind != "time" or points.shape[1] != 1 or (x <= 0).any() or len(x) < LEAST_POINTS:
        return none
    present = (location.repeats > 0) & positive[:, None] & (np.where(location.repeats > 0, location.values, 0.0) > 0)
    place = np.log(x)
    design = np.stack([np.ones_like(place), place, place**2], axis=1)[None]
    y = np.log(np.where(present, location.values, 1.0))
    solved = leastsquares.solve(design, present.astype(np.float64), y)
    first = np.where(present, place, np.inf).min(axis=1)
    last = np.where(present, place, -np.inf).max(axis=1)
    use = (present.sum(axis=1) >= LEAST_POINTS) & np.isfinite(solved.residual[:, 0])
    curve, width = (np.where(use, each, 0.0) for each in (solved.coefficients[:, 0, 2], last - first))
    return np.asarray(np.abs(2 * curve * width))


def with_changes(parts: Components, change: Change | None) -> Components:
    """Add the components of changes to mixtures."""
    if change is None:
        return parts
    share, centre, spread, nu = parts
    # What scatters around the functions does so around what they turn into.
    scatter = (share * spread**2).sum(axis=0)
    turned_share = change.share * (share.sum(axis=0) > 0)
    return Components(
        np.concatenate([share * (1 - turned_share.sum(axis=0)), turned_share]),
        np.concatenate([centre, change.centre]),
        np.concatenate([spread, np.sqrt(change.spread**2 + scatter)]),
        np.concatenate([nu, np.full(turned_share.shape, NORMAL)]),
    )
