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
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import FETCHES, NEIGHBOURS, RECEIVES, SENDS
from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.model.application.blocking_forms import STEP, BlockingForms
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.plaindata import Stored
from ranksight.model.priors import BLOCKING_FORMS, COMMUNICATION_SCATTER, CONTINUED, REPEATED, UNSEEN

POINT_TO_POINT = "point-to-point"
"""Kind of all messages between two ranks, with the operations that end them."""
STATED = ""
"""Name of the hypothesis that takes the algorithms as the network states them."""
LIBRARY = "library "
"""How the name of a hypothesis begins that takes a library's algorithms."""
LEAST_WEIGHT = 0.01
"""Posterior weight below which a hypothesis is dropped."""
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
    """BF_comm of each kind under each hypothesis of its algorithm; K rows in all."""

    parameters: tuple[str, ...]
    columns: tuple[int, ...]  # parameters whose logarithms are coordinates
    kinds: tuple[str, ...]  # of each row; the way is :data:`STATED`, ``library NAME`` or an algorithm
    ways: tuple[str, ...]
    weights: Array  # (K,): posterior weights, 1 in sum over the ways of a kind
    levels: Array  # (K,): logarithms of the scale of each way
    scatter: Array  # (K,): standard deviation of ln BF from run to run
    rates: Rates  # ln BF of the first rows relative to the scaled way
    taken: Taken  # what all was learned from
    forms: BlockingForms | None = None  # of the other rows

    def at(self, points: Array) -> tuple[Array, Array, Mask]:
        """Means and standard deviations of ln BF at `points` (k, m), and where it was measured; each (K, k)."""
        inputs = coordinates(points, self.columns)
        mean, spread = self.rates.at(inputs)
        if self.forms is not None:
            more = self.forms.at(points[:, self.parameters.index("ranks")])
            mean, spread = (np.concatenate(both) for both in zip((mean, spread), more, strict=True))
        same = np.asarray((np.abs(inputs[:, None] - self.rates.inputs[None]) < SAME).all(axis=2))
        there = np.asarray(same[None] & np.isfinite(self._values)[:, None])
        at = there.argmax(axis=2)
        exact = np.asarray(there.any(axis=2))
        mean = np.where(exact, np.take_along_axis(self._values, at, axis=1), mean)
        beyond = self.beyond(points)
        again = np.where(exact, 0.0, self.scatter[:, None])
        return mean, np.asarray(np.sqrt(spread**2 + again**2 + REPEATED**2 + (UNSEEN * beyond) ** 2)), exact

    def beyond(self, points: Array) -> Array:
        """How far `points` (k, m) are outside of what was measured, in e-folds of the coordinates, (k,)."""
        inputs = coordinates(points, self.columns)
        low, high = self.rates.inputs.min(axis=0), self.rates.inputs.max(axis=0)
        return np.asarray(np.maximum(np.maximum(inputs - high, low - inputs), 0.0).sum(axis=1))

    @cached_property
    def _values(self) -> Array:
        """ln BF as measured of every row, (K, n)."""
        return self.rates.values if self.forms is None else np.concatenate([self.rates.values, self.forms.values])

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Rows of each kind."""
        found: dict[str, list[int]] = {}
        for row, kind in enumerate(self.kinds):
            found.setdefault(kind, []).append(row)
        return found

    def _fits(self) -> bool:
        rows, columns = (len(self.kinds),), self.columns
        shapes = self.weights.shape == self.levels.shape == self.scatter.shape == rows
        return (
            bool(self.kinds)
            and shapes
            and len(self.ways) == len(self._values) == len(self.kinds)
            and bool(np.isfinite(self.levels).all() and (self.weights >= 0).all() and (self.scatter >= 0).all())
            and self.rates.inputs.shape[1] == len(columns)
            and all(0 <= at < len(self.parameters) for at in columns)
        )


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
    inputs, d = coordinates(taken.points, columns), len(columns)
    variants = tuple(sorted({tuple(at in (0, other) for at in range(d)) for other in range(d)}))
    forms = {form: share for form, share in BLOCKING_FORMS.items() if form and (form != STEP or node > 0)}
    plain = BLOCKING_FORMS[""] / len(COMMUNICATION_SCATTER)
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
        pairs = list(product(range(len(ways)), COMMUNICATION_SCATTER))
        which = [at for at, _ in pairs]
        wide = np.hypot(error, np.array([[scatter] for _, scatter in pairs]))
        each = Rates(inputs, ratio[which], wide, variants)
        evidence = special.logsumexp(each.likelihood + np.log(each.grid.prior), axis=1) + np.log(plain)
        found = [_Row(kind, at, "", scatter, ratio[at], sd) for (at, scatter), sd in zip(pairs, wide, strict=True)]
        for at, form in product(range(len(ways)), forms):
            found.append(_Row(kind, at, form, 0.0, ratio[at], error))
            one = BlockingForms((form,), taken.points[:, ranks], ratio[at][None], error[None], node)
            evidence = np.append(evidence, one.evidence + np.log(forms[form]))
        evidence += np.log(share[[row.way for row in found]])
        weights = np.exp(evidence - special.logsumexp(evidence))
        # One Gaussian process is kept however little it weighs: it is the one that knows of other parameters.
        best = int(weights[: len(pairs)].argmax())
        kept = np.union1d(np.flatnonzero(weights >= LEAST_WEIGHT), [best])
        weights = weights / weights[kept].sum()
        names = list(ways)
        for row in kept.tolist():
            way = found[row].way
            rows.append(replace(found[row], name=names[way], weight=float(weights[row]), level=float(level[way])))
    if not rows:
        return None
    rows.sort(key=lambda row: row.form != "")  # those of Gaussian processes first
    smooth, formed = ([row for row in rows if bool(row.form) == yes] for yes in (False, True))
    n = len(taken.points)
    rates = Rates(inputs, _stack(smooth, "values", n), _stack(smooth, "errors", n), variants)
    others = None
    if formed:
        values, errors = (_stack(formed, name, n) for name in ("values", "errors"))
        others = BlockingForms(tuple(row.form for row in formed), taken.points[:, ranks], values, errors, node)
    kinds, chosen = tuple(row.kind for row in rows), tuple(row.name for row in rows)
    weight, scale, scatters = (np.array([getattr(row, x) for row in rows]) for x in ("weight", "level", "scatter"))
    return Blocking(parameters, columns, kinds, chosen, weight, scale, scatters, rates, taken, others)


@dataclass(frozen=True)
class _Row:
    """A hypothesis of BF_comm of a kind, while it is weighed."""

    kind: str
    way: int  # number and, once chosen, name of the way
    form: str  # of :mod:`ranksight.model.application.blocking_forms`; empty for a Gaussian process
    scatter: float
    values: Array  # (n,)
    errors: Array  # (n,)
    name: str = ""
    weight: float = 0.0
    level: float = 0.0


def _stack(rows: list[_Row], name: str, n: int) -> Array:
    return np.array([getattr(row, name) for row in rows], dtype=np.float64).reshape(len(rows), n)


def _continued(ways: Mapping[str, float], cost: Array) -> Array:
    """Prior weights (w,) of `ways`, with what is kept for algorithms that cost (w, n) the same as the stated way in
    all runs: what the library does there, going on."""
    share = np.array(list(ways.values()))
    same = np.isclose(cost, cost[list(ways).index(STATED)], rtol=SAME, atol=0.0).all(axis=1)
    same &= [way != STATED and not way.startswith(LIBRARY) for way in ways]
    return np.asarray(share + CONTINUED * same / max(int(same.sum()), 1))
