"""Generalised least squares of all means under all covariances of a batch of series, in closed form.

About functions f0 near the values, a mean f of terms t with coefficients c, times exp(d + e), is linear:

    z = 1 + ln y - ln f0 = (t(x) / f0) c + d + e,    c ~ N+(0, 1) in units of the largest share that the term has,

d + e normal with covariance K. With D the columns t / f0 in those units, G = D' K^-1 D and b = D' K^-1 z,

    ln p(y) = -1/2 (z' K^-1 z - b' P^-1 b) - 1/2 ln |K| - 1/2 ln |P| + ln p(c >= 0),    P = I + G

(Bayesian linear regression: Bishop, *Pattern Recognition and Machine Learning*, 3.3 and 3.5). That coefficients are not
negative is taken in one after the other by matching the moments of the truncated normal law (assumed-density filtering;
Minka 2001, *Expectation propagation for approximate Bayesian inference*, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.process.covariance import smooth

ROUNDING = 1e-8
"""Variance of a logarithm, 1, that printed numbers of few digits have."""
ABSENT = 1e6
"""Variance of a value that was not measured: it moves nothing."""
LEAST = 1e-9
"""Part of the value that a function has at least where it is made linear."""
VAGUE = 1e-4
"""Precision of level and slope of a power law before the data, 1: none to speak of."""
KINDS = ("usual", "slow", "first")
"""What one run of a series may be: like the others; slowed by something else that ran; the first, in a regime of its
own, such as the only one without messages."""
SHIFT, SPREAD = np.array([0.0, 0.3, 0.0]), np.array([0.0, 0.2, 0.7])
"""Logarithm by which the time of such a run is longer than the curve's, and its standard deviation."""
ROOT_TWO_PI = float(np.sqrt(2 * np.pi))


def efolds(points: Array, runs: Array) -> Array:
    """Coordinates (k, d) of `points` (k, d) in e-folds from the smallest values among `runs` (n, d)."""
    return np.asarray(np.log(points / runs.min(axis=0)))


APART = 0.05
"""Difference of ln y up to which a mean is linear: what is left is its square over two."""


