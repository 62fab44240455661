"""What counters of a kernel say of each other: stalls of top-down slots, and parts above their whole.

Stalls from top-down slots: the stall cycles follow from how many issue slots were bound by memory.

    stall cycles = cycles x memory-bound slots / slots

(Yasin, "A top-down method for performance analysis and counters architecture", ISPASS 2014: a slot is memory bound when
the back end takes no more operations because loads or stores are outstanding.) Where no loads by level were counted
with them, the lines that memory delivered replace the loads that it served, prefetched ones included: the
blocking factor then says how much of a line's latency is left to wait for.

Counters that contradict each other: more of a part than there is of the whole.

Counters of several runs, or of a multiplexed one, differ by a few per cent; what differs by more cannot both be true,
and no equation is put on it. Of values made of samples what differs by chance is no contradiction.

Sampled times and exact totals: what samples say of shares, the tracer says of the sum.

Samples show how a program's time divides among its kernels, with an error of one over the root of their number. What
the ranks compute in all between MPI_Init and MPI_Finalize the tracer reads from the processor's clock, without
sampling. Kernels' times are therefore scaled to that sum at each configuration, which takes the sampler's overhead and
its luck out of the total; and kernels that were sampled but never counted between MPI_Init and MPI_Finalize are
start-up and are left out. Of a sum that is known, a part of n samples of N has the relative error
sqrt((1 - n/N) / n) (binomial).

:mod:`ranksight.model.series.sampling` describes series of samples.

Times of kernels that were counted but that hardly a sample fell on.

A kernel that is short at the configurations measured may be what takes longest at scale: its instructions say so, its
samples cannot, and a function of fewer than :data:`~ranksight.core.sampled.HANDFUL` samples would be one of chance. Its
time is then its instructions at the program's time per instruction, theta times as long; theta is taken as gamma
distributed among kernels with mean 1, and n samples where E were expected leave

    theta ~ Gamma(a + n, a + E),   a = 1 / spread^2

(samples are Poisson counts). How far that carries is :func:`unsampled_spread`, the standard deviation of log(theta).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import CHANCE, FEW, PARTS, TOLERANCE
from ranksight.core.records import dataclass
from ranksight.core.sampled import HANDFUL
from ranksight.core.units import format_si
from ranksight.model import priors
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import counted_ranks

LINE = 64.0
"""Bytes of a line where no platform gives them."""
SLOTS = "TOPDOWN_SLOTS"


@cache
def memory_slots(name: str) -> bool:
    """Whether a metric's name is that of memory-bound slots or their share, as tools write it."""
    return re.sub(r"[^a-z]", "", name.casefold()).endswith(("memorybound", "membound"))


def with_stalls(series: Series, line: float = LINE) -> Series:
    """The series with ``stall_cycles``, and ``loads_mem`` where no level was counted, of kernels with top-down slots.

    `line`: bytes of a line.
    """
    rows = series.rows
    kernels, metrics, values = list(series.kernels), list(series.metrics), [series.values]
    worth = [known := series.worth]
    provenance = dict(series.provenance)
    for (kernel, name), row in rows.items():
        if not memory_slots(name) or (kernel, "stall_cycles") in rows or (kernel, "cycles") not in rows:
            continue
        share = _share(series.values[row], series.values[rows[kernel, SLOTS]] if (kernel, SLOTS) in rows else None)
        if share is None:
            continue
        kernels.append(kernel)
        metrics.append("stall_cycles")
        values.append((share * series.values[rows[kernel, "cycles"]])[None])
        worth.append(np.where(share > 0, share * known[rows[kernel, "cycles"]], np.nan)[None])
        provenance["stall_cycles"] = f"derived from {name}"
        if (kernel, "bytes_mem_read") in rows and not any((kernel, level) in rows for level in LEVELS):
            kernels.append(kernel)
            metrics.append("loads_mem")
            values.append(series.values[rows[kernel, "bytes_mem_read"]][None] / line)
            worth.append(known[rows[kernel, "bytes_mem_read"]][None] / line)
            provenance["loads_mem"] = "derived from bytes_mem_read"
    if len(kernels) == len(series):
        return series
    return replace(
        series,
        values=np.concatenate(values),
        kernels=tuple(kernels),
        metrics=tuple(metrics),
        provenance=provenance,
        worth=np.concatenate(worth),
    )


