"""What laws are asked: configurations, the functions of all series there, and what the laws learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.model.kernel_time.counted import Counted, Times
from ranksight.model.laws.fits import Fits
from ranksight.model.laws.law import CONSTANT_CPI, COUNTED, LawTimes, answerable, checked, registered
from ranksight.model.quantity import Quantity
from ranksight.model.resource.equation import Parts, Resources
from ranksight.model.uncertainty.forecast import Forecast

Slowest = Callable[[tuple[str, ...]], tuple[Array, Array]]
"""Of kernels, slowest over mean rank and the standard deviation of its logarithm, (K, k) each."""


@dataclass(frozen=True)
class Asked:
    """Configurations at which laws predict kernels' times."""

    parameters: tuple[str, ...]
    points: Array  # (k, m)
    rows: Mapping[tuple[str, str], int]  # of (kernel, metric): the rows of :attr:`functions` and :attr:`counts`
    functions: Forecast  # every series there, by its function
    counts: Forecast  # the same where counts are taken: of the busiest rank, where work comes in whole units
    work_points: Array  # (k, m): those configurations
    fits: Fits
    slowest: Slowest | None = None  # where times are those of slowest ranks and cycles are means

    @property
    def timed(self) -> tuple[str, ...]:
        """The kernels with a time."""
        return tuple(kernel for kernel, name in self.rows if name == "time")

    def values(self, metric: str, kernels: tuple[str, ...]) -> Quantity:
        """A metric of some kernels by its functions, (K, k); NaN where there is none."""
        return self.counts.quantity(np.array([self.rows.get((kernel, metric), -1) for kernel in kernels]))

    @cached_property
    def counted(self) -> Times:
        """Times by the counted equation and the cost per unit of work, which was learned."""
        learned: Counted = self.fits.by(COUNTED)
        return learned.at(self.points, self.counts, self.rows, self.work_points)

    @cached_property
    def parts(self) -> Parts:
        """Times by the equation of constant CPI, which was learned, of slowest ranks where times are those."""
        learned: Resources = self.fits.by(CONSTANT_CPI)
        result = learned.parts(self.work_points, self.counts, self.rows)
        if self.slowest is None or not learned.averaged.any():
            return result
        ratio, deviation = self.slowest(learned.kernels)
        averaged = learned.averaged[:, None]
        return result.times(np.where(averaged, ratio, 1.0), np.where(averaged, deviation, 0.0))

    def predicted(self) -> dict[str, LawTimes]:
        """What every registered law predicts, by name."""
        timed, result = {*self.timed, WHOLE}, {}
        for name, law in registered().items():
            learned = self.fits.by(name)
            if learned is None and law.kind is not None:
                continue
            with answerable(name, law, "at"):
                times = law.at(learned, self)
                if times is not None:
                    known = timed if learned is None else {*timed, *learned.kernels}
                    result[name] = checked(name, times, known, len(self.points))
        return result
