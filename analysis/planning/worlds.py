"""Outcomes of runs that are not made yet, drawn from a belief, and what is believed in each of them afterwards.

The equations are those of :mod:`ranksight.analysis.planning.belief`.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from ranksight.analysis.planning.belief import LARGEST, Belief
from ranksight.core import special
from ranksight.core.arrays import Array, Index, log, ratio

FLOOR = -40.0
"""Log-density of a value where a hypothesis has none."""
HELD = 100_000
"""Numbers of an array for the candidates of a batch, that the arrays of one stay in a cache."""


class Worlds:
    """Outcomes drawn from a belief, and what is believed in each after the runs chosen so far.

    `belief`: its last `targets` points are the targets, the others candidates. `worlds`: outcomes drawn for every
    series.
    """

    def __init__(self, belief: Belief, targets: int, worlds: int = 48, seed: int = 0) -> None:
        self.belief = belief
        self.targets = targets
        self.candidates = len(belief.points) - targets
        s, c, d, _ = belief.feature.shape
        generator = np.random.default_rng(seed)
        weight = np.where(belief.alive[:, :, self.candidates :].any(axis=2), belief.weight, 0.0)
        total = weight.sum(axis=1, keepdims=True)
        self.weight = ratio(weight, total, 1.0 / c)
        # Even shares of the hypotheses (systematic resampling), so that few worlds hold them all in proportion.
        even = (np.arange(worlds) + generator.random((s, 1))) / worlds
        chosen = (even[..., None] > np.cumsum(self.weight, axis=1)[:, None, :-1]).sum(axis=2)
        row = np.arange(s)[:, None]
        theta = generator.standard_normal((s, worlds, d)) * np.sqrt(belief.prior[row, chosen])
        near = belief.feature[row, chosen][..., : self.candidates]
        size = belief.size[:, None, : self.candidates]
        # Where coefficients are hardly known the first order does not hold; nothing strays further than an answer may.
        deviation = np.clip(np.einsum("swd,swdk->swk", theta, near), -LARGEST * size, LARGEST * size)
        scatter = generator.standard_normal((s, worlds, self.candidates))
        spread = np.sqrt(belief.noise[row, chosen][..., : self.candidates] + self._jobs()[:, None])
        self.outcome = belief.centre[row, chosen][..., : self.candidates] + deviation + spread * scatter
        self.log_weight = np.broadcast_to(log(self.weight)[:, None], (s, worlds, c))
        self.mean = np.zeros((s, worlds, c, d))
        self.covariance = belief.prior[..., None] * np.eye(d)
        self.low, self.high = belief.low.copy(), belief.high.copy()

    def fork(self) -> Worlds:
        """The same worlds, in which other runs may be made."""
        return copy(self)

    def _jobs(self) -> Array:
        """Variance (s, k) of a new value beyond the scatter: it comes from another job."""
        own = self.belief
        return np.asarray((own.jobs[:, None] * own.size[:, : self.candidates]) ** 2)

    def spread(self) -> tuple[Array, Array]:
        """Standard deviation (s, t) at the targets now, the geometric mean over the worlds, and the share of form in
        its square."""
        own, far = self.belief, slice(self.candidates, None)
        feature = own.feature[..., far]
        middle = own.centre[:, None, :, far] + np.einsum("swcd,scdt->swct", self.mean, feature)
        within = np.einsum("scdt,scde,scet->sct", feature, self.covariance, feature)
        out = own.beyond(self.low[:, None], self.high[:, None], own.points[far])
        drift = ((own.drift[:, None, None] * out[:, None]) ** 2).sum(axis=3)
        share = _shares(self.log_weight[..., None])
        size, noise = own.size[:, far], own.noise[..., far]
        scatter, form = _variance(share, middle, within[:, None], noise, size)
        return _split(scatter, form + drift + own.jobs[:, None, None] ** 2)

    def outlook(self, which: Index) -> tuple[Array, Array]:
        """Expected standard deviation (s, len(which), t) at the targets if one of the candidates were run next, and
        the share of form in its square."""
        s, worlds, c = self.log_weight.shape
        step = max(1, int(HELD / max(1, s * worlds * c)))
        parts = [self._outlook(which[start : start + step]) for start in range(0, len(which), step)]
        if not parts:
            return np.empty((s, 0, self.targets)), np.empty((s, 0, self.targets))
        return np.concatenate([each[0] for each in parts], axis=1), np.concatenate([each[1] for each in parts], axis=1)

    def _outlook(self, at: Index) -> tuple[Array, Array]:
        own = self.belief
        goal = own.feature[..., self.candidates :]
        through, variance, surprise, share = self._judged(at)
        cross = np.einsum("scdt,scdk->sctk", goal, through)
        low = np.minimum(self.low[:, None], own.points[None, at])
        high = np.maximum(self.high[:, None], own.points[None, at])
        found, part = np.empty((2, len(own.weight), len(at), self.targets))
        for t in range(self.targets):
            place = self.candidates + t
            gain = cross[:, :, t] / variance
            now = own.centre[:, :, place][:, None] + np.einsum("swcd,scd->swc", self.mean, goal[..., t])
            middle = now[..., None] + gain[:, None] * surprise
            before = np.einsum("scd,scde,sce->sc", goal[..., t], self.covariance, goal[..., t])
            within = before[..., None] - gain * cross[:, :, t]
            out = own.beyond(low, high, own.points[place][None])
            drift = ((own.drift[:, None, None] * out[:, None]) ** 2).sum(axis=3)
            noise, size = own.noise[:, :, place, None], own.size[:, place, None]
            scatter, form = _variance(share, middle, within[:, None], noise, size)
            found[:, :, t], part[:, :, t] = _split(scatter, form + drift + own.jobs[:, None, None] ** 2)
        return found, part

    def _judged(self, at: Index) -> tuple[Array, Array, Array, Array]:
        """What candidates show under every hypothesis.

        Returns
        -------
        through : (s, c, d, k)
            Covariance of the coefficients with the value.
        variance : (s, c, k)
            Of the value measured.
        surprise : (s, w, c, k)
        share : (s, w, c, k)
            Weights afterwards.
        """
        own = self.belief
        near = own.feature[..., at]
        through = np.einsum("scde,scek->scdk", self.covariance, near)
        variance = np.einsum("scdk,scdk->sck", near, through) + own.noise[..., at] + self._jobs()[:, None, at]
        said = own.centre[:, None][..., at] + np.einsum("swcd,scdk->swck", self.mean, near)
        alive = own.alive[:, None][..., at]
        surprise = np.where(alive, self.outcome[:, :, None][..., at] - said, 0.0)
        nu = np.clip(own.freedom, 1.0, 1e6)[:, None, :, None]
        scale = np.sqrt(np.maximum(variance, 1e-300))[:, None]
        density = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - np.log(nu) / 2 - np.log(scale)
        density = density - (nu + 1) / 2 * np.log1p((surprise / scale) ** 2 / nu)
        share = _shares(self.log_weight[..., None] + np.where(alive, density, FLOOR))
        return through, variance, surprise, share

    def choose(self, candidate: int) -> None:
        """Run a candidate: in every world its outcome becomes known."""
        own = self.belief
        at = np.array([candidate])
        through, variance, surprise, share = self._judged(at)
        self.log_weight = log(share[..., 0])
        gain = (through / variance[:, :, None])[..., 0]
        self.mean = self.mean + gain[:, None] * surprise
        self.covariance = self.covariance - np.einsum("scd,sce->scde", gain, through[..., 0])
        self.low = np.minimum(self.low, own.points[candidate])
        self.high = np.maximum(self.high, own.points[candidate])


def _variance(share: Array, middle: Array, within: Array, noise: Array, size: Array) -> tuple[Array, Array]:
    """Relative variance (s, w, k) within the hypotheses of a mixture and between them: `share`, `middle` (s, w, c, k),
    `within` (s, 1, c, k), `noise` (s, c, k), `size` (s, k)."""
    scale = size[:, None, None]
    average = (share * middle).sum(axis=2, keepdims=True)
    apart = np.clip((middle - average) / scale, -LARGEST, LARGEST)
    each = np.log1p(np.maximum(within, 0.0) / scale**2) + noise[:, None] / scale**2
    return np.asarray((share * each).sum(axis=2)), np.asarray((share * apart**2).sum(axis=2))


def _split(scatter: Array, form: Array) -> tuple[Array, Array]:
    """Standard deviation, the geometric mean over the worlds (the second axis), and the share of form in its square."""
    variance = np.maximum(scatter + form, 1e-300)
    return np.exp(np.log(variance).mean(axis=1) / 2), (form / variance).mean(axis=1)


def _shares(log_weight: Array) -> Array:
    """Weights (s, w, c, ...) that add up to one over the hypotheses."""
    top = log_weight.max(axis=2, keepdims=True)
    weight = np.exp(log_weight - np.where(np.isfinite(top), top, 0.0))
    total = weight.sum(axis=2, keepdims=True)
    return np.asarray(weight / np.where(total > 0, total, 1.0))
