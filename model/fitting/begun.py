"""Times of which some values are known to be of another regime: zeros on one side of a value of a parameter, and
messages of one rank, which sends none.

No function is nothing and then is not. What the process answers begins at the first value that is something, or ends at
the last, and one is enough: zeros say that the others are another regime. On the side of the zeros the time is nothing,
and between both it may be either (:class:`ranksight.model.fitting.printed.Below`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.mpi import RANK_COUNTS, communicates
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.outcome import FEWEST, trained_range
from ranksight.model.fitting.printed import Below
from ranksight.model.process.changepoint import first_apart
from ranksight.model.process.fit_process import data_of
from ranksight.model.process.prevalence import learned
from ranksight.model.series.computation import RANKS
from ranksight.model.series.domains import Domains
from ranksight.model.series.noise import Location
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast


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
        sent = np.array([communicates(kernel) for kernel in series.kernels], dtype=bool)
        for at, name in enumerate(series.parameters):
            if name == RANKS or name in RANK_COUNTS:
                one = series.points[:, at] == 1
                begun._divide(at, some & one, some & ~one, known & sent, False)
        return begun

    def apart(self, domains: Domains) -> Begun:
        """The same with series of times above zero that are another at one than at several of the one parameter."""
        x, which = self.points[:, 0], np.flatnonzero(self.axis < 0)
        if self.points.shape[1] > 1 or not len(which):
            return self
        order, found = np.argsort(x), np.zeros(len(self.axis), dtype=bool)
        data = data_of(self.points, self.location.part(which)).ordered(order)
        found[which] = first_apart(x[order], data, learned(), domains or None)
        present, begun = self.location.repeats > 0, replace(self, axis=self.axis.copy())
        begun._divide(0, present & (x == 1), present & (x != 1), found, False)
        return begun

    def _divide(self, at: int, below: Mask, beyond: Mask, known: Mask, ends: bool) -> None:
        """Note series (s,) all of whose values `below` (s, n) are below all `beyond` along a parameter."""
        x = self.points[:, at]
        last, first = np.where(below, x, -np.inf).max(axis=1), np.where(beyond, x, np.inf).min(axis=1)
        found = known & below.any(axis=1) & beyond.any(axis=1) & (last < first) & (self.axis < 0)
        self.axis[found], self.last[found], self.first[found], self.ends[found] = at, last[found], first[found], ends

    @property
    def aside(self) -> Mask:
        """Values that are not of the regime that the process answers, (s, n)."""
        x = self.points.T[self.axis]
        below = np.where(self.ends[:, None], x >= self.first[:, None], x <= self.last[:, None])
        return np.asarray((self.axis >= 0)[:, None] & below)

    @property
    def answered(self) -> Location:
        """The values of the regime that the process answers."""
        return replace(self.location, repeats=np.where(self.aside, 0.0, self.location.repeats))

    def part(self, rows: Index) -> Begun:
        """The same of some series."""
        location = self.location.part(rows)
        return Begun(self.points, location, self.axis[rows], self.last[rows], self.first[rows], self.ends[rows])

    def both(self, fitted: Fitted, fit: Callable[[Index, Location], Fitted]) -> Fitted:
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
            alone = fit(lone, replace(part, repeats=np.where(self.aside[lone], part.repeats, 0.0)))
            if self.points.shape[1] == 1:
                alone = _constant(alone, np.arange(len(lone)), np.where(self.aside[lone], part.values, 0.0).max(axis=1))
            below.append((lone, replace(alone, status=np.full(len(lone), forecast.OK))))
        if len(ends):
            from ranksight.model.fitting.parallel import join, pick

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
            _constant(fitted, rows, np.zeros(b)),
            positive=np.zeros(b, dtype=bool),
            drift=np.zeros((b, len(fitted.parameters), 2)),
            processes=(),
        )


def _constant(fitted: Fitted, rows: Index, values: Array) -> Fitted:
    """Functions of series that are printed as constants, with none below a change."""
    from ranksight.model.fitting.parallel import pick

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
