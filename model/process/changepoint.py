"""Where a series changes its behaviour for good: a message protocol, a cache that no longer holds the data.

With E the evidence of a part of the values, summed over means and covariances by their prevalence, a change between
two values has the odds

    E(values below) E(values from there on) c / (E(all values) n),    c = exp(:data:`priors.ANOTHER_REGIME`),

n places being equally likely (product partitions: Barry and Hartigan 1993, *Journal of the American Statistical
Association* 88, 309).
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.model import priors
from ranksight.model.process.prevalence import Prevalence
from ranksight.model.process.solve import Data, evidence
from ranksight.model.series.domains import Domains

EACH_SIDE = 3
"""Values on each side of a change at least."""
FEWEST = 7
"""Values from which on changes are looked for."""


def changepoints(x: Array, data: Data, prevalence: Prevalence, domains: Domains | None = None) -> Array:
    """Values (s,) of the coordinate `x` (n,), in ascending order, from which on each series is another; NaN where it
    stays what it is."""
    count = len(x)
    breaks = np.full(len(data.logs), np.nan)
    places = range(EACH_SIDE, count - EACH_SIDE + 1)
    if count < FEWEST:
        return breaks
    prevalence, members, at = prevalence.over(x, domains)

    def total(side: slice) -> Array:
        part = Data(data.u[side] - data.u[side][:1], data.logs[:, side], data.noise[:, side], data.centre[:, side])
        scores = evidence(part, at[:, side], members, prevalence.scales)
        joint = scores + prevalence.joint
        return np.asarray(special.logsumexp(joint.reshape(len(joint), -1), axis=1))

    whole = total(slice(None))
    split = np.stack([total(slice(place)) + total(slice(place, None)) for place in places], axis=1)
    odds = split - whole[:, None] + priors.ANOTHER_REGIME - np.log(len(places))
    best = odds.argmax(axis=1)
    certain = special.logsumexp(odds, axis=1) > 0
    between = np.sqrt(x[1:] * x[:-1])[EACH_SIDE - 1 : count - EACH_SIDE]
    return np.where(certain, between[best], breaks)