def _share(slots_used: Array, slots: Array | None) -> Array | None:
    """Share of the slots: given as such, in per cent, or as a count with all slots; None where none of these."""
    top = float(np.nanmax(slots_used)) if np.isfinite(slots_used).any() else np.nan
    if slots is not None and top > 100:
        with np.errstate(invalid="ignore", divide="ignore"):
            slots_used = slots_used / slots
    elif top > 1:
        slots_used = slots_used / 100
    known = np.isfinite(slots_used)
    return slots_used if known.any() and (slots_used[known] >= 0).all() and (slots_used[known] <= 1).all() else None


CONTRADICT = "counters contradict each other"
"""How every such finding begins."""


def contradictions(series: Series) -> dict[str, str]:
    """For each kernel whose counters contradict each other, what and where.

    `series`: means over ranks.
    """
    present = set(series.metrics)
    related = [(parts, whole) for parts, whole in PARTS if whole in present and present.intersection(parts)]
    if not related:
        return {}
    rows = series.rows
    values = reduce(series.values, "median", axis=2)
    samples = series.samples
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(samples > 0, values / np.sqrt(samples), 0.0)
    texts: dict[str, str] = {}
    for kernel in dict.fromkeys(series.kernels):
        for parts, whole in related:
            counted = [rows[kernel, name] for name in parts if (kernel, name) in rows]
            if not counted or (kernel, whole) not in rows or kernel in texts:
                continue
            part, of = np.nansum(values[counted], axis=0), values[rows[kernel, whole]]
            chance = CHANCE * np.sqrt(np.nansum(error[counted] ** 2, axis=0) + error[rows[kernel, whole]] ** 2)
            excess = np.where(np.isfinite(of) & (part > FEW), part - (1 + TOLERANCE) * of - chance, -np.inf)
            at = int(np.argmax(excess))
            if excess[at] > 0:
                name = parts[0] if len(parts) == 1 else "loads by level"
                where = ", ".join(
                    f"{name} = {x:g}" for name, x in zip(series.parameters, series.points[at], strict=True)
                )
                texts[kernel] = f"{CONTRADICT}: {format_si(part[at])} {name} of {format_si(of[at])} {whole} at {where}"
    return texts


