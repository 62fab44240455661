"""Smooth departures of kernels from a law: its correlated residual, extrapolated as far as it stays correlated.

Cycles per instruction follow the working set as one cache after the other is outgrown, and no law of a few numbers says
when. The logarithm of measured over predicted is taken as a Gaussian process over the logarithms of the parameters,

    r_k(x) ~ N(0, s_k^2 R(x, x') + q^2),

of mean zero, so that far from all measurements the law stands alone and the interval is as wide as departures were.
The correlation lengths (one for each parameter) and the scatter of single runs, q, are those of the program's kernels
together, as four sizes determine neither for one kernel. s_k is each kernel's own, by its posterior over a grid. How
smooth departures are is not known: R is the Matérn covariance of smoothness 1/2, 3/2 and 5/2 in turn, with equal
weights (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, sections 2.2, 4.2 and 5.4).
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored

SIZES = np.geomspace(0.003, 2.0, 12)
"""Grid of s_k."""
SCATTER = np.geomspace(0.002, 0.3, 12)
"""Grid of q."""
LENGTHS = np.geomspace(0.3, 8.0, 8)
"""Grid of the lengths, in e-folds of a parameter."""
TINY = 1e-6
"""Lengths below this, or above its inverse, are no lengths of ours."""
SMOOTH = (0.5, 1.5, 2.5)
ROUNDS = 2
"""Times that each parameter's length is looked for with the others held."""


