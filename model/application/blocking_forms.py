"""Forms that BF_comm may have over ranks besides a power law with slow changes: logarithm, levelling, step at the node.

    ln BF(p) = a + f(p) + e,     e ~ N(0, q^2 + repetitions)
    logarithm   f = ln(1 + r ln(p / p_0))                       each round of a tree waits
    levelling   f = ln(1 + (exp(-d) - 1) w(p / s))              from d below its level, which it nears over s ranks:
                                                                w(x) = 1 / (1 + x), 1 / (1 + x^2) or exp(-x)
    step        f = d where the ranks are on more than one node, of which the platform knows the boundary

with a flat prior of a and priors of r, d, s, w and q on grids. Every grid is one hypothesis: its posterior gives the
mean and the deviation elsewhere, and its evidence its weight against the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.model.plaindata import Stored

LOGARITHM, LEVELLING, STEP = "logarithm", "levelling", "step"
GROWTH = np.geomspace(0.05, 20.0, 25)
"""Growth r of an e-fold of ranks over the value at the fewest."""
FAR, WIDE = np.linspace(-6.0, 6.0, 121), {"levelling": 2.0, "step": 1.0}
"""Logarithm of the level over the value of few ranks, d, and the standard deviation of its normal prior: a level may be
neared from nothing."""
NEARED = (0.0, 1.0, 2.0)
"""How a level is neared: powers of the ranks, and 0 for an exponential function."""
OUTSIDE = 2.0 ** np.array([-2.0, -1.5, -1.0, -0.5])
"""Ranks s over the fewest measured, below these, and the most measured over s, above them."""
NOISE = (0.005, 0.02, 0.1)
"""Standard deviations q of ln BF between configurations."""


@dataclass(frozen=True)
class BlockingForms(Stored):
    """K forms, each of values of BF_comm at n configurations."""

    forms: tuple[str, ...]
    ranks: Array  # (n,)
    values: Array  # (K, n): ln BF; NaN where there is none
    errors: Array  # (K, n): standard errors from repetitions
    node: float  # ranks that fill a node; none where 0

    @cached_property
    def _posteriors(self) -> list[_Posterior]:
        return [
            _posterior(self._grids[form], self.ranks, values, errors)
            for form, values, errors in zip(self.forms, self.values, self.errors, strict=True)
        ]

    @cached_property
    def _grids(self) -> dict[str, _Grid]:
        low, high = float(self.ranks.min()), float(self.ranks.max())
        return {form: _grid(form, low, high, self.node) for form in set(self.forms)}

    @property
    def evidence(self) -> Array:
        """Logarithm of the marginal likelihood of each form, (K,)."""
        return np.array([each.evidence for each in self._posteriors])

    def at(self, ranks: Array) -> tuple[Array, Array]:
        """Means and standard deviations (K, k) of ln BF at `ranks` (k,)."""
        mean, deviation = np.empty((2, len(self.forms), len(ranks)))
        for row, (form, each) in enumerate(zip(self.forms, self._posteriors, strict=True)):
            centre = each.level[..., None] + self._grids[form].at(ranks)[:, None]
            mean[row] = np.einsum("gq,gqk->k", each.weight, centre)
            square = (centre - mean[row]) ** 2 + each.variance[..., None]
            deviation[row] = np.sqrt(np.einsum("gq,gqk->k", each.weight, square))
        return mean, deviation

    def _fits(self) -> bool:
        shape = (len(self.forms), len(self.ranks))
        known = np.isfinite(self.values).any(axis=1).all() and (self.ranks > 0).all()
        return bool(
            self.values.shape == self.errors.shape == shape
            and known
            and set(self.forms) <= {LOGARITHM, LEVELLING, STEP}
            and 0 <= self.node < np.inf
        )


@dataclass(frozen=True)
class _Grid:
    """A form with g combinations of its parameters, the columns of `parameters`."""

    form: str
    parameters: tuple[Array, ...]  # (g,) each
    prior: Array  # (g,)
    low: float  # fewest ranks measured
    node: float

    def at(self, ranks: Array) -> Array:
        """f at `ranks` (k,), (g, k)."""
        first, *more = (each[:, None] for each in self.parameters)
        if self.form == LOGARITHM:
            return np.asarray(np.log(1 + first * np.log(np.maximum(ranks / self.low, 1.0))))
        if self.form == STEP:
            return np.asarray(first * (ranks > self.node))
        scale, power = more
        x = ranks / scale
        left = np.where(power > 0, 1 / (1 + x**power), np.exp(-x))
        return np.asarray(np.log1p(np.expm1(-first) * left))


@dataclass(frozen=True)
class _Posterior:
    """Of g combinations and q sizes of noise: weights, levels a, and variances of BF elsewhere, (g, q) each."""

    weight: Array
    level: Array
    variance: Array
    evidence: float


def _grid(form: str, low: float, high: float, node: float) -> _Grid:
    axes: tuple[Array, ...] = (FAR,)
    if form == LOGARITHM:
        axes = (GROWTH,)
    elif form == LEVELLING:
        between = np.geomspace(low, max(high, 2 * low), 9)
        axes = (FAR, np.r_[low * OUTSIDE, between, high / OUTSIDE], np.array(NEARED))
    mesh = tuple(each.ravel() for each in np.meshgrid(*axes, indexing="ij"))
    prior = np.ones(len(mesh[0])) if form == LOGARITHM else np.exp(-((mesh[0] / WIDE[form]) ** 2) / 2)
    return _Grid(form, mesh, prior / prior.sum(), low, node)


def _posterior(grid: _Grid, ranks: Array, values: Array, errors: Array) -> _Posterior:
    known = np.isfinite(values)
    left = values[known] - grid.at(ranks[known])  # (g, n)
    variance = errors[known] ** 2 + np.array(NOISE)[:, None] ** 2  # (q, n)
    precision = variance**-1
    total = precision.sum(axis=1)
    level = left @ precision.T / total
    misfit = ((left[:, None] - level[..., None]) ** 2 * precision).sum(axis=2)
    likelihood = -0.5 * (misfit + np.log(variance).sum(axis=1) + np.log(total))
    likelihood += np.log(grid.prior)[:, None] - np.log(len(NOISE))
    evidence = float(special.logsumexp(likelihood.ravel(), axis=0))
    own = np.broadcast_to(1 / total + np.array(NOISE) ** 2, level.shape)
    return _Posterior(np.exp(likelihood - evidence), level, own, evidence)
