"""Where series change their behaviour for good: known by zeros and by one rank, or found by the evidence.

A time may be nothing on one side of a value of a parameter, and messages of one rank are none. No function is nothing
and then is not: what the process answers begins at the first value that is something, or ends at the last, and one is
enough, as zeros say that the others are another regime. On the side of the zeros the time is nothing, and between both
it may be either (:class:`ranksight.model.fitting.printed.Below`). Counts begin that way, too, where no law that is
nothing on one rank by itself meets them better.

Elsewhere a message protocol, or a cache that no longer holds the data, changes what follows. With E the evidence of a
part of the values, summed over means and covariances by their prevalence, a change between two values has the odds

    E(values below) E(values from there on) c / (E(all values) n),    c = exp(:data:`priors.ANOTHER_REGIME`),

n places being equally likely (product partitions: Barry and Hartigan 1993, *Journal of the American Statistical
Association* 88, 309). Two places are known. Behind one rank, which has nobody to wait for or to send to, the odds are
c; where messages leave a node, as it is known how many ranks fill it, those of :data:`priors.NODE_REGIMES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, along_column
from ranksight.core.mpi import RANK_COUNTS
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import join, pick
from ranksight.model.fitting.printed import Below
from ranksight.model.process.compare import SMOOTHING
from ranksight.model.process.fit_process import evidence_of
from ranksight.model.process.prevalence import Prevalence
from ranksight.model.process.solve import Data, divisions, evidence, smoothed
from ranksight.model.series.computation import RANKS
from ranksight.model.series.domains import Domains
from ranksight.model.series.noise import Location, behaviours
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast

FEWEST = 3
"""Configurations below which a series along one coordinate is not answered; one more for each further."""
EACH_SIDE = 3
"""Values on each side of a change at least."""
LOOKED_FOR = 7
"""Values from which on changes within the range are looked for."""
ROUNDED = 1e-6
"""Relative error up to which a function meets counts."""
FREE = 2
"""Values beyond its terms that a function of counts that begin meets before it is known: one more is met by chance."""


@dataclass(frozen=True)
class Begun:
    """Where s series change to another regime, and what was measured of them."""

    points: Array  # (n, m)
    location: Location
    axis: Index  # (s,): the parameter along which they do; -1 of those that do not
    last: Array  # (s,): its largest value below the change
    first: Array  # (s,): its smallest value beyond
    ends: Mask  # (s,): whether they are nothing beyond, not below

    @classmethod
    def of(cls, series: Series, location: Location) -> Begun:
        """Series with zeros on one side of a value of a parameter, and messages of one rank and of several."""
        present = location.repeats > 0
        zero, some = present & (location.values == 0), present & (location.values > 0)
        # Where times are made of samples, zero is a time that none fell on.
        known = ((zero | some) == present).all(axis=1) & np.isinf(location.samples)
        known &= present.sum(axis=1) >= FEWEST + len(series.parameters) - 1
        last, first = np.full((2, len(series)), np.nan)
        axis, ends = np.full(len(series), -1), np.zeros(len(series), dtype=bool)
        begun = cls(series.points, location, axis, last, first, ends)
        for at in range(len(series.parameters)):
            for below, beyond in ((zero, some), (some, zero)):
                begun._divide(at, below, beyond, known, beyond is zero)
        for at, name in enumerate(series.parameters):
            if name == RANKS or name in RANK_COUNTS:
                one = series.points[:, at] == 1
                begun._divide(at, some & one, some & ~one, known & series.of_messages, False)
        return begun

    def by_evidence(self) -> Begun:
        """The same with times over several parameters that one rank has by another law than several, as the evidence
        is. It is asked where one rank is farther from the others than these are from each other."""
        if self.points.shape[1] == 1:
            return self
        present = self.location.repeats > 0
        logs = np.log(np.where(present & (self.location.values > 0), self.location.values, np.nan))
        for at, x in enumerate(self.points.T):
            one = x == 1
            rows = np.flatnonzero((self.axis < 0) & _far_from_others(self.points, logs, at))
            if not len(rows):
                continue
            part = self.location.part(rows)
            sides = (replace(part, repeats=np.where(side, part.repeats, 0.0)) for side in (one, ~one))
            gain = sum(evidence_of(self.points, side) for side in sides) - evidence_of(self.points, part)
            known = np.zeros(len(self.axis), dtype=bool)
            known[rows[gain + priors.ANOTHER_REGIME > 0]] = True
            self._divide(at, present & one, present & ~one, known, False)
        return self

    def of_counts(self, fitted: Fitted, fit: Callable[[Index, Location], Fitted]) -> tuple[Begun, Fitted]:
        """The same of counts that begin, and the functions of all s series, of these from where they do.

        A law of the ranks may be nothing at one by itself. Counts begin where no function meets all values and that of
        the values from there on is off by less, or meets them with two terms less: where they begin is known for one.
        So do those of whose values, all together, no function is found.

        `fitted`: functions of all values. `fit`: of some series by some of their values.
        """
        beyond = self.answered.repeats > 0
        place = np.sort(np.where(beyond, self.points.T[self.axis], np.nan), axis=1)
        different = 1 + (np.diff(place, axis=1) > 0).sum(axis=1)
        nothing = ((self.location.values == 0) | ~self.aside).all(axis=1)
        counts = behaviours(fitted.metrics, self.location.samples) == "requirement"
        rows = np.flatnonzero((self.axis >= 0) & ~self.ends & nothing & counts & (different >= FEWEST))
        if len(rows):
            later = fit(rows, self.answered.part(rows))
            whole = pick(fitted, rows)
            met, exact = _meets(later, different[rows] - FREE), _meets(whole, whole.count - 1)
            nearer = (later.press < whole.press) | (_size(whole) == 0)
            better = np.where(exact, met & (_size(later) + 1 < _size(whole)), met | nearer)
            better &= later.status == forecast.OK
            rows, later = rows[better], pick(later, np.flatnonzero(better))
        axis = np.full(len(self.axis), -1)
        axis[rows] = self.axis[rows]
        begun = replace(self, axis=axis, ends=self.ends & (axis >= 0))
        if not len(rows):
            return begun, fitted
        rest = np.flatnonzero(axis < 0)
        return begun, join([pick(fitted, rest), later], [rest, rows]) if len(rest) else later

    def _divide(self, at: int, below: Mask, beyond: Mask, known: Mask, ends: bool) -> None:
        """Note series (s,) all of whose values `below` (s, n) are below all `beyond` along a parameter."""
        x = self.points[:, at]
        last, first = np.where(below, x, -np.inf).max(axis=1), np.where(beyond, x, np.inf).min(axis=1)
        rows = known & below.any(axis=1) & beyond.any(axis=1) & (last < first) & (self.axis < 0)
        self.axis[rows], self.last[rows], self.first[rows], self.ends[rows] = at, last[rows], first[rows], ends

    @cached_property
    def aside(self) -> Mask:
        """Values that are not of the regime that the process answers, (s, n)."""
        x = self.points.T[self.axis]
        below = np.where(self.ends[:, None], x >= self.first[:, None], x <= self.last[:, None])
        return np.asarray((self.axis >= 0)[:, None] & below)

    @cached_property
    def answered(self) -> Location:
        """The values of the regime that the process answers."""
        return replace(self.location, repeats=np.where(self.aside, 0.0, self.location.repeats))

    def part(self, rows: Index) -> Begun:
        """The same of some series."""
        location = self.location.part(rows)
        return Begun(self.points, location, self.axis[rows], self.last[rows], self.first[rows], self.ends[rows])

    def on_both_sides(self, fitted: Fitted, fit: Callable[[Index, Location], Fitted]) -> Fitted:
        """The functions of all s series on both sides.

        `fitted`: of the values that are :attr:`answered`. `fit`: of some series by some of their values.
        """
        rows = np.flatnonzero(self.axis >= 0)
        if not len(rows):
            return fitted
        fitted = self._measured(fitted, rows)
        nothing = (self.location.values == 0) & self.aside
        lone = rows[~nothing[rows].any(axis=1)]
        ends, begins = np.flatnonzero(self.ends), rows[~self.ends[rows] & nothing[rows].any(axis=1)]
        below = [(begins, self._none(fitted, begins))] if len(begins) else []
        if len(lone):
            part = self.location.part(lone)
            of_one = fit(lone, replace(part, repeats=np.where(self.aside[lone], part.repeats, 0.0)))
            if self.points.shape[1] == 1:
                values = np.where(self.aside[lone], part.values, 0.0).max(axis=1)
                of_one = constant(of_one, np.arange(len(lone)), values)
            below.append((lone, replace(of_one, status=np.full(len(lone), forecast.OK))))
        if len(ends):
            rest = np.flatnonzero(~self.ends)
            below.append((ends, replace(pick(fitted, ends), below=())))
            none = self._none(fitted, ends)
            fitted = join([pick(fitted, rest), none], [rest, ends]) if len(rest) else none
        return replace(fitted, below=(*fitted.below, *(self._below(some, each) for some, each in below)))

    def _measured(self, fitted: Fitted, rows: Index) -> Fitted:
        """The functions with what was measured on both sides."""
        present = self.location.repeats > 0
        trained, count, status = fitted.trained.copy(), fitted.count.copy(), fitted.status.copy()
        trained[rows], count[rows] = trained_range(self.points, present)[rows], present.sum(axis=1)[rows]
        status[rows] = forecast.OK
        # Few values differ by little, whatever repetitions do.
        noisy = fitted.noisy & ((self.answered.repeats > 0).sum(axis=1) >= FEWEST)
        return replace(fitted, trained=trained, count=count, status=status, noisy=noisy)

    def _below(self, rows: Index, fitted: Fitted) -> Below[Fitted]:
        """Functions of series below where they change."""
        last, first = self.last[rows], self.first[rows]
        return Below(rows, self.axis[rows], np.nextafter(last, np.inf), np.stack([last, first], axis=1), fitted)

    def _none(self, fitted: Fitted, rows: Index) -> Fitted:
        """Functions of series which are nothing."""
        b = len(rows)
        return replace(
            constant(fitted, rows, np.zeros(b)),
            positive=np.zeros(b, dtype=bool),
            drift=np.zeros((b, len(fitted.parameters), 2)),
            processes=(),
        )


def _far_from_others(points: Array, logs: Array, at: int) -> Mask:
    """Series (s,) whose values at one along a parameter are farther from those of three or more others than these are
    from each other, wherever the other parameters are the same; `logs` (s, n) at `points` (n, m), NaN where nothing is.
    """
    x, table = along_column(points, at, logs)
    if x[0] != 1 or len(x) <= EACH_SIDE:
        return np.zeros(len(logs), dtype=bool)
    lone, others = table[:, 0], table[:, 1:]
    low, high = np.fmin.reduce(others, axis=1), np.fmax.reduce(others, axis=1)
    known = np.isfinite(lone) & (np.isfinite(others).sum(axis=1) >= EACH_SIDE)
    with np.errstate(invalid="ignore"):
        far = np.fmax(lone - high, low - lone) > high - low
    return np.asarray(known.any(axis=1) & (far | ~known).all(axis=1))


def _size(fitted: Fitted) -> Index:
    """Number of terms (s,) of the leading hypotheses."""
    return np.asarray((fitted.members[:, 0] >= 0).sum(axis=1), dtype=np.intp)


def _meets(fitted: Fitted, most: Index) -> Mask:
    """Which leading hypotheses (s,) of at most so many terms (s,) meet all values to rounding."""
    exact = (fitted.weight[:, 0] > 0) & (fitted.variance[:, 0] < ROUNDED**2)
    return np.asarray(exact & (_size(fitted) <= most))


def loosely_met(fitted: Fitted) -> Mask:
    """Series (s,) whose leading hypothesis misses their values with three terms or more, and those more than half as
    many: they follow any scatter, such as that of work which ranks divide unevenly, and go on with it."""
    size = _size(fitted)
    return np.asarray(~_meets(fitted, fitted.count) & (size > FREE) & (2 * size > fitted.count))


def constant(fitted: Fitted, rows: Index, values: Array) -> Fitted:
    """Functions of series that are printed as constants, with none below a change."""
    b, one = len(rows), np.ones(len(rows))
    return replace(
        pick(fitted, rows),
        terms=np.zeros((1, len(fitted.parameters), 3)),
        members=np.zeros((b, 1, 1), dtype=np.intp),
        weight=one[:, None],
        coefficient=values[:, None, None],
        root=np.zeros((b, 1, 1, 1)),
        variance=np.full((b, 1), forecast.ROUNDING),
        freedom=one[:, None],
        below=(),
    )


def trained_range(points: Array, present: Mask) -> Array:
    """Smallest and largest value (s, m, 2) of each parameter where a series is `present` (s, n); zero where nowhere."""
    seen = np.where(present[:, :, None], points[None], np.nan)
    none = np.asarray(~present.any(axis=1))[:, None]
    low = np.where(none, 0.0, np.fmin.reduce(seen, axis=1, initial=np.inf))
    high = np.where(none, 0.0, np.fmax.reduce(seen, axis=1, initial=-np.inf))
    return np.stack([low, high], axis=2)


def changepoints(x: Array, data: Data, prevalence: Prevalence, messages: Mask, domains: Domains | None = None) -> Array:
    """Values (s,) of the coordinate `x` (n,), in ascending order, from which on each series is another; NaN where it
    stays what it is.

    `messages` (s,): which series are times of messages. `domains`: how `x` ranks fill nodes.
    """
    count = len(x)
    breaks = np.full(len(data.logs), np.nan)
    places = list(range(EACH_SIDE, count - EACH_SIDE + 1)) if count >= LOOKED_FOR else []
    from_one = x[0] == 1 and count > EACH_SIDE
    node = node_place(x, domains) if messages.any() else 0
    if not places and not node and not from_one:
        return breaks
    total = _evidence(x, data, prevalence, domains)
    whole = total(slice(None))
    between = {place: np.sqrt(x[place] * x[place - 1]) for place in places}
    odds = {place: np.full(len(breaks), priors.ANOTHER_REGIME - np.log(len(places))) for place in places}
    if from_one:
        between[1], odds[1] = float(np.nextafter(1.0, np.inf)), np.full(len(breaks), priors.ANOTHER_REGIME)
    if node:
        assert domains is not None
        between[node] = node_break(domains)
        one, step, separate = priors.NODE_REGIMES.values()
        unknown = odds.get(node, np.full(len(breaks), -np.inf))
        odds[node] = np.where(messages, np.log((step + separate) / one), unknown)
    split = np.stack([total(slice(place)) + total(slice(place, None)) + odds[place] for place in odds], axis=1)
    split -= whole[:, None]
    best = np.array([between[place] for place in odds])[split.argmax(axis=1)]
    return np.where(special.logsumexp(split, axis=1) > 0, best, breaks)


def _evidence(x: Array, data: Data, prevalence: Prevalence, domains: Domains | None) -> Callable[[slice], Array]:
    """The logarithm of the evidence (s,) of some of the values, summed over means and covariances."""
    along = divisions(x[:, None], x[:, None])[:, 0]

    def total(side: slice) -> Array:
        table, members, at = prevalence.over(along, domains, along[side])
        logs, noise, most = (each[:, side] for each in (data.logs, data.noise, data.most))
        part = Data(data.u[side] - data.u[side][:1], logs, noise, logs, most)
        joint = evidence(smoothed(part, SMOOTHING), at[:, side], members, table.scales) + table.joint
        return np.asarray(special.logsumexp(joint.reshape(len(joint), -1), axis=1))

    return total


def node_break(domains: Domains) -> float:
    """Ranks from which on some are on a second node."""
    return float(np.nextafter(domains.ranks_per_node, np.inf))


def node_place(x: Array, domains: Domains | None) -> int:
    """Number of values of `x` (n,), ascending, that are on one node, where enough are on more; else 0."""
    within = 0 if not domains else int(np.searchsorted(x, domains.ranks_per_node, side="right"))
    return within if len(x) - within >= EACH_SIDE else 0
