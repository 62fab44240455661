"""What a structure of the counts is that functions found by the search do not have."""

from __future__ import annotations

from collections.abc import Collection

from ranksight.core.arrays import Array
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Keyed
from ranksight.model.uncertainty.forecast import Forecast

Key = tuple[str, str]
"""Kernel and metric of a series."""


class Structure(Stored, Keyed):
    """What is known of some series; false where it is known of none."""

    parameters: tuple[str, ...]  # of the model

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """The `answer` of all series at `points` (k, m), with these from here where it is the better predictor.

        `fitted`: functions of all series. `exact`: those that follow the process grid to rounding.
        """
        raise NotImplementedError

    def describes(self, fitted: Fitted) -> bool:
        """Whether it is of series that are fitted."""
        return self.parameters == fitted.parameters and set(self.keys) <= set(fitted.rows)
