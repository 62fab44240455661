"""Times that are nothing up to a value of one parameter and something from there on, as messages of one rank are.

No function is nothing and then is not. What the process answers begins at the first value that is something; below it
the time is nothing (:class:`ranksight.model.fitting.printed.Below`). For those of fewer values than a function needs
see :mod:`ranksight.model.structure.late`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.outcome import FEWEST, trained_range
from ranksight.model.fitting.printed import Below
from ranksight.model.series.noise import Location
from ranksight.model.uncertainty import forecast


@dataclass(frozen=True)
class Begun:
    """Where s series begin, and what was measured of them."""

    points: Array  # (n, m)
    location: Location
    axis: Index  # (s,): the parameter; -1 of those that do not begin
    last: Array  # (s,): its largest value at which a series is nothing

    @classmethod
    def of(cls, points: Array, location: Location) -> Begun:
        """Series that are nothing up to a value of a parameter and above zero beyond, at enough configurations for a
        function."""
        present = location.repeats > 0
        none, some = present & (location.values == 0), present & (location.values > 0)
        axis, last = np.full(len(none), -1), np.full(len(none), np.nan)
        enough = none.any(axis=1) & (some.sum(axis=1) >= FEWEST + points.shape[1] - 1)
        for at, x in enumerate(points.T):
            ends, begins = np.where(none, x, -np.inf).max(axis=1), np.where(some, x, np.inf).min(axis=1)
            found = enough & ((none | some) == present).all(axis=1) & (ends < begins) & (axis < 0)
            axis[found], last[found] = at, ends[found]
        return cls(points, location, axis, last)

    @property
    def rows(self) -> Index:
        """The series that begin, (b,)."""
        return np.flatnonzero(self.axis >= 0)

    @property
    def nothing(self) -> Mask:
        """Where series that begin are nothing, (s, n)."""
        return np.asarray((self.axis >= 0)[:, None] & (self.location.values == 0))

    def something(self) -> Location:
        """The values from where the series begin."""
        return replace(self.location, repeats=np.where(self.nothing, 0.0, self.location.repeats))

    def part(self, rows: Index) -> Begun:
        """The same of some series."""
        return Begun(self.points, self.location.part(rows), self.axis[rows], self.last[rows])

    def with_nothing(self, fitted: Fitted) -> Fitted:
        """The functions of all s series, with nothing below where they begin."""
        rows = self.rows
        if not len(rows):
            return fitted
        present = self.location.repeats > 0
        trained, count = fitted.trained.copy(), fitted.count.copy()
        trained[rows], count[rows] = trained_range(self.points, present)[rows], present.sum(axis=1)[rows]
        beyond = np.nextafter(self.last[rows], np.inf)
        below = Below(rows, self.axis[rows], beyond, self._none(fitted))
        return replace(fitted, trained=trained, count=count, below=(*fitted.below, below))

    def _none(self, fitted: Fitted) -> Fitted:
        """Functions of the series that begin which are nothing."""
        from ranksight.model.fitting.parallel import pick

        b, one = len(self.rows), np.ones(len(self.rows))
        return replace(
            pick(fitted, self.rows),
            terms=np.zeros((1, len(fitted.parameters), 3)),
            members=np.zeros((b, 1, 1), dtype=np.intp),
            weight=one[:, None],
            coefficient=np.zeros((b, 1, 1)),
            root=np.zeros((b, 1, 1, 1)),
            variance=np.full((b, 1), forecast.ROUNDING),
            freedom=one[:, None],
            status=np.full(b, forecast.OK),
            positive=np.zeros(b, dtype=bool),
            trained=trained_range(self.points, self.nothing[self.rows]),
            drift=np.zeros((b, len(fitted.parameters), 2)),
            processes=(),
            below=(),
        )
