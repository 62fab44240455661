"""Functions of work in whole units: what the busiest rank carries is asked at the ranks that would all be as full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored
from ranksight.model.structure.functions import Functions, choose, rows_of
from ranksight.model.structure.wholeunits import WholeUnits
from ranksight.model.uncertainty.forecast import Forecast


@dataclass(frozen=True)
class Share:
    """What the busiest rank works on, where work comes in whole units."""

    points: Array  # (k, m): the configurations with as many ranks as would all be as full
    said: Forecast  # counts of all series there: those of the busiest rank
    busiest: tuple[str, ...]  # metrics that the busiest rank carries
    unevenness: Array  # (k,): work of the busiest rank over the mean


@dataclass(frozen=True)
class Staircase(Stored):
    """Whole units, and functions learned with them."""

    units: WholeUnits
    busiest: tuple[str, ...]  # metrics that the busiest rank carries: those reduced to the largest of all ranks
    fitted: Fitted | None
    """Functions of their series over the ranks that would all be as full; None where the series were learned without
    the units."""

    def predict(self, said: Forecast, functions: Functions, share: Share, level: float) -> Forecast:
        """The forecast of all series, those of the busiest rank at its share."""
        names = functions.fitted.metrics
        index = np.array([row for row, name in enumerate(names) if name in self.busiest], dtype=np.intp)
        if not len(index):
            return said
        given = rows_of(share.said, index) if self.fitted is None else self.fitted.predict(share.points, level)
        return choose(said, given, index, np.ones(given.value.shape, dtype=bool))

    def share(self, functions: Functions, points: Array, level: float) -> Share:
        """What equations are asked with."""
        parameters = functions.fitted.parameters
        even, uneven = self.units.even(points, parameters), self.units.unevenness(points, parameters)
        return Share(even, functions.predict(even, level), self.busiest, uneven)

    def of(self, functions: Fitted) -> Staircase:
        """The same, checked against the functions that it is kept with; InputError where it does not fit them."""
        self.units.check(functions.parameters)
        wanted = [key for key in functions.keys if key[1] in self.busiest]
        own = self.fitted
        if own is not None and (own.parameters, list(own.keys)) != (functions.parameters, wanted):
            raise InputError("'units' does not fit the functions", "fit the model again")
        return self
