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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import LEVELS as LEVELS
from ranksight.model import priors
from ranksight.model.plaindata import Row, Stored
from ranksight.model.structure.functions import Functions, choose
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

COUNTED = "stalls counted"
"""How the evidence of a kernel begins whose stalls were counted."""
BY_CYCLES = "cycles from cycles"
"""How the evidence of a kernel ends whose cycles were counted."""
EQUATIONS = ("closed", "literal")
"""``closed`` takes the stalls out of the CPI, so that every measured time is met; ``literal`` is the paper's equation 1
as it is written, with the full CPI, which counts the stalls twice and is there to compare."""


@dataclass(frozen=True)
class Machine(Row):
    """What the equation needs of a platform.

    `frequency`: clock under load in Hz. `latencies`: cycles of a load served by each of :data:`LEVELS`.
    """

    name: str
    frequency: float
    latencies: tuple[float, ...]

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


@dataclass(frozen=True)
class Resources(Stored):
    """The equation of the kernels whose counters carry it."""

    machine: Machine
    kernels: tuple[str, ...]  # s kernels
    cpi: Array  # (s,): cycles per instruction without stalls
    factor: Array  # (s,): BF_mem as one number; where it is a function, its mean
    error: Array  # (s,): its standard error; where it is a function, its scatter
    seen: Array  # (s, 2): smallest and largest BF_mem at the measured configurations
    trend: Functions | None  # BF_mem over the parameters, of the kernels where it is a function
    evidence: tuple[str, ...]  # what each kernel's cycles and stalls were
    closure: float
    """Largest relative difference of the equation from the time measured, over kernels and configurations; rounding
    alone for the closed equation."""
    scale: float = 1.0
    """What brings the sum over kernels to the exact processor time, where the parts were sampled; 1 otherwise."""
    run_to_run: float = 0.0
    """Standard deviation of the logarithm of the exact processor time over that sum, from run to run; 0 where the parts
    were not sampled. A machine that others use has another pace at another time."""
    equation: str = "closed"  # one of :data:`EQUATIONS`
    spread: Array = field(default_factory=lambda: np.zeros(0))  # (s,)
    """Standard deviation of the logarithm of a kernel's cycles per instruction, where that was not measured but is
    taken from the rest of the program; 0 where it was."""
    means: bool = False  # whether counted cycles are means over ranks where times are those of the slowest rank

    def __post_init__(self) -> None:
        if not len(self.spread):
            object.__setattr__(self, "spread", np.zeros(len(self.kernels)))

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
        """Whether the equation gives a kernel's time on the mean rank and not on the slowest, (s,)."""
        return np.array([self.means and text.endswith(BY_CYCLES) for text in self.evidence], dtype=bool)

    def parts(self, points: Array, requirements: Forecast, rows: Mapping[tuple[str, str], int], level: float) -> Parts:
        """Time of each kernel at `points`, and what it is made of.

        `points` (k, m). `requirements`: of the series that `rows` names by (kernel, metric).
        """
        f, latencies = self.machine.frequency, np.array(self.machine.latencies)
        take = {
            name: np.array([rows.get((kernel, name), -1) for kernel in self.kernels])
            for name in ("instructions", "loads", *LEVELS)
        }

        def of(name: str, which: str) -> Array:
            index = take[name]
            values = getattr(requirements, which)[index]
            return np.asarray(np.where(index[:, None] >= 0, values, 0.0), dtype=np.float64)

        blocking = self.blocking(points, level)
        factor = blocking.value
        instructions = of("instructions", "value")
        f = f / self.scale
        execution = instructions * self.cpi[:, None] / f
        loads = np.stack([of(name, "value") for name in LEVELS], axis=2)
        # A level with insufficient data is left out only where it is a small part of the whole, see `carried`.
        memory = factor[:, :, None] * np.nan_to_num(loads) * latencies / f
        time = execution + memory.sum(axis=2)

        # No level serves more loads than the kernel has.
        every = of("loads", "upper")
        most = np.where((take["loads"][:, None] >= 0) & np.isfinite(every), every, np.inf)

        def spread(name: str, scale: Array) -> tuple[Array, Array]:
            middle, top = of(name, "value"), of(name, "upper")
            top = np.minimum(top, np.maximum(most, middle)) if name in LEVELS else top
            down = np.nan_to_num(middle - of(name, "lower")) * np.abs(scale)
            return down, np.nan_to_num(top - middle) * np.abs(scale)

        sides = [spread("instructions", self.cpi[:, None] / f)]
        sides += [spread(name, factor * latency / f) for name, latency in zip(LEVELS, latencies, strict=True)]
        cycles = np.nan_to_num(loads) @ latencies / f
        sides.append(((factor - blocking.lower) * cycles, (blocking.upper - factor) * cycles))
        quantile = float(special.ndtri((1 + level) / 2))
        jobs = quantile * np.hypot(priors.BETWEEN_JOBS, self.run_to_run) * np.nan_to_num(time)
        sides.append((jobs, jobs))
        reach = quantile * self.spread[:, None]
        sides.append((time * reach, time * np.expm1(reach)))
        down, up = (np.sqrt(sum(side[at] ** 2 for side in sides)) for at in (0, 1))
        # Runs differ by noise; a pace that is the program's and not the kernel's is no knowledge of its form.
        shares = [of(name, "form") for name in ("instructions", *LEVELS)]
        shares += [blocking.form, np.zeros_like(jobs), np.ones_like(jobs)]
        form = forecast.form_of(*(((low + high) ** 2, mine) for (low, high), mine in zip(sides, shares, strict=True)))
        # What each level may take at most: the upper end of its loads at the same factor.
        tops = np.stack([of(name, "upper") for name in LEVELS], axis=2)
        at_most = np.nan_to_num(np.abs(factor)[:, :, None] * np.minimum(np.nan_to_num(tops), 1e300)) * latencies / f
        status, reason = self._judge(requirements, take, blocking, memory, np.fmax(at_most, np.abs(memory)), time)
        time = np.where(time > 0, time, np.nan)
        # Errors of a positive sum: distances are kept, the lower end stays above zero.
        lower = time * np.exp(-down / np.where(time > 0, time, 1.0))
        return Parts(time, lower, time + up, execution, memory, status, reason, level, blocking, form)

    def blocking(self, points: Array, level: float) -> Forecast:
        """BF_mem of each kernel at `points` (k, m)."""
        shape = (len(self.kernels), len(points))
        reach = float(special.ndtri((1 + level) / 2)) * self.error[:, None]
        value = np.broadcast_to(self.factor[:, None], shape)
        # The standard error of a constant: its form is taken for known.
        steady = Forecast.settled(value, value - reach, value + reach, level)
        if self.trend is None:
            return steady
        index = np.array([self.kernels.index(kernel) for kernel in self.trend.fitted.kernels])
        if self.trend.levels is not None:
            # A ratio that two sizes show is carried beyond them as it was at the nearer one.
            points = np.array(points, dtype=np.float64)
            column = self.trend.levels.parameters.index(self.trend.levels.parameter)
            points[:, column] = np.clip(points[:, column], *self.trend.levels.levels)
        given = _within(self.trend.predict(points, level), self.seen[index])
        # Where no trend can be fitted, the factors measured are what is known: their mean, and how they scatter.
        return choose(steady, given, index, given.status == forecast.OK)

    def _judge(
        self,
        requirements: Forecast,
        take: Mapping[str, Index],
        blocking: Forecast,
        memory: Array,
        most: Array,
        time: Array,
    ) -> tuple[Index, NDArray[np.object_]]:
        """A part that is insufficient makes the time so when it holds more than a twentieth of it."""
        negligible = np.abs(memory.sum(axis=2)) < 0.05 * np.abs(time)
        status = np.where(negligible, forecast.OK, blocking.status)
        reason = np.where(negligible, "", blocking.reason).astype(object)
        for at, name in enumerate(("instructions", *LEVELS)):
            index = take[name]
            bad = (requirements.status[index] != forecast.OK) & (index[:, None] >= 0)
            if at:
                bad &= ~(most[:, :, at - 1] < 0.05 * np.abs(time))
            bad &= status == forecast.OK
            status = np.where(bad, requirements.status[index], status)
            reason[bad] = [f"{name}: {text}" for text in requirements.reason[index][bad]]
        far = self.imputed[:, None] & (status == forecast.OK)
        reason = np.where(far, forecast.REASONS[forecast.IMPUTED], reason)
        return np.where(far, forecast.IMPUTED, status).astype(np.intp), reason

    def _fits(self) -> bool:
        kernels = len(self.kernels)
        columns = (self.cpi, self.factor, self.error, self.seen[:, 0], self.spread)
        return (
            len(self.machine.latencies) == len(LEVELS)
            and self.machine.frequency > 0
            and 0.1 < self.scale < 10
            and 0 <= self.run_to_run < 10
            and self.equation in EQUATIONS
            and self.seen.shape == (kernels, 2)
            and all(column.shape == (kernels,) and bool(np.isfinite(column).all()) for column in columns)
            and (self.trend is None or set(self.trend.fitted.kernels) <= set(self.kernels))
            and len(self.evidence) == kernels
        )


