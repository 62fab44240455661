"""What is expected of an answer after runs that are not made yet, whichever they are.

Outcomes of the runs are drawn from a belief, and what is believed in each of them afterwards follows from the equations
of :mod:`ranksight.analysis.planning.belief`.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from ranksight.analysis.planning.belief import LARGEST, Belief
from ranksight.analysis.planning.goal import REACH, Goal
from ranksight.core import special
from ranksight.core.arrays import Array, Index, log, ratio

FLOOR = -40.0
"""Log-density of a value where a hypothesis has none."""
HELD = 100_000
"""Numbers of an array for the candidates of a batch, that the arrays of one stay in a cache."""


class Prospect:
    """The goal's interval after runs, one after another, expected over outcomes drawn from what is believed now.

    `points` (k, m): candidates. `worlds`: outcomes drawn for every series; the same for every order of runs, so that
    orders are compared in the same worlds.
    """

    chosen: tuple[int, ...]  # candidates run so far
    widths: tuple[Array, ...]  # half-widths (t,) of the goal's interval in logarithms, before any run and after each
    helps: tuple[str, ...]  # the kernel that gained most by each run, with its metric where it is not the goal's
    beyond: Array  # (t,): how many times farther the uncertainty of a series reaches than an answer may

    def __init__(self, goal: Goal, points: Array, worlds: int) -> None:
        self.goal, self.points = goal, points
        every = np.concatenate([points, goal.targets])
        self._worlds = [
            Worlds(Belief.of(source.fitted, source.rows, every), len(goal.targets), worlds, seed=number)
            for number, source in enumerate(goal.sources)
        ]
        spread = [each.spread() for each in self._worlds]
        self._first, self._first_form = (np.concatenate([each[part] for each in spread]) for part in (0, 1))
        self._start_form = np.concatenate([source.form for source in goal.sources])
        self._reach = np.concatenate([source.share * source.ends.mean(axis=0) for source in goal.sources])
        self._ratio = np.ones(self._reach.shape)
        most = REACH / float(special.ndtri((1 + goal.now.level) / 2))
        self.beyond = np.maximum(self._first / most, 1.0).max(axis=0, initial=1.0)
        self._names = [
            source.fitted.kernels[row]
            + ("" if source.fitted.metrics[row] == goal.metric else f": {source.fitted.metrics[row]}")
            for source in goal.sources
            for row in source.rows
        ]
        self.chosen, self.helps, self.widths = (), (), (goal.width(),)
        # What was asked in this state, by all forks that are still in it.
        self._asked: dict[bytes, tuple[Array, Array]] = {}

    def fork(self) -> Prospect:
        """The same, to go on in another way."""
        other = copy(self)
        other._worlds = [each.fork() for each in self._worlds]
        return other

    @property
    def width(self) -> float:
        """Half-width now, the mean over the targets, in that before any run."""
        first = float(self.widths[0].mean())
        return float(self.widths[-1].mean()) / first if first > 0 else 0.0

    def outlook(self, candidates: Index) -> tuple[Array, Array]:
        """Widths (k, g, t) of the series after each of the candidates, in those before any run, and the goal's half
        (k, t)."""
        if (known := self._asked.get(candidates.tobytes())) is not None:
            return known
        each = [worlds.outlook(candidates) for worlds in self._worlds]
        # (g, k, t) to (k, g, t), so that every candidate has the goal's width.
        spread, form = (np.moveaxis(np.concatenate([part[at] for part in each]), 1, 0) for at in (0, 1))
        with np.errstate(all="ignore"):
            ratio = np.minimum(np.where(self._first > 0, spread / self._first, 1.0), 1.0)
        outlook = self._asked[candidates.tobytes()] = ratio, self.goal.width(ratio, self._shares_of_form(form))
        return outlook

    def _shares_of_form(self, form: Array) -> Array:
        """The share of form (k, g, t) that the engine will report, whose odds change as those of the worlds, `form`, do
        from the present."""
        of_form = self._start_form * np.where(self._first_form > 0, form / np.maximum(self._first_form, 1e-300), 1.0)
        known = 1 - self._first_form
        scatter = (1 - self._start_form) * np.where(known > 0, (1 - form) / np.maximum(known, 1e-300), 1.0)
        total = of_form + scatter
        return np.where(total > 0, of_form / np.where(total > 0, total, 1.0), self._start_form)

    def take(self, candidate: int) -> None:
        """Run a candidate."""
        ratio, width = self.outlook(np.array([candidate]))
        for each in self._worlds:
            each.choose(candidate)
        better = (self._reach * (self._ratio - ratio[0])).mean(axis=1)
        self.helps = (*self.helps, self._names[int(np.argmax(better))])
        self.chosen = (*self.chosen, candidate)
        self.widths = (*self.widths, np.minimum(width[0], self.widths[-1]))
        self._ratio = ratio[0]
        self._asked = {}

    def after(self, candidates: tuple[int, ...]) -> Prospect:
        """What is expected after these runs, in this order; this one stays as it is."""
        other = self.fork()
        for candidate in candidates:
            other.take(candidate)
        return other


class Worlds:
    """Outcomes drawn from a belief, and what is believed in each after the runs chosen so far.

    `belief`: its last `targets` points are the targets, the others candidates. `worlds`: outcomes drawn for every
    series.
    """

    def __init__(self, belief: Belief, targets: int, worlds: int = 48, seed: int = 0) -> None:
        self.belief, self.every = belief, belief.hypotheses
        self.targets = targets
        self.candidates = len(belief.points) - targets
        s, c, d, _ = self.every.feature.shape
        generator = np.random.default_rng(seed)
        weight = np.where(self.every.alive[:, :, self.candidates :].any(axis=2), self.every.weight, 0.0)
        total = weight.sum(axis=1, keepdims=True)
        self.weight = ratio(weight, total, 1.0 / c)
        # Even shares of the hypotheses (systematic resampling), so that few worlds hold them all in proportion.
        even = (np.arange(worlds) + generator.random((s, 1))) / worlds
        chosen = (even[..., None] > np.cumsum(self.weight, axis=1)[:, None, :-1]).sum(axis=2)
        row = np.arange(s)[:, None]
        theta = generator.standard_normal((s, worlds, d)) * np.sqrt(self.every.prior[row, chosen])
        near = self.every.feature[row, chosen][..., : self.candidates]
        size = self.every.size[:, None, : self.candidates]
        # Where coefficients are hardly known the first order does not hold; nothing strays further than an answer may.
        deviation = np.clip(np.einsum("swd,swdk->swk", theta, near), -LARGEST * size, LARGEST * size)
        scatter = generator.standard_normal((s, worlds, self.candidates))
        spread = np.sqrt(self.every.noise[row, chosen][..., : self.candidates] + self._jobs()[:, None])
        self.outcome = self.every.centre[row, chosen][..., : self.candidates] + deviation + spread * scatter
        self.log_weight = np.broadcast_to(log(self.weight)[:, None], (s, worlds, c))
        self.mean = np.zeros((s, worlds, c, d))
        self.covariance = self.every.prior[..., None] * np.eye(d)
        self.low, self.high = belief.low.copy(), belief.high.copy()

    def fork(self) -> Worlds:
        """The same worlds, in which other runs may be made."""
        return copy(self)

    def _jobs(self) -> Array:
        """Variance (s, k) of a new value beyond the scatter: it comes from another job."""
        belief = self.belief
        return np.asarray((belief.jobs[:, None] * self.every.size[:, : self.candidates]) ** 2)

    def spread(self) -> tuple[Array, Array]:
        """Standard deviation (s, t) at the targets now, the geometric mean over the worlds, and the share of form in
        its square."""
        belief, far = self.belief, slice(self.candidates, None)
        feature = self.every.feature[..., far]
        middle = self.every.centre[:, None, :, far] + np.einsum("swcd,scdt->swct", self.mean, feature)
        within = np.einsum("scdt,scde,scet->sct", feature, self.covariance, feature)
        out = belief.beyond(self.low[:, None], self.high[:, None], belief.points[far])
        drift = ((belief.drift[:, None, None] * out[:, None]) ** 2).sum(axis=3)
        share = _shares(self.log_weight[..., None])
        size, noise = self.every.size[:, far], self.every.noise[..., far]
        scatter, form = _variance(share, middle, within[:, None], noise, size)
        return _split(scatter, form + drift + belief.jobs[:, None, None] ** 2)

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
        belief = self.belief
        goal = self.every.feature[..., self.candidates :]
        through, variance, surprise, share = self._judged(at)
        cross = np.einsum("scdt,scdk->sctk", goal, through)
        low = np.minimum(self.low[:, None], belief.points[None, at])
        high = np.maximum(self.high[:, None], belief.points[None, at])
        widths, part = np.empty((2, len(self.every.weight), len(at), self.targets))
        for t in range(self.targets):
            place = self.candidates + t
            gain = cross[:, :, t] / variance
            now = self.every.centre[:, :, place][:, None] + np.einsum("swcd,scd->swc", self.mean, goal[..., t])
            middle = now[..., None] + gain[:, None] * surprise
            before = np.einsum("scd,scde,sce->sc", goal[..., t], self.covariance, goal[..., t])
            within = before[..., None] - gain * cross[:, :, t]
            out = belief.beyond(low, high, belief.points[place][None])
            drift = ((belief.drift[:, None, None] * out[:, None]) ** 2).sum(axis=3)
            noise, size = self.every.noise[:, :, place, None], self.every.size[:, place, None]
            scatter, form = _variance(share, middle, within[:, None], noise, size)
            widths[:, :, t], part[:, :, t] = _split(scatter, form + drift + belief.jobs[:, None, None] ** 2)
        return widths, part

    def _judged(self, at: Index) -> tuple[Array, Array, Array, Array]:
        """What candidates show under every hypothesis: the covariance (s, c, d, k) of the coefficients with the value,
        the variance (s, c, k) of the value measured, its surprise (s, w, c, k), and weights (s, w, c, k) afterwards."""
        near = self.every.feature[..., at]
        through = np.einsum("scde,scek->scdk", self.covariance, near)
        variance = np.einsum("scdk,scdk->sck", near, through) + self.every.noise[..., at] + self._jobs()[:, None, at]
        drawn = self.every.centre[:, None][..., at] + np.einsum("swcd,scdk->swck", self.mean, near)
        alive = self.every.alive[:, None][..., at]
        surprise = np.where(alive, self.outcome[:, :, None][..., at] - drawn, 0.0)
        nu = np.clip(self.every.freedom, 1.0, 1e6)[:, None, :, None]
        scale = np.sqrt(np.maximum(variance, 1e-300))[:, None]
        density = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - np.log(nu) / 2 - np.log(scale)
        density = density - (nu + 1) / 2 * np.log1p((surprise / scale) ** 2 / nu)
        share = _shares(self.log_weight[..., None] + np.where(alive, density, FLOOR))
        return through, variance, surprise, share

    def choose(self, candidate: int) -> None:
        """Run a candidate: in every world its outcome becomes known."""
        belief = self.belief
        at = np.array([candidate])
        through, variance, surprise, share = self._judged(at)
        self.log_weight = log(share[..., 0])
        gain = (through / variance[:, :, None])[..., 0]
        self.mean = self.mean + gain[:, None] * surprise
        self.covariance = self.covariance - np.einsum("scd,sce->scde", gain, through[..., 0])
        self.low = np.minimum(self.low, belief.points[candidate])
        self.high = np.maximum(self.high, belief.points[candidate])


def _variance(share: Array, middle: Array, within: Array, noise: Array, size: Array) -> tuple[Array, Array]:
    """Relative variance (s, w, k) within the hypotheses of a mixture and between them: `share`, `middle` (s, w, c, k),
    `within` (s, 1, c, k), `noise` (s, c, k), `size` (s, k)."""
    scale = size[:, None, None]
    average = (share * middle).sum(axis=2, keepdims=True)
    standard = np.clip((middle - average) / scale, -LARGEST, LARGEST)
    each = np.log1p(np.maximum(within, 0.0) / scale**2) + noise[:, None] / scale**2
    return np.asarray((share * each).sum(axis=2)), np.asarray((share * standard**2).sum(axis=2))


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
