"""What fitted functions believe of a value, and how a run that is not made yet would change it.

A series is a mixture of hypotheses with weights w_c and, each, coefficients of a normal law (mean, covariance
v_c R R^T; :mod:`ranksight.model.fitted`). To first order the logarithm of a positive value at z is

    ln y(z) = mu_c(z) + e_c(z) . theta + error,   e_c(z) = R^T a(z) / f_c(z),   theta ~ N(0, v_c I),

with a(z) the terms at z (a series without positive values likewise, without the logarithm). A measured y(z) changes
coefficients by the Kalman gain and weights by the density that each hypothesis gave it (West and Harrison 1997,
*Bayesian Forecasting and Dynamic Models*, chapters 4 and 12). The uncertainty at a target t after it is

    V = sum_c w_c [ln(1 + e_c(t) S_c e_c(t)) + v_c + (mu_c(t) - mean)^2] + drift(t)^2 + jobs^2,

the first term the variance of a logarithm whose relative variance is given, the last two as the engine's intervals have
them. Before it is made, a run's outcome is drawn from the belief itself; the expectation over many such worlds is what
the run is worth (Bayesian experimental design: Lindley 1956, *Annals of Mathematical Statistics* 27, 986; Chaloner and
Verdinelli 1995, *Statistical Science* 10, 273).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ranksight.metrics import metric
from ranksight.model.fitted import Fitted, between_jobs, expected_drift
from ranksight.model.forecast import WIDEST
from ranksight.model.noise import SMALLEST
from ranksight.model.terms import values

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SLOPE = 1.0
"""Standard deviation of the exponent along a parameter that never varied: nothing is known but that exponents are
small."""
STRAY = float(np.log(WIDEST))
"""A hypothesis farther off than this makes the answer insufficient, however much farther it is."""
FLOOR = -40.0
"""Log-density of a value where a hypothesis has none."""
LIGHTEST = 1e-3
"""Hypotheses lighter than this are left out."""


@dataclass(frozen=True)
class Belief:
    """Hypotheses of s series at k points: candidates and targets together.

    Attributes
    ----------
    weight : (s, c)
    centre : (s, c, k)
        mu; zero where there is no value.
    alive : (s, c, k) bool
    feature : (s, c, d, k)
        e, with one more entry for every parameter that never varied.
    prior : (s, c, d)
        Variance of theta.
    noise : (s, c, k)
        Variance of a measured value around its function, of the logarithm (or of the value itself).
    size : (s, k)
        One where the logarithm is meant, else the size of the value: what uncertainties are relative to.
    freedom : (s, c)
    points : (k, m)
    drift : (s, m)
        Drift per e-fold along each parameter.
    low, high : (s, m)
        Range measured.
    jobs : (s,)
    """

    weight: Array
    centre: Array
    alive: NDArray[np.bool_]
    feature: Array
    prior: Array
    noise: Array
    size: Array
    freedom: Array
    points: Array
    drift: Array
    low: Array
    high: Array
    jobs: Array

    @classmethod
    def of(cls, fitted: Fitted, rows: Index, points: Array) -> Belief:
        """The belief of the series `rows` at `points` (k, m)."""
        members, weight = fitted.members[rows], fitted.weight[rows]
        weight = np.where(weight >= LIGHTEST, weight, 0.0)
        kept = max(1, int((weight > 0).sum(axis=1).max(initial=1)))
        members, weight = members[:, :kept], weight[:, :kept]
        positive = fitted.positive[rows]
        basis = values(fitted.terms, points) if len(fitted.terms) else np.zeros((1, len(points)))
        design = np.where(members[..., None] >= 0, basis[members], 0.0)
        with np.errstate(all="ignore"):
            mean = np.einsum("scq,scqk->sck", fitted.coefficient[rows][:, :kept], design)
            feature = np.einsum("scql,scqk->sclk", fitted.root[rows][:, :kept], design)
            relative = feature / np.abs(mean)[:, :, None]
        variance, freedom = fitted.variance[rows][:, :kept], fitted.freedom[rows][:, :kept]
        plus = positive[:, None, None]
        alive = (weight > 0)[..., None] & np.isfinite(mean) & (~plus | (mean > 0)) & np.isfinite(relative).all(axis=2)
        typical = np.where(alive, np.abs(mean), 0.0)
        total = (weight[..., None] * alive).sum(axis=1)
        typical = (weight[..., None] * typical).sum(axis=1) / np.where(total > 0, total, 1.0)
        centre = np.where(alive, np.where(plus, np.log(np.where(alive & plus, mean, 1.0)), mean), 0.0)
        feature = np.where(alive[:, :, None], np.where(plus[:, :, None], relative, feature), 0.0)
        noise = np.where(np.isfinite(variance), np.maximum(variance, SMALLEST**2), STRAY**2)[..., None]
        noise = np.broadcast_to(np.where(plus, noise, noise * np.where(alive, mean, 1.0) ** 2), centre.shape)
        noise = np.maximum(noise, 1e-300)
        prior = np.minimum(variance, STRAY**2)[..., None] * np.ones(feature.shape[2])
        size = np.where(positive[:, None], 1.0, np.where(typical > 0, typical, 1.0))
        low, high = fitted.trained[rows, :, 0], fitted.trained[rows, :, 1]
        drift = fitted.drift[rows].copy()
        kinds = {name: metric(name).kind for name in set(fitted.metrics)}
        expected = np.array([expected_drift(kinds[fitted.metrics[row]]) for row in rows])
        fixed = low == high
        drift = np.where(fixed, np.maximum(drift, expected[:, None]), drift)
        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.log(points[None] / low[:, None])
        away = np.where(fixed[:, None] & np.isfinite(away), away, 0.0) * size[..., None]
        slopes = np.broadcast_to(np.moveaxis(away, 2, 1)[:, None], (*centre.shape[:2], points.shape[1], len(points)))
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
            between_jobs(tuple(fitted.metrics[row] for row in rows)),
        )

    def strayed(self, low: Array, high: Array, points: Array) -> Array:
        """Variance (s, k) that extrapolation adds at points (k, m) beyond the ranges `low` to `high` (s, k or 1, m)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.fmax(np.log(points[None] / high), np.log(low / points[None]))
        out = np.where(np.isfinite(out), np.maximum(out, 0.0), 0.0)
        return np.asarray(((self.drift[:, None] * out) ** 2).sum(axis=2))


