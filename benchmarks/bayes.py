"""The best any method could do on synthetic functions of one and two parameters: the posterior under the generator.

Given the exponents, a function is compatible with the values when every f(x_k) lies between the largest value over
1 + w and the smallest over 1 - w; there the likelihood is the product of (2 w f(x_k))^-r. It is integrated over the
coefficients under their priors by Gauss-Legendre rules in their logarithms: for f = g + c0 + c1 b(x) the pairs of
bounds give the interval of c0 in closed form, and for each c0 that of c1. In a sum of two terms g = c2 b2(y) is
integrated too; its interval comes from the pairs of points that differ in y alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.answers import Answer
from benchmarks.synthetic_functions import EXPONENTS, LARGEST, SMALLEST
from benchmarks.tasks import Array, Task

NODES = {1: (48, 12, 1), 2: (24, 6, 16)}
"""Nodes over ln c0, for each over ln c1, and over ln c2, by the number of parameters."""
POWERS = np.array(EXPONENTS)[:, 0]


@dataclass(frozen=True, slots=True)
class Posterior:
    """Nodes of the integral: exponents' places (q, m), values at the targets (q, k), weight (q,)."""

    which: NDArray[np.intp]
    ahead: Array
    weight: Array


class BayesOptimal:
    """Knows the generator: its exponents, structures, priors, and the noise."""

    name = "best possible"
    intervals = True

    def __init__(self, noise: float, close: float = 0.25) -> None:
        self.w = noise / 2
        self.close = close

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Posterior median and interval, and the exponents with most posterior mass within `close` of them."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> Answer:
        low = task.values.max(axis=1) / (1 + self.w)
        high = task.values.min(axis=1) / (1 - self.w)
        posterior = (_single if len(task.parameters) == 1 else _double)(low, high, task)
        mass = np.zeros((len(EXPONENTS),) * len(task.parameters))
        np.add.at(mass, tuple(posterior.which.T), posterior.weight)
        near = (np.abs(POWERS[:, None] - POWERS[None]) <= self.close + 1e-9).astype(float)
        gathered = near @ mass if mass.ndim == 1 else near @ mass @ near.T
        best = np.unravel_index(int(gathered.argmax()), gathered.shape)
        order = np.argsort(posterior.ahead, axis=0)
        total = np.cumsum(posterior.weight[order], axis=0)
        ends = []
        for share in (0.5, 0.05, 0.95):
            at = (total < share * total[-1]).sum(axis=0)
            row = order[np.minimum(at, len(order) - 1), np.arange(order.shape[1])]
            ends.append(posterior.ahead[row, np.arange(order.shape[1])])
        exponents = np.array([EXPONENTS[at] for at in best])
        sure = np.zeros(len(task.targets), dtype=bool)
        return Answer(ends[0], ends[1], ends[2], sure, ("",) * len(sure), exponents, "posterior")


def _terms(x: Array) -> Array:
    """All terms (h, n) at x (n,)."""
    exponents = np.array(EXPONENTS)
    return np.asarray(x[None] ** exponents[:, :1] * np.log2(x)[None] ** exponents[:, 1:])


def _rule(count: int, bottom: Array, top: Array) -> tuple[Array, Array]:
    """Nodes (..., count) evenly weighted in logarithms between bottom and top, and their weights."""
    nodes, share = np.polynomial.legendre.leggauss(count)
    span = np.log(top / bottom)[..., None] / 2
    return np.exp(np.log(bottom)[..., None] + span * (nodes + 1)), span * share


def _single(low: Array, high: Array, task: Task) -> Posterior:
    basis, ahead = _terms(task.points[:, 0]), _terms(task.targets[:, 0])
    rows = np.arange(len(basis))
    return _pairs(low, high, np.zeros_like(basis), basis, np.zeros_like(ahead), ahead, rows[:, None], task)


