"""Learn BF_comm: weigh ways, shapes and departures (:mod:`ranksight.model.application.comm_blocking`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.application.blocking_forms import CONSTANT, Covariances, grids, nodes_of, priors
from ranksight.model.application.blocking_forms import at as shape_at
from ranksight.model.application.comm_blocking import LIBRARY, SAME, STATED, Blocking, Taken
from ranksight.model.priors import BLOCKING_SHAPES, CONTINUED

MOST, LEAST_WEIGHT = 128, 1e-4
"""Hypotheses of a kind that stand for all, at most, and smallest posterior weight over the largest of a shape."""
LARGEST = 4_000_000
"""Numbers of the matrices that are inverted at once."""


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
        combinations = grids(distinct, np.unique(nodes))
        share = priors(BLOCKING_SHAPES, combinations)
        return {
            name: (
                each,
                np.log(weight) + np.log(share[name]),
                shape_at(name, each, distinct, nodes, float(distinct[0])),
            )
            for name, (each, weight) in combinations.items()
        }

    def kept(self, kind: str, ways: list[str], share: Array, level: Array, ratio: Array, error: Array) -> list[_Row]:
        """The heaviest hypotheses of a kind, with ln BF `ratio` (w, n) by each way of prior `share` (w,), in
        logarithms."""
        places: list[tuple[int, str, int, int]] = []
        scores = []
        for way in range(len(ways)):
            for shape, score in self._scores(ratio[way], error).items():
                score = score + share[way]
                likely = np.flatnonzero(score.ravel() > score.max() + np.log(LEAST_WEIGHT))
                places += [(way, shape, *divmod(int(at), score.shape[1])) for at in likely]
                scores.append(score.ravel()[likely])
        every = np.concatenate(scores)
        best, weights = _resampled(np.exp(every - special.logsumexp(every, axis=0)))
        rows = []
        for at, weight in zip(best.tolist(), weights.tolist(), strict=True):
            way, shape, combination, departure = places[at]
            parameters = self._grids[shape][0][combination]
            rows.append(
                _Row(kind, ways[way], shape, parameters, departure, weight, float(level[way]), ratio[way], error)
            )
        return rows

    def _scores(self, values: Array, error: Array) -> dict[str, Array]:
        """Logarithms of likelihood times prior (g, c) of each shape, its level integrated out."""
        known, (distinct, place) = np.isfinite(values), self._distinct
        points, y = self.covariances.measured[known], values[known]
        sums = (place[known][:, None] == np.arange(len(distinct))).astype(np.float64)
        scores = {}
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
            scores[shape] = score - np.log(prior.sum())
        return scores


def _resampled(weights: Array) -> tuple[Index, Array]:
    """Some hypotheses that stand for all of them, and their weights: systematic resampling (Kitagawa 1996, *Journal of
    Computational and Graphical Statistics* 5, 1), which keeps the spread of what the heaviest alone would narrow."""
    cumulated = np.cumsum(weights) / weights.sum()
    chosen = np.searchsorted(cumulated, (np.arange(MOST) + 0.5) / MOST)
    distinct, count = np.unique(np.minimum(chosen, len(weights) - 1), return_counts=True)
    return distinct, count / MOST


def _continued(ways: Mapping[str, float], cost: Array) -> Array:
    """Prior weights (w,) of `ways`, with what is kept for algorithms that cost (w, n) the same as the stated way in
    all runs: what the library does there, going on."""
    share = np.array(list(ways.values()))
    same = np.isclose(cost, cost[list(ways).index(STATED)], rtol=SAME, atol=0.0).all(axis=1)
    same &= [way != STATED and not way.startswith(LIBRARY) for way in ways]
    return np.asarray(share + CONTINUED * same / max(int(same.sum()), 1))
