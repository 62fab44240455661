"""Rates as functions of the configuration: cycles per instruction, blocking factors, clocks, seconds per unit of work.

A rate is positive and changes slowly. Its logarithm is a Gaussian process over coordinates u (logarithms of the work
per rank, of the occupancy of a memory domain, or others),

    ln r(u) = a + b h(u) + g(u) + e,    b ~ N(0, s_b^2),   g ~ GP(0, s^2 R(u, u')),   e ~ N(0, q^2 + repetitions)

with a flat prior of a, and R the Matern correlation of smoothness 1/2 or 3/2 (Rasmussen and Williams, "Gaussian
Processes for Machine Learning", 2006, sections 2.2, 2.7 and 5.4). h is u where the rate follows a power law, or levels
off to both sides, k tanh((u - c) / k), as the logarithm of a rate between two constants does. s_b, h, s, q, the length
of R and which coordinates act at all are hypotheses of a grid. Each kernel weights them by their marginal likelihood;
how common each is among the kernels of the program is learned from all of them (empirical Bayes). A rate that follows a
power law exactly keeps its slope with a narrow interval. An erratic one keeps its last value, with an interval as wide
as its past changes.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.hypotheses import Hypotheses
from ranksight.model.plaindata import Stored
from ranksight.model.priors import CHANGE
from ranksight.model.process.elimination import inverses

JITTER = 1e-9
"""Variance added to every value, so that exact repetitions leave a covariance that can be inverted."""
ROUNDS = 3
"""Iterations of the prevalence of hypotheses among kernels."""
BATCH = 250_000
"""Numbers of a batch of covariance matrices, which then stay in a processor's cache."""
LARGEST = 8_000_000
"""Numbers of the matrices of all kernels that are predicted at once."""
DIGITS = 12
"""Decimals of coordinates, in e-folds, up to which two are the same."""
LEADING = 12
"""Hypotheses of largest weight that a kernel's rate is predicted by."""


