"""The terms of the resource equation from what was counted: CPI without stalls, and the memory blocking factor.

Where no stalls were counted, a kernel's CPI without stalls is its CPI where memory asks least of it (Panadero et al.,
minimum CPI); where no cycles were, cycles are time x clock. The model says which it used.

A factor from sampled times scatters as the samples do. Where all configurations agree with one factor within that
(chi-squared test), it is that one, with its standard error; only where they do not is it a function of the parameters.
Samples are Poisson counts: a configuration in which none fell on a kernel counts as one with none, and a kernel with
few samples is drawn to the cycles per instruction of the whole program (:func:`shrinkage`). Cycles that were sampled
are treated as times are; sampled stalls and loads add the scatter of their samples to the factor's error.

Where cycles and times of a kernel were counted, the equation has to meet the times. A kernel has a clock of its own
where vector units slow it; cycles that are another part of the time at each configuration, or a small one, are not what
it takes: it waits off the processor, for files or messages, and its times are predicted without the equation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.resource.counters import unsampled_spread
from ranksight.model.resource.equation import BY_CYCLES, COUNTED, LEVELS, Machine, Resources
from ranksight.model.series.computation import BLOCKING
from ranksight.model.series.poisson import HALF
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.levels import fit_levels

CALM = 0.25
"""Share of the configurations, those where memory asks least per instruction, that give the CPI without stalls."""
ENOUGH = 400
"""Samples with which a sampled CPI is known to a twentieth."""
UNSEEN = "instructions at the program's mean CPI, as no sample fell on the kernel"
"""Evidence of a kernel whose time is that of :mod:`ranksight.model.resource.counters`."""
EQUAL = 2.0
"""Standard errors within which two sampled speeds are one."""
OFF = 2.0
"""Times its cycles from which a kernel's time is waiting off the processor."""
APART = 1.25
"""Factor between times and cycles, over its median, from which on times do not go with cycles."""
MOST = 0.9
"""Part of the configurations at which they have to."""
DOUBT = 0.01
"""Probability of samples scattering so much by chance, below which one factor for all configurations is given up."""
FEWEST = 3
"""Configurations that show how a factor scatters."""


def fit_resources(
    series: Series,
    machine: Machine,
    samples: Mapping[str, Array] | None = None,
    over_repetitions: str = "median",
    slowest: Mapping[str, Array] | None = None,
    **settings: Any,
) -> Resources | None:
    """Set the equation up for every kernel that has instructions, loads per level, and time or cycles.

    None where no kernel has the counters.

    Parameters
    ----------
    series : Series
        Means over ranks.
    samples : mapping of kernel to (n,), optional
        Samples behind each time, for kernels whose time was sampled.
    over_repetitions : str
        How repetitions become one value.
    slowest : mapping of kernel to (n,), optional
        Slowest over mean rank of the uneven kernels, where times are those of the slowest rank and cycles are means.
    **settings
        Of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    parts = _kernels(series, machine, samples or {}, over_repetitions, slowest or {})
    if not parts:
        return None
    return Resources(
        machine,
        tuple(part.name for part in parts),
        np.array([part.cpi for part in parts]),
        np.array([part.factor for part in parts]),
        np.array([part.error for part in parts]),
        np.array([[np.nanmin(part.factors), np.nanmax(part.factors)] for part in parts]),
        _trend(series, [part for part in parts if not part.steady], **settings),
        tuple(part.evidence for part in parts),
        spread=np.array([part.spread for part in parts]),
    )


def _kernels(
    series: Series,
    machine: Machine,
    samples: Mapping[str, Array],
    over_repetitions: str,
    slowest: Mapping[str, Array],
) -> list[_Kernel]:
    """Factors of the kernels that have the counters; for the parameters see :func:`fit_resources`."""
    rows, parts = series.rows, []
    values = reduce(series.values, over_repetitions, axis=2)
    number, sampled = series.samples, series.sampled
    rate, drawn = _sampling(values, rows, samples, "time")
    cycled = {
        kernel: np.nan_to_num(number[row])
        for (kernel, name), row in rows.items()
        if name == "cycles" and kernel != WHOLE and sampled[row]
    }
    cycle_rate, cycle_factors = _sampling(values, rows, cycled, "cycles")
    for kernel in dict.fromkeys(series.kernels):
        counted = {name: values[rows[kernel, name]] for name in _NEEDED if (kernel, name) in rows}
        few = {name: number[rows[kernel, name]] for name in counted}
        if kernel in drawn and "time" in counted:
            counted["time"] = counted["time"] * drawn[kernel]
        if kernel in cycle_factors:
            counted["cycles"] = counted["cycles"] * cycle_factors[kernel]
        by_time = "cycles" not in counted
        if not (by_time or kernel in cycle_factors or kernel in drawn):
            own_clock = _seconds_a_cycle(counted, machine, slowest.get(kernel, 1.0))
            if own_clock is None:
                continue
            counted |= {name: counted[name] * own_clock for name in ("cycles", "stall_cycles") if name in counted}
        each = (rate / machine.frequency if kernel in drawn else None) if by_time else cycle_rate
        part = _kernel(kernel, counted, machine, each if by_time or kernel in cycle_factors else None, few)
        if part is None:
            continue
        if kernel in samples and kernel not in drawn:
            part = replace(part, evidence=UNSEEN, spread=unsampled_spread())
        parts.append(part)
    return parts


_NEEDED = ("instructions", "time", "cycles", "stall_cycles", *LEVELS)


@dataclass(frozen=True)
class _Kernel:
    """One kernel's equation: BF_mem at every configuration, and as one number."""

    name: str
    cpi: float
    factors: Array
    factor: float
    error: float
    steady: bool
    evidence: str
    spread: float = 0.0


