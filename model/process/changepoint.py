"""Where a series changes its behaviour for good: a message protocol, a cache that no longer holds the data.

With E the evidence of a part of the values, summed over means and covariances by their prevalence, a change between
two values has the odds

    E(values below) E(values from there on) c / (E(all values) n),    c = exp(:data:`priors.ANOTHER_REGIME`),

n places being equally likely (product partitions: Barry and Hartigan 1993, *Journal of the American Statistical
Association* 88, 309). Of messages the place is known where it is known how many ranks fill a node: there c / n is the
odds of :data:`priors.NODE_REGIMES`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.model import priors
from ranksight.model.process.compare import SMOOTHING
from ranksight.model.process.prevalence import Prevalence
from ranksight.model.process.solve import Data, evidence, smoothed
from ranksight.model.series.domains import Domains

EACH_SIDE = 3
"""Values on each side of a change at least."""
FEWEST = 7
"""Values from which on changes are looked for."""
STEEP = 2.0
"""Power beyond which growth from one rank to several may be a change."""


def changepoints(
    x: Array, data: Data, prevalence: Prevalence, domains: Domains | None = None, messages: Mask | None = None
) -> Array:
    """Values (s,) of the coordinate `x` (n,), in ascending order, from which on each series is another; NaN where it
    stays what it is.

    `domains`: how `x` ranks fill nodes. `messages` (s,): which series are times of messages.
    """
    count = len(x)
    breaks = np.full(len(data.logs), np.nan)
    places = list(range(EACH_SIDE, count - EACH_SIDE + 1)) if count >= FEWEST else []
    of_messages = np.zeros(len(breaks), dtype=bool) if messages is None else messages
    node = node_place(x, domains) if of_messages.any() else 0
    if not places and not node:
        return breaks
    total = _evidence(x, data, prevalence, domains)
    whole = total(slice(None))
    between = {place: np.sqrt(x[place] * x[place - 1]) for place in places}
    odds = {place: np.full(len(breaks), priors.ANOTHER_REGIME - np.log(len(places))) for place in places}
    if node:
        assert domains is not None
        between[node] = node_break(domains)
        one, step, separate = priors.NODE_REGIMES.values()
        unknown = odds.get(node, np.full(len(breaks), -np.inf))
        odds[node] = np.where(of_messages, np.log((step + separate) / one), unknown)
    split = np.stack([total(slice(place)) + total(slice(place, None)) + odds[place] for place in odds], axis=1)
    split -= whole[:, None]
    best = np.array([between[place] for place in odds])[split.argmax(axis=1)]
    return np.where(special.logsumexp(split, axis=1) > 0, best, breaks)


def first_apart(x: Array, data: Data, prevalence: Prevalence, domains: Domains | None = None) -> Mask:
    """Which series (s,) are another at one of what `x` (n,) counts, in ascending order, than at several: one rank, or
    one node, does not exchange what several do."""
    apart = np.zeros(len(data.logs), dtype=bool)
    if len(x) <= EACH_SIDE or x[0] != 1 or np.isinf(data.noise[:, :2]).any():
        return apart
    steep = np.flatnonzero(np.abs(data.logs[:, 1] - data.logs[:, 0]) > STEEP * np.log(x[1]))
    if len(steep):
        total = _evidence(x, data.part(steep), prevalence, domains)
        apart[steep] = total(slice(1)) + total(slice(1, None)) + priors.ANOTHER_REGIME > total(slice(None))
    return apart


def _evidence(x: Array, data: Data, prevalence: Prevalence, domains: Domains | None) -> Callable[[slice], Array]:
    """The logarithm of the evidence (s,) of some of the values, summed over means and covariances."""
    prevalence, members, at = prevalence.over(x, domains)

    def total(side: slice) -> Array:
        part = Data(data.u[side] - data.u[side][:1], data.logs[:, side], data.noise[:, side], data.logs[:, side])
        joint = evidence(smoothed(part, SMOOTHING), at[:, side], members, prevalence.scales) + prevalence.joint
        return np.asarray(special.logsumexp(joint.reshape(len(joint), -1), axis=1))

    return total


def node_break(domains: Domains) -> float:
    """Ranks from which on some are on a second node."""
    return float(np.nextafter(domains.ranks_per_node, np.inf))


def node_place(x: Array, domains: Domains | None) -> int:
    """Number of values of `x` (n,), ascending, that are on one node, where enough are on more; else 0."""
    within = 0 if domains is None else int(np.searchsorted(x, domains.ranks_per_node, side="right"))
    return within if len(x) - within >= EACH_SIDE else 0