@dataclass(frozen=True)
class Departure(Stored):
    """Departures of K kernels at n configurations, and how they go on."""

    inputs: Array  # (n, d): logarithms of what the departures depend on
    values: Array  # (K, n): logarithm of measured over predicted, NaN where missing
    lengths: Array  # (3, d): for each of :data:`SMOOTH`
    scatter: Array  # (3,): q, for each of :data:`SMOOTH`

    def at(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (K, k) of a new measurement's departure at `inputs` (k, d)."""
        shape = (len(self.values), len(inputs))
        means, squares = np.zeros(shape), np.zeros(shape)
        for rows, known in _patterns(self.values):
            for which, smooth in enumerate(SMOOTH):
                solved = _Solved.of(self.inputs[known], self.values[rows][:, known], self.lengths[which], smooth)
                mean, square = solved.at(inputs, float(self.scatter[which]))
                means[rows] += mean / len(SMOOTH)
                squares[rows] += square / len(SMOOTH)
        return means, np.sqrt(np.maximum(squares - means**2, 0.0))

    def left_out(self) -> Array:
        """The leave-one-out residual of each departure (K, n), predicted from all others."""
        errors = np.full(self.values.shape, np.nan)
        for rows, known in _patterns(self.values):
            parts = [
                _Solved.of(self.inputs[known], self.values[rows][:, known], self.lengths[which], smooth).left_out(
                    float(self.scatter[which])
                )
                for which, smooth in enumerate(SMOOTH)
            ]
            errors[np.ix_(rows, np.flatnonzero(known))] = np.mean(parts, axis=0)
        return errors

    def _fits(self) -> bool:
        three = len(SMOOTH)
        return (
            self.inputs.ndim == 2
            and bool(np.isfinite(self.inputs).all())
            and self.values.ndim == 2
            and self.values.shape[1] == len(self.inputs)
            and not np.isinf(self.values).any()
            and self.lengths.shape == (three, self.inputs.shape[1])
            and self.scatter.shape == (three,)
            and bool(((self.lengths > TINY) & (self.lengths < 1 / TINY)).all() and (self.scatter > 0).all())
        )


@dataclass(frozen=True)
class _Solved:
    """The process of kernels that were all measured at the same configurations, for one smoothness."""

    inputs: Array
    lengths: Array
    smooth: float
    roots: Array
    turned: Array
    axes: Array

    @classmethod
    def of(cls, inputs: Array, values: Array, lengths: Array, smooth: float) -> _Solved:
        roots, axes = np.linalg.eigh(_alike(inputs, inputs, lengths, smooth))
        return cls(inputs, lengths, smooth, np.maximum(roots, 0.0), values @ axes, axes)

    def likelihood(self, scatter: Array) -> Array:
        """Logarithm of the likelihood for each q and s_k, (q, s, K)."""
        variance = SIZES[None, :, None] ** 2 * self.roots + scatter[:, None, None] ** 2
        return np.asarray(-0.5 * (np.log(variance).sum(axis=2)[..., None] + (1 / variance) @ (self.turned**2).T))

    def weights(self, scatter: float) -> Array:
        """Posterior of s_k, (s, K)."""
        likelihoods = self.likelihood(np.array([scatter]))[0]
        return np.asarray(np.exp(likelihoods - special.logsumexp(likelihoods, axis=0)))

    def at(self, inputs: Array, scatter: float) -> tuple[Array, Array]:
        """Mean and mean square (K, k) at `inputs`."""
        near = _alike(inputs, self.inputs, self.lengths, self.smooth) @ self.axes
        power = SIZES**2
        inverse = 1 / (power[:, None] * self.roots + scatter**2)
        means = (power[:, None, None] * inverse[:, None, :] * self.turned) @ near.T
        spread = power[:, None] - power[:, None] ** 2 * (inverse @ (near**2).T) + scatter**2
        weights = self.weights(scatter)
        mean = np.einsum("sK,sKk->Kk", weights, means)
        return mean, np.einsum("sK,sKk->Kk", weights, means**2 + spread[:, None, :])

    def left_out(self, scatter: float) -> Array:
        """Leave-one-out residuals: what the inverse covariance says of each, over its diagonal."""
        inverse = 1 / (SIZES[:, None] ** 2 * self.roots + scatter**2)
        full = np.einsum("in,sn,Kn->sKi", self.axes, inverse, self.turned)
        diagonal = np.einsum("in,sn,in->si", self.axes, inverse, self.axes)
        return np.asarray(np.einsum("sK,sKi->Ki", self.weights(scatter), full / diagonal[:, None, :]))


def learn_departure(inputs: Array, values: Array) -> Departure:
    """Learn the correlation lengths of departures and the scatter of single runs.

    `inputs` (n, d): logarithms of what the departures depend on. `values` (K, n).
    """
    patterns = _patterns(values)
    lengths, scatter = [], []
    for smooth in SMOOTH:
        best = np.full(inputs.shape[1], 2.0)

        def said(trial: Array, smooth: float = smooth) -> Array:
            """Logarithm of the likelihood of all kernels for each q."""
            total = np.zeros(len(SCATTER))
            for rows, known in patterns:
                if known.sum() > 1:
                    solved = _Solved.of(inputs[known], values[rows][:, known], trial, smooth)
                    total += special.logsumexp(solved.likelihood(SCATTER), axis=1).sum(axis=1)
            return total

        for _ in range(ROUNDS if inputs.shape[1] > 1 else 1):
            for axis in range(inputs.shape[1]):
                trials = np.tile(best, (len(LENGTHS), 1))
                trials[:, axis] = LENGTHS
                best = trials[int(np.argmax([said(trial).max() for trial in trials]))]
        lengths.append(best)
        scatter.append(SCATTER[int(np.argmax(said(best)))])
    return Departure(inputs, values, np.array(lengths), np.array(scatter))


def _patterns(values: Array) -> list[tuple[Index, Mask]]:
    """Kernels that were measured at the same configurations, together."""
    known, which = np.unique(np.isfinite(values), axis=0, return_inverse=True)
    which = np.asarray(which).reshape(-1)
    return [(np.flatnonzero(which == at), pattern) for at, pattern in enumerate(known) if pattern.any()]


def _alike(first: Array, second: Array, lengths: Array, smooth: float) -> Array:
    """Matérn correlation of the points, (a, b)."""
    distance = np.sqrt((((first[:, None, :] - second[None, :, :]) / lengths) ** 2).sum(axis=2))
    if smooth == 0.5:
        return np.asarray(np.exp(-distance))
    if smooth == 1.5:
        return np.asarray((1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance))
    return np.asarray((1 + np.sqrt(5) * distance + 5 / 3 * distance**2) * np.exp(-np.sqrt(5) * distance))
