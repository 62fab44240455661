"""The best that any method could do on the synthetic functions of one parameter: the posterior under the generator.

Given (i, j), a function c0 + c1 b(x) is compatible with the values when every f(x_k) lies between the largest value
over 1 + w and the smallest over 1 - w; there the likelihood is the product of (2 w f(x_k))^-r. It is integrated over c0
and c1 under their priors: the pairs of bounds give the interval of c0 in closed form, and for each c0 that of c1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.methods.answers import Answer, plain
from benchmarks.synthetic_functions import EXPONENTS, LARGEST, SMALLEST
from benchmarks.tasks import Array, Task

OUTER, INNER = 48, 12
"""Nodes of the Gauss-Legendre rule over ln c0 and, for each, over ln c1."""


class BayesOptimal:
    """Knows the generator: its exponents, priors, and the noise."""

    name = "best possible"
    intervals = True

    def __init__(self, noise: float, close: float = 0.25) -> None:
        self.w = noise / 2
        self.close = close

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Posterior median and interval, and the exponent with most posterior mass within `close` of it."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> Answer:
        low = task.values.max(axis=1) / (1 + self.w)
        high = task.values.min(axis=1) / (1 - self.w)
        exponents = np.array(EXPONENTS)
        basis, ahead = (_terms(x[:, 0], exponents) for x in (task.points, task.targets))
        c0, c1, weight = integrate(low, high, basis, task.values.shape[1])
        mass = weight.sum(axis=(1, 2))
        powers = exponents[:, 0]
        near = (np.abs(powers[:, None] - powers[None]) <= self.close + 1e-9) @ mass
        best = int(near.argmax())
        value, lower, upper = (np.empty(len(task.targets)) for _ in range(3))
        flat = weight.ravel()
        for k in range(len(task.targets)):
            predicted = (c0 + c1 * ahead[:, k, None, None]).ravel()
            order = np.argsort(predicted)
            total = np.cumsum(flat[order])
            at = np.searchsorted(total, np.array([0.5, 0.05, 0.95]) * total[-1])
            value[k], lower[k], upper[k] = predicted[order][np.minimum(at, len(order) - 1)]
        flat_answer = plain(value, 1, "posterior", exponents[best : best + 1])
        return Answer(value, lower, upper, flat_answer.flagged, flat_answer.reasons, flat_answer.exponents, "posterior")


def _terms(x: Array, exponents: Array) -> Array:
    return np.asarray(x[None] ** exponents[:, :1] * np.log2(x)[None] ** exponents[:, 1:])


def integrate(low: Array, high: Array, basis: Array, repetitions: int) -> tuple[Array, Array, Array]:
    """Nodes c0, c1 and their posterior weight, each (h, OUTER, INNER), for bounds (n,) and terms (h, n)."""
    left = low / basis
    right = high / basis
    inverse = 1 / basis
    # c1 >= (low_k - c0) / b_k and c1 <= (high_l - c0) / b_l for all k, l leave c0 (1/b_l - 1/b_k) <= right_l - left_k.
    slope = inverse[:, None, :] - inverse[:, :, None]
    bound = right[:, None, :] - left[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = bound / slope
    top = np.where(slope > 0, ratio, np.inf).min(axis=(1, 2))
    bottom = np.where(slope < 0, ratio, -np.inf).max(axis=(1, 2))
    possible = ~((slope == 0) & (bound < 0)).any(axis=(1, 2))
    bottom, top = np.maximum(bottom, SMALLEST), np.minimum(top, LARGEST)
    possible &= bottom < top
    bottom, top = np.where(possible, bottom, 1.0), np.where(possible, top, 1.0)
    nodes, share = np.polynomial.legendre.leggauss(OUTER)
    span = np.log(top / bottom) / 2
    c0 = np.exp(np.log(bottom)[:, None] + span[:, None] * (nodes + 1))
    first = np.maximum((left[:, None] - c0[..., None] * inverse[:, None]).max(axis=2), SMALLEST)
    last = np.minimum((right[:, None] - c0[..., None] * inverse[:, None]).min(axis=2), LARGEST)
    inside = (first < last) & possible[:, None]
    first, last = np.where(inside, first, 1.0), np.where(inside, last, 1.0)
    nodes1, share1 = np.polynomial.legendre.leggauss(INNER)
    span1 = np.log(last / first) / 2
    c1 = np.exp(np.log(first)[..., None] + span1[..., None] * (nodes1 + 1))
    log_likelihood = -repetitions * np.log(c0[..., None, None] + c1[..., None] * basis[:, None, None]).sum(axis=3)
    scale = np.where(inside[..., None], log_likelihood, -np.inf).max()
    weight = np.exp(log_likelihood - scale) * share[None, :, None] * share1 * span[:, None, None] * span1[..., None]
    weight = np.where(inside[..., None], weight, 0.0)
    return np.broadcast_to(c0[..., None], c1.shape), c1, weight
