"""Work that comes in whole units: elements, blocks, planes that cannot be cut.

Of U units on P ranks the busiest rank has ceil(U / P), and as it ends a superstep, times are staircases over P. They
are smooth functions of that rank's share, so functions are learned and asked at the number of ranks that would all have
as much as the busiest one,

    P' = U / ceil(U / P) <= P,

where the metric is that of the slowest rank; means over ranks stay functions of P. How much longer than an even share
the slowest rank works, ceil(U / P) P / U, is reported with the prediction (Ding et al. 2018 allow only P = 6 n^2 of
HOMME's 6 n_e^2 elements, and measure what other numbers of ranks cost).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.formula import Formula, read_formula
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.formula import check_names, evaluate
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of

UNEVEN = 1.05
"""Work of the busiest rank over an even share from which on an answer says so."""


@dataclass(frozen=True)
class WholeUnits(Stored):
    """What the work of a program consists of; false where nobody says that it comes in units (:data:`NO_UNITS`).

    `name`: such as ``elements``. `text`: their number as a formula in the parameters, such as ``6*size^2``.
    """

    name: str
    text: str

    @classmethod
    def read(cls, given: str, parameters: Sequence[str]) -> WholeUnits:
        """Read ``NAME=FORMULA`` or ``FORMULA``.

        Raises InputError when the formula cannot be read, has a name that is not a parameter, or ranks are none.
        """
        name, equals, text = given.partition("=")
        units = cls(name.strip(), text.strip()) if equals else cls("units", given.strip())
        units.check(parameters)
        return units

    def __bool__(self) -> bool:
        return bool(self.text)

    def check(self, parameters: Sequence[str]) -> None:
        """Raise InputError where the formula does not suit the parameters."""
        check_names(self.formula, [name for name in parameters if name != "ranks"], self.name, constant=True)
        if "ranks" not in parameters:
            raise InputError(f"{self.name} are dealt out to ranks, and ranks are no parameter", "leave --units out")

    @cached_property
    def formula(self) -> Formula:
        """The formula, read."""
        return read_formula(self.text, f"units '{self.name[:40]}'")

    def count(self, points: Array, parameters: Sequence[str]) -> Array:
        """Units at `points` (k, m). Raises InputError when there is less than one somewhere."""
        return evaluate(self.formula, points, parameters, self.name, least=1)

    def busiest(self, points: Array, parameters: Sequence[str]) -> Array:
        """Units of the busiest rank."""
        return np.ceil(self.count(points, parameters) / _ranks(points, parameters) * (1 - 1e-12))

    def unevenness(self, points: Array, parameters: Sequence[str]) -> Array:
        """Units of the busiest rank over the mean, 1 where the ranks divide them."""
        if not self:
            return np.ones(len(points))
        most = self.busiest(points, parameters)
        return np.asarray(most * _ranks(points, parameters) / self.count(points, parameters))

    def even(self, points: Array, parameters: Sequence[str]) -> Array:
        """The points with as many ranks as would all have what the busiest has, P'."""
        points_even = np.array(points, dtype=np.float64)
        points_even[:, list(parameters).index("ranks")] = self.count(points, parameters) / self.busiest(
            points, parameters
        )
        return points_even

    def series(self, series: Series) -> Series:
        """The same series over P'; configurations that fall together become repetitions of one."""
        points, which = np.unique(np.round(self.even(series.points, series.parameters), 9), axis=0, return_inverse=True)
        which = np.asarray(which).reshape(-1)
        most = int(np.bincount(which).max())
        repeats = series.values.shape[2]
        values, worth = (np.full((len(series), len(points), most * repeats), np.nan) for _ in range(2))
        used = np.zeros(len(points), dtype=np.intp)
        for at, place in enumerate(which.tolist()):
            start = int(used[place]) * repeats
            values[:, place, start : start + repeats] = series.values[:, at]
            worth[:, place, start : start + repeats] = series.worth[:, at]
            used[place] += 1
        return replace(series, points=points, values=values, hidden=np.empty(0), worth=worth)

    def remark(self, point: Array, parameters: Sequence[str]) -> str:
        """What is to be said of one configuration (m,): nothing where ranks divide the units nearly evenly."""
        at = np.asarray(point, dtype=np.float64)[None]
        uneven = float(self.unevenness(at, parameters)[0])
        if uneven < UNEVEN:
            return ""
        ranks, units, most = (
            float(number[0])
            for number in (_ranks(at, parameters), self.count(at, parameters), self.busiest(at, parameters))
        )
        return (
            f"{units:g} {self.name} do not divide by {ranks:g} ranks: the busiest has {most:g}, "
            f"{uneven - 1:.0%} above the mean"
        )


NO_UNITS = WholeUnits("", "")


def _ranks(points: Array, parameters: Sequence[str]) -> Array:
    return points[:, list(parameters).index("ranks")]


@dataclass(frozen=True)
class Share:
    """What the busiest rank works on; where work comes in no whole units, what all ranks do."""

    points: Array  # (k, m): the configurations with as many ranks as would all be as full
    said: Forecast  # counts of all series there: those of the busiest rank
    busiest: tuple[str, ...]  # metrics that the busiest rank carries
    unevenness: Array  # (k,): work of the busiest rank over the mean

    @classmethod
    def even(cls, points: Array, predicted: Forecast) -> Share:
        """Of ranks that all do as much, as `predicted` at `points` (k, m)."""
        return cls(points, predicted, (), np.ones(len(points)))


@dataclass(frozen=True)
class Staircase(Stored):
    """Whole units, and functions learned with them."""

    units: WholeUnits
    busiest: tuple[str, ...]  # metrics that the busiest rank carries: those reduced to the largest of all ranks
    fitted: Fitted | None
    """Functions of their series over the ranks that would all be as full; None where the series were learned without
    the units."""

    @classmethod
    def stated(cls, text: str, fitted: Fitted) -> Staircase:
        """Whole units such as ``elements=6*size^2`` of series that were `fitted` without them."""
        busiest = tuple(dict.fromkeys(name for name in fitted.metrics if metric(name).over_ranks == "max"))
        return cls(WholeUnits.read(text, fitted.parameters), busiest, None)

    def predict(self, forecast: Forecast, functions: Functions, share: Share) -> Forecast:
        """The forecast of all series, those of the busiest rank at its share."""
        names = functions.fitted.metrics
        index = np.array([row for row, name in enumerate(names) if name in self.busiest], dtype=np.intp)
        if not len(index):
            return forecast
        busiest = rows_of(share.said, index) if self.fitted is None else self.fitted.predict(share.points)
        return choose(forecast, busiest, index, np.ones(busiest.value.shape, dtype=bool))

    def share(self, functions: Functions, points: Array, predicted: Forecast) -> Share:
        """What equations are asked with; `predicted`: by `functions` at `points` (k, m)."""
        if not self.units:
            return Share.even(points, predicted)
        parameters = functions.fitted.parameters
        even, uneven = self.units.even(points, parameters), self.units.unevenness(points, parameters)
        return Share(even, functions.predict(even), self.busiest, uneven)

    def of(self, functions: Fitted) -> Staircase:
        """The same, checked against the functions that it is kept with; InputError where it does not fit them."""
        if not self.units:
            return self
        self.units.check(functions.parameters)
        wanted = [key for key in functions.keys if key[1] in self.busiest]
        fitted = self.fitted
        if fitted is not None and (fitted.parameters, list(fitted.keys)) != (functions.parameters, wanted):
            raise InputError("'units' does not fit the functions", "fit the model again")
        return self


ALL_EVEN = Staircase(NO_UNITS, (), None)
"""Where work comes in no whole units."""
