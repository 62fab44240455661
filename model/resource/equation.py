"""The resource model of a kernel: its time from instructions, loads per level, and how far memory holds it up.

With c cycles, i instructions, s stall cycles, n_l loads served by level l of latency l_l (means per rank) and clock f:

    T_exec = (c - s) / f = i CPI_exec / f,     T_mem = sum_l n_l l_l / f,     BF_mem = s / sum_l n_l l_l,
    T = T_exec + BF_mem T_mem

so that T = c / f at every configuration measured (Ding et al. 2018, equation 1, with the stalls taken out of the
CPI: read literally, equation 1 counts them twice). The parts are modelled apart, the counts exactly where they are
deterministic, and put together where a prediction is asked for.

:mod:`ranksight.model.resource.blocking` describes how CPI and BF_mem follow from the counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Mask, log, ratio
from ranksight.core.metrics import LEVELS as LEVELS
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.plaindata import Row, Stored
from ranksight.model.quantity import TAIL, Quantity
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import INSUFFICIENT, OK, Forecast

COUNTED = "stalls counted"
"""How the evidence of a kernel begins whose stalls were counted."""
BY_CYCLES = "cycles from cycles"
"""How the evidence of a kernel ends whose cycles were counted."""
NEGLIGIBLE = 0.05
"""Part of a time up to which a level may serve loads that are not known."""


@dataclass(frozen=True)
class Machine(Row):
    """What the equation needs of a platform.

    `frequency`: clock under load in Hz. `latencies`: cycles of a load served by each of :data:`LEVELS`.
    """

    name: str
    frequency: float
    latencies: tuple[float, ...]

    def __bool__(self) -> bool:
        return bool(self.latencies)

    def at(self, frequency: float) -> Machine:
        """The same machine at another clock: caches go with it, memory does not."""
        *caches, memory = self.latencies
        return replace(self, frequency=frequency, latencies=(*caches, memory * frequency / self.frequency))

    @classmethod
    def of(cls, platform: Any) -> Machine:
        """Of a :class:`ranksight.platforms.Platform`; a machine without a third level has none to serve from."""
        frequency = float(platform.frequency)
        caches = [float(cache.latency) for cache in platform.caches][:3]
        memory = float(platform.memory.latency) * frequency
        return cls(str(platform.name), frequency, (*caches, *[memory] * (3 - len(caches)), memory))


NO_MACHINE = Machine("", 1.0, ())
"""Where no platform is known; times in cycles of one a second."""


@dataclass(frozen=True)
class Resources(Stored):
    """The equation of the kernels whose stalls were not counted, or were sampled."""

    machine: Machine
    kernels: tuple[str, ...]  # s kernels
    cpi: Array  # (s,): cycles per instruction without stalls
    factor: Array  # (s,): BF_mem as one number; where it is a function, its mean
    error: Array  # (s,): its standard error; where it is a function, its scatter
    seen: Array  # (s, 2): smallest and largest BF_mem at the measured configurations
    trend: Functions | None  # BF_mem over the parameters, of the kernels where it is a function
    evidence: tuple[str, ...]  # what each kernel's cycles and stalls were
    scale: float = 1.0
    """What brings the sum over kernels to the exact processor time, where the parts were sampled; 1 otherwise."""
    run_to_run: float = 0.0
    """Standard deviation of the logarithm of the exact processor time over that sum, from run to run; 0 where the parts
    were not sampled. A machine that others use has another pace at another time."""
    spread: Array = field(default_factory=lambda: np.zeros(0))  # (s,)
    """Standard deviation of the logarithm of a kernel's cycles per instruction, where that was not measured but is
    taken from the rest of the program; 0 where it was."""
    _sizes = "kernels:s cpi:s! factor:s! error:s! seen:s2 spread:s! evidence:s run_to_run:>=0"

    def __post_init__(self) -> None:
        if not len(self.spread):
            object.__setattr__(self, "spread", np.zeros(len(self.kernels)))

    def __bool__(self) -> bool:
        return bool(self.kernels)

    @property
    def counted(self) -> Mask:
        """Whether a kernel's stalls were counted, (s,)."""
        return np.array([text.startswith(COUNTED) for text in self.evidence], dtype=bool)

    @property
    def imputed(self) -> Mask:
        """Whether a kernel's pace is the program's, (s,)."""
        return self.spread > 0

    @property
    def averaged(self) -> Mask:
        """Whether the equation gives a kernel's time on those ranks whose cycles were counted, (s,)."""
        return np.array([text.endswith(BY_CYCLES) for text in self.evidence], dtype=bool)

    def parts(self, points: Array, counts: Forecast, rows: Mapping[tuple[str, str], int]) -> Parts:
        """Time of each kernel at `points` (k, m), and what it is made of.

        `counts`: requirements there, the series that `rows` names by (kernel, metric).
        """
        factor, *ends = self._blocking(points)
        index = np.array(
            [[rows.get((kernel, name), -1) for kernel in self.kernels] for name in ("instructions", *LEVELS, "loads")]
        )
        counted = (index >= 0)[..., None]
        value, lower, upper = (
            np.where(counted, getattr(counts, end)[index], 0.0) for end in ("value", "lower", "upper")
        )
        # No level serves more loads than the kernel has.
        most = np.where(counted[-1] & np.isfinite(upper[-1]), upper[-1], np.inf)
        upper[1:-1] = np.minimum(upper[1:-1], np.maximum(most, value[1:-1]))
        f, latencies = self.machine.frequency / self.scale, np.array(self.machine.latencies)[:, None, None]
        each = np.concatenate([np.broadcast_to(self.cpi[:, None], factor.shape)[None], factor * latencies]) / f
        seconds = each * value[:-1]
        seconds[1:] = np.nan_to_num(seconds[1:])
        waiting = (np.nan_to_num(value[1:-1]) * latencies / f).sum(axis=0)
        time = seconds.sum(axis=0)
        # What is not known matters where it may hold more than a small part of the time.
        unknown = counted[:-1] & np.isin(counts.status[index[:-1]], INSUFFICIENT)
        at_most = np.fmax(np.abs(each) * np.minimum(np.nan_to_num(upper[:-1]), 1e300), np.abs(seconds))
        unknown[1:] &= at_most[1:] >= NEGLIGIBLE * np.abs(time)
        z = TAIL
        jobs = z * np.hypot(priors.BETWEEN_JOBS, self.run_to_run) * np.nan_to_num(time)
        pace = z * self.spread[:, None]
        down, up = (
            np.sqrt(
                (np.nan_to_num(np.abs(each) * side[:-1]) ** 2).sum(axis=0)
                + ((end - factor) * waiting * z / TAIL) ** 2
                + jobs**2
                + (time * relative) ** 2
            )
            for side, end, relative in zip((value - lower, upper - value), ends, (pace, np.expm1(pace)), strict=True)
        )
        # Errors of a positive sum: distances are kept, the lower end stays above zero.
        spread = Quantity(log(np.where(time > 0, time, np.nan)), ratio(down, time) / z, np.log1p(ratio(up, time)) / z)
        return Parts(spread, np.asarray(~unknown.any(axis=0)), seconds[0], np.moveaxis(seconds[1:], 0, 2), waiting)

    def _blocking(self, points: Array) -> Array:
        """BF_mem of each kernel at `points` (k, m) and the ends of its 90 % interval, (3, s, k)."""
        reach = TAIL * self.error
        # No load takes less than no time.
        least = np.maximum(self.factor - reach, np.minimum(self.factor, 0.0))
        result = np.stack([self.factor, least, self.factor + reach])[..., None]
        result = result * np.ones(len(points))
        # A core waits no longer than its loads take, but for other stalls, which the measured ratios hold as well.
        most = np.maximum(self.seen[:, 1:], 1.0)
        if self.trend is None:
            return np.asarray(np.minimum(result, most))
        index = np.array([self.kernels.index(kernel) for kernel in self.trend.fitted.kernels])
        if self.trend.levels:
            # A ratio that two sizes show is carried beyond them as it was at the nearer one.
            points = np.array(points, dtype=np.float64)
            column = self.trend.levels.parameters.index(self.trend.levels.parameter)
            points[:, column] = np.clip(points[:, column], *self.trend.levels.levels)
        predicted = self.trend.predict(points)
        # What was measured bounds how far memory blocks. Where no trend is known, the mean is what is.
        low, high = self.seen[index, :1], self.seen[index, 1:]
        ends = np.clip(np.stack([predicted.value, predicted.lower, predicted.upper]), low, high)
        result[:, index] = np.where(predicted.status == OK, ends, result[:, index])
        return np.asarray(np.minimum(result, most))

    def _fits(self) -> bool:
        return (
            len(self.machine.latencies) == len(LEVELS)
            and self.machine.frequency > 0
            and 0.1 < self.scale < 10
            and (self.trend is None or set(self.trend.fitted.kernels) <= set(self.kernels))
            and bool(np.isfinite(self.seen[:, 0]).all())
        )


NO_RESOURCES = Resources(NO_MACHINE, (), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 2)), None, ())
"""Of a program without such kernels."""


@dataclass(frozen=True)
class Parts:
    """Times of s kernels at k configurations, in seconds per rank."""

    time: Quantity  # (s, k)
    answers: Mask  # (s, k): where enough is known of what they are made of
    execution: Array  # (s, k): T_exec
    memory: Array  # (s, k, 4): BF_mem x loads x latency / clock, by level
    waiting: Array  # (s, k): T_mem, without BF_mem

    def times(self, ratio: Array, deviation: Array) -> Parts:
        """All seconds times `ratio` (s, k), whose logarithm has the standard `deviation` (s, k)."""
        time = self.time.moved(np.log(ratio)).wider(deviation)
        return replace(
            self,
            time=time,
            execution=self.execution * ratio,
            memory=self.memory * ratio[:, :, None],
            waiting=self.waiting * ratio,
        )
