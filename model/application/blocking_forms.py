"""Shapes that BF_comm may have over ranks besides a power law with slow changes.

    growth      f = ln(1 + r B_e(x)),  B_e(x) = (x^e - 1) / e, ln x where e = 0     x: ranks over the fewest, or nodes
    levelling   f = ln(1 + (exp(-d) - 1) w(p / s)),  w(x) = 1 / (1 + x), 1 / (1 + x^2) or exp(-x)
    step        f = d where p > t
    knee        f = e ln max(p / t, 1)
    contention  f = ln(1 + r max(n / t - 1, 0)^e)                             n: nodes

Growth (Box and Cox 1964) has a part that is constant and one that goes with a power of the ranks or nodes: rounds of a
tree that wait (e = 0), links that ranks contend for (e > 0), what levels off as a power does (e < 0). Levelling starts
from d below a level, which it nears over s ranks. Beyond a number of ranks that no platform knows, messages pass one
more switch or take another protocol (a step), or a link is full that was not before (a knee). Contention begins with
the nodes beyond t, one or several that were run. Each is one hypothesis with priors of its parameters on a grid; growth
over ranks, over nodes and contention share the weight of growth.

What ln BF_comm departs from its shape by: rates over the coordinates, and regimes within a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.hypotheses import (
    Hypotheses,
    covariance_of_regimes,
    prior_of_regimes,
    variance_of_regimes,
)
from ranksight.model.kernel_time.rates import JITTER
from ranksight.model.priors import NODE_REGIMES

CONSTANT, GROWTH, NODES, LEVELLING = "constant", "growth", "growth over nodes", "levelling"
STEP, KNEE, CONTENTION = "step", "knee", "contention"
SHAPES = (CONSTANT, GROWTH, NODES, LEVELLING, STEP, KNEE, CONTENTION)
RATES = np.geomspace(0.02, 20.0, 193)
"""Growth r at the fewest ranks, or its size where BF falls."""
POWERS = np.concatenate([[-2.0, -1.5], np.arange(-12, 13) / 12])
"""Powers e, as close as values without scatter distinguish: beyond 1, more ranks would wait than there are."""
LEVELS, WIDE = np.linspace(-6.0, 6.0, 121), 2.0
"""Logarithm of the level over the value of few ranks, d, and the standard deviation of its normal prior."""
NOTHING, FROM_NOTHING = 30.0, 0.2
"""The d of a level that is neared from nothing, and its prior weight."""
NEARED = (0.0, 1.0, 2.0)
"""How a level is neared: powers of the ranks, and 0 for an exponential function."""
REACH, STEPS = 4.0, 10
"""Ranks s beyond the fewest and the most measured, as a factor, and how many are between twice as many."""
JUMPS = 1.0
"""Standard deviation of the normal prior of the step d."""
EACH_SIDE = 2
"""Numbers of ranks measured on each side of a step at least: one value alone may be odd for other reasons."""
KNEES = 48
"""Numbers of ranks t of a knee, evenly apart in the logarithm over those measured."""
FULL = np.arange(1, 9) / 8
"""Powers beyond the knee: a full link takes its messages one after the other, 1, or ranks share further ones."""
BEGINNING = np.arange(1, 17) / 16
"""Powers of the nodes beyond those from which on they contend."""
LEAST = 1e-9
"""Part of the value at the fewest ranks that BF has at least."""


def grids(ranks: Array, nodes: Array) -> dict[str, tuple[Array, Array]]:
    """Parameters (g, 3) of the combinations of each shape, and their prior weights (g,).

    `ranks` (u,): distinct numbers measured, ascending. `nodes` (v,): distinct numbers of nodes.
    """
    low, high = float(ranks[0]), float(ranks[-1])
    between = np.sqrt(ranks[EACH_SIDE - 1 : -EACH_SIDE] * ranks[EACH_SIDE : len(ranks) - EACH_SIDE + 1])
    combinations = {CONSTANT: _mesh([0.0], [0.0], [0.0]), LEVELLING: _levelling(low, high)}
    growth = np.array([(r, e, 0.0) for e in POWERS for r in _rates(e)])
    combinations |= {GROWTH: growth}
    if len(nodes) > 1:
        combinations |= {NODES: growth, CONTENTION: _mesh(RATES, BEGINNING, nodes[:-1])}
    if high > low:
        combinations[KNEE] = _mesh(np.geomspace(low, high, KNEES + 1)[:-1], FULL, [0.0])
    if len(between):
        combinations[STEP] = _mesh(LEVELS, between, [0.0])
    weights = {name: np.ones(len(each)) for name, each in combinations.items()}
    for name, wide in ((LEVELLING, WIDE), (STEP, JUMPS)):
        if name in combinations:
            weights[name] = np.exp(-((combinations[name][:, 0] / wide) ** 2) / 2)
    nothing = combinations[LEVELLING][:, 0] == NOTHING
    weights[LEVELLING][nothing] = FROM_NOTHING * weights[LEVELLING].sum() / nothing.sum()
    return {name: (each, weights[name] / weights[name].sum()) for name, each in combinations.items()}


def _levelling(low: float, high: float) -> Array:
    first, last = np.log2(low / REACH), np.log2(REACH * high)
    return _mesh([*LEVELS, NOTHING], 2.0 ** np.linspace(first, last, round(STEPS * (last - first)) + 1), NEARED)


def _rates(power: float) -> Array:
    """Rates at which BF rises, and those at which it falls to a level that is not below zero."""
    return np.concatenate([RATES, -RATES[RATES + power < 0], [power] if power < 0 else []])


def _mesh(*axes: ArrayLike) -> Array:
    columns: list[Array] = [np.asarray(each, dtype=np.float64) for each in axes]
    return np.stack([each.ravel() for each in np.meshgrid(*columns, indexing="ij")], axis=1)


def at(shape: str, parameters: Array, ranks: Array, nodes: Array, low: float) -> Array:
    """f (g, k) of a shape with `parameters` (g, 3) at `ranks` (k,) on `nodes` (k,)."""
    first, second, third = (each[:, None] for each in parameters.T)
    if shape in (GROWTH, NODES):
        logs = np.log(np.maximum(nodes if shape == NODES else ranks / low, 1e-300))
        power = np.where(second == 0, 1.0, second)
        with np.errstate(over="ignore"):
            grown = np.where(second == 0, logs, np.expm1(second * logs) / power)
        return np.asarray(np.log(np.maximum(1 + first * grown, LEAST)))
    if shape == LEVELLING:
        x = ranks / second
        left = np.where(third > 0, 1 / (1 + x**third), np.exp(-x))
        return np.asarray(np.log1p(np.expm1(-first) * left))
    if shape == STEP:
        return np.asarray(first * (ranks > second))
    if shape == CONTENTION:
        return np.asarray(np.log1p(first * np.maximum(nodes / third - 1, 0.0) ** second))
    if shape == KNEE:
        return np.asarray(second * np.log(np.maximum(ranks / first, 1.0)))
    return np.zeros((len(parameters), len(ranks)))


def priors(shapes: Mapping[str, float], grid: Mapping[str, tuple[Array, Array]]) -> dict[str, float]:
    """Prior weights of the shapes that there are: growth over ranks and over nodes are one hypothesis."""
    growing = [name for name in (GROWTH, NODES, CONTENTION) if name in grid]
    return {name: shapes[GROWTH] / len(growing) if name in growing else shapes[name] for name in grid}


@dataclass(frozen=True)
class Covariances:
    """Covariances of what ln BF departs from its shape by, c of them: those of a rate
    (:class:`ranksight.model.kernel_time.hypotheses.Hypotheses`), each with those of a regime within the node
    (:mod:`ranksight.model.kernel_time.hypotheses`)."""

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
        regime = prior_of_regimes(self._within(self.measured)) if self.node > 0 else np.ones(1)
        return np.asarray((regime[:, None] * self._rates.prior * self._rates.active[:, 0]).reshape(-1))

    @cached_property
    def prior_of_shaped(self) -> Array:
        """Prior weights (c,) of departures from a shape over ranks: over other coordinates, or none but noise."""
        regime = prior_of_regimes(self._within(self.measured)) if self.node > 0 else np.ones(1)
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
            total = total + covariance_of_regimes(*ends)[regime]
        return np.asarray(total)

    def variance(self, points: Array, chosen: Index) -> Array:
        """Variance (r, k) at `points` (k, m), with noise between configurations."""
        regime, rate = np.divmod(chosen, len(self._rates.noise))
        total = self._rates.select(rate).variance(self._places(points))
        if self.node > 0:
            total = total + variance_of_regimes(self._within(points))[regime]
        return np.asarray(total)


def nodes_of(ranks: Array, node: float) -> Array:
    """Nodes (k,) that `ranks` (k,) fill; 1 where it is not known how many ranks one takes."""
    return np.ceil(np.maximum(ranks, 1.0) / node) if node > 0 else np.ones(len(ranks))


def coordinates(points: Array, columns: tuple[int, ...]) -> Array:
    """Logarithms (k, d) of the parameters that are coordinates at `points` (k, m)."""
    return np.asarray(np.log(np.maximum(points[:, list(columns)], 1e-300)))
