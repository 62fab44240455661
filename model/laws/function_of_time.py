"""The function of a kernel's measured times alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ranksight.model.laws.law import FUNCTION, LAWS, Law, LawTimes
from ranksight.model.laws.view import Asked
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.rows import rows_of


class FunctionOfTime(Law):
    """A sum of terms of the parameters."""

    prior: ClassVar[float] = 0.04
    needs: ClassVar[str] = "a time"
    formula: ClassVar[str] = "T = sum_j c_j t_j(parameters)"
    source: ClassVar[str] = "docs/extrapolation.md"

    def at(self, learned: Any, asked: Asked) -> LawTimes | None:
        """The functions of the series of times, where they are not insufficient."""
        kernels = asked.timed
        if not kernels:
            return None
        of_times = rows_of(asked.functions, np.array([asked.rows[kernel, "time"] for kernel in kernels], dtype=np.intp))
        time = of_times.quantity()
        answers = np.isfinite(time.centre) & ~np.isin(of_times.status, forecast.INSUFFICIENT)
        return LawTimes(kernels, time, answers, ("",) * len(kernels))


LAWS.register(FUNCTION)(FunctionOfTime())
