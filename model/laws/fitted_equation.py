"""The equation with CPI_exec and BF_mem fitted to cycles or times, where no counter of stalls divides them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.model.kernel_time.counted import Counted
from ranksight.model.laws.cost_per_work import CostPerWork
from ranksight.model.laws.law import FITTED, LAWS, LawTimes
from ranksight.model.laws.view import Asked
from ranksight.model.resource.equation import LEVELS


class FittedEquation(CostPerWork):
    """Time is a cost per unit of work, which is instructions and the cycles that loads of each level wait."""

    prior: ClassVar[float] = 0.4
    needs: ClassVar[str] = "a time, instructions and loads by level at 3 configurations, a platform"
    formula: ClassVar[str] = "T = r(u) (i CPI_exec + BF_mem sum_l n_l l_l) / f, 0 <= BF_mem <= 1"
    source: ClassVar[str] = "Ding et al. 2018, equation 1, with its rates fitted; docs/resource-model.md"
    gives_way: ClassVar[bool] = False

    def at(self, learned: Counted, asked: Asked) -> LawTimes | None:
        """Times of the kernels whose loads were counted and whose stalls were not.

        Runs within one memory domain do not show what of their cycles, and of their clock, goes on with further ones:
        there the law has no parts, and gives way to those that count what a kernel does.
        """
        fitted = asked.counted.fitted
        if fitted is None:
            return None
        kernels = tuple(learned.kernels[row] for row in fitted.rows)
        answers = np.isfinite(fitted.time.centre)
        levels = dict(zip(LEVELS, fitted.levels, strict=True))
        seconds = {"execution": fitted.execution, "contention": fitted.contention, **levels}
        parts = {name: np.where(learned.where.spreads(asked.points), np.nan, part) for name, part in seconds.items()}
        return LawTimes(kernels, fitted.time, answers, ("",) * len(kernels), parts)


LAWS.register(FITTED)(FittedEquation())