class Worlds:
    """Outcomes drawn from a belief, and what is believed in each after the runs chosen so far.

    Parameters
    ----------
    belief : Belief
        Its last `targets` points are the targets, the others candidates.
    targets : int
    worlds : int
        Outcomes drawn for every series.
    seed : int
    """

    def __init__(self, belief: Belief, targets: int, worlds: int = 48, seed: int = 0) -> None:
        self.belief = belief
        self.targets = targets
        self.candidates = len(belief.points) - targets
        s, c, d, _ = belief.feature.shape
        generator = np.random.default_rng(seed)
        weight = np.where(belief.alive[:, :, self.candidates :].any(axis=2), belief.weight, 0.0)
        total = weight.sum(axis=1, keepdims=True)
        self.weight = np.where(total > 0, weight / np.where(total > 0, total, 1.0), 1.0 / c)
        # Even shares of the hypotheses (systematic resampling), so that few worlds hold them all in proportion.
        even = (np.arange(worlds) + generator.random((s, 1))) / worlds
        chosen = (even[..., None] > np.cumsum(self.weight, axis=1)[:, None, :-1]).sum(axis=2)
        row = np.arange(s)[:, None]
        theta = generator.standard_normal((s, worlds, d)) * np.sqrt(belief.prior[row, chosen])
        near = belief.feature[row, chosen][..., : self.candidates]
        deviation = np.einsum("swd,swdk->swk", theta, near)
        # Where coefficients are hardly known the first order does not hold; nothing strays further than an answer may.
        deviation = np.clip(deviation, -STRAY * self._size, STRAY * self._size)
        scatter = generator.standard_normal((s, worlds, self.candidates))
        spread = np.sqrt(belief.noise[row, chosen][..., : self.candidates] + self._extra()[:, None])
        centre = belief.centre[row, chosen][..., : self.candidates]
        self.outcome = centre + deviation + spread * scatter
        self.log_weight = np.zeros((s, worlds, c))
        with np.errstate(divide="ignore"):
            self.log_weight += np.log(self.weight)[:, None]
        self.mean = np.zeros((s, worlds, c, d))
        self.covariance = belief.prior[..., None] * np.eye(d)
        self.low, self.high = belief.low.copy(), belief.high.copy()

    @property
    def _size(self) -> Array:
        return np.asarray(self.belief.size[:, None, : self.candidates])

    def _extra(self) -> Array:
        """Variance (s, k) of a new value beyond the scatter: it comes from another job.

        Drift is not part of it: a fit takes a value measured to lie on the function, and drifts from there on.
        """
        own = self.belief
        return np.asarray((own.jobs[:, None] * own.size[:, : self.candidates]) ** 2)

    def spread(self) -> Array:
        """Standard deviation (s, t) at the targets now, the mean over the worlds."""
        own, far = self.belief, slice(self.candidates, None)
        share = _shares(self.log_weight[..., None])
        feature = own.feature[..., far]
        middle = own.centre[:, None, :, far] + np.einsum("swcd,scdt->swct", self.mean, feature)
        within = np.einsum("scdt,scde,scet->sct", feature, self.covariance, feature)
        drift = own.strayed(self.low[:, None], self.high[:, None], own.points[far])
        return np.asarray(self._total(share, middle, within[:, None], slice(0, self.targets), drift).mean(axis=1))

    def _total(self, share: Array, middle: Array, within: Array, which: slice | int, drift: Array) -> Array:
        """Standard deviations (s, w, ...), relative; `share`, `middle` (s, w, c, ...), `within` likewise."""
        own = self.belief
        at = slice(self.candidates, None) if isinstance(which, slice) else self.candidates + which
        size = own.size[:, at].reshape(len(own.size), 1, 1, -1)
        average = (share * middle).sum(axis=2, keepdims=True)
        apart = np.clip((middle - average) / size, -STRAY, STRAY)
        noise = own.noise[:, :, at].reshape(*own.noise.shape[:2], -1)[:, None]
        each = np.log1p(np.maximum(within, 0.0) / size**2) + noise / size**2 + apart**2
        return np.asarray(np.sqrt((share * each).sum(axis=2) + (drift + own.jobs[:, None] ** 2)[:, None]))

    def outlook(self, which: Index) -> Array:
        """Expected standard deviation (s, len(which), t) at the targets if one of the candidates were run next."""
        own = self.belief
        s, worlds, c = self.log_weight.shape
        far = slice(self.candidates, None)
        found = np.empty((s, len(which), self.targets))
        step = max(1, int(4_000_000 / max(1, s * worlds * c)))
        goal = own.feature[..., far]
        for start in range(0, len(which), step):
            at = which[start : start + step]
            near = own.feature[..., at]
            through = np.einsum("scde,scek->scdk", self.covariance, near)
            extra = self._extra()[:, at]
            variance = np.einsum("scdk,scdk->sck", near, through) + own.noise[..., at] + extra[:, None]
            surprise, share = self._judged(at, near, variance)
            cross = np.einsum("scdt,scdk->sctk", goal, through)
            low = np.minimum(self.low[:, None], own.points[None, at])
            high = np.maximum(self.high[:, None], own.points[None, at])
            for t in range(self.targets):
                gain = cross[:, :, t] / variance
                far_now = own.centre[:, :, self.candidates + t][:, None] + np.einsum(
                    "swcd,scd->swc", self.mean, goal[..., t]
                )
                middle = far_now[..., None] + gain[:, None] * surprise
                before = np.einsum("scd,scde,sce->sc", goal[..., t], self.covariance, goal[..., t])
                within = before[..., None] - gain * cross[:, :, t]
                drift = own.strayed(low, high, own.points[self.candidates + t][None])
                found[:, start : start + step, t] = self._total(share, middle, within[:, None], t, drift).mean(axis=1)
        return found

    def _judged(self, at: Index, near: Array, variance: Array) -> tuple[Array, Array]:
        """Surprise (s, w, c, k) of every hypothesis at candidates, and the weights after it."""
        own = self.belief
        said = own.centre[:, None][..., at] + np.einsum("swcd,scdk->swck", self.mean, near)
        alive = own.alive[:, None][..., at]
        surprise = np.where(alive, self.outcome[:, :, None][..., at] - said, 0.0)
        nu = np.clip(own.freedom, 1.0, 1e6)[:, None, :, None]
        scale = np.sqrt(np.maximum(variance, 1e-300))[:, None]
        density = gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu) / 2 - np.log(scale)
        density = density - (nu + 1) / 2 * np.log1p((surprise / scale) ** 2 / nu)
        density = np.where(alive, density, FLOOR)
        return surprise, _shares(self.log_weight[..., None] + density)

    def choose(self, candidate: int) -> None:
        """Run a candidate: in every world its outcome becomes known."""
        own = self.belief
        at = np.array([candidate])
        near = own.feature[..., at]
        through = np.einsum("scde,scek->scdk", self.covariance, near)
        variance = np.einsum("scdk,scdk->sck", near, through) + own.noise[..., at] + self._extra()[:, None, at]
        surprise, share = self._judged(at, near, variance)
        with np.errstate(divide="ignore"):
            self.log_weight = np.log(share[..., 0])
        gain = (through / variance[:, :, None])[..., 0]
        self.mean = self.mean + gain[:, None] * surprise
        self.covariance = self.covariance - np.einsum("scd,sce->scde", gain, through[..., 0])
        self.low = np.minimum(self.low, own.points[candidate])
        self.high = np.maximum(self.high, own.points[candidate])


def _shares(log_weight: Array) -> Array:
    """Weights (s, w, c, ...) that add up to one over the hypotheses."""
    top = log_weight.max(axis=2, keepdims=True)
    weight = np.exp(log_weight - np.where(np.isfinite(top), top, 0.0))
    total = weight.sum(axis=2, keepdims=True)
    return np.asarray(weight / np.where(total > 0, total, 1.0))