@dataclass(frozen=True)
class Data:
    """Logarithms of s series at n configurations, as the process sees them."""

    u: Array  # (n, m): e-folds of the coordinates from the first values
    logs: Array  # (s, n): of the located values; 0 where there is none
    noise: Array  # (s, n): variance of each, without scatter between jobs; infinite where there is none
    centre: Array  # (s, n): logarithms of functions near the values, at which the model is made linear

    @property
    def absent(self) -> Mask:
        """Where nothing was measured (s, n)."""
        return np.isinf(self.noise)

    @property
    def apart(self) -> Mask:
        """Which series (s,) have values that are :data:`APART` or more from where the model is made linear."""
        return np.asarray(((np.abs(self.logs - self.centre) > APART) & ~self.absent).any(axis=1))

    def part(self, rows: Index) -> Data:
        """The same of some series."""
        return Data(self.u, self.logs[rows], self.noise[rows], self.centre[rows])

    @classmethod
    def joined(cls, parts: Sequence[Data]) -> Data:
        """The series of several parts over the same coordinates, one after the other."""
        names = ("logs", "noise", "centre")
        return cls(parts[0].u, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def odd(self, kind: Index, place: Index) -> Data:
        """The same where the value at `place` (s,) is that of a run of `kind` (s,) of :data:`KINDS`."""
        odd = place[:, None] == np.arange(len(self.u))
        shift, spread = (np.where(odd, part[kind][:, None], 0.0) for part in (SHIFT, SPREAD))
        return replace(self, logs=self.logs - shift, noise=self.noise + spread**2)

    def ordered(self, order: Index) -> Data:
        """The same with its configurations in another order."""
        return Data(self.u[order], self.logs[:, order], self.noise[:, order], self.centre[:, order])

    @property
    def target(self) -> Array:
        """What the linear model has to meet (s, n): 1 + ln y - ln f0; 0 where nothing was measured."""
        return np.where(self.absent, 0.0, 1 + self.logs - self.centre)


def inverse(data: Data, scales: Array) -> tuple[Array, Array]:
    """Inverse (s, c, n, n) and logarithm of the determinant (s, c) of the covariance of the values, for `scales`
    (s or 1, c, 4) of the parts of :mod:`ranksight.model.process.covariance`."""
    square = scales**2
    smoothed = np.einsum("scp,pnk->scnk", square[..., :-1], smooth(data.u, data.u))
    noise = np.where(data.absent, ABSENT, data.noise)
    diagonal = noise[:, None, :] + square[..., -1:] + ROUNDING
    total = smoothed + diagonal[..., None] * np.eye(len(data.u))
    return np.linalg.inv(total), np.linalg.slogdet(total)[1]


def columns(values: Array, data: Data) -> tuple[Array, Array]:
    """Terms (t, n) or (s, t, n) over the measured values, (s, t, n), in units of the largest share of each, and the
    logarithm of that unit, (s, t)."""
    with np.errstate(divide="ignore"):
        size = np.log(np.maximum(values, 0.0)) - data.centre[:, None, :]
    unit = np.where(data.absent[:, None, :], -np.inf, size).max(axis=2)
    unit = np.where(np.isfinite(unit), unit, 0.0)
    share = np.exp(np.minimum(size - unit[..., None], 0.0))
    return np.where(data.absent[:, None, :], 0.0, share), unit


def solved(normal: Array, right: Array, whole: Array) -> tuple[Array, Array, Array]:
    """Logarithm of the evidence (...), coefficients (..., q) and their covariance (..., q, q) from G (..., q, q), b
    (..., q) and z' K^-1 z (...); the part of the evidence that all means of a covariance share is left out."""
    count = right.shape[-1]
    joint = np.empty((*right.shape[:-1], count + 1, count + 1))
    joint[..., :count, :count] = normal + np.eye(count)
    joint[..., :count, count] = joint[..., count, :count] = right
    joint[..., count, count] = whole
    log_determinant = _sweep(joint, count)
    mean, spread = joint[..., :count, count], -joint[..., :count, :count]
    score = -0.5 * joint[..., count, count] - 0.5 * log_determinant
    for at in range(count):
        deviation = np.sqrt(np.maximum(spread[..., at, at], 1e-300))
        z = np.clip(mean[..., at] / deviation, -30.0, 30.0)
        mass = np.asarray(special.log_ndtr(z))
        ratio = np.exp(-0.5 * z**2 - mass) / ROOT_TWO_PI
        score = score + np.log(2.0) + mass
        column = spread[..., :, at] / deviation[..., None]
        mean = mean + column * ratio[..., None]
        spread = spread - (ratio * (ratio + z))[..., None, None] * column[..., :, None] * column[..., None, :]
    return score, np.maximum(mean, 0.0), spread


def _sweep(joint: Array, count: int) -> Array:
    """Sweep the first `count` pivots of matrices (..., q + 1, q + 1) in place; the logarithm of their product (...).

    The last column then holds the solution, its end the Schur complement, the rest minus the inverse. Elimination
    without pivoting is stable for positive definite matrices (Higham, *Accuracy and Stability of Numerical Algorithms*,
    10.1), and for few rows many times faster than a call a matrix; an inverse times b would not be.
    """
    log_determinant = np.zeros(joint.shape[:-2])
    for at in range(count):
        pivot = np.maximum(joint[..., at, at], 1.0)  # no pivot of 1 + G is smaller
        log_determinant += np.log(pivot)
        row = joint[..., at, :] / pivot[..., None]
        column = joint[..., :, at].copy()
        joint -= column[..., :, None] * row[..., None, :]
        joint[..., at, :] = row
        joint[..., :, at] = row
        joint[..., at, at] = -1 / pivot
    return log_determinant


@dataclass(frozen=True)
class Equations:
    """Normal equations of t terms of s series under g covariances; terms stand first, so that sums over few of them are
    operations on whole arrays. The last term is nothing, and pads."""

    data: Data
    share: Array  # (t + 1, s, n): D'
    turned: Array  # (t + 1, s, g, n): D' K^-1
    right: Array  # (t + 1, s, g): b
    whole: Array  # (s, g): z' K^-1 z
    log_determinant: Array  # (s, g)

    @property
    def of_nothing(self) -> Array:
        """Logarithm of the evidence (s, g) of a mean without terms."""
        return -0.5 * self.log_determinant - 0.5 * self.whole

    @classmethod
    def of(cls, data: Data, values: Array, covariances: Array) -> Equations:
        """Those of terms `values` (t, n) or (s, t, n) under `covariances` (g, 4)."""
        nothing = np.zeros((*values.shape[:-2], 1, values.shape[-1]))
        share, _ = columns(np.concatenate([values, nothing], axis=-2), data)
        inverted, log_determinant = inverse(data, covariances[None])
        goal = data.target
        turned = np.ascontiguousarray(np.moveaxis(share[:, None] @ inverted, 2, 0))
        share = np.ascontiguousarray(np.moveaxis(share, 1, 0))
        whole = np.einsum("sn,sgnk,sk->sg", goal, inverted, goal)
        return cls(data, share, turned, (turned @ goal[:, :, None])[..., 0], whole, log_determinant)

    def evidence(self, members: Index) -> Array:
        """Logarithm of the evidence (s, h, g) of means `members` (h, q), or (s, h, q) of each series; -1 pads members;
        minus infinity where a mean has more terms than a series has values."""
        present = (~self.data.absent).sum(axis=1)
        each = members[:, None] if members.ndim == 2 else np.moveaxis(members, 0, 1)
        sizes = (each >= 0).sum(axis=2)
        scores = np.empty((len(each), *self.whole.shape))
        most = sizes.max(axis=1)
        for size in np.unique(most):
            rows = np.flatnonzero(most == size)
            scores[rows] = _scores(self.turned, self.share, self.right, self.whole, each[rows, :, :size])
        scores -= 0.5 * self.log_determinant
        possible = np.isfinite(scores) & (present >= sizes)[..., None]
        return np.moveaxis(np.where(possible, scores, -np.inf), 0, 1)


def evidence(data: Data, values: Array, members: Index, covariances: Array) -> Array:
    """:meth:`Equations.evidence` of means over terms `values` (t, n), or (s, t, n), under `covariances` (g, 4)."""
    if values.ndim == 3 and math.prod(members.shape[1:]) < values.shape[1]:
        values, members = _occurring(values, members)
    return Equations.of(data, values, covariances).evidence(members)


def _occurring(values: Array, members: Index) -> tuple[Array, Index]:
    """The terms of means `members` (s, h, q) alone, one after the other, and the means as members of these."""
    flat = members.reshape(len(members), -1)
    place = np.where(flat < 0, -1, np.arange(flat.shape[1]))
    return np.take_along_axis(values, np.maximum(flat, 0)[..., None], axis=1), place.reshape(members.shape)


def _scores(turned: Array, share: Array, right: Array, whole: Array, means: Index) -> Array:
    """:func:`solved`'s evidence (h, s, g) of means of the terms `means` (h, s or 1, q), from D' K^-1 (t, s, g, n), D'
    (t, s, n), b (t, s, g) and z' K^-1 z (s, g) of all terms: the same steps on one array for every entry of the
    matrices. The last term is nothing and pads: its coefficient is what it was before the data."""
    count, series = means.shape[2], np.arange(len(whole))[None]
    term = [means[..., i] for i in range(count)]
    rows: list[list[Array]] = [[np.empty(0)] * (count + 1) for _ in range(count)]
    for i in range(count):
        for j in range(i + 1):
            entry = np.einsum("hsgn,hsn->hsg", turned[term[i], series], share[term[j], series]) + (i == j)
            rows[i][j] = rows[j][i] = entry
        rows[i][count] = right[term[i], series]
    score = np.broadcast_to(whole, rows[0][0].shape)
    for at in range(count):
        pivot = np.maximum(rows[at][at], 1.0)
        score = score + rows[at][count] ** 2 / -pivot + np.log(pivot)
        rows[at][at] = np.ones(())
        rows[at] = [entry / pivot for entry in rows[at]]
        for i in range(count):
            if i != at:
                factor, rows[i][at] = rows[i][at], np.zeros(())
                rows[i] = [entry_of - factor * other for entry_of, other in zip(rows[i], rows[at], strict=True)]
    score = -0.5 * score
    for at in range(count):
        deviation = np.sqrt(np.maximum(rows[at][at], 1e-300))
        z = np.clip(rows[at][count] / deviation, -30.0, 30.0)
        mass = np.asarray(special.log_ndtr(z))
        score += np.log(2.0) + mass
        if at + 1 < count:
            ratio = np.exp(-0.5 * z**2 - mass) / ROOT_TWO_PI
            less = ratio * (ratio + z)
            column = [rows[i][at] / deviation for i in range(count)]
            for i in range(count):
                for j in range(count):
                    rows[i][j] = rows[i][j] - less * column[i] * column[j]
                rows[i][count] = rows[i][count] + column[i] * ratio
    return np.asarray(score)


def smoothed(data: Data, covariances: Array) -> Data:
    """The series with `centre` what a power law with any departure and scatter of `covariances` (g, 4) leaves of the
    values without scatter: the posterior mean, averaged by evidence."""
    present = ~data.absent
    line = np.stack([np.ones(len(data.u)), *data.u.T])[None] * present[:, None]
    logs = np.where(present, data.logs, 0.0)
    level = logs.sum(axis=1, keepdims=True) / np.maximum(present.sum(axis=1, keepdims=True), 1)
    rest = np.where(present, logs - level, 0.0)
    inverted, log_determinant = inverse(data, covariances[None])
    turned = line[:, None] @ inverted
    normal = turned @ np.swapaxes(line, 1, 2)[:, None] + VAGUE * np.eye(line.shape[1])
    lines = np.linalg.solve(normal, (turned @ rest[:, None, :, None]))[..., 0]
    residual = rest[:, None] - np.einsum("sgq,sqn->sgn", lines, line)
    pull = np.einsum("sgnk,sgk->sgn", inverted, residual)
    score = -0.5 * (residual * pull).sum(axis=-1) - 0.5 * log_determinant - 0.5 * np.linalg.slogdet(normal)[1]
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    scatter = np.where(data.absent, 0.0, data.noise)[:, None, :] + covariances[None, :, -1:] ** 2 + ROUNDING
    centre = logs - np.einsum("sg,sgn->sn", weight, scatter * pull)
    return replace(data, centre=np.where(present, centre, level))


@dataclass(frozen=True)
class Solved:
    """One hypothesis a row, solved about its own function."""

    evidence: Array  # (f,)
    coefficients: Array  # (f, q): in units of the terms' largest shares
    spread: Array  # (f, q, q): their covariance
    data: Data  # made linear at the function
    columns: Array  # (f, q, n): there


def refined(data: Data, share: Array, scales: Array, coefficients: Array | None = None, rounds: int = 2) -> Solved:
    """Solve one hypothesis a row by `rounds` of Gauss and Newton about its own function, from `coefficients` (f, q) or
    those about `data.centre`; `share` (f, q, n) are its columns at `data.centre`, `scales` (f, 4) its covariance."""
    inverted, log_determinant = inverse(data, scales[:, None])
    inverted, first = inverted[:, 0], data.centre
    current = coefficients
    score, spread, linear = np.empty(0), np.empty(0), share
    for _ in range(rounds + (coefficients is None)):
        if current is not None:
            function = np.einsum("fq,fqn->fn", current, share)
            data = replace(data, centre=first + np.log(np.maximum(function, LEAST)))
        linear = share * np.exp(first - data.centre)[:, None]
        turned = linear @ inverted
        goal = data.target
        whole = np.einsum("fn,fnk,fk->f", goal, inverted, goal)
        right = (turned * goal[:, None]).sum(axis=-1)
        score, current, spread = solved(turned @ np.swapaxes(linear, 1, 2), right, whole)
    assert current is not None
    return Solved(score - 0.5 * log_determinant[:, 0], current, spread, data, linear)
