"""Rates as functions of the configuration: cycles per instruction, blocking factors, clocks, seconds per unit of work.

A rate is positive and changes slowly. Its logarithm is a Gaussian process over coordinates u (logarithms of the work
per rank, of the occupancy of a memory domain, or others),

    ln r(u) = a + b u + g(u) + e,    b ~ N(0, s_b^2),   g ~ GP(0, s^2 R(u, u')),   e ~ N(0, q^2 + repetitions)

with a flat prior of a, and R the Matern correlation of smoothness 1/2 or 3/2 (Rasmussen and Williams, "Gaussian
Processes for Machine Learning", 2006, sections 2.2, 2.7 and 5.4). s_b, s, q, the length of R and which coordinates act
at all are hypotheses of a grid. Each kernel weights them by their marginal likelihood; how common each is among the
kernels of the program is learned from all of them (empirical Bayes). A rate that follows a power law exactly keeps its
slope with a narrow interval. An erratic one keeps its last value, with an interval as wide as its past changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ranksight.core.errors import InputError
from ranksight.model.plaindata import from_gaps, reading, with_gaps
from ranksight.model.priors import (
    CHANGE,
    FAR,
    RATE_LENGTHS,
    RATE_NOISE,
    RATE_SCALES,
    RATE_SLOPE,
    RATE_SMOOTH_SHARE,
    REPEATED,
    UNSEEN,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

JITTER = 1e-9
"""Variance added to every value, so that exact repetitions leave a covariance that can be inverted."""
ROUNDS = 3
"""Iterations of the prevalence of hypotheses among kernels."""
BATCH = 4_000_000
"""Numbers of a batch of covariance matrices in memory."""
LEADING = 12
"""Hypotheses of largest weight that a kernel's rate is predicted by."""


@dataclass(frozen=True)
class Hypotheses:
    """The grid of hypotheses of a rate, h of them over d coordinates.

    Attributes
    ----------
    active : (h, d) bool
        Coordinates that act.
    slope, scale, length, noise : (h,)
        s_b, s, the length of R in e-folds, and q.
    rough : (h,) bool
        Whether R is of smoothness 1/2.
    prior : (h,)
    """

    active: Mask
    slope: Array
    scale: Array
    length: Array
    noise: Array
    rough: Mask
    prior: Array

    @classmethod
    def over(cls, variants: tuple[tuple[bool, ...], ...]) -> Hypotheses:
        """The grid for the sets of coordinates in `variants`, which have equal priors."""
        rows = []
        changes = [(0.0, 1.0, False, 1 - RATE_SMOOTH_SHARE)]
        each = RATE_SMOOTH_SHARE / (len(RATE_SCALES) * len(RATE_LENGTHS))
        changes += [(s, length, rough, each) for s, (rough, length) in product(RATE_SCALES, RATE_LENGTHS)]
        for variant, slope, (s, length, rough, share), q in product(variants, (0.0, RATE_SLOPE), changes, RATE_NOISE):
            rows.append((*variant, slope, s, length, rough, q, share / (2 * len(variants) * len(RATE_NOISE))))
        table = np.array(rows, dtype=np.float64)
        d = len(variants[0])
        slope, scale, length, rough, noise, prior = table[:, d:].T
        return cls(table[:, :d] > 0, slope, scale, length, noise, rough > 0, prior)

    def select(self, which: NDArray[np.intp]) -> Hypotheses:
        """Some of the hypotheses."""
        return Hypotheses(*(getattr(self, each.name)[which] for each in fields(self)))

    def variance(self, points: Array) -> Array:
        """Variance (h, k) of ln r - a at the points (k, d), with the noise between configurations."""
        squares = self.active.astype(np.float64) @ (points**2).T
        own = self.scale**2 + self.noise**2
        return np.asarray(self.slope[:, None] ** 2 * squares + own[:, None])

    def covariance(self, first: Array, second: Array) -> Array:
        """Covariance (h, a, b) of ln r - a, without noise, between the points (a, d) and (b, d)."""
        acting = self.active.astype(np.float64)
        apart = np.sqrt(np.einsum("hd,abd->hab", acting, (first[:, None] - second[None]) ** 2))
        apart /= self.length[:, None, None]
        root = np.sqrt(3.0) * apart
        matern = np.where(self.rough[:, None, None], np.exp(-apart), (1 + root) * np.exp(-root))
        linear = np.einsum("hd,ad,bd->hab", acting, first, second)
        return np.asarray(self.slope[:, None, None] ** 2 * linear + self.scale[:, None, None] ** 2 * matern)