def _trend(series: Series, trending: list[_Kernel], **settings: Any) -> Functions | None:
    """Factors that are not one over all configurations, as functions of the parameters."""
    if not trending:
        return None
    ratios = Series(
        series.parameters,
        series.points,
        np.array([part.factors for part in trending])[:, :, None],
        tuple(part.name for part in trending),
        (BLOCKING,) * len(trending),
    )
    return Functions(fit_varied(ratios, **settings), fit_levels(ratios, **settings))


def shrinkage(count: Array, expected: Array) -> Array:
    """What sampled times are multiplied by, kernel by kernel, so that few samples do not give an absurd speed.

    theta = cycles per instruction over the program's is taken as log-normal among kernels, and log(N + 1/2) known to 1
    / sqrt(N + 1/2); the answer is the ratio of theta's posterior median to N / E. It goes to 1 with many samples.
    `count` (s,): samples N of each kernel. `expected` (s,): samples E that it would have at the program's cycles per
    instruction.
    """
    theta = np.log((count + 0.5) / (expected + 0.5))
    known = (count >= 30) & (expected >= 1)
    least, usual, most = priors.CPI_SPREAD
    spread = float(np.clip(np.sqrt(np.mean(theta[known] ** 2)), least, most)) if known.sum() >= 5 else usual
    weight = spread**2 / (spread**2 + 1 / (count + 0.5))
    return np.asarray(np.exp(weight * theta) * expected / np.maximum(count, 1e-300))


def _seconds_a_cycle(counted: Mapping[str, Array], machine: Machine, ratio: Array | float) -> float | None:
    """What a kernel takes for a cycle over what the machine does: 1 without a time; None where times go another way.

    `ratio` is what brings mean cycles to the slowest rank.
    """
    if "time" not in counted:
        return 1.0
    cycles = counted["cycles"] * ratio
    known = (counted["time"] > 0) & (cycles > 0)
    if not known.any():
        return 1.0
    each = np.log(counted["time"][known] * machine.frequency / cycles[known])
    usual = float(np.median(each))
    distance = float(np.quantile(np.abs(each - usual), MOST))
    return float(np.exp(usual)) if abs(usual) < np.log(OFF) and distance < np.log(APART) else None


def _sampling(
    values: Array, rows: Mapping[tuple[str, str], int], samples: Mapping[str, Array], timer: str
) -> tuple[Array, dict[str, float]]:
    """Samples a second, or a cycle, of a rank at each configuration, and :func:`shrinkage` of each sampled and counted
    kernel; `timer` is ``time`` or ``cycles``."""
    kernels = [kernel for kernel in samples if (kernel, timer) in rows and (kernel, "instructions") in rows]
    if not kernels:
        return np.ones(values.shape[1]), {}
    counts = np.array([samples[kernel] for kernel in kernels])
    times, instructions = (
        np.nan_to_num(values[[rows[kernel, name] for kernel in kernels]]) for name in (timer, "instructions")
    )
    summed = times.sum(axis=0)
    rate = np.where(summed > 0, counts.sum(axis=0) / np.where(summed > 0, summed, 1.0), 0.0)
    every = instructions.sum(axis=0)
    share = np.divide(instructions, every, out=np.zeros_like(instructions), where=every > 0)
    expected = (share * counts.sum(axis=0)).sum(axis=1)
    known = counts.sum(axis=1) > 0
    drawn = shrinkage(counts.sum(axis=1), expected)
    return rate, {kernel: float(drawn[at]) for at, kernel in enumerate(kernels) if known[at]}


