"""The counted equation (:mod:`ranksight.model.kernel_time.counted`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.model.kernel_time.counted import Counted
from ranksight.model.laws.cost_per_work import CostPerWork
from ranksight.model.laws.law import COUNTED, LAWS, LawTimes
from ranksight.model.laws.together import BUSY
from ranksight.model.laws.view import Asked
from ranksight.model.resource.equation import LEVELS


class CountedEquation(CostPerWork):
    """Execution cycles and stall cycles, each with a rate of its own."""

    prior: ClassVar[float] = 0.5
    needs: ClassVar[str] = "instructions, cycles, stalls, loads by level, a platform"
    formula: ClassVar[str] = "T = i CPI_exec / f + BF_mem sum_l n_l l_l / f, T = c / f at every run"
    source: ClassVar[str] = "Ding et al. 2018, equation 1, with the stalls taken out of the CPI"
    counts: ClassVar[bool] = True
    shares: ClassVar[bool] = True
    gives_way: ClassVar[bool] = False

    def at(self, learned: Counted, asked: Asked) -> LawTimes | None:
        """Times of the kernels whose stalls were counted."""
        times = asked.counted
        split = learned.split[:, None] & np.isfinite(times.time.centre)
        if not split.any():
            return None
        levels = {name: times.levels[..., at] for at, name in enumerate(LEVELS)}
        loads = {name: times.loads[..., at] for at, name in enumerate(LEVELS)}
        kernels = learned.kernels
        return LawTimes(
            kernels,
            times.time,
            split,
            ("stalls counted",) * len(kernels),
            {"execution": times.execution, "contention": times.contention, **levels},
            {**loads, BUSY: times.busy},
        )


LAWS.register(COUNTED)(CountedEquation())