@dataclass(frozen=True)
class Rates:
    """Rates of K kernels, measured at n configurations.

    Attributes
    ----------
    inputs : (n, d)
        Coordinates, in e-folds.
    values : (K, n)
        Logarithms of the rates, NaN where there is none.
    error : (K, n)
        Their standard errors from repetitions and counting.
    variants : tuple of tuple of bool
        Sets of coordinates that may act.
    """

    inputs: Array
    values: Array
    error: Array
    variants: tuple[tuple[bool, ...], ...]

    @cached_property
    def grid(self) -> Hypotheses:
        """The hypotheses."""
        return Hypotheses.over(self.variants)

    @cached_property
    def _origin(self) -> Array:
        """Where slopes are anchored: the centre of the measured coordinates."""
        return np.asarray(self.inputs.mean(axis=0)) if len(self.inputs) else np.zeros(self.inputs.shape[1])

    @cached_property
    def likelihood(self) -> Array:
        """Logarithm of the marginal likelihood of each kernel under each hypothesis, with a integrated out, (K, h)."""
        return np.concatenate([self._likelihood(rows) for rows in self._batches()])

    @cached_property
    def prevalence(self) -> Array:
        """Share of each hypothesis among kernels (h,): the prior, and what all kernels say together."""
        repeated = self.likelihood[np.isfinite(self.values).sum(axis=1) > 1]
        share = self.grid.prior
        for _ in range(ROUNDS):
            weight = _normalised(repeated + np.log(share))
            share = (self.grid.prior + weight.sum(axis=0)) / (1 + len(repeated))
        return share

    @cached_property
    def weights(self) -> Array:
        """Posterior weight of the hypotheses of each kernel, (K, h)."""
        return _normalised(self.likelihood + np.log(self.prevalence))

    @cached_property
    def evidence(self) -> Array:
        """Logarithm of each kernel's likelihood over all hypotheses, (K,)."""
        return np.asarray(logsumexp(self.likelihood + np.log(self.prevalence), axis=1))

    def at(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (K, k) of the logarithms of new configurations at `inputs` (k, d), with the
        noise between configurations and without that of repetitions."""
        new = inputs - self._origin
        grid, leading, weights = self.grid, self._leading, self.weights
        weights = np.take_along_axis(weights, leading, axis=1)
        weights = weights / weights.sum(axis=1, keepdims=True)
        used, place = np.unique(leading, return_inverse=True)
        some = grid.select(used)
        cross = some.covariance(self.inputs - self._origin, new)[place.reshape(leading.shape)]
        own = some.variance(new)[place.reshape(leading.shape)]
        known = np.isfinite(self.values)
        cross = cross * known[:, None, :, None]
        held = self._held
        turned = np.einsum("rhnm,rhmk->rhnk", held.inverse, cross, optimize=True)
        missing = 1 - turned.sum(axis=2)  # of the level, which is known as well as the values determine it
        centre = np.einsum("rn,rhnk->rhk", held.values, turned) + held.level[..., None] * missing
        spread = own - np.einsum("rhnk,rhnk->rhk", cross, turned) + missing**2 * held.variance[..., None]
        mean = np.einsum("rh,rhk->rk", weights, centre)
        square = np.einsum("rh,rhk->rk", weights, centre**2 + np.maximum(spread, 0.0))
        return mean + self._reference[:, None], np.sqrt(np.maximum(square - mean**2, 0.0))

    @cached_property
    def _leading(self) -> NDArray[np.intp]:
        """The hypotheses of largest weight of each kernel, (K, c)."""
        return np.argsort(-self.weights, axis=1, kind="stable")[:, :LEADING]

    @cached_property
    def _reference(self) -> Array:
        """Mean of the values (K,), which are taken relative to it."""
        known = np.isfinite(self.values)
        return np.asarray(np.where(known, self.values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))

    def _batches(self) -> list[NDArray[np.intp]]:
        """Rows whose covariances fit into memory together."""
        each = max(1, len(self.grid.prior) * max(1, len(self.inputs)) ** 2)
        count = max(1, -(-len(self.values) * each // BATCH))
        return list(np.array_split(np.arange(len(self.values)), count))

    def _relative(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.bool_], Array]:
        known = np.isfinite(self.values[rows])
        return known, np.where(known, self.values[rows] - self._reference[rows, None], 0.0)

    def _covariance(self, rows: NDArray[np.intp], grid: Hypotheses, place: NDArray[np.intp]) -> Array:
        """Covariance (r, c, n, n) of the values under the hypotheses `place` (r, c) of `grid`."""
        known, _ = self._relative(rows)
        moved = self.inputs - self._origin
        full = grid.covariance(moved, moved)[place]
        full = full * (known[:, None, :, None] & known[:, None, None, :])
        noise = self.error[rows][:, None] ** 2 + grid.noise[place][..., None] ** 2 + JITTER
        at = np.arange(len(self.inputs))
        full[..., at, at] += np.where(known[:, None], noise, 1.0)
        return np.asarray(full)

    def _likelihood(self, rows: NDArray[np.intp]) -> Array:
        known, y = self._relative(rows)
        count = len(self.grid.prior)
        full = self._covariance(rows, self.grid, np.broadcast_to(np.arange(count), (len(rows), count)))
        lower = np.linalg.cholesky(full)
        both = np.stack([y, known.astype(np.float64)], axis=-1)[:, None]
        turned = np.linalg.solve(lower, np.broadcast_to(both, (len(rows), count, *both.shape[2:])))
        y2, one2 = (turned**2).sum(axis=2).transpose(2, 0, 1)
        cross = (turned[..., 0] * turned[..., 1]).sum(axis=2)
        misfit = y2 - cross**2 / np.maximum(one2, 1e-300)
        logarithm = 2 * np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2) + np.log(np.maximum(one2, 1e-300))
        return np.asarray(-0.5 * (misfit + logarithm))

    @cached_property
    def _held(self) -> _Solved:
        """The kernels' rates under their leading hypotheses."""
        rows = np.arange(len(self.values))
        known, y = self._relative(rows)
        inverse = np.asarray(np.linalg.inv(self._covariance(rows, self.grid, self._leading)), dtype=np.float64)
        inverse = inverse * (known[:, None, :, None] & known[:, None, None, :])
        variance = 1 / np.maximum(inverse.sum(axis=(2, 3)), 1e-300)
        level = np.einsum("rhnm,rm->rh", inverse, y) * variance
        return _Solved(inverse, y, level, variance)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "inputs": self.inputs.tolist(),
            "values": with_gaps(self.values),
            "error": self.error.tolist(),
            "variants": [list(variant) for variant in self.variants],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Rates:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'rates'"):
            inputs, error = (np.array(content[name], dtype=np.float64) for name in ("inputs", "error"))
            values = from_gaps(content["values"])
            variants = tuple(tuple(each is True for each in variant) for variant in content["variants"])
        if (
            inputs.ndim != 2
            or values.ndim != 2
            or values.shape[1] != len(inputs)
            or error.shape != values.shape
            or not np.isfinite(inputs).all()
            or np.isinf(values).any()
            or not (np.isfinite(error).all() and (error >= 0).all())
            or not variants
            or any(len(variant) != inputs.shape[1] for variant in variants)
        ):
            raise InputError("'rates' does not fit together", "fit the model again")
        return cls(inputs, values, error, variants)


@dataclass(frozen=True)
class _Solved:
    """Kernels' rates under each hypothesis.

    Attributes
    ----------
    inverse : (r, h, n, n)
        Of the covariance; zero where a value is missing.
    values : (r, n)
        Relative to their mean; zero where missing.
    level, variance : (r, h)
        Estimate of a, and its variance.
    """

    inverse: Array
    values: Array
    level: Array
    variance: Array


def unseen(points: Array, held: Array) -> Array:
    """Standard deviation (k,) of the logarithm of a time at `points` (k, d) that runs at `held` (n, d) do not show.

    With d the distance in e-folds beyond the range of the runs, REPEATED and UNSEEN d sqrt(1 + (d / FAR)^2) together.
    """
    out = np.maximum(np.maximum(points - held.max(axis=0), held.min(axis=0) - points), 0.0)
    squared = (out**2).sum(axis=1)
    return np.asarray(np.sqrt(REPEATED**2 + UNSEEN**2 * squared * (1 + squared / FAR**2)))


def changed(points: Array, held: Array) -> Array:
    """Standard deviation (k,) of the logarithm of a time at `points` (k, d) that may lie in another regime than the
    runs at `held` (n, d): CHANGE d^2 / (R + d), with d the e-folds beyond the range R of a coordinate, at its
    largest."""
    low, high = held.min(axis=0), held.max(axis=0)
    out = np.maximum(np.maximum(points - high, low - points), 0.0)
    range_ = np.broadcast_to(high - low, out.shape)
    return np.asarray((CHANGE * out**2 / np.where(out > 0, range_ + out, 1.0)).max(axis=1, initial=0.0))


def _normalised(logarithms: Array) -> Array:
    return np.asarray(np.exp(logarithms - logsumexp(logarithms, axis=-1, keepdims=True)))