def notes_of(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Notes for people, a few of them."""
    notes = [f"{kernel}: {text}; its times are not predicted" for kernel, text in texts.items()]
    return (*notes[:5], *((f"and {len(notes) - 5} kernels more whose counters do",) if len(notes) > 5 else ()))


LEAST = 0.01
"""Part of its variance at least that a share of a known sum keeps: what is known of a processor's clock."""
SLOWEST = 10e-9
"""Seconds an instruction of a library function takes at most: tens of cycles, a miss of all caches every few."""


@dataclass(frozen=True)
class Sampled:
    """Series whose sampled times add up, and how many samples each of these times has.

    `samples` (mapping of kernel to (n,)): samples over all ranks and repetitions at each configuration; empty where
    nothing was sampled.
    """

    series: Series
    samples: dict[str, Array]


def settle(experiment: Experiment, series: Series) -> Sampled:
    """Leave start-up out of sampled times and scale the rest to the processor time that the tracer read.

    `experiment`: its runs with a table ``sampling`` (``kernel``, ``rank``, ``samples``) are those of a sampler.
    `series`: means over ranks.
    """
    number = np.nan_to_num(series.samples)
    rows = [at for at in np.flatnonzero(series.sampled).tolist() if series.metrics[at] == "time"]
    samples = {series.kernels[at]: number[at] for at in rows}
    if not samples:
        return Sampled(series, {})
    part = _part(experiment, series)
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    counted = set(kernels[names == "instructions"])
    keep = (names != "time") | np.array([kernel in counted or not counted for kernel in series.kernels])
    series, part = series.select(keep), part[keep]
    keep = ~_start_up(series)
    series, part = series.select(keep), part[keep]
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    times = np.flatnonzero((names == "time") & (kernels != WHOLE))
    total = np.flatnonzero((names == "compute_cpu_time") & (kernels == WHOLE))
    if len(times) and len(total):
        sampled = np.nansum(part[times] * reduce(series.values[times], "mean", axis=2), axis=0)
        exact = reduce(series.values[total[:1]], "median", axis=2)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where((sampled > 0) & (exact > 0), exact / sampled, 1.0)
            share = np.nan_to_num(part[times] * reduce(series.values[times], "mean", axis=2) / sampled)
        values, worth = series.values.copy(), series.worth.copy()
        values[times] *= factor[None, :, None]
        worth[times] *= np.where(exact > 0, factor * np.maximum(1 - share, LEAST), 1.0)[:, :, None]
        series = replace(series, values=values, worth=worth)
    return Sampled(series, samples)


def _part(experiment: Experiment, series: Series) -> Array:
    """The part (s, n) of all ranks that have each kernel, as far as its instructions were counted on them."""
    counted = counted_ranks(experiment, series)
    every = counted.max(axis=0, initial=1.0)
    if "ranks" in series.parameters:
        every = np.maximum(every, series.points[:, series.parameters.index("ranks")])
    return np.where(counted > 0, counted / every, 1.0)


def _start_up(series: Series) -> Mask:
    """The sampled times of library functions that their instructions between MPI_Init and MPI_Finalize cannot explain.

    Such a function works when the program is loaded and unloaded, where nothing was counted.
    """
    values = reduce(series.values, "median", axis=2)
    rows = series.rows
    result = np.zeros(len(series), dtype=bool)
    for (kernel, name), at in rows.items():
        count = rows.get((kernel, "instructions"))
        if name == "time" and kernel.endswith("]") and count is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                each = np.nansum(values[at]) / np.nansum(np.where(np.isfinite(values[at]), values[count], np.nan))
            result[at] = bool(each > SLOWEST)
    return result


SHAPE = 1 / priors.CPI_SPREAD[1] ** 2
"""Of the gamma distribution of kernels' cycles per instruction over the program's."""


@cache
def unsampled_spread() -> float:
    """Standard deviation of the logarithm of such a kernel's time; a prediction has no need of it."""
    return float(np.sqrt(special.polygamma(1, SHAPE)))


def with_unsampled(sampled: Sampled) -> Sampled:
    """Give a time from its counts to every kernel whose instructions and loads were counted and that hardly has one.

    Nothing is added where nothing was sampled: a time that is missing there was not asked for.
    """
    series = sampled.series
    rows = series.rows
    counted = [kernel for kernel, name in rows if name == "instructions" and kernel != WHOLE]
    timed = [kernel for kernel in counted if (kernel, "time") in rows]
    none = np.zeros(len(series.points))
    number = {kernel: sampled.samples.get(kernel, none) for kernel in counted}
    silent = [
        kernel
        for kernel in counted
        if ((kernel, "time") not in rows or (kernel in sampled.samples and number[kernel].sum() < HANDFUL))
        and any((kernel, level) in rows for level in LEVELS)
    ]
    if not sampled.samples or len(set(timed) - set(silent)) == 0 or not silent:
        return sampled
    if any(name == "cycles" for _, name in rows):
        return sampled
    values = reduce(series.values, "median", axis=2)
    times = np.nan_to_num(values[[rows[kernel, "time"] for kernel in timed]])
    instructions = np.nan_to_num(values[[rows[kernel, "instructions"] for kernel in timed]])
    usable = (times.sum(axis=0) > 0) & (instructions.sum(axis=0) > 0)
    if not usable.any():
        return sampled
    samples = np.sum([number[kernel] for kernel in timed], axis=0)
    pace = times[:, usable].sum() / instructions[:, usable].sum()
    each = ratio(samples, instructions.sum(axis=0), 0.0, where=usable)
    counts = values[[rows[kernel, "instructions"] for kernel in silent]]
    fell = np.array([number[kernel].sum() for kernel in silent])
    theta = (SHAPE + fell) / (SHAPE + np.nan_to_num(counts) @ each)
    times_of = np.full((len(silent), *series.values.shape[1:]), np.nan)
    times_of[:, :, 0] = theta[:, None] * pace * counts
    few = [rows[kernel, "time"] for kernel in silent if (kernel, "time") in rows]
    measured = series.select(np.setdiff1d(np.arange(len(series)), few))
    grown = replace(
        measured,
        values=np.concatenate([measured.values, times_of]),
        kernels=(*measured.kernels, *silent),
        metrics=(*measured.metrics, *["time"] * len(silent)),
        worth=np.concatenate([measured.worth, np.full(times_of.shape, np.nan)]),
    )
    return replace(sampled, series=grown, samples={**sampled.samples, **dict.fromkeys(silent, none)})
