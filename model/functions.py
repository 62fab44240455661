"""Functions of the parameters with all that is known of their structure: what a model asks for a metric's value.

The search knows forms; beside it stand what two levels of a parameter can say (:mod:`ranksight.model.levels`) and what
follows the process grid (:mod:`ranksight.model.neighbours`). Each answers where it knows better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.model import forecast
from ranksight.model.fitted import Fitted
from ranksight.model.forecast import Forecast
from ranksight.model.levels import Levels
from ranksight.model.neighbours import Neighbours

Array = NDArray[np.float64]
ARRAYS = ("value", "lower", "upper", "status", "reason", "form", "noise")
"""The arrays of a forecast, one row a series."""
WHOLES = dict.fromkeys(("loads_l1", "loads_l2", "loads_l3", "loads_mem"), "loads")
WHOLES |= dict.fromkeys(("store_misses_l1", "store_misses_l2", "store_misses_l3"), "stores")
WHOLES |= {"branch_misses": "branches"}
"""Metrics that count a part of another."""


@dataclass(frozen=True)
class Functions:
    """Functions of s series.

    Attributes
    ----------
    fitted : Fitted
        Found by the search, for all series.
    levels : Levels or None
        Of all series, where one parameter took two values.
    neighbours : Neighbours or None
        Of the series that follow the process grid.
    """

    fitted: Fitted
    levels: Levels | None = None
    neighbours: Neighbours | None = None

    @property
    def rows(self) -> dict[tuple[str, str], int]:
        """Index of each series by kernel and metric."""
        return {key: i for i, key in enumerate(zip(self.fitted.kernels, self.fitted.metrics, strict=True))}

    def predict(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast every series at `points` (k, m); see :meth:`ranksight.model.fitted.Fitted.predict`."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        answer = self.fitted.predict(points, level)
        if self.levels is not None:
            given = self.levels.predict(points, level)
            low, high = self.levels.levels
            at = points[:, self.levels.parameters.index(self.levels.parameter)]
            # Beyond its two values the search has chosen among forms that it could not tell apart.
            beyond = ((at < low) | (at > high))[None, :] & (given.status != forecast.NO_DATA)
            better = beyond | ((answer.status != forecast.OK) & (given.status == forecast.OK))
            answer = choose(answer, given, np.arange(len(self.fitted)), better)
        if self.neighbours is not None:
            rows = self.rows
            index = np.array([rows[key] for key in zip(self.neighbours.kernels, self.neighbours.metrics, strict=True)])
            given = self.neighbours.predict(points, level)
            answer = choose(answer, given, index, np.ones((len(index), len(points)), dtype=bool))
        return self._limited(answer)

    def _limited(self, answer: Forecast) -> Forecast:
        """No part exceeds its whole: loads that a level serves stay within the kernel's loads, misses within stores."""
        rows = self.rows
        pairs = [
            (row, rows[kernel, WHOLES[name]])
            for (kernel, name), row in rows.items()
            if (kernel, WHOLES.get(name)) in rows
        ]
        if not pairs:
            return answer
        part, of = (np.array(column) for column in zip(*pairs, strict=True))
        sound = answer.status[of] == forecast.OK
        arrays: dict[str, Any] = {}
        for name in ("value", "lower", "upper"):
            array = np.array(getattr(answer, name))
            most = getattr(answer, "value" if name == "value" else "upper")[of]
            array[part] = np.where(sound & (array[part] > most), most, array[part])
            arrays[name] = array
        return replace(answer, **arrays)

    def formula(self, i: int) -> str:
        """What is known of series `i`, as people read it."""
        key = (self.fitted.kernels[i], self.fitted.metrics[i])
        if self.neighbours is not None:
            for at, other in enumerate(zip(self.neighbours.kernels, self.neighbours.metrics, strict=True)):
                if other == key:
                    return self.neighbours.formula(at)
        return self.fitted.formula(i) if self.levels is None else self.levels.formula(i)

    def structures(self) -> dict[str, Any]:
        """The structures as plain data, for :meth:`with_structures`."""
        return {
            name: given.to_dict()
            for name, given in (("levels", self.levels), ("neighbours", self.neighbours))
            if given is not None
        }

    @classmethod
    def with_structures(cls, fitted: Fitted, content: Mapping[str, Any]) -> Functions:
        """Rebuild from :meth:`structures`; damaged content raises InputError."""
        levels = Levels.from_dict(content["levels"]) if "levels" in content else None
        neighbours = Neighbours.from_dict(content["neighbours"]) if "neighbours" in content else None
        functions = cls(fitted, levels, neighbours)
        functions._check()
        return functions

    def _check(self) -> None:
        from ranksight.errors import InputError

        mine = (self.fitted.parameters, self.fitted.kernels, self.fitted.metrics)
        other = self.levels
        if other is not None and (other.parameters, other.kernels, other.metrics) != mine:
            raise InputError("'levels' does not fit the functions", "fit the model again")
        law = self.neighbours
        if law is not None and (
            law.parameters != self.fitted.parameters
            or not set(zip(law.kernels, law.metrics, strict=True)) <= set(self.rows)
        ):
            raise InputError("'neighbours' does not fit the functions", "fit the model again")


def choose(base: Forecast, given: Forecast, index: NDArray[np.intp], where: NDArray[np.bool_]) -> Forecast:
    """`base` with its rows `index` taken from `given` (one row for each) at the configurations `where` holds."""
    arrays: dict[str, Any] = {}
    for name in ARRAYS:
        array = np.array(getattr(base, name), dtype=object if name == "reason" else None)
        array[index] = np.where(where, getattr(given, name), array[index])
        arrays[name] = array
    return Forecast(level=base.level, **arrays)