@dataclass(frozen=True)
class Parts:
    """Times of s kernels at k configurations, in seconds per rank."""

    value: Array  # (s, k)
    lower: Array  # (s, k)
    upper: Array  # (s, k)
    execution: Array  # (s, k): T_exec
    memory: Array  # (s, k, 4): BF_mem x loads x latency / clock, by level
    status: Index  # (s, k)
    reason: NDArray[Any]  # (s, k)
    level: float
    blocking: Forecast  # BF_mem
    form: Array  # (s, k): share of the variance that comes from not knowing the form of requirements and factors

    def times(self, ratio: Array, reach: Array) -> Parts:
        """All seconds times `ratio` (s, k), whose logarithm's interval reaches as far as `reach` (s, k) either way."""
        value, scale = self.value * ratio, np.where(self.value > 0, self.value, 1.0)
        down, up = np.log(scale / self.lower), np.log(self.upper / scale)
        return replace(
            self,
            value=value,
            lower=value * np.exp(-np.hypot(down, reach)),
            upper=value * np.exp(np.hypot(up, reach)),
            execution=self.execution * ratio,
            memory=self.memory * ratio[:, :, None],
        )

    def forecast(self) -> Forecast:
        """The times as a forecast."""
        ends, form = (self.value, self.lower, self.upper), self.form
        return Forecast(*ends, self.status, self.reason, form, self.level)


def _within(given: Forecast, seen: Array) -> Forecast:
    """A ratio's forecast, kept to what was measured of it: how far memory blocks is bounded, and no trend is not."""
    low, high = seen[:, :1], seen[:, 1:]
    return replace(given, **{name: np.clip(getattr(given, name), low, high) for name in ("value", "lower", "upper")})