def _double(low: Array, high: Array, task: Task) -> Posterior:
    bases = [_terms(task.points[:, axis]) for axis in range(2)]
    aheads = [_terms(task.targets[:, axis]) for axis in range(2)]
    first, second = (part.ravel() for part in np.indices((len(EXPONENTS),) * 2))
    product = bases[0][first] * bases[1][second]
    ahead = aheads[0][first] * aheads[1][second]
    both = np.stack([first, second], axis=1)
    zero = np.zeros_like(product)
    multiplied = _pairs(low, high, zero, product, np.zeros_like(ahead), ahead, both, task)
    bottoms, tops = zip(*(_alone(low, high, task.points, axis, bases[axis]) for axis in range(2)), strict=True)
    keep = (bottoms[0] < tops[0])[first] & (bottoms[1] < tops[1])[second]
    first, second = first[keep], second[keep]
    nodes, share = _rule(NODES[2][2], bottoms[1][second], tops[1][second])
    flat = np.repeat(np.arange(len(first)), nodes.shape[1])
    first, second = first[flat], second[flat]
    added = nodes.ravel()[:, None] * bases[1][second]
    added_ahead = nodes.ravel()[:, None] * aheads[1][second]
    summed = _pairs(
        low,
        high,
        added,
        bases[0][first],
        added_ahead,
        aheads[0][first],
        np.stack([first, second], 1),
        task,
        share.ravel(),
    )
    # Coefficients of the generator are even in their logarithms: the third one of a sum brings its own density.
    density = 1 / np.log(LARGEST / SMALLEST)
    return Posterior(
        np.concatenate([multiplied.which, summed.which]),
        np.concatenate([multiplied.ahead, summed.ahead]),
        np.concatenate([multiplied.weight, summed.weight * density]),
    )


def _alone(low: Array, high: Array, points: Array, axis: int, basis: Array) -> tuple[Array, Array]:
    """Bounds (h,) of the coefficient of a term of one parameter, from pairs of points that differ in it alone."""
    other = points[:, 1 - axis]
    near, far = (part.ravel() for part in np.indices((len(points),) * 2))
    pair = (other[near] == other[far]) & (points[near, axis] < points[far, axis])
    near, far = near[pair], far[pair]
    rise = basis[:, far] - basis[:, near]
    bottom = ((low[far] - high[near]) / rise).max(axis=1)
    top = ((high[far] - low[near]) / rise).min(axis=1)
    return np.maximum(bottom, SMALLEST), np.minimum(top, LARGEST)


def _pairs(
    low: Array,
    high: Array,
    offset: Array,
    basis: Array,
    offset_ahead: Array,
    ahead: Array,
    which: NDArray[np.intp],
    task: Task,
    share: Array | None = None,
) -> Posterior:
    """Integrate over c0 and c1 of ``offset + c0 + c1 basis``, all (h, n); weights are comparable between calls."""
    outer, inner, _ = NODES[len(task.parameters)]
    inverse = 1 / basis
    left, right = (low - offset) * inverse, (high - offset) * inverse
    bottom, top = np.full(len(basis), SMALLEST), np.full(len(basis), LARGEST)
    # c1 >= left_k - c0 / b_k and c1 <= right_l - c0 / b_l leave c0 (1/b_l - 1/b_k) <= right_l - left_k.
    for k in range(basis.shape[1]):
        slope, bound = inverse - inverse[:, k : k + 1], right - left[:, k : k + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = bound / slope
        top = np.minimum(top, np.where(slope > 0, ratio, np.inf).min(axis=1))
        bottom = np.maximum(bottom, np.where(slope < 0, ratio, -np.inf).max(axis=1))
        top = np.where(((slope == 0) & (bound < 0)).any(axis=1), 0.0, top)
    keep = np.flatnonzero(bottom < top)
    empty = Posterior(np.empty((0, which.shape[1]), dtype=np.intp), np.empty((0, ahead.shape[1])), np.empty(0))
    parts = [empty]
    for chunk in np.array_split(keep, max(1, len(keep) // 2000)):
        if not len(chunk):
            continue
        c0, weight0 = _rule(outer, bottom[chunk], top[chunk])
        least = (left[chunk, None] - c0[..., None] * inverse[chunk, None]).max(axis=2)
        most = (right[chunk, None] - c0[..., None] * inverse[chunk, None]).min(axis=2)
        least, most = np.maximum(least, SMALLEST), np.minimum(most, LARGEST)
        h, at = np.nonzero(least < most)
        c1, weight1 = _rule(inner, least[h, at], most[h, at])
        rows = chunk[h]
        start = (c0[h, at])[:, None, None]
        value = offset[rows, None] + start + c1[..., None] * basis[rows, None]
        log_likelihood = -task.values.shape[1] * np.log(value / np.sqrt(low * high)).sum(axis=2)
        weight = np.exp(log_likelihood) * weight1 * weight0[h, at][:, None]
        if share is not None:
            weight = weight * share[rows][:, None]
        beyond = offset_ahead[rows, None] + start + c1[..., None] * ahead[rows, None]
        parts.append(
            Posterior(np.repeat(which[rows], inner, axis=0), beyond.reshape(-1, ahead.shape[1]), weight.ravel())
        )
    return Posterior(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("which", "ahead", "weight"))
    )
