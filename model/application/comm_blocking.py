"""BF_comm: the measured time of communication over the modelled one, as rates over ranks and sizes.

    T_comm,measured = sum over kinds of operations k of  BF_k T_k,      BF_comm = T_comm,measured / sum T_k

(Ding et al. 2018, equation 1 and Table 2). Below 1 communication overlaps with computation or with itself, above 1
ranks wait for each other. Messages between two ranks are one kind, each collective operation another, as one may
overlap while the other waits. ln BF_k is constant or a power with slow changes, a Gaussian process
(:mod:`ranksight.model.kernel_time.rates`), with more or less scatter from run to run as further hypotheses; or it is a
logarithm, nears a level, or steps at the node (:mod:`ranksight.model.application.blocking_forms`). At a measured
configuration BF_k is what was measured there. What the slowest rank computes longer than the mean is T_imbalance in the
program's time, and does not count as communication again.

Which algorithm a library takes for a collective depends on its version, its settings and the nodes. Where nobody states
it (``collectives`` or ``algorithms`` of a platform's ``[network]``), every library and algorithm is a hypothesis of how
the time grows. Its posterior weight is the marginal likelihood of its BF_k: the right one needs a rate that hardly
changes. Hypotheses are scaled to the library's own level at the measured configurations, and mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import FETCHES, NEIGHBOURS, RECEIVES, SENDS
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.application.blocking_forms import CONSTANT, SHAPES, grids, priors
from ranksight.model.application.blocking_forms import at as shape_at
from ranksight.model.kernel_time.rates import JITTER, Hypotheses
from ranksight.model.plaindata import Stored
from ranksight.model.priors import BLOCKING_SHAPES, CONTINUED, NODE_REGIMES, REPEATED, UNSEEN
from ranksight.model.series import regimes

POINT_TO_POINT = "point-to-point"
"""Kind of all messages between two ranks, with the operations that end them."""
STATED = ""
"""Name of the hypothesis that takes the algorithms as the network states them."""
LIBRARY = "library "
"""How the name of a hypothesis begins that takes a library's algorithms."""
MOST, LEAST_WEIGHT = 64, 1e-3
"""Hypotheses of a kind that are kept at most, and their smallest posterior weight over the largest."""
ABSENT = 1e6
"""Variance of a value that was not measured: it moves nothing."""
LARGEST = 4_000_000
"""Numbers of the matrices that are inverted at once."""
SAME = 1e-9
"""Difference of logarithms up to which configurations are the same."""


def kind_of(operation: str) -> str:
    """The kind of an operation; empty where it is no communication of the model, such as making communicators."""
    name = operation_name(operation)
    if name in OPERATIONS:
        return name
    return POINT_TO_POINT if any(name in held for held in (SENDS, FETCHES, NEIGHBOURS, RECEIVES)) else ""


def costs_time(operation: str) -> bool:
    """Whether an operation is one whose time on a network is known."""
    name = operation_name(operation)
    return name in SENDS or name in OPERATIONS


@dataclass(frozen=True)
class Taken(Stored):
    """What communication took in the program at n configurations, without T_imbalance.

    `points` (n, m): configurations. `logs` and `errors` (q, n): logarithms of the seconds of each kind, NaN where there
    are none, and their standard errors.
    """

    kinds: tuple[str, ...]
    points: Array
    logs: Array
    errors: Array

    def _fits(self) -> bool:
        shape = (len(self.kinds), len(self.points))
        return self.points.ndim == 2 and self.logs.shape == self.errors.shape == shape


