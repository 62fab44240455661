"""What is believed of a value, and how a run that is not made yet would change it.

A series is a mixture of hypotheses with weights w_c and, each, unknown numbers theta of a normal law. To first order
the logarithm of a positive value at z is

    ln y(z) = mu_c(z) + e_c(z) . theta + error,   theta ~ N(0, v_c I).

For times (:mod:`ranksight.model.process.posterior`) these are the coefficients and the departure of a hypothesis, by
the square root of their covariance K_c between :data:`KNOTS` of the points: e_c(z) = K_c^(-1/2) K_c(z), v_c = 1
(Nystroem's approximation: Williams and Seeger 2001, *Advances in Neural Information Processing Systems* 13, 682). For
counts (:mod:`ranksight.model.fitting.fitted`) they are coefficients with covariance v_c R R^T, e_c(z) = R^T a(z) /
f_c(z) with a(z) the terms at z (a series without positive values likewise, without the logarithm). A measured y(z)
changes them by the Kalman gain and weights by the density that each hypothesis gave it (West and Harrison 1997,
*Bayesian Forecasting and Dynamic Models*, chapters 4 and 12). The uncertainty at a target t after it is

    V = sum_c w_c [ln(1 + e_c(t) S_c e_c(t)) + v_c + (mu_c(t) - mean)^2] + sum_j (tau_j ln(t_j / x_max,j))^2 + jobs^2,

the first term the variance of a logarithm whose relative variance is given, the last two as the engine's intervals have
them. A run beyond the range measured brings x_max nearer.

Before it is made, a run's outcome is drawn from the belief itself. The expectation of ln sqrt(V) over many such worlds,
the entropy of the answer up to a constant, is what the run is worth (Bayesian experimental design: Lindley 1956,
*Annals of Mathematical Statistics* 27, 986; Chaloner and Verdinelli 1995, *Statistical Science* 10, 273).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log_ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted, between_jobs
from ranksight.model.process.posterior import NORMAL, Process
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
KNOTS = 24
"""Points, the last target among them, that carry the covariance of a time between all points."""
ROUNDED = 1e-9
"""Part of the largest variance below which a direction says nothing."""


class Hypotheses(NamedTuple):
    """c hypotheses of each of s series at k points, with d unknown numbers each."""

    weight: Array  # (s, c)
    centre: Array  # (s, c, k): mu; zero where there is no value
    alive: Mask  # (s, c, k)
    feature: Array  # (s, c, d, k): e
    prior: Array  # (s, c, d): variance of theta
    noise: Array  # (s, c, k)
    size: Array  # (s, k)
    freedom: Array  # (s, c)

    @classmethod
    def of_functions(cls, fitted: Fitted, rows: Index, points: Array) -> Hypotheses:
        """Those of the series `rows` as sums of terms."""
        members, weight = fitted.members[rows], fitted.weight[rows]
        weight = np.where(weight >= LIGHTEST, weight, 0.0)
        number = max(1, int((weight > 0).sum(axis=1).max(initial=1)))
        members, weight = members[:, :number], weight[:, :number]
        plus = fitted.positive[rows][:, None, None]
        basis = values(fitted.terms, points) if len(fitted.terms) else np.zeros((1, len(points)))
        design = np.where(members[..., None] >= 0, basis[members], 0.0)
        with np.errstate(all="ignore"):
            mean = np.einsum("scq,scqk->sck", fitted.coefficient[rows][:, :number], design)
            feature = np.einsum("scql,scqk->sclk", fitted.root[rows][:, :number], design)
            relative = feature / np.abs(mean)[:, :, None]
        variance, freedom = fitted.variance[rows][:, :number], fitted.freedom[rows][:, :number]
        alive = (weight > 0)[..., None] & np.isfinite(mean) & (~plus | (mean > 0)) & np.isfinite(relative).all(axis=2)
        typical = np.where(alive, np.abs(mean), 0.0)
        total = (weight[..., None] * alive).sum(axis=1)
        typical = (weight[..., None] * typical).sum(axis=1) / np.where(total > 0, total, 1.0)
        centre = np.where(alive, np.where(plus, np.log(np.where(alive & plus, mean, 1.0)), mean), 0.0)
        feature = np.where(alive[:, :, None], np.where(plus[:, :, None], relative, feature), 0.0)
        noise = np.where(np.isfinite(variance), np.maximum(variance, SMALLEST**2), LARGEST**2)[..., None]
        noise = np.broadcast_to(np.where(plus, noise, noise * np.where(alive, mean, 1.0) ** 2), centre.shape)
        prior = np.minimum(variance, LARGEST**2)[..., None] * np.ones(feature.shape[2])
        size = np.where(plus[:, 0], 1.0, np.where(typical > 0, typical, 1.0))
        return cls(weight, centre, alive, feature, prior, np.maximum(noise, 1e-300), size, freedom)

    @classmethod
    def of_process(cls, process: Process, points: Array) -> Hypotheses:
        """Those of all series of a process at points, the last of which are targets."""
        asked = points[:, process.axes]
        known: Mask = np.asarray((asked > 0).all(axis=1))
        knots = np.unique(np.linspace(0, len(points) - 1, min(KNOTS, len(points))).astype(np.intp))
        centre, cover = process.covering(np.where(known[:, None], asked, process.points.max(axis=0)), knots)
        size, direction = np.linalg.eigh(cover[..., knots])
        least = ROUNDED * np.maximum(size[..., -1:], SMALLEST**2)
        part = np.where(size > least, 1 / np.sqrt(np.maximum(size, least)), 0.0)
        feature = part[..., None] * (np.swapaxes(direction, -1, -2) @ cover)
        weight = np.where(process.weight >= LIGHTEST, process.weight, 0.0)
        alive = (weight > 0)[..., None] & known & np.isfinite(centre)
        noise = process.scales[..., -1] ** 2 + process.scatter[:, None] + SMALLEST**2
        return cls(
            weight,
            np.where(alive, centre, 0.0),
            alive,
            np.where(alive[:, :, None], feature, 0.0),
            np.ones(feature.shape[:3]),
            np.broadcast_to(noise[..., None], centre.shape),
            np.ones((len(process), len(points))),
            np.full(weight.shape, NORMAL),
        )

    def replaced(self, rows: Index, others: Hypotheses) -> Hypotheses:
        """The same with `others` for some of the series; hypotheses and numbers that pad either weigh nothing."""
        parts = []
        for name, first, second in zip(self._fields, self, others, strict=True):
            filler = 1 if name in ("noise", "freedom", "prior") else 0
            shape = np.maximum(first.shape[1:], second.shape[1:])
            part, other = (
                np.pad(each, [(0, 0), *((0, more) for more in shape - each.shape[1:])], constant_values=filler)
                for each in (first, second)
            )
            part[rows] = other
            parts.append(part)
        return Hypotheses(*parts)

    def with_slopes(self, distance: Array) -> Hypotheses:
        """The same with an unknown exponent along every parameter that never varied, `distance` (s, k, m) from it."""
        slopes = np.moveaxis(distance * self.size[..., None], 2, 1)[:, None]
        slopes = np.broadcast_to(slopes, (*self.weight.shape, *slopes.shape[2:]))
        prior = np.full((*self.weight.shape, slopes.shape[2]), SLOPE**2)
        return self._replace(
            feature=np.concatenate([self.feature, slopes], axis=2), prior=np.concatenate([self.prior, prior], axis=2)
        )


@dataclass(frozen=True)
class Belief:
    """Hypotheses of s series at k points: candidates and targets together."""

    hypotheses: Hypotheses
    """With one more number for every parameter that never varied. Their noise is the variance of a measured value
    around its function, of the logarithm (or of the value itself); their size is one where the logarithm is meant, else
    the size of the value: what uncertainties are relative to."""
    points: Array  # (k, m)
    drift: Array  # (s, m)
    """Standard deviation per e-fold along each parameter by which a series departs from its function beyond the runs,
    whether its law goes on or turns into another."""
    low: Array  # (s, m): range measured
    high: Array  # (s, m)
    jobs: Array  # (s,): standard deviation between jobs

    @classmethod
    def of(cls, fitted: Fitted, rows: Index, points: Array) -> Belief:
        """The belief of the series `rows` at `points` (k, m), the last of which are targets."""
        believed = Hypotheses.of_functions(fitted, rows, points)
        drift, jobs = fitted.drift[rows].max(axis=2), between_jobs(tuple(fitted.metrics[row] for row in rows))
        for process in fitted.processes:
            theirs = np.flatnonzero(np.isin(rows, process.rows))
            if len(theirs):
                order = np.argsort(process.rows)
                place = order[np.searchsorted(process.rows, rows[theirs], sorter=order)]
                some = process.select(place, rows[theirs])
                believed = believed.replaced(theirs, Hypotheses.of_process(some, points))
                # What jobs differ by is among its noise, and how functions may go on among its hypotheses.
                jobs[theirs], drift[theirs] = priors.REPEATED, some.turning()[:, None]
        low, high = fitted.trained[rows, :, 0], fitted.trained[rows, :, 1]
        fixed = low == high
        distance = log_ratio(points[None], low[:, None])
        distance = np.where(fixed[:, None] & np.isfinite(distance), distance, 0.0)
        drift = np.where(fixed, np.maximum(drift, priors.DRIFT), drift)
        return cls(believed.with_slopes(distance), points, drift, low, high, jobs)

    def beyond(self, low: Array, high: Array, points: Array) -> Array:
        """How many e-folds (s, k, m) points (k, m) lie outside of the ranges `low` to `high` (s, k or 1, m)."""
        out = np.fmax(log_ratio(points[None], high), log_ratio(low, points[None]))
        return np.asarray(np.where(np.isfinite(out), np.maximum(out, 0.0), 0.0))
