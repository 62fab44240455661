"""The cost of a unit of work: time as work times a rate that changes with work per rank and occupancy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.model.kernel_time.composition import NO_CACHES, Caches
from ranksight.model.kernel_time.counted import COUNTS, Counted
from ranksight.model.kernel_time.learn_counted import learn_counted
from ranksight.model.laws.law import COST, LAWS, PLACES, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.resource.counters import LINE


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


LAWS.register(COST)(CostPerWork())
