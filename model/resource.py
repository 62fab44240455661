"""The resource model of a kernel: its time from instructions, loads per level, and how far memory holds it up.

With c cycles, i instructions, s stall cycles, n_l loads served by level l of latency l_l (means per rank) and clock f:

    T_exec = (c - s) / f = i CPI_exec / f,     T_mem = sum_l n_l l_l / f,     BF_mem = s / sum_l n_l l_l,
    T = T_exec + BF_mem T_mem

so that T = c / f at every configuration measured (Ding et al. 2018, equations 1 to 3, with the stalls taken out of the
CPI: read literally, equation 1 counts them twice). The parts are modelled apart, the counts exactly where they are
deterministic, and put together where a prediction is asked for.

Where no stalls were counted, a kernel's CPI without stalls is its CPI where memory asks least of it (Panadero et al.,
minimum CPI); where no cycles were, cycles are time x clock. The model says which it used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.model import forecast
from ranksight.model.fitted import Fitted
from ranksight.model.fitting import fit_series
from ranksight.model.forecast import Forecast
from ranksight.model.levels import Levels, fit_levels
from ranksight.model.reduction import reduce
from ranksight.model.series import Series

Array = NDArray[np.float64]

LEVELS = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
"""Metrics of the loads that each level serves, nearest first."""
CALM = 0.25
"""Share of the configurations, those where memory asks least per instruction, that tell the CPI without stalls."""
RATIO = "bf_mem"


@dataclass(frozen=True)
class Machine:
    """What the equation needs of a platform.

    Attributes
    ----------
    name : str
    frequency : float
        Clock under load in Hz.
    latencies : tuple of float
        Cycles of a load served by each of :data:`LEVELS`.
    """

    name: str
    frequency: float
    latencies: tuple[float, ...]

    @classmethod
    def of(cls, platform: Any) -> Machine:
        """Of a :class:`ranksight.platforms.Platform`; a machine without a third level has none to serve from."""
        frequency = float(platform.frequency)
        caches = [float(cache.latency) for cache in platform.caches][:3]
        memory = float(platform.memory.latency) * frequency
        return cls(str(platform.name), frequency, (*caches, *[memory] * (3 - len(caches)), memory))


@dataclass(frozen=True)
class Resources:
    """The equation of the kernels whose counters carry it.

    Attributes
    ----------
    machine : Machine
    kernels : tuple of str
        s kernels.
    cpi : (s,)
        Cycles per instruction without stalls.
    blocking : Fitted or Levels
        BF_mem of each kernel over the parameters.
    evidence : tuple of str
        What each kernel's cycles and stalls were.
    closure : float
        Largest relative difference of the equation from the time measured, over kernels and configurations; rounding.
    """

    machine: Machine
    kernels: tuple[str, ...]
    cpi: Array
    blocking: Fitted | Levels
    evidence: tuple[str, ...]
    closure: float

    def parts(self, points: Array, requirements: Forecast, rows: Mapping[tuple[str, str], int], level: float) -> Parts:
        """Time of each kernel at `points`, and what it is made of.

        Parameters
        ----------
        points : (k, m)
        requirements : Forecast
            Of the series that `rows` names by (kernel, metric).
        """
        f, latencies = self.machine.frequency, np.array(self.machine.latencies)
        take = {
            name: np.array([rows.get((kernel, name), -1) for kernel in self.kernels])
            for name in ("instructions", *LEVELS)
        }

        def of(name: str, which: str) -> Array:
            index = take[name]
            values = getattr(requirements, which)[index]
            return np.asarray(np.where(index[:, None] >= 0, values, 0.0), dtype=np.float64)

        blocking = self.blocking.predict(points, level)
        factor = blocking.value
        instructions = of("instructions", "value")
        execution = instructions * self.cpi[:, None] / f
        loads = np.stack([of(name, "value") for name in LEVELS], axis=2)
        # A level that the evidence cannot tell is left out only where it is a small part of the whole, see `carried`.
        memory = factor[:, :, None] * np.nan_to_num(loads) * latencies / f
        time = execution + memory.sum(axis=2)

        def spread(name: str, scale: Array) -> tuple[Array, Array]:
            middle = of(name, "value")
            down = np.nan_to_num(middle - of(name, "lower")) * np.abs(scale)
            up = np.nan_to_num(of(name, "upper") - middle) * np.abs(scale)
            return down, up

        sides = [spread("instructions", self.cpi[:, None] / f)]
        sides += [spread(name, factor * latency / f) for name, latency in zip(LEVELS, latencies, strict=True)]
        cycles = np.nan_to_num(loads) @ latencies / f
        sides.append(((factor - blocking.lower) * cycles, (blocking.upper - factor) * cycles))
        down, up = (np.sqrt(sum(side[at] ** 2 for side in sides)) for at in (0, 1))
        status, reason = self._judge(requirements, take, blocking, memory, time)
        time = np.where(time > 0, time, np.nan)
        # Errors of a positive sum: distances are kept, the lower end stays above zero.
        lower = time * np.exp(-down / np.where(time > 0, time, 1.0))
        return Parts(time, lower, time + up, execution, memory, status, reason, level)

    def _judge(
        self,
        requirements: Forecast,
        take: Mapping[str, NDArray[np.intp]],
        blocking: Forecast,
        memory: Array,
        time: Array,
    ) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
        """A part that is insufficient makes the time so when it holds more than a twentieth of it."""
        status = blocking.status.copy()
        reason = blocking.reason.astype(object)
        negligible = np.abs(memory.sum(axis=2)) < 0.05 * np.abs(time)
        status, reason = np.where(negligible, forecast.OK, status), np.where(negligible, "", reason)
        for at, name in enumerate(("instructions", *LEVELS)):
            index = take[name]
            bad = (requirements.status[index] != forecast.OK) & (index[:, None] >= 0)
            if at:
                with np.errstate(invalid="ignore"):
                    high = np.nan_to_num(requirements.upper[index], nan=0.0, posinf=np.inf)
                    middle = np.nan_to_num(requirements.value[index])
                    part = memory[:, :, at - 1] * np.where(middle > 0, high / np.where(middle > 0, middle, 1.0), 1.0)
                bad &= ~(np.abs(part) < 0.05 * np.abs(time))
            bad &= status == forecast.OK
            status = np.where(bad, requirements.status[index], status)
            reason = np.where(bad, [[f"{name}: {text}" for text in row] for row in requirements.reason[index]], reason)
        return status.astype(np.intp), reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "machine": [self.machine.name, self.machine.frequency, list(self.machine.latencies)],
            "kernels": list(self.kernels),
            "cpi": self.cpi.tolist(),
            "kind": "levels" if isinstance(self.blocking, Levels) else "fitted",
            "blocking": self.blocking.to_dict(),
            "evidence": list(self.evidence),
            "closure": self.closure,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Resources:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            name, frequency, latencies = content["machine"]
            machine = Machine(str(name), float(frequency), tuple(float(x) for x in latencies))
            kernels, evidence = tuple(map(str, content["kernels"])), tuple(map(str, content["evidence"]))
            cpi = np.array(content["cpi"], dtype=np.float64)
            blocking = (Levels if content["kind"] == "levels" else Fitted).from_dict(content["blocking"])
            closure = float(content["closure"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"'resources' is damaged: {error}", "fit the model again") from error
        if (
            len(machine.latencies) != len(LEVELS)
            or not machine.frequency > 0
            or cpi.shape != (len(kernels),)
            or blocking.kernels != kernels
            or len(evidence) != len(kernels)
            or not np.isfinite(cpi).all()
        ):
            raise InputError("'resources' does not fit together", "fit the model again")
        return cls(machine, kernels, cpi, blocking, evidence, closure)


@dataclass(frozen=True)
class Parts:
    """Times of s kernels at k configurations, in seconds per rank.

    Attributes
    ----------
    value, lower, upper : (s, k)
    execution : (s, k)
        T_exec.
    memory : (s, k, 4)
        BF_mem x loads x latency / clock, by level.
    status, reason : (s, k)
    """

    value: Array
    lower: Array
    upper: Array
    execution: Array
    memory: Array
    status: NDArray[np.intp]
    reason: NDArray[np.object_]
    level: float

    def forecast(self) -> Forecast:
        """The times as a forecast."""
        half = np.full(self.value.shape, 0.5)
        return Forecast(self.value, self.lower, self.upper, self.status, self.reason, half, half, self.level)


def fit_resources(
    series: Series, machine: Machine, over_repetitions: str = "median", **settings: Any
) -> Resources | None:
    """Set the equation up for every kernel that has instructions, loads per level, and time or cycles.

    Parameters
    ----------
    series : Series
        Means over ranks.
    machine : Machine
    over_repetitions : str
        How repetitions become one value.
    **settings
        Of :func:`ranksight.model.fitting.fit_series`.

    Returns
    -------
    Resources or None
        None where no kernel has the counters.
    """
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    values = reduce(series.values, over_repetitions, axis=2)
    f, latencies = machine.frequency, np.array(machine.latencies)
    kernels, cpis, factors, evidence, closures = [], [], [], [], [0.0]
    for kernel in dict.fromkeys(series.kernels):
        instructions = values[rows[kernel, "instructions"]] if (kernel, "instructions") in rows else None
        time_row = next((rows[kernel, name] for name in ("cycles", "time") if (kernel, name) in rows), None)
        served = [rows[kernel, name] for name in LEVELS if (kernel, name) in rows]
        if instructions is None or time_row is None or not served:
            continue
        cycles = values[time_row] * (f if series.metrics[time_row] == "time" else 1.0)
        waiting = sum(
            np.nan_to_num(values[rows[kernel, name]]) * latency
            for name, latency in zip(LEVELS, latencies, strict=True)
            if (kernel, name) in rows
        )
        known = (cycles > 0) & (instructions > 0) & (waiting > 0)
        if known.sum() < 2:
            continue
        if (kernel, "stall_cycles") in rows:
            stalls = values[rows[kernel, "stall_cycles"]]
            known &= np.isfinite(stalls)
            if known.sum() < 2:
                continue
            cpi = float(((cycles - stalls)[known]).sum() / instructions[known].sum())
            how = "stalls counted"
        else:
            cpi = _calm_cpi(cycles[known], instructions[known], waiting[known])
            stalls = cycles - instructions * cpi
            how = "stalls from the CPI where memory asks least"
        factor = np.where(known, (cycles - instructions * cpi) / np.where(known, waiting, 1.0), np.nan)
        closure = np.abs((instructions * cpi + factor * waiting) / cycles - 1)[known].max()
        kernels.append(kernel)
        cpis.append(cpi)
        factors.append(factor)
        closures.append(float(closure))
        evidence.append(f"{how}, cycles from {series.metrics[time_row]}")
    if not kernels:
        return None
    names = tuple(kernels)
    ratios = Series(series.parameters, series.points, np.array(factors)[:, :, None], names, (RATIO,) * len(names))
    blocking = fit_levels(ratios, **settings) or fit_series(ratios, **settings)
    return Resources(machine, names, np.array(cpis), blocking, tuple(evidence), max(closures))


def _calm_cpi(cycles: Array, instructions: Array, waiting: Array) -> float:
    """CPI over the configurations with the fewest memory cycles per instruction, weighed by their cycles."""
    order = np.argsort(waiting / instructions, kind="stable")
    calm = order[: max(1, int(np.ceil(CALM * len(order))))]
    return float(cycles[calm].sum() / instructions[calm].sum())