@dataclass(frozen=True)
class Blocking(Stored):
    """BF_comm of each kind under weighted hypotheses, K rows in all: a way, a shape, and a departure from it."""

    parameters: tuple[str, ...]
    columns: tuple[int, ...]  # parameters whose logarithms are coordinates
    kinds: tuple[str, ...]  # of each row; the way is :data:`STATED`, ``library NAME`` or an algorithm
    ways: tuple[str, ...]
    weights: Array  # (K,): posterior weights, 1 in sum over the rows of a kind
    levels: Array  # (K,): logarithms of the scale of each way
    shapes: tuple[str, ...]  # of :mod:`ranksight.model.application.blocking_forms`
    shaped: Array  # (K, 3): their parameters
    departures: Index  # (K,): covariance of what departs from the shape, a row of :class:`Covariances`
    values: Array  # (K, n): ln BF as measured, relative to the scaled way; NaN where there is none
    errors: Array  # (K, n): their standard errors from repetitions
    node: float  # ranks that fill a node; 0 where it is not known
    taken: Taken  # what all was learned from

    def at(self, points: Array) -> tuple[Array, Array, Mask]:
        """Means and standard deviations of ln BF at `points` (k, m), and where it was measured; each (K, k).

        Beyond the runs BF grows no faster than the ranks: then all messages of the program go one after the other.
        """
        place, count = self.parameters.index("ranks"), len(points)
        most = float(self.taken.points[:, place].max())
        nearest = points.copy()
        nearest[:, place] = np.minimum(points[:, place], most)
        mean, spread = self._at(np.concatenate([points, nearest]))
        further = np.log(np.maximum(points[:, place] / most, 1.0))
        mean, spread = np.minimum(mean[:, :count], mean[:, count:] + further), spread[:, :count]
        inputs, measured = (coordinates(each, self.columns) for each in (points, self.taken.points))
        same = np.asarray((np.abs(inputs[:, None] - measured[None]) < SAME).all(axis=2))
        there = np.asarray(same[None] & np.isfinite(self.values)[:, None])
        exact = np.asarray(there.any(axis=2))
        mean = np.where(exact, np.take_along_axis(self.values, there.argmax(axis=2), axis=1), mean)
        return mean, np.asarray(np.sqrt(spread**2 + REPEATED**2 + (UNSEEN * self.beyond(points)) ** 2)), exact

    def _at(self, points: Array) -> tuple[Array, Array]:
        """Means and standard deviations (K, k) of each row's hypothesis, by generalised least squares."""
        covariances = self._covariances
        measured = self.taken.points
        chosen, row = np.unique(self.departures, return_inverse=True)
        known = np.isfinite(self.values)
        noise = np.where(known, self.errors**2, ABSENT)
        total = covariances.between(measured, measured, chosen)[row]
        total = total + (noise + covariances.noise[self.departures][:, None])[..., None] * np.eye(len(measured))
        inverted = np.linalg.inv(total)
        residual = np.where(known, self.values - self._shape(measured), 0.0)
        sums = inverted.sum(axis=2)
        weight = sums.sum(axis=1, keepdims=True)
        level = (sums * residual).sum(axis=1, keepdims=True) / weight
        cross = covariances.between(points, measured, chosen)[row]
        gain = cross @ inverted
        mean = level + self._shape(points) + np.einsum("rkn,rn->rk", gain, residual - level)
        missing = 1 - gain.sum(axis=2)  # of the level, which is known as well as the values determine it
        square = covariances.variance(points, chosen)[row] - (gain * cross).sum(axis=2) + missing**2 / weight
        return mean, np.sqrt(np.maximum(square, 0.0))

    def _shape(self, points: Array) -> Array:
        """The shape of each row at `points` (k, m), (K, k)."""
        at_ranks = points[:, self.parameters.index("ranks")]
        low = float(self.taken.points[:, self.parameters.index("ranks")].min())
        found, names = np.empty((len(self.shapes), len(points))), np.array(self.shapes)
        for name in set(self.shapes):
            rows = names == name
            found[rows] = shape_at(name, self.shaped[rows], at_ranks, nodes_of(at_ranks, self.node), low)
        return found

    @cached_property
    def _covariances(self) -> Covariances:
        return Covariances(self.parameters, self.columns, self.taken.points, self.node)

    def beyond(self, points: Array) -> Array:
        """How far `points` (k, m) are outside of what was measured, in e-folds of the coordinates, (k,)."""
        inputs, measured = (coordinates(each, self.columns) for each in (points, self.taken.points))
        low, high = measured.min(axis=0), measured.max(axis=0)
        return np.asarray(np.maximum(np.maximum(inputs - high, low - inputs), 0.0).sum(axis=1))

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Rows of each kind."""
        found: dict[str, list[int]] = {}
        for row, kind in enumerate(self.kinds):
            found.setdefault(kind, []).append(row)
        return found

    def _fits(self) -> bool:
        rows, runs = len(self.kinds), len(self.taken.points)
        lengths = {len(self.ways), len(self.shapes), *(len(each) for each in (self.weights, self.levels))}
        shapes = {self.values.shape, self.errors.shape} == {(rows, runs)} and self.shaped.shape == (rows, 3)
        return (
            rows > 0
            and runs > 0
            and lengths == {rows}
            and shapes
            and self.departures.shape == (rows,)
            and set(self.shapes) <= set(SHAPES)
            and all(0 <= place < len(self.parameters) for place in self.columns)
            and bool(np.isfinite(self.levels).all() and (self.weights >= 0).all() and (self.errors >= 0).all())
            and bool(np.isfinite(self.shaped).all() and 0 <= self.node < np.inf)
            and bool(((self.departures >= 0) & (self.departures < len(self._covariances.noise))).all())
        )


@dataclass(frozen=True)
class Covariances:
    """Covariances of what ln BF departs from its shape by, c of them: those of a rate
    (:class:`ranksight.model.kernel_time.rates.Hypotheses`), each with those of a regime within the node
    (:mod:`ranksight.model.series.regimes`)."""

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
        regime = regimes.prior(self._within(self.measured)) if self.node > 0 else np.ones(1)
        return np.asarray((regime[:, None] * self._rates.prior * self._rates.active[:, 0]).reshape(-1))

    @cached_property
    def prior_of_shaped(self) -> Array:
        """Prior weights (c,) of departures from a shape over ranks: over other coordinates, or none but noise."""
        regime = regimes.prior(self._within(self.measured)) if self.node > 0 else np.ones(1)
        rates = self._rates
        usable = ~rates.active[:, 0] if len(self.columns) > 1 else (rates.slope == 0) & (rates.scale == 0)
        return np.asarray((regime[:, None] * rates.prior * usable).reshape(-1))

    def _within(self, points: Array) -> Mask:
        return np.asarray(points[:, self.parameters.index("ranks")] <= self.node)

    def _places(self, points: Array) -> Array:
        origin = coordinates(self.measured, self.columns).mean(axis=0)
        return coordinates(points, self.columns) - origin

    def between(self, first: Array, second: Array, chosen: Index) -> Array:
        """Covariance (r, a, b), without noise, of the hypotheses `chosen` (r,) between points (a, m) and (b, m)."""
        regime, rate = np.divmod(chosen, len(self._rates.noise))
        total = self._rates.select(rate).covariance(self._places(first), self._places(second))
        if self.node > 0:
            within = self._within(first), self._within(second)
            total = total + regimes.covariance(self._places(first), within[0], self._places(second), within[1])[regime]
        return np.asarray(total)

    def variance(self, points: Array, chosen: Index) -> Array:
        """Variance (r, k) at `points` (k, m), with noise between configurations."""
        regime, rate = np.divmod(chosen, len(self._rates.noise))
        total = self._rates.select(rate).variance(self._places(points))
        if self.node > 0:
            total = total + regimes.variance(self._within(points))[regime]
        return np.asarray(total)


def nodes_of(ranks: Array, node: float) -> Array:
    """Nodes (k,) that `ranks` (k,) fill; 1 where it is not known how many ranks one takes."""
    return np.ceil(np.maximum(ranks, 1.0) / node) if node > 0 else np.ones(len(ranks))


def coordinates(points: Array, columns: tuple[int, ...]) -> Array:
    """Logarithms (k, d) of the parameters that are coordinates at `points` (k, m)."""
    return np.asarray(np.log(np.maximum(points[:, list(columns)], 1e-300)))


def fit_blocking(
    parameters: tuple[str, ...],
    taken: Taken,
    cost: Mapping[tuple[str, str], Array],
    prior: Callable[[str], Mapping[str, float]],
    node: float = 0.0,
) -> Blocking | None:
    """Learn BF_comm.

    None where nothing that was measured is modelled. `cost` (mapping of (kind, way) to (n,)): modelled seconds at the
    configurations of `taken`. `prior`: prior weights of the ways of a kind. `node`: ranks that fill one, where known.
    """
    ranks = parameters.index("ranks")
    varied = [at for at, column in enumerate(taken.points.T) if len(np.unique(column)) > 1 and (column > 0).all()]
    columns = (ranks, *(at for at in varied if at != ranks))
    learning = _Learning(Covariances(parameters, columns, taken.points, node), taken.points[:, ranks], node)
    rows: list[_Row] = []
    for kind, took, error in zip(taken.kinds, taken.logs, taken.errors, strict=True):
        ways = {way: share for way, share in prior(kind).items() if (kind, way) in cost}
        if STATED not in ways:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.array([took - np.log(cost[kind, way]) for way in ways])
        known = np.isfinite(ratio).all(axis=0)
        if not known.any():
            continue
        level = ratio[:, known].mean(axis=1) - ratio[list(ways).index(STATED), known].mean()
        ratio = np.where(known, ratio - level[:, None], np.nan)
        share = _continued(ways, np.array([cost[kind, way] for way in ways]))
        rows += learning.kept(kind, list(ways), np.log(share), level, ratio, error)
    if not rows:
        return None
    kinds, ways_of, shapes = (tuple(getattr(row, name) for row in rows) for name in ("kind", "way", "shape"))
    weight, scale, shaped, values, errors = (
        np.array([getattr(row, name) for row in rows], dtype=np.float64)
        for name in ("weight", "level", "parameters", "values", "errors")
    )
    departures = np.array([row.departure for row in rows], dtype=np.intp)
    return Blocking(
        parameters, columns, kinds, ways_of, weight, scale, shapes, shaped, departures, values, errors, node, taken
    )


@dataclass(frozen=True)
class _Row:
    """A hypothesis of BF_comm of a kind."""

    kind: str
    way: str
    shape: str
    parameters: Array  # (3,)
    departure: int
    weight: float
    level: float
    values: Array  # (n,)
    errors: Array  # (n,)


@dataclass(frozen=True)
class _Learning:
    """Shapes and covariances that all kinds of operations share."""

    covariances: Covariances
    ranks: Array  # (n,)
    node: float

    @cached_property
    def _distinct(self) -> tuple[Array, Index]:
        distinct, place = np.unique(self.ranks, return_inverse=True)
        return distinct, np.ravel(place)

    @cached_property
    def _grids(self) -> dict[str, tuple[Array, Array, Array]]:
        """Of each shape: parameters (g, 3), logarithms of their prior (g,), and f (g, u) at distinct ranks."""
        distinct, _ = self._distinct
        nodes = nodes_of(distinct, self.node)
        found = grids(distinct, len(np.unique(nodes)) > 1)
        share = priors(BLOCKING_SHAPES, found)
        return {
            name: (
                each,
                np.log(weight) + np.log(share[name]),
                shape_at(name, each, distinct, nodes, float(distinct[0])),
            )
            for name, (each, weight) in found.items()
        }

    def kept(self, kind: str, ways: list[str], share: Array, level: Array, ratio: Array, error: Array) -> list[_Row]:
        """The heaviest hypotheses of a kind, with ln BF `ratio` (w, n) by each way of prior `share` (w,), in
        logarithms."""
        places: list[tuple[int, str, int, int]] = []
        scores = []
        for way in range(len(ways)):
            for shape, score in self._scores(ratio[way], error).items():
                score = score + share[way]
                best = np.argsort(-score.ravel(), kind="stable")[:MOST]
                places += [(way, shape, *divmod(int(at), score.shape[1])) for at in best]
                scores.append(score.ravel()[best])
        every = np.concatenate(scores)
        weights = np.exp(every - special.logsumexp(every, axis=0))
        best = np.argsort(-weights, kind="stable")[:MOST]
        best = best[weights[best] >= LEAST_WEIGHT * weights[best[0]]]
        found = []
        for at, weight in zip(best.tolist(), (weights[best] / weights[best].sum()).tolist(), strict=True):
            way, shape, combination, departure = places[at]
            parameters = self._grids[shape][0][combination]
            found.append(
                _Row(kind, ways[way], shape, parameters, departure, weight, float(level[way]), ratio[way], error)
            )
        return found

    def _scores(self, values: Array, error: Array) -> dict[str, Array]:
        """Logarithms of likelihood times prior (g, c) of each shape, its level integrated out."""
        known, (distinct, place) = np.isfinite(values), self._distinct
        points, y = self.covariances.measured[known], values[known]
        sums = (place[known][:, None] == np.arange(len(distinct))).astype(np.float64)
        found = {}
        plain, shaped = self.covariances.prior, self.covariances.prior_of_shaped
        for shape, (parameters, share, f) in self._grids.items():
            prior = plain if shape == CONSTANT else shaped
            score = np.full((len(parameters), len(prior)), -np.inf)
            for part in np.array_split(np.flatnonzero(prior > 0), 1 + len(y) ** 2 * len(prior) // LARGEST):
                if not len(part):
                    continue
                noise = error[known] ** 2 + self.covariances.noise[part][:, None]
                total = self.covariances.between(points, points, part) + noise[..., None] * np.eye(len(y))
                inverted = np.linalg.inv(total)
                one = inverted.sum(axis=2)
                weight = one.sum(axis=1)
                # What is orthogonal to the level.
                pull = inverted - one[:, :, None] * one[:, None, :] / weight[:, None, None]
                misfit = np.einsum("n,cnm,m->c", y, pull, y) - 2 * f @ (sums.T @ (pull @ y).T)
                misfit = misfit + np.einsum("gu,cuv,gv->gc", f, sums.T @ pull @ sums, f, optimize=True)
                likelihood = misfit + np.linalg.slogdet(total)[1] + np.log(weight)
                score[:, part] = share[:, None] + np.log(prior[part]) - 0.5 * likelihood
            found[shape] = score - np.log(prior.sum())
        return found


def _continued(ways: Mapping[str, float], cost: Array) -> Array:
    """Prior weights (w,) of `ways`, with what is kept for algorithms that cost (w, n) the same as the stated way in
    all runs: what the library does there, going on."""
    share = np.array(list(ways.values()))
    same = np.isclose(cost, cost[list(ways).index(STATED)], rtol=SAME, atol=0.0).all(axis=1)
    same &= [way != STATED and not way.startswith(LIBRARY) for way in ways]
    return np.asarray(share + CONTINUED * same / max(int(same.sum()), 1))
