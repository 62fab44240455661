"""BF_comm: the measured time of communication over the modelled one, as rates over ranks and sizes.

    T_comm,measured = sum over kinds of operations k of  BF_k T_k,      BF_comm = T_comm,measured / sum T_k

(Ding et al. 2018, equation 1 and Table 2). Below 1 communication overlaps with computation or with itself, above 1
ranks wait for each other. Messages between two ranks are one kind, each collective operation another, as one may
overlap while the other waits. ln BF_k is constant or a power with slow changes, a Gaussian process
(:mod:`ranksight.model.kernel_time.rates`); or it grows, nears a level, steps or has a knee
(:mod:`ranksight.model.application.blocking_forms`). Runs within a node may be of another regime than those beyond it
(:mod:`ranksight.model.kernel_time.hypotheses`). Marginal likelihood weighs all
(:mod:`ranksight.model.application.fit_blocking`). At a measured configuration BF_k is what was measured there. What the
slowest rank computes longer than the mean is T_imbalance in the program's time, and does not count as communication
again.

Which algorithm a library takes for a collective depends on its version, its settings and the nodes. Where nobody states
it (``collectives`` or ``algorithms`` of a platform's ``[network]``), every library and algorithm is a hypothesis of how
the time grows. Its posterior weight is the marginal likelihood of its BF_k: the right one needs a rate that hardly
changes. Hypotheses are scaled to the library's own level at the measured configurations, and mixed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import FETCHES, NEIGHBOURS, RECEIVES, SENDS
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.application.blocking_forms import SHAPES, Covariances, coordinates, nodes_of
from ranksight.model.application.blocking_forms import at as shape_at
from ranksight.model.plaindata import Stored
from ranksight.model.priors import REPEATED, UNSEEN

POINT_TO_POINT = "point-to-point"
"""Kind of all messages between two ranks, with the operations that end them."""
STATED = ""
"""Name of the hypothesis that takes the algorithms as the network states them."""
LIBRARY = "library "
"""How the name of a hypothesis begins that takes a library's algorithms."""
ABSENT = 1e6
"""Variance of a value that was not measured: it moves nothing."""
SAME = 1e-9
"""Difference of logarithms up to which configurations are the same."""


def kind_of(operation: str) -> str:
    """The kind of an operation; empty where it is no communication of the model, such as making communicators."""
    name = operation_name(operation)
    if name in OPERATIONS:
        return name
    return POINT_TO_POINT if any(name in operations for operations in (SENDS, FETCHES, NEIGHBOURS, RECEIVES)) else ""


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
    _sizes = "kinds:q points:nm logs:qn errors:qn"


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
    _sizes = "kinds:r ways:r weights:r>=0 levels:r! shapes:r shaped:r3! departures:r>=0 values:rn errors:rn>=0 node:>=0"

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
        measured_here = np.asarray(same[None] & np.isfinite(self.values)[:, None])
        exact = np.asarray(measured_here.any(axis=2))
        mean = np.where(exact, np.take_along_axis(self.values, measured_here.argmax(axis=2), axis=1), mean)
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
        shape, names = np.empty((len(self.shapes), len(points))), np.array(self.shapes)
        for name in set(self.shapes):
            rows = names == name
            shape[rows] = shape_at(name, self.shaped[rows], at_ranks, nodes_of(at_ranks, self.node), low)
        return shape

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
        of_kind: dict[str, list[int]] = {}
        for row, kind in enumerate(self.kinds):
            of_kind.setdefault(kind, []).append(row)
        return of_kind

    def _fits(self) -> bool:
        return (
            len(self.kinds) > 0
            and self.values.shape[1] == len(self.taken.points) > 0
            and set(self.shapes) <= set(SHAPES)
            and all(0 <= place < len(self.parameters) for place in self.columns)
            and bool((self.departures < len(self._covariances.noise)).all())
        )
