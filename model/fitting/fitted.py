"""Fitting many series at once, and what comes of it: functions with weights, intervals and abstentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log_ratio
from ranksight.core.errors import InputError
from ranksight.core.metrics import metric
from ranksight.core.onethread import one_thread
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.abstaining import abstain
from ranksight.model.fitting.columns import Columns
from ranksight.model.fitting.printed import Below, Printed
from ranksight.model.process.posterior import Process
from ranksight.model.quantity import EACH_END
from ranksight.model.search.terms import ended_values, values, without_ranks
from ranksight.model.series.noise import behaviours
from ranksight.model.uncertainty.drift import beyond, spreads
from ranksight.model.uncertainty.forecast import FEW_POINTS, Forecast, components, mixture_forecast
from ranksight.model.uncertainty.mixture import Components
from ranksight.model.uncertainty.rows import choose, open_to, rows_of

BATCH = 120_000
"""Components x points worked on at once."""
STEP = 1.1
"""Factor over which elasticities are taken."""


@dataclass(frozen=True)
class Fitted(Printed):
    """Functions fitted to s series: each a mixture of c hypotheses of up to q terms."""

    parameters: tuple[str, ...]
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    space: str  # name of the search space
    terms: Array  # (t, m, 3): terms that occur (:mod:`ranksight.model.search.terms`)
    members: Index  # (s, c, q): terms of each hypothesis, the leading hypothesis first; -1 pads
    weight: Array  # (s, c)
    coefficient: Array  # (s, c, q)
    root: Array  # (s, c, q, q): ``variance * root @ root.T`` is the covariance of the coefficients
    variance: Array  # (s, c): relative variance around the function
    freedom: Array  # (s, c): its degrees of freedom
    press: Array  # (s,): relative root-mean-square leave-one-out error of the leading hypothesis
    adjusted_r2: Array  # (s,): of the leading hypothesis; NaN for the constant
    count: Index  # (s,): configurations behind each series
    status: Index  # (s,): :data:`ranksight.model.uncertainty.forecast.OK` or why the series carries no answer anywhere
    positive: Mask  # (s,): whether the function must stay above zero
    trained: Array  # (s, m, 2): smallest and largest value of each parameter among the configurations of each series
    drift: Array  # (s, m, 2)
    """How far the series may leave its function along each parameter, downwards and upwards
    (:mod:`ranksight.model.uncertainty.drift`)."""
    pace: Array  # (s,)
    """How much faster than usual series leave their functions (:func:`ranksight.model.uncertainty.drift.pace`)."""
    within: Array  # (s,)
    repetitions: Array  # (s,)
    noisy: Mask  # (s,)
    """Relative scatter of a repetition, repetitions that would show a signal, and whether noise is above it
    (:class:`ranksight.model.series.noise.Quality`)."""
    samples: Array  # (s,)
    """Samples behind the value of a configuration, in the mean; infinite where values are not made of samples."""
    hidden: Array  # (h, 2)
    """Smallest and largest value of each hidden parameter (:class:`ranksight.model.series.reducing.Series`)."""
    ties: Array  # (q, 1 + m): parameters that varied together only (:mod:`ranksight.model.fitting.abstaining`)
    unaffected: Mask  # (s, m)
    """Parameters that change nothing in a series, as the user stated (:mod:`ranksight.model.series.computation`)."""
    iterations: str | None = None
    """The parameter that everything is a line in: set-up, and as much again with every iteration."""
    processes: tuple[Process, ...] = ()
    """What answers for times; the functions above are what is printed of them."""
    below: tuple[Below[Fitted], ...] = ()
    """What holds of series up to where their behaviour changes; the functions above hold from there on."""

    def __len__(self) -> int:
        return len(self.kernels)

    @one_thread()
    def predict(self, points: Array, hidden: Array | None = None) -> Forecast:
        """Forecast every series at `points` (k, m).

        Raises InputError when the points do not have one finite value for every parameter.

        `points` (k, m). `hidden` (k, h): values of the hidden parameters there; as measured when not given.
        """
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if points.ndim != 2 or points.shape[1] != len(self.parameters) or not np.isfinite(points).all():
            raise InputError(
                f"points of shape {points.shape} do not give a finite value to each of {', '.join(self.parameters)}"
            )
        fall, rise = self._aside(points, hidden)
        shape = (len(self), len(points))
        value, low, high, form, within_form = (np.full(shape, np.nan) for _ in range(5))
        freedom = np.full(shape, np.inf)
        inner, outer = (np.full(shape, np.nan) for _ in range(2))
        if not len(self.terms):
            status, reason = abstain(self, points, (value, low, high), form, within_form)
            return Forecast(value, low, high, status, reason, form)
        at = values(self.terms, points)
        largest = self.trained[:, :, 1].max(axis=0, initial=0.0)
        ended = ended_values(self.terms, points, self.parameters, largest, self.members[:, 0])
        for process in self.processes:
            rows = process.rows
            asked = points[:, process.axes]
            outside = (asked <= 0).any(axis=1)
            positive = np.where(asked > 0, asked, 1.0)
            parts, turns = process.with_turns(positive)
            summary = mixture_forecast(parts, (fall[rows], rise[rows]), self.positive[rows], turns, shaped=True)
            value[rows], low[rows], high[rows], form[rows], within_form[rows], freedom[rows] = summary[:6]
            inner[rows], outer[rows] = summary[6:]
            for array in (value, low, high):
                array[np.ix_(rows, outside)] = np.nan
        for rows, forms in self._batches(len(points)):
            even = rise is fall and (self.drift[rows, :, 0] == self.drift[rows, :, 1]).all()
            down = np.hypot(self.strayed(points, rows, 0), fall[rows])
            up = down if even else np.hypot(self.strayed(points, rows, 1), rise[rows])
            summary = mixture_forecast(self._forms(at, rows, forms), (down, up), self.positive[rows])
            value[rows], low[rows], high[rows], form[rows], within_form[rows], freedom[rows] = summary[:6]
            if (some := self._ending(rows, forms, at, ended)).any():
                rows, within = rows[some], (down[some], up[some])
                rival = mixture_forecast(self._forms(ended, rows, forms[some]), within, self.positive[rows])
                low[rows], high[rows] = np.fmin(low[rows], rival[1]), np.fmax(high[rows], rival[2])
        status, reason = abstain(self, points, (value, low, high), form, within_form)
        answer = Forecast(value, low, high, status, reason, form, freedom=freedom, inner=inner, outer=outer)
        return self._with_below(answer, points, hidden)

    def _ending(self, rows: Index, forms: Index, at: Array, ended: Array) -> Mask:
        """Which series (r,) are counts of which hypotheses, of those kept (r, c), with more weight than the tail beyond
        an interval have a term that may have ended.

        Partners are a rank's others: what goes by all ranks has one for each of these and one more, the same term
        without the ranks. It would be chance that the two had one coefficient.
        """
        members = self.members[rows[:, None], forms]
        rest = np.append(without_ranks(self.terms, self.parameters), -1)[members]
        whole = (rest < 0) | (members[..., None, :] == rest[..., None]).any(axis=-1)
        changed = np.append((ended != at).any(axis=1, where=np.isfinite(at)), False)
        weight = self.weight[rows[:, None], forms]
        share = np.where((changed[members] & whole).any(axis=2), weight, 0.0).sum(axis=1) / weight.sum(axis=1)
        is_count = behaviours(self.metrics, self.samples)[rows] != "time"
        return np.asarray((share > EACH_END) & is_count)

    def going_on(self) -> Fitted:
        """The same functions of laws that never turn."""
        processes = (replace(process, turn=np.zeros_like(process.turn)) for process in self.processes)
        return replace(self, processes=tuple(processes))

    def _forms(self, at: Array, rows: Index, forms: Index) -> Components:
        """Components (c, r, k) of the distributions of series at points where the terms have values `at` (t, k)."""
        chosen = rows[:, None], forms
        return components(
            at,
            self.members[chosen],
            weight=self.weight[chosen],
            coefficients=self.coefficient[chosen],
            root=self.root[chosen],
            variance=self.variance[chosen],
            freedom=self.freedom[chosen],
            positive=self.positive[rows],
        )

    def _batches(self, points: int) -> Iterator[tuple[Index, Index]]:
        """Series (r,) that keep equally many hypotheses and these (r, c), as many as memory takes at `points`."""
        used = np.count_nonzero(self.weight > 0, axis=1)
        for process in self.processes:
            used[process.rows] = 0
        order = np.argsort(-self.weight, axis=1, kind="stable")
        for count in sorted({*used.tolist()} - {0}):
            rows = np.flatnonzero(used == count)
            step = max(1, BATCH // (points * count))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                yield some, order[some, :count]

    def _with_below(self, answer: Forecast, points: Array, hidden: Array | None) -> Forecast:
        """Take the answers below a break from the functions there, and from either where nothing was measured between
        both."""
        for part in self.below:
            other, x = part.fitted.predict(points, hidden), points.T[part.axis]
            (last, first), above = part.between.T[..., None], rows_of(answer, part.rows)
            unknown = (x > last) & (x < first)
            answer = choose(answer, other, part.rows, x < part.at[:, None])
            if unknown.any():
                either = open_to(open_to(rows_of(answer, part.rows), above, unknown), other, unknown)
                answer = choose(answer, either, part.rows, unknown)
        return answer

    @property
    def breaks(self) -> Array:
        """Where the behaviour of each series changes along each parameter, (s, m); NaN where it does not."""
        breaks = np.full((len(self), len(self.parameters)), np.nan)
        for part in self.below:
            breaks[part.rows, part.axis] = part.at
        return breaks

    def at_training(self, points: Array) -> Array:
        """Values (s, k) of the leading hypotheses at `points`, without intervals."""
        leading = self._leading_values(np.arange(len(self)), points)
        for part in self.below:
            under = np.asarray(points, dtype=np.float64).T[part.axis] < part.at[:, None]
            leading[part.rows] = np.where(under, part.fitted.at_training(points), leading[part.rows])
        return leading

    def _leading_values(self, rows: Index, points: Array) -> Array:
        if not len(self.terms):
            return np.full((len(rows), len(points)), np.nan)
        basis = values(self.terms, np.asarray(points, dtype=np.float64))
        first = self.members[rows, 0]
        leading = np.einsum("sq,sqk->sk", self.coefficient[rows, 0], np.where(first[..., None] >= 0, basis[first], 0.0))
        return np.asarray(leading)

    @property
    def difference(self) -> Array:
        """Largest relative difference (s,) of each printed function from the predicted medians; 0 where the function
        itself predicts."""
        difference = np.zeros(len(self))
        for process in self.processes:
            difference[process.rows] = process.difference
        return difference

    @property
    def of_domains(self) -> Mask:
        """Series (s,) whose functions know which ranks share a memory domain."""
        known = np.zeros(len(self), dtype=bool)
        for process in self.processes:
            known[process.rows] = process.domains is not None
        return known

    @cached_property
    def _jobs(self) -> Array:
        return between_jobs(self.metrics) * np.minimum(self.pace, 1.0)

    def inside(self, points: Array) -> Mask:
        """Where each series is within the range of the runs, (s, k), at `points` (k, m)."""
        low = self.trained[:, :, 0].min(axis=0, initial=np.inf)
        high = self.trained[:, :, 1].max(axis=0, initial=-np.inf)
        within = (points >= low) & (points <= high)
        return np.asarray((within[None] | self.unaffected[:, None]).all(axis=2))

    def measured_alone(self, points: Array) -> Mask:
        """Where series of too few configurations for others are asked for one that was measured, (s, k), at `points`
        (k, m): the ends of what the one parameter took that varied, or of none."""
        low, high = self.trained[:, None, :, 0], self.trained[:, None, :, 1]
        along = np.count_nonzero(low < high, axis=2) <= 1
        at_end = (points == low).all(axis=2) | (points == high).all(axis=2)
        return np.asarray(along & at_end & (self.status == FEW_POINTS)[:, None])

    def strayed(self, points: Array, part: Index | slice, side: int) -> Array:
        """Relative standard deviation (s, k) that extrapolation to `points` adds: ``sqrt(sum (tau ln(x /
        x_max))^2)``, more beyond :data:`ranksight.model.priors.FAR`; ``ln(1 + tau (x / x_max - 1))`` along
        iterations. `side` is 0 downwards, 1 upwards."""
        low, high = self.trained[part, :, 0], self.trained[part, :, 1]
        jobs = self._jobs[part]
        total = np.broadcast_to(jobs[:, None] ** 2, (len(high), len(points))).copy()
        for axis in range(points.shape[1]):
            x = points[:, axis][None, :]
            if self.parameters[axis] == self.iterations:
                total += (
                    np.log1p(self.drift[part, axis, side, None] * np.maximum(x / high[:, axis, None] - 1, 0.0)) ** 2
                )
                continue
            out = _outside(x, low[:, axis, None], high[:, axis, None])
            far = out * np.maximum(out / priors.FAR, 1.0)
            total += (self.drift[part, axis, side, None] * far) ** 2
        return np.asarray(np.sqrt(total))

    def logs(self, rows: Index, points: Array) -> Array:
        """Logarithm of the leading hypotheses of some series, NaN where they are not positive."""
        leading = self._leading_values(rows, points)
        return np.log(np.where(leading > 0, leading, np.nan))

    def _aside(self, points: Array, hidden: Array | None) -> tuple[Array, Array]:
        """Relative standard deviations (s, k) that hidden parameters, or those that change nothing as stated, add where
        they are outside of what was measured (:func:`ranksight.model.uncertainty.drift.spreads`), downwards and
        upwards. Raises InputError when values are given for other hidden parameters than the series had.
        """
        if hidden is None:
            rows, axes = (np.flatnonzero(self.unaffected.any(axis=axis)) for axis in (1, 0))
            if not len(rows):
                none = np.zeros((len(self), len(points)))
                return none, none
            ends = self.trained[rows][:, axes]
            low, high = ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)
            sides = self._spreads(points, *beyond(points[:, axes], np.stack([low, high], axis=1)))
            unmoved = np.asarray(self.unaffected.any(axis=1))[:, None]
            return np.where(unmoved, sides[0], 0.0), np.where(unmoved, sides[1], 0.0)
        hidden = np.atleast_2d(np.asarray(hidden, dtype=np.float64))
        count = len(self.hidden)
        if not count or hidden.shape != (len(points), count) or not np.isfinite(hidden).all():
            raise InputError(f"hidden values of shape {hidden.shape} do not give {count} finite values to every point")
        return self._spreads(points, *beyond(hidden, self.hidden))

    def _spreads(self, points: Array, above: Array, below: Array) -> tuple[Array, Array]:
        """What parameters `above` and `below` (k,) their ranges, in e-folds, add (s, k), downwards and upwards."""
        fall, rise = spreads(above, below, self._undivided(points), self.pace)
        # Of what is not a time only the drift expected before the data is known.
        is_time = self.positive & (behaviours(self.metrics, self.samples) == "time")
        either = (priors.DRIFT * self.pace)[:, None] * np.maximum(above, below)
        return np.where(is_time[:, None], fall, either), np.where(is_time[:, None], rise, either)

    def _undivided(self, points: Array) -> Array:
        """Share (s, k) of the leading hypotheses that does not follow the parameters in proportion: one less the
        elasticity, between zero and one.

        What did not follow them at the smallest values measured, where work was divided most, is not less elsewhere.
        """
        rows = np.arange(len(self))
        first = np.broadcast_to(self.trained[:, :, 0].min(axis=0, initial=np.inf), points.shape)

        def rest(at: Array) -> Array:
            slope = (self.logs(rows, at * STEP) - self.logs(rows, at)) / np.log(STEP)
            return np.asarray(1 - np.clip(np.where(np.isfinite(slope), slope, 0.0), 0.0, 1.0))

        with np.errstate(over="ignore"):
            undivided = rest(first) * np.exp(self.logs(rows, first) - self.logs(rows, points))
        return np.asarray(np.fmax(rest(points), np.minimum(undivided, 1.0)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; see :class:`ranksight.model.fitting.columns.Columns`."""
        return Columns.of(self).to_dict()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fitted:
        """Rebuild from :meth:`to_dict`; damaged or hostile content raises InputError."""
        columns = Columns.from_dict(content)
        below = (
            Below(part.rows, part.axis, part.at, part.between, cls(**part.below.unpacked())) for part in columns.breaks
        )
        return cls(**columns.unpacked(), below=tuple(below))


def between_jobs(metrics: tuple[str, ...]) -> Array:
    """Relative standard deviation (s,) of values between jobs that repetitions within one job do not show: of times
    alone."""
    kinds = {name: metric(name).kind for name in set(metrics)}
    return np.array([priors.BETWEEN_JOBS if kinds[name] == "time" else 0.0 for name in metrics])


def _outside(x: Array, low: Array, high: Array) -> Array:
    """E-folds that values lie outside of a range, broadcast; 0 where a logarithm says nothing."""
    sides = log_ratio(x, high), log_ratio(low, x)
    return np.asarray(np.maximum(*(np.where(np.isfinite(side), np.maximum(side, 0.0), 0.0) for side in sides)))
