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
from dataclasses import replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.process import elimination
from ranksight.model.process.covariance import smooth
from ranksight.model.process.elimination import column_of, in_cache, inverses, log_determinants, mirrored, swept

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


def dividing(runs: Array) -> Mask:
    """Which coordinates (d,) were above zero and at most one in all `runs` (n, d), such as a mesh width, a time step or
    a tolerance."""
    return np.asarray((runs.max(axis=0) <= 1) & (runs.min(axis=0) > 0))


def divisions(points: Array, runs: Array) -> Array:
    """Coordinates (k, d) that terms are functions of, at `points` (k, d): how often a value goes into one, of those
    that are :func:`dividing` in the `runs` (n, d)."""
    return np.asarray(np.divide(1.0, points, out=np.array(points, dtype=np.float64), where=dividing(runs)))


def efolds(points: Array, runs: Array) -> Array:
    """Coordinates (k, d) of `points` (k, d) in e-folds from the smallest values among `runs` (n, d), both as
    :func:`divisions`."""
    return np.asarray(np.log(divisions(points, runs) / divisions(runs, runs).min(axis=0)))


APART = 0.05
"""Difference of ln y up to which a mean is linear: what is left is its square over two."""


@dataclass(frozen=True)
class Data:
    """Logarithms of s series at n configurations, as the process sees them."""

    u: Array  # (n, m): e-folds of the coordinates from the first values
    logs: Array  # (s, n): of the located values; 0 where there is none
    noise: Array  # (s, n): variance of each, without scatter between jobs; infinite where there is none
    centre: Array  # (s, n): logarithms of functions near the values, at which the model is made linear
    most: Array  # (s, n): independent runs that have to be odd for a value to be: more where it was repeated

    @property
    def absent(self) -> Mask:
        """Where nothing was measured (s, n)."""
        return np.isinf(self.noise)

    @property
    def variance(self) -> Array:
        """Of each value (s, n), without scatter between jobs."""
        return np.where(self.absent, ABSENT, self.noise)

    @property
    def apart(self) -> Mask:
        """Which series (s,) have values that are :data:`APART` or more from where the model is made linear."""
        return np.asarray(((np.abs(self.logs - self.centre) > APART) & ~self.absent).any(axis=1))

    def part(self, rows: Index) -> Data:
        """The same of some series."""
        return Data(self.u, self.logs[rows], self.noise[rows], self.centre[rows], self.most[rows])

    @classmethod
    def joined(cls, parts: Sequence[Data]) -> Data:
        """The series of several parts over the same coordinates, one after the other."""
        names = ("logs", "noise", "centre", "most")
        return cls(parts[0].u, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def odd(self, kind: Index, place: Index) -> Data:
        """The same where the value at `place` (s,) is that of a run of `kind` (s,) of :data:`KINDS`."""
        odd = place[:, None] == np.arange(len(self.u))
        shift, spread = (np.where(odd, part[kind][:, None], 0.0) for part in (SHIFT, SPREAD))
        return replace(self, logs=self.logs - shift, noise=self.noise + spread**2)

    def ordered(self, order: Index) -> Data:
        """The same with its configurations in another order."""
        of_runs = (each[:, order] for each in (self.logs, self.noise, self.centre, self.most))
        return Data(self.u[order], *of_runs)

    @property
    def target(self) -> Array:
        """What the linear model has to meet (s, n): 1 + ln y - ln f0; 0 where nothing was measured."""
        return np.where(self.absent, 0.0, 1 + self.logs - self.centre)


OFTEN = 8
"""Rows from which on matrices that are the same are looked for: that takes longer than to invert smaller ones."""


def inverse(data: Data, scales: Array) -> tuple[Array, Array]:
    """Inverse (s, c, n, n) and logarithm of the determinant (s, c) of the covariance of the values, for `scales`
    (s or 1, c, 4) of the parts of :mod:`ranksight.model.process.covariance`."""
    shape, count = np.broadcast_shapes(scales.shape[:2], (len(data.noise), 1)), len(data.u)
    variance = np.broadcast_to(data.variance[:, None], (*shape, count))
    rows = np.concatenate([variance, np.broadcast_to(scales, (*shape, scales.shape[2]))], axis=2)
    rows, place = rows.reshape(-1, rows.shape[2]), np.arange(math.prod(shape))
    if count >= OFTEN:
        # Many hypotheses of a series have the same covariance.
        rows, place = np.unique(rows, axis=0, return_inverse=True)
    inverted, log_determinant = inverses(_covariances(data.u, rows[:, :count], rows[:, count:]), ROUNDING)
    if count >= OFTEN:
        inverted, log_determinant = inverted[place], log_determinant[place]
    return inverted.reshape(*shape, count, count), log_determinant.reshape(shape)


def _covariances(u: Array, variance: Array, scales: Array) -> Array:
    """Covariances (n, n, k) of values with `variance` (k, n) and `scales` (k, 4) at `u` (n, m)."""
    square, diagonal = scales.T**2, range(len(u))
    total = np.tensordot(smooth(u, u), square[:-1], axes=(0, 0))
    total[diagonal, diagonal] += variance.T + square[-1] + ROUNDING
    return np.asarray(total)


def weighed(data: Data, scales: Array, each: Array) -> tuple[Array, Array]:
    """Columns `each` (s, t, n) times the inverse of the covariance of the values, (s, t, c, n), and the logarithm of
    its determinant (s, c), for `scales` (c, 4)."""
    series, terms, count = each.shape
    turned, log_determinant = np.empty((series, terms, len(scales), count)), np.empty((series, len(scales)))
    scattered = ~scales[:, :-1].any(axis=1)
    # Runs that only scatter have nothing in common.
    variance = data.variance[:, None] + scales[scattered, -1:] ** 2 + ROUNDING
    turned[:, :, scattered] = each[:, :, None] / variance[:, None]
    log_determinant[:, scattered] = np.log(variance).sum(axis=2)
    if count < elimination.LARGE:
        inverted, log_determinant[:, ~scattered] = inverse(data, scales[None, ~scattered])
        # One product a series, not one a covariance.
        product = each @ np.moveaxis(inverted, 1, 2).reshape(series, count, inverted.shape[1] * count)
        turned[:, :, ~scattered] = product.reshape(series, terms, -1, count)
    else:
        shared = np.moveaxis(_covariances(data.u, np.zeros((1, count)), scales[~scattered]), 2, 0)
        for row, noise in enumerate(data.variance):
            total = shared + np.diag(noise)
            log_determinant[row, ~scattered] = log_determinants(total)
            turned[row][:, ~scattered] = np.moveaxis(np.linalg.solve(total, each[row].T), 2, 0)
    return turned, log_determinant


def columns(values: Array, data: Data) -> tuple[Array, Array]:
    """Terms (t, n) or (s, t, n) over the measured values, (s, t, n), in units of the largest share of each, and the
    logarithm of that unit, (s, t)."""
    with np.errstate(divide="ignore"):
        size = np.log(np.maximum(values, 0.0)) - data.centre[:, None, :]
    unit = np.where(data.absent[:, None, :], -np.inf, size).max(axis=2)
    unit = np.where(np.isfinite(unit), unit, 0.0)
    share = np.exp(np.minimum(size - unit[..., None], 0.0))
    return np.where(data.absent[:, None, :], 0.0, share), unit


def solved(joint: Array) -> tuple[Array, Array, Array]:
    """Logarithm of the evidence (...), coefficients (q, ...) and their covariance (q, q, ...) from the lower triangles
    of normal equations (q + 1, q + 1, ...), which are overwritten: 1 + G, b in the last row, z' K^-1 z at the end. The
    part of the evidence that all means of a covariance share is left out."""
    count = len(joint) - 1
    score = scored(joint, moments=True)
    mirrored(joint)
    return score, np.maximum(joint[count, :count], 0.0), np.negative(joint[:count, :count])


def scored(joint: Array, moments: bool = False) -> Array:
    """The evidence of :func:`solved` alone. With `moments` the last row then holds the means of the coefficients, and
    the triangle minus their covariance."""
    count, flat = len(joint) - 1, joint.reshape(*joint.shape[:2], -1)
    score = np.empty(flat.shape[2])
    for part in in_cache(flat):
        some = flat[:, :, part]
        log_determinant = swept(some, count, 1.0)
        score[part] = _truncated(some, moments) - 0.5 * log_determinant
    return score.reshape(joint.shape[2:])


def _truncated(joint: Array, moments: bool) -> Array:
    """Hold the coefficients of swept equations (q + 1, q + 1, f) at or above zero, one after the other; the logarithm
    of the evidence (f,). Without `moments` those that were held are not moved by the others any more."""
    count = len(joint) - 1
    score = np.asarray(-0.5 * joint[count, count] + count * np.log(2.0))
    for at in range(count):
        deviation = np.sqrt(np.maximum(-joint[at, at], 1e-300))
        z = np.clip(joint[count, at] / deviation, -30.0, 30.0)
        mass = np.asarray(special.ndtr(z))
        score += np.log(mass)
        first = 0 if moments else at + 1
        if first == count:
            break
        ratio = np.exp(-0.5 * z**2) / (ROOT_TWO_PI * mass)
        column = column_of(joint, at)[first:count] / -deviation
        joint[count, first:count] += column * ratio
        ratio *= ratio + z
        for row, factor in enumerate(column):
            joint[first + row, first : first + row + 1] += ratio * factor * column[: row + 1]
    return score


@dataclass(frozen=True)
class Equations:
    """Normal equations of t terms of s series under g covariances. The last term is nothing, and pads."""

    data: Data
    share: Array  # (s, t + 1, n): D'
    turned: Array  # (s, t + 1, g, n): D' K^-1
    right: Array  # (s, t + 1, g): b
    whole: Array  # (s, g): z' K^-1 z
    log_determinant: Array  # (s, g)

    @property
    def of_nothing(self) -> Array:
        """Logarithm of the evidence (s, g) of a mean without terms."""
        return -0.5 * self.log_determinant - 0.5 * self.whole

    @classmethod
    def of(cls, data: Data, share: Array, covariances: Array) -> Equations:
        """Those of terms with columns `share` (s, t, n) under `covariances` (g, 4)."""
        goal = data.target
        each = np.concatenate([share, np.zeros_like(goal)[:, None]], axis=1)
        turned, log_determinant = weighed(data, covariances, np.concatenate([each, goal[:, None]], axis=1))
        turned, pull = turned[:, :-1], turned[:, -1]
        whole = (pull @ goal[..., None])[..., 0]
        return cls(data, each, turned, each @ np.swapaxes(pull, 1, 2), whole, log_determinant)

    def evidence(self, members: Index) -> Array:
        """Logarithm of the evidence (s, h, g) of means `members` (h, q), or (s, h, q) of each series; -1 pads members;
        minus infinity where a mean has more terms than a series has values."""
        present = (~self.data.absent).sum(axis=1)
        each = members[None] if members.ndim == 2 else members
        sizes = (each >= 0).sum(axis=2)
        scores = np.empty((len(self.whole), each.shape[1], self.whole.shape[1]))
        # Means of equally many terms at once, as far as series have equally many of these.
        order = np.argsort(sizes, axis=1, kind="stable")
        each = np.take_along_axis(each, order[..., None], axis=1)
        most = np.take_along_axis(sizes, order, axis=1).max(axis=0, initial=0)
        series, order = np.arange(len(scores))[:, None], np.broadcast_to(order, scores.shape[:2])
        for size in np.unique(most):
            means = np.flatnonzero(most == size)
            scores[series, order[:, means]] = self._scores(each[:, means, :size])
        scores -= 0.5 * self.log_determinant[:, None]
        possible = np.isfinite(scores) & (present[:, None] >= sizes)[..., None]
        return np.where(possible, scores, -np.inf)

    def _scores(self, means: Index) -> Array:
        """:func:`scored`'s evidence (s, h, g) of means of the terms `means` (s or 1, h, q). The coefficient of a term
        that pads is what it was before the data."""
        count, series = means.shape[2], np.arange(len(self.whole))[:, None]
        joint = np.empty((count + 1, count + 1, len(series), means.shape[1], self.whole.shape[1]))
        share = [self.share[series, means[..., at]] for at in range(count)]
        for i in range(count):
            turned = self.turned[series, means[..., i]]
            for j in range(i + 1):
                joint[i, j] = np.einsum("shgn,shn->shg", turned, share[j])
            joint[i, i] += 1
            joint[count, i] = self.right[series, means[..., i]]
        joint[count, count] = self.whole[:, None]
        return scored(joint)


def evidence(data: Data, values: Array, members: Index, covariances: Array) -> Array:
    """:meth:`Equations.evidence` of means over terms `values` (t, n), or (s, t, n), under `covariances` (g, 4)."""
    if values.ndim == 3 and math.prod(members.shape[1:]) < values.shape[1]:
        which, members = occurring(members)
        values = np.take_along_axis(values, which[..., None], axis=1)
    return Equations.of(data, columns(values, data)[0], covariances).evidence(members)


def occurring(members: Index) -> tuple[Index, Index]:
    """The different terms (s, u) of means `members` (s, h, q), where -1 pads, and means as members of these."""
    flat = members.reshape(len(members), -1)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    first = np.diff(ordered, axis=1, prepend=-1) > 0
    rank = np.cumsum(first, axis=1) - 1
    place, different = np.empty_like(flat), np.zeros((len(flat), rank.max(initial=-1) + 1), dtype=np.intp)
    np.put_along_axis(place, order, np.where(ordered < 0, -1, rank), axis=1)
    series, at = np.nonzero(first)
    different[series, rank[series, at]] = ordered[series, at]
    return different, place.reshape(members.shape)


def smoothed(data: Data, covariances: Array) -> Data:
    """The series with `centre` what a power law with any departure and scatter of `covariances` (g, 4) leaves of the
    values without scatter: the posterior mean, averaged by evidence."""
    present = ~data.absent
    line = np.stack([np.ones(len(data.u)), *data.u.T])[None] * present[:, None]
    logs = np.where(present, data.logs, 0.0)
    level = logs.sum(axis=1, keepdims=True) / np.maximum(present.sum(axis=1, keepdims=True), 1)
    rest = np.where(present, logs - level, 0.0)
    turned, log_determinant = weighed(data, covariances, np.concatenate([line, rest[:, None]], axis=1))
    turned = np.swapaxes(turned, 1, 2)
    turned, pull = turned[:, :, :-1], turned[:, :, -1]
    normal = turned @ np.swapaxes(line, 1, 2)[:, None] + VAGUE * np.eye(line.shape[1])
    lines = np.linalg.solve(normal, (turned @ rest[:, None, :, None]))[..., 0]
    residual = rest[:, None] - np.einsum("sgq,sqn->sgn", lines, line)
    pull = pull - np.einsum("sgq,sgqn->sgn", lines, turned)
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
    inverted: Array  # (f, n, n): inverse of the covariance of its values


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
        each = np.concatenate([linear, data.target[:, None]], axis=1)
        joint = each @ inverted @ np.swapaxes(each, 1, 2)
        joint[:, range(joint.shape[1] - 1), range(joint.shape[1] - 1)] += 1
        score, coefficients, spread = solved(np.ascontiguousarray(np.moveaxis(joint, 0, 2)))
        current = coefficients.T
    assert current is not None
    return Solved(score - 0.5 * log_determinant[:, 0], current, np.moveaxis(spread, 2, 0), data, linear, inverted)
