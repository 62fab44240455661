"""What ln BF_comm departs from its shape by: rates over the coordinates, and regimes within a node."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.hypotheses import Hypotheses
from ranksight.model.kernel_time.rates import JITTER
from ranksight.model.priors import NODE_REGIMES
from ranksight.model.series import node_regimes


@dataclass(frozen=True)
class Covariances:
    """Covariances of what ln BF departs from its shape by, c of them: those of a rate
    (:class:`ranksight.model.kernel_time.hypotheses.Hypotheses`), each with those of a regime within the node
    (:mod:`ranksight.model.series.node_regimes`)."""

    parameters: tuple[str, ...]
    columns: tuple[int, ...]
    measured: Array  # (n, m): configurations measured
    node: float

    @cached_property
    def _rates(self) -> Hypotheses:
        several = range(len(self.columns))
        with_ranks = {tuple(place in (0, other) for place in several) for other in several}
        without = {tuple(place == other for place in several) for other in several if other}
        return Hypotheses.over(tuple(sorted(with_ranks | without)))

    @cached_property
    def _count(self) -> int:
        return len(NODE_REGIMES) if self.node > 0 else 1

    @cached_property
    def noise(self) -> Array:
        """Variance (c,) between configurations, beyond repetitions."""
        return np.tile(self._rates.noise**2 + JITTER, self._count)

    @cached_property
    def prior(self) -> Array:
        """Prior weights (c,) of departures over all coordinates, where BF has no shape."""
        regime = node_regimes.prior(self._within(self.measured)) if self.node > 0 else np.ones(1)
        return np.asarray((regime[:, None] * self._rates.prior * self._rates.active[:, 0]).reshape(-1))

    @cached_property
    def prior_of_shaped(self) -> Array:
        """Prior weights (c,) of departures from a shape over ranks: over other coordinates, or none but noise."""
        regime = node_regimes.prior(self._within(self.measured)) if self.node > 0 else np.ones(1)
        rates = self._rates
        usable = ~rates.active[:, 0] if len(self.columns) > 1 else (rates.slope == 0) & (rates.scale == 0)
        return np.asarray((regime[:, None] * rates.prior * usable).reshape(-1))

    def _within(self, points: Array) -> Mask:
        return np.asarray(points[:, self.parameters.index("ranks")] <= self.node)

    def _places(self, points: Array) -> Array:
        origin = coordinates(self.measured, self.columns).mean(axis=0)
        return np.asarray(coordinates(points, self.columns) - origin)

    def between(self, first: Array, second: Array, chosen: Index) -> Array:
        """Covariance (r, a, b), without noise, of the hypotheses `chosen` (r,) between points (a, m) and (b, m)."""
        regime, rate = np.divmod(chosen, len(self._rates.noise))
        total = self._rates.select(rate).covariance(self._places(first), self._places(second))
        if self.node > 0:
            ends = (self._places(first), self._within(first), self._places(second), self._within(second))
            total = total + node_regimes.covariance(*ends)[regime]
        return np.asarray(total)

    def variance(self, points: Array, chosen: Index) -> Array:
        """Variance (r, k) at `points` (k, m), with noise between configurations."""
        regime, rate = np.divmod(chosen, len(self._rates.noise))
        total = self._rates.select(rate).variance(self._places(points))
        if self.node > 0:
            total = total + node_regimes.variance(self._within(points))[regime]
        return np.asarray(total)


def nodes_of(ranks: Array, node: float) -> Array:
    """Nodes (k,) that `ranks` (k,) fill; 1 where it is not known how many ranks one takes."""
    return np.ceil(np.maximum(ranks, 1.0) / node) if node > 0 else np.ones(len(ranks))


def coordinates(points: Array, columns: tuple[int, ...]) -> Array:
    """Logarithms (k, d) of the parameters that are coordinates at `points` (k, m)."""
    return np.asarray(np.log(np.maximum(points[:, list(columns)], 1e-300)))
