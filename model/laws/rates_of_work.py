"""Laws by rates of work: its cost, and the equation with counted or with fitted stalls.

They learn the same (:mod:`ranksight.model.kernel_time.counted`), of which each answers with another part.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.model.kernel_time.composition import NO_CACHES, Caches
from ranksight.model.kernel_time.counted import COUNTS, Counted
from ranksight.model.kernel_time.learn_counted import learn_counted
from ranksight.model.laws.law import COST, COUNTED, FITTED, LAWS, PLACES, Law, LawTimes
from ranksight.model.laws.together import BUSY
from ranksight.model.laws.view import Asked, View
from ranksight.model.resource.counters import LINE
from ranksight.model.resource.equation import LEVELS


class CostPerWork(Law):
    """Time is what a unit of work costs, times the work."""

    prior: ClassVar[float] = 0.04
    needs: ClassVar[str] = "a time at 3 configurations; counts, or a platform"
    formula: ClassVar[str] = "T = w r(u) / f, w instructions, flops, or work per rank"
    source: ClassVar[str] = "docs/resource-model.md"
    kind: ClassVar[type[Counted]] = Counted
    part: ClassVar[str] = "counted"
    asks: ClassVar[tuple[str, ...]] = COUNTS
    learns_from: ClassVar[tuple[str, ...]] = (*COUNTS, PLACES)
    gives_way: ClassVar[bool] = True

    def fit(self, view: View) -> Counted | None:
        """Rates of all kernels. A cost per unit of work that nobody counted is a function of the parameters, which is
        a law already."""
        series, machine, caches, line = view.of_means, view.machine, NO_CACHES, LINE
        if machine:
            caches, line = Caches.of(view.platform, np.array(machine.latencies)), float(view.platform.line)
        return learn_counted(series, machine, caches, view.domains, line)

    def at(self, learned: Counted, asked: Asked) -> LawTimes | None:
        """Times by the rates of all kinds of work."""
        total, kernels = asked.counted.total, learned.kernels
        return LawTimes(kernels, total, np.isfinite(total.centre), ("",) * len(kernels))


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


LAWS.register(COST)(CostPerWork())
LAWS.register(COUNTED)(CountedEquation())
LAWS.register(FITTED)(FittedEquation())
