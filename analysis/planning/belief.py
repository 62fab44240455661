"""What fitted functions believe of a value, and how a run that is not made yet would change it.

A series is a mixture of hypotheses with weights w_c and, each, coefficients of a normal law (mean, covariance
v_c R R^T; :mod:`ranksight.model.fitting.fitted`). To first order the logarithm of a positive value at z is

    ln y(z) = mu_c(z) + e_c(z) . theta + error,   e_c(z) = R^T a(z) / f_c(z),   theta ~ N(0, v_c I),

with a(z) the terms at z (a series without positive values likewise, without the logarithm). A measured y(z) changes
coefficients by the Kalman gain and weights by the density that each hypothesis gave it (West and Harrison 1997,
*Bayesian Forecasting and Dynamic Models*, chapters 4 and 12). The uncertainty at a target t after it is

    V = sum_c w_c [ln(1 + e_c(t) S_c e_c(t)) + v_c + (mu_c(t) - mean)^2] + sum_j (tau_j ln(t_j / x_max,j))^2 + jobs^2,

the first term the variance of a logarithm whose relative variance is given, the last two as the engine's intervals have
them. A run beyond the range measured brings x_max nearer.

Before it is made, a run's outcome is drawn from the belief itself. The expectation of ln sqrt(V) over many such worlds,
the entropy of the answer up to a constant, is what the run is worth (Bayesian experimental design: Lindley 1956,
*Annals of Mathematical Statistics* 27, 986; Chaloner and Verdinelli 1995, *Statistical Science* 10, 273).
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log_ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted, between_jobs
from ranksight.model.search.terms import values
from ranksight.model.series.noise import SMALLEST
from ranksight.model.uncertainty.forecast import WIDEST

SLOPE = 1.0
"""Standard deviation of the exponent along a parameter that never varied: nothing is known but that exponents are
small."""
LARGEST = float(np.log(WIDEST))
"""A hypothesis farther off than this makes the answer insufficient, however much farther it is."""
LIGHTEST = 1e-3
"""Hypotheses lighter than this are left out."""


@dataclass(frozen=True)
class Belief:
    """Hypotheses of s series at k points: candidates and targets together."""

    weight: Array  # (s, c)
    centre: Array  # (s, c, k): mu; zero where there is no value
    alive: Mask  # (s, c, k)
    feature: Array  # (s, c, d, k): e, with one more entry for every parameter that never varied
    prior: Array  # (s, c, d): variance of theta
    noise: Array  # (s, c, k)
    """Variance of a measured value around its function, of the logarithm (or of the value itself)."""
    size: Array  # (s, k)
    """One where the logarithm is meant, else the size of the value: what uncertainties are relative to."""
    freedom: Array  # (s, c)
    points: Array  # (k, m)
    drift: Array  # (s, m)
    """Standard deviation per e-fold along each parameter by which a series departs from its function beyond the runs,
    whether its law goes on or turns into another."""
    low: Array  # (s, m): range measured
    high: Array  # (s, m)
    jobs: Array  # (s,): standard deviation between jobs

    @classmethod
    def of(cls, fitted: Fitted, rows: Index, points: Array, training: Array) -> Belief:
        """The belief of the series `rows` at `points` (k, m), after measurements at `training` (n, m)."""
        members, weight = fitted.members[rows], fitted.weight[rows]
        weight = np.where(weight >= LIGHTEST, weight, 0.0)
        number = max(1, int((weight > 0).sum(axis=1).max(initial=1)))
        members, weight = members[:, :number], weight[:, :number]
        positive = fitted.positive[rows]
        basis = values(fitted.terms, points) if len(fitted.terms) else np.zeros((1, len(points)))
        design = np.where(members[..., None] >= 0, basis[members], 0.0)
        with np.errstate(all="ignore"):
            mean = np.einsum("scq,scqk->sck", fitted.coefficient[rows][:, :number], design)
            feature = np.einsum("scql,scqk->sclk", fitted.root[rows][:, :number], design)
            relative = feature / np.abs(mean)[:, :, None]
        variance, freedom = fitted.variance[rows][:, :number], fitted.freedom[rows][:, :number]
        plus = positive[:, None, None]
        alive = (weight > 0)[..., None] & np.isfinite(mean) & (~plus | (mean > 0)) & np.isfinite(relative).all(axis=2)
        typical = np.where(alive, np.abs(mean), 0.0)
        total = (weight[..., None] * alive).sum(axis=1)
        typical = (weight[..., None] * typical).sum(axis=1) / np.where(total > 0, total, 1.0)
        centre = np.where(alive, np.where(plus, np.log(np.where(alive & plus, mean, 1.0)), mean), 0.0)
        feature = np.where(alive[:, :, None], np.where(plus[:, :, None], relative, feature), 0.0)
        noise = np.where(np.isfinite(variance), np.maximum(variance, SMALLEST**2), LARGEST**2)[..., None]
        noise = np.broadcast_to(np.where(plus, noise, noise * np.where(alive, mean, 1.0) ** 2), centre.shape)
        noise = np.maximum(noise, 1e-300)
        prior = np.minimum(variance, LARGEST**2)[..., None] * np.ones(feature.shape[2])
        size = np.where(positive[:, None], 1.0, np.where(typical > 0, typical, 1.0))
        low, high = fitted.trained[rows, :, 0], fitted.trained[rows, :, 1]
        metrics = tuple(fitted.metrics[row] for row in rows)
        drift = fitted.drift[rows].max(axis=2)
        fixed = low == high
        drift = np.where(fixed, np.maximum(drift, priors.DRIFT), drift)
        distance = log_ratio(points[None], low[:, None])
        distance = np.where(fixed[:, None] & np.isfinite(distance), distance, 0.0) * size[..., None]
        slopes = np.broadcast_to(
            np.moveaxis(distance, 2, 1)[:, None], (*centre.shape[:2], points.shape[1], len(points))
        )
        return cls(
            weight,
            centre,
            alive,
            np.concatenate([feature, slopes], axis=2),
            np.concatenate([prior, np.full((*prior.shape[:2], points.shape[1]), SLOPE**2)], axis=2),
            noise,
            size,
            freedom,
            points,
            drift,
            low,
            high,
            between_jobs(metrics),
        )

    def beyond(self, low: Array, high: Array, points: Array) -> Array:
        """How many e-folds (s, k, m) points (k, m) lie outside of the ranges `low` to `high` (s, k or 1, m)."""
        out = np.fmax(log_ratio(points[None], high), log_ratio(low, points[None]))
        return np.asarray(np.where(np.isfinite(out), np.maximum(out, 0.0), 0.0))
