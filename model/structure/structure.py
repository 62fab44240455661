"""What a structure of the counts is that functions found by the search do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksight.core.arrays import Array
from ranksight.model.plaindata import Stored
from ranksight.model.series.keyed import Keyed
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    from ranksight.model.structure.functions import Functions


class Structure(Stored, Keyed):
    """What is known of some series."""

    parameters: tuple[str, ...]  # of the model

    def improved(self, answer: Forecast, functions: Functions, points: Array) -> Forecast:
        """The `answer` of all series of `functions` at `points` (k, m), with these from here where it is the better
        predictor."""
        raise NotImplementedError

    def describes(self, functions: Functions) -> bool:
        """Whether it is of series that these functions have."""
        return self.parameters == functions.fitted.parameters and set(self.keys) <= set(functions.rows)