@dataclass(frozen=True)
class Rates(Stored):
    """Rates of K kernels, measured at n configurations."""

    inputs: Array  # (n, d): coordinates, in e-folds
    values: Array  # (K, n): logarithms of the rates, NaN where there is none
    error: Array  # (K, n): their standard errors from repetitions and counting
    variants: tuple[tuple[bool, ...], ...]  # sets of coordinates that may act
    common: Array = field(default_factory=lambda: np.empty(0))  # (h,)
    """Shares of the hypotheses among kernels, where these rates are of some of them only, or a file holds it."""
    _sizes = "inputs:nd! values:kn error:kn>=0"

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the prevalence of the hypotheses, which some kernels alone do not show."""
        return {**super().to_dict(), "common": self.prevalence.tolist()}

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
        if len(self.common):
            return self.common
        repeated = self.likelihood[np.isfinite(self.values).sum(axis=1) > 1]
        repeated = np.exp(repeated - repeated.max(axis=1, keepdims=True))
        share = self.grid.prior
        for _ in range(ROUNDS):
            weight = share * ((1 / (repeated @ share)) @ repeated)
            share = (self.grid.prior + weight) / (1 + len(repeated))
        return share

    @cached_property
    def weights(self) -> Array:
        """Posterior weight of the hypotheses of each kernel, (K, h)."""
        return _normalised(self.likelihood + np.log(self.prevalence))

    @cached_property
    def evidence(self) -> Array:
        """Logarithm of each kernel's likelihood over all hypotheses, (K,)."""
        return np.asarray(special.logsumexp(self.likelihood + np.log(self.prevalence), axis=1))

    def at(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (K, k) of the logarithms of new configurations at `inputs` (k, d), with the
        noise between configurations and without that of repetitions."""
        each = LEADING * max(1, len(self._places)) * max(1, len(self._places) + 2 * len(inputs))
        parts = np.array_split(np.arange(len(self.values)), max(1, -(-len(self.values) * each // LARGEST)))
        predicted = [self._at(rows, inputs - self._origin) for rows in parts]
        mean, spread = (np.concatenate(part) for part in zip(*predicted, strict=True))
        return mean + self._reference[:, None], spread

    def _at(self, rows: Index, new: Array) -> tuple[Array, Array]:
        """What :meth:`at` gives for some kernels at the coordinates `new`, less their reference."""
        leading = self._leading[rows]
        weights = np.take_along_axis(self.weights[rows], leading, axis=1)
        weights = weights / weights.sum(axis=1, keepdims=True)
        used, place = np.unique(leading, return_inverse=True)
        place, some, solved = place.reshape(leading.shape), self.grid.select(used), self._held(rows)
        cross = some.covariance(self._places, new)[place]
        if not solved.known.all():
            cross *= solved.known[:, None, :, None]
        variance = some.variance(new)[place]
        turned = solved.inverse @ cross
        missing = 1 - turned.sum(axis=2)  # of the level, which is known as well as the values determine it
        centre = (solved.values[:, :, None] @ turned)[:, :, 0] + solved.level[..., None] * missing
        spread = variance - np.einsum("rhnk,rhnk->rhk", cross, turned) + missing**2 * solved.variance[..., None]
        mean = np.einsum("rh,rhk->rk", weights, centre)
        square = np.einsum("rh,rhk->rk", weights, centre**2 + np.maximum(spread, 0.0))
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    @cached_property
    def _leading(self) -> Index:
        """The hypotheses of largest weight of each kernel, (K, c)."""
        return np.argsort(-self.weights, axis=1, kind="stable")[:, :LEADING]

    @cached_property
    def _reference(self) -> Array:
        """Mean of the values (K,), which are taken relative to it."""
        known = np.isfinite(self.values)
        return np.asarray(np.where(known, self.values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))

    @cached_property
    def _groups(self) -> tuple[Array, Array]:
        """Distinct coordinates (g, d) relative to the origin, and which configurations are at each, (n, g) of 0 or 1.

        Values at the same coordinates have the same covariance with all others. Their weighted mean stands for them, as
        exact algebra and with matrices that are smaller.
        """
        if not len(self.inputs):
            return self.inputs, np.zeros((0, 0))
        rounded = np.round(self.inputs - self._origin, DIGITS)
        _, first, group = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        belongs = group.reshape(-1)[:, None] == np.arange(len(first))
        return self.inputs[first] - self._origin, belongs.astype(np.float64)

    @property
    def _places(self) -> Array:
        return self._groups[0]

    def _batches(self) -> list[Index]:
        """Rows whose covariances fit into a processor's cache together."""
        each = max(1, len(self.grid.prior) * max(1, len(self._places)) ** 2)
        count = max(1, -(-len(self.values) * each // BATCH))
        return list(np.array_split(np.arange(len(self.values)), count))

    def _grouped(self, rows: Index, noise: Array) -> _Grouped:
        """The values of `rows` under hypotheses of `noise` (r or 1, c), one value for each distinct coordinate."""
        known = np.isfinite(self.values[rows])
        y = np.where(known, self.values[rows] - self._reference[rows, None], 0.0)
        variance = self.error[rows][:, None] ** 2 + noise[..., None] ** 2 + JITTER
        belongs = self._groups[1]
        if belongs.shape[0] == belongs.shape[1]:  # every configuration is at coordinates of its own
            order = belongs.argmax(axis=0)
            none = np.zeros(variance.shape[:2])
            at, variance = known[:, order], variance[..., order]
            return _Grouped(at, np.broadcast_to(y[:, None, order], variance.shape), variance, none, none)
        precision = known[:, None] / variance
        total = precision @ belongs
        filled = (known @ belongs) > 0
        total = np.where(filled[:, None], total, 1.0)
        mean = (precision * y[:, None]) @ belongs / total
        inside = (precision * (y[:, None] - mean @ belongs.T) ** 2).sum(axis=2)
        logarithm = np.where(known[:, None], np.log(variance), 0.0).sum(axis=2) + np.log(total).sum(axis=2)
        return _Grouped(filled, mean, 1 / total, inside, logarithm)

    def _likelihood(self, rows: Index) -> Array:
        noise, place = np.unique(self.grid.noise, return_inverse=True)
        grouped = self._grouped(rows, noise[None]).under(place)
        size, shape = len(self._places), grouped.values.shape[:2]
        full = np.empty((size, size, *shape))
        full[:] = np.moveaxis(self._shared_covariance, 0, 2)[:, :, None]
        grouped.complete(np.moveaxis(full, (0, 1), (2, 3)))
        inverse, logarithm = inverses(full.reshape(size, size, -1), np.finfo(float).tiny)
        ones = np.broadcast_to(grouped.known[:, None], grouped.values.shape)
        columns = np.stack([grouped.values, ones], axis=3).reshape(-1, size, 2)
        products = (columns.swapaxes(1, 2) @ inverse @ columns).reshape(*shape, 2, 2)
        one2 = np.maximum(products[..., 1, 1], 1e-300)
        misfit = grouped.inside + products[..., 0, 0] - products[..., 0, 1] ** 2 / one2
        return np.asarray(-0.5 * (misfit + logarithm.reshape(shape) + grouped.logarithm + np.log(one2)))

    @cached_property
    def _shared_covariance(self) -> Array:
        """Covariance (h, g, g) between distinct coordinates, without noise."""
        return self.grid.covariance(self._places, self._places)

    def _held(self, rows: Index) -> _Solved:
        """The rates of some kernels under their leading hypotheses."""
        leading = self._leading[rows]
        grouped = self._grouped(rows, self.grid.noise[leading])
        full = self._shared_covariance[leading]
        grouped.complete(full)
        inverse = np.asarray(np.linalg.inv(full), dtype=np.float64)
        known = grouped.known
        if not known.all():
            inverse *= known[:, None, :, None] & known[:, None, None, :]
        variance = 1 / np.maximum(inverse.sum(axis=(2, 3)), 1e-300)
        level = (inverse @ grouped.values[..., None]).sum(axis=(2, 3)) * variance
        return _Solved(known, inverse, grouped.values, level, variance)

    def _fits(self) -> bool:
        return (
            not np.isinf(self.values).any()
            and bool(self.variants)
            and all(len(variant) == self.inputs.shape[1] for variant in self.variants)
            and (not len(self.common) or self._shares(self.common))
        )

    def _shares(self, common: Array) -> bool:
        """Whether these can be shares of the hypotheses."""
        return common.shape == self.grid.prior.shape and bool(((common > 0) & (common <= 1)).all())


@dataclass(frozen=True)
class _Grouped:
    """Values of r kernels under c hypotheses, one for each of g distinct coordinates."""

    known: Mask  # (r, g): whether the kernel has a value there
    values: Array  # (r, c, g): weighted means of the values, relative to the kernel's mean; zero where missing
    variance: Array  # (r, c, g)
    inside: Array  # (r, c)
    logarithm: Array  # (r, c)
    """What the likelihood takes from the scatter of values at the same coordinates: their squares over variances, and
    the logarithm of determinants."""

    def under(self, which: Index) -> _Grouped:
        """The same under some of the hypotheses, which may come repeatedly."""
        parts = (self.values, self.variance, self.inside, self.logarithm)
        return _Grouped(self.known, *(part[:, which] for part in parts))

    def complete(self, full: Array) -> None:
        """Mask in `full` (r, c, g or more, g or more) what is not known and add the variances, in place."""
        size = self.known.shape[1]
        if not self.known.all():
            full[..., :size, :size] *= self.known[:, None, :, None] & self.known[:, None, None, :]
        at = np.arange(size)
        full[..., at, at] += np.where(self.known[:, None], self.variance, 1.0)


@dataclass(frozen=True)
class _Solved:
    """Kernels' rates under each hypothesis."""

    known: Mask  # (r, g): distinct coordinates at which the kernel has a value
    inverse: Array  # (r, h, g, g): of the covariance; zero where a value is missing
    values: Array  # (r, h, g): relative to their mean; zero where missing
    level: Array  # (r, h): estimate of a
    variance: Array  # (r, h): variance of that estimate


def changed(points: Array, measured: Array) -> Array:
    """Standard deviation (k,) of the logarithm of a time at `points` (k, d) that may lie in another regime than the
    runs at `measured` (n, d): CHANGE d^2 / (R + d), with d the e-folds beyond the range R of a coordinate, at its
    largest."""
    low, high = measured.min(axis=0), measured.max(axis=0)
    out = np.maximum(np.maximum(points - high, low - points), 0.0)
    range_ = np.broadcast_to(high - low, out.shape)
    return np.asarray((CHANGE * out**2 / np.where(out > 0, range_ + out, 1.0)).max(axis=1, initial=0.0))


def _normalised(logarithms: Array) -> Array:
    return np.asarray(np.exp(logarithms - special.logsumexp(logarithms, axis=-1, keepdims=True)))