def _kernel(
    name: str, counted: Mapping[str, Array], machine: Machine, rate: Array | None, samples: Mapping[str, Array]
) -> _Kernel | None:
    """One kernel's equation; `rate` (n,) holds the samples per cycle at each configuration, where times or cycles are
    sampled, and `samples` those behind each of what was `counted`."""
    source = "cycles" if "cycles" in counted else "time"
    served = [level for level in LEVELS if level in counted]
    if "instructions" not in counted or source not in counted or not served:
        return None
    instructions = counted["instructions"]
    cycles = counted[source] * (machine.frequency if source == "time" else 1.0)
    latency = dict(zip(LEVELS, machine.latencies, strict=True))
    waiting = np.sum([np.nan_to_num(counted[level]) * latency[level] for level in served], axis=0)
    stalls = counted.get("stall_cycles")
    known = (cycles > 0) & (instructions > 0) & (waiting > 0)
    if rate is not None:
        cycles = np.nan_to_num(cycles)
        known = (rate > 0) & (instructions > 0) & (waiting > 0)
    if stalls is not None:
        known &= np.isfinite(stalls)
    if not known.any() or not cycles[known].any():
        return None
    # A Poisson count's variance is its mean, so that all samples have equal weight, and cycles that of their samples.
    weight = np.where(known, 1.0 if rate is None else rate, 0.0)
    if stalls is not None:
        cpi = float((cycles - stalls)[known].sum() / instructions[known].sum())
        how = COUNTED
    else:
        cpi = _calm_cpi(cycles[known], instructions[known], waiting[known], weight[known], rate is not None)
        how = "stalls are cycles beyond the CPI of the run that waits least for memory"
    excess = cycles - instructions * cpi
    total = (weight * waiting)[known].sum()
    factor = float((weight * excess)[known].sum() / total)
    factors = np.where(known, excess / np.where(known, waiting, 1.0), np.nan)
    error = float(np.sqrt(((weight * waiting)[known] * (factors[known] - factor) ** 2).sum() / total))
    steady = bool(known.sum() < FEWEST)
    factors = np.maximum(factors, 0.0)
    if factor < 0:  # no more cycles where memory asks more: all of the time is execution
        cpi, factor = float((weight * cycles)[known].sum() / (weight * instructions)[known].sum()), 0.0
    if rate is not None:
        expected = (weight * (instructions * cpi + factor * waiting))[known]
        count = (weight * cycles)[known]
        chi = float(((count - expected) ** 2 / np.maximum(expected, 0.5)).sum())
        steady = steady or bool(special.chdtrc(max(int(known.sum()) - 1, 1), chi) > DOUBT)
        if steady:
            error = float(np.sqrt(expected.sum()) / total)
            how += "; one blocking factor, within the sampling error"
    error = float(np.hypot(error, factor * _scatter(counted, samples, latency, known)))
    taken_from = BY_CYCLES if source == "cycles" else "cycles from time"
    return _Kernel(name, cpi, factors, factor, error, steady, f"{how}; {taken_from}")


def _scatter(
    counted: Mapping[str, Array], samples: Mapping[str, Array], latency: Mapping[str, float], known: Mask
) -> float:
    """Relative standard error of a factor from the samples of its stalls and loads."""
    variance = 0.0
    for names, each in ((("stall_cycles",), {"stall_cycles": 1.0}), (LEVELS, latency)):
        counted_names = [name for name in names if name in counted]
        size = {name: np.nan_to_num(counted[name][known]) * each[name] for name in counted_names}
        total = sum(float(x.sum()) for x in size.values())
        squares = sum(
            float((size[name] ** 2 / np.fmax(np.nan_to_num(samples[name][known], nan=np.inf), HALF)).sum())
            for name in counted_names
        )
        variance += squares / total**2 if total > 0 else 0.0
    return float(np.sqrt(variance))


def _calm_cpi(cycles: Array, instructions: Array, waiting: Array, weight: Array, sampled: bool) -> float:
    """CPI over the configurations with the fewest memory cycles per instruction, weighed by their cycles.

    Sampled ones (whose weights are samples per cycle) are taken on until they have :data:`ENOUGH` samples together, and
    as long as their CPI is that of those before, within :data:`EQUAL` standard errors: one that waits longer shows
    stalls, however many samples it has.
    """
    order = np.argsort(waiting / instructions, kind="stable")
    count = max(1, int(np.ceil(CALM * len(order))))
    # Samples, and what there would be at one cycle an instruction: the CPI is their ratio, with a Poisson count above.
    seen, size = np.cumsum((weight * cycles)[order]), np.cumsum((weight * instructions)[order])
    while sampled and count < len(order) and seen[count - 1] < ENOUGH:
        cpi, more = seen[count - 1] / size[count - 1], size[count] - size[count - 1]
        expected = cpi * more
        error = np.sqrt(max(expected + expected**2 / max(seen[count - 1], 0.5), 0.5))
        if seen[count - 1] > 0 and seen[count] - seen[count - 1] - expected > EQUAL * error:
            break
        count += 1
    return float(seen[count - 1] / size[count - 1])
