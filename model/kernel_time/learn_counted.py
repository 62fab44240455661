"""Learning the counted equation (:mod:`ranksight.model.kernel_time.counted`) from series.

Times are met exactly at the configurations measured: cycles that repeat better than times say how these change, stalls
divide them. Configurations whose traffic fills a memory domain say nothing of BF_mem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import LEVELS
from ranksight.model.kernel_time.composition import Caches, Composition, fit_compositions
from ranksight.model.kernel_time.counted import (
    BEYOND_L1,
    COUNTS,
    HYPOTHESES,
    NOTHING,
    PER_RANK,
    WAITING,
    Counted,
    Where,
    occupancy,
)
from ranksight.model.kernel_time.perwork import PerWork, Spread
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.priors import (
    CORE_CLOCKS,
    DIVIDED_SLOPE,
    DOMAIN_FULL,
    EXECUTION_PER,
    STALL_RESOLUTION,
    STALLS_PER,
    STEADY_CYCLES,
    TIME_PER,
)
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import median
from ranksight.model.sharing.domains import Domains

SPLIT = ("time", "cycles", "stall_cycles")
"""Metrics that divide a time."""
FEWEST = 3
"""Configurations that a kernel needs."""


def learn_counted(
    series: Series,
    latencies: Array | None,
    frequency: float,
    caches: Caches | None,
    domains: Domains | None,
    line: float,
) -> Counted | None:
    """Learn the laws of every kernel with a time at :data:`FEWEST` configurations or more.

    Parameters
    ----------
    latencies : (4,), optional
        Cycles of a load of each level at `frequency`; None where no platform is known.
    frequency : float
        Clock of the platform, Hz; 1 where none is known.
    line : float
        Bytes of a line of memory.

    Returns
    -------
    Counted or None
        None where no kernel has enough configurations.
    """
    rows = series.rows
    middle, error = located(series)
    kernels = tuple(
        kernel
        for kernel in dict.fromkeys(series.kernels)
        if (kernel, "time") in rows and (middle[rows[kernel, "time"]] > 0).sum() >= FEWEST
    )
    if len(kernels) > 1:  # the whole program is the sum of its kernels
        kernels = tuple(kernel for kernel in kernels if kernel != WHOLE)
    if not kernels:
        return None
    where = Where.of(series, domains)

    def of(name: str) -> tuple[Array, Array]:
        """Logarithms of a metric of all kernels, (K, n), and their standard errors."""
        index = np.array([rows.get((kernel, name), -1) for kernel in kernels])
        values = np.where(index[:, None] >= 0, middle[index], np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(values > 0, np.log(values), np.nan), error[index]

    time, time_error = of("time")
    cycles, _ = of("cycles")
    points, inputs, shape = series.points, where.inputs(series.points), time.shape
    ratio = cycles - time
    usual = np.log(frequency) if frequency > 1 else float(np.nanmedian(ratio)) if np.isfinite(ratio).any() else 0.0
    # Cycles far from those of the time are not what the time was spent on: files, sleep, another program's turn.
    spent = ~np.isfinite(ratio) | ((ratio > usual + np.log(CORE_CLOCKS[0])) & (ratio < usual + np.log(CORE_CLOCKS[1])))
    cycles = np.where(spent.all(axis=1)[:, None], cycles, np.nan)
    clock = _clock(where, points, time, cycles, frequency)
    f = clock.values[0]
    busy = time + f
    # Cycles repeat better than times; where the two go together they say how times change.
    apart = busy - cycles
    known = np.isfinite(apart).any(axis=1)
    offset = median(apart, axis=1)
    steady = known & (np.nan_to_num(np.abs(apart - offset[:, None])).max(axis=1) <= STEADY_CYCLES)
    offset = np.where(steady, offset, np.nan)
    busy = np.where(steady[:, None] & np.isfinite(cycles), cycles + offset[:, None], busy)
    counts = {name: of(name)[0] for name in COUNTS}
    counts[PER_RANK] = np.broadcast_to(where.work.logarithm(points), shape)
    ranks = where.ranks(points)
    few, many = int(ranks.argmin()), int(ranks.argmax())
    falls = np.nan_to_num(time[:, few] - time[:, many]) > DIVIDED_SLOPE * np.log(ranks[many] / ranks[few])
    counts[NOTHING] = np.where(falls[:, None] & (where.full > 0), np.nan, np.zeros(shape))
    total = _learn(TIME_PER, busy, time_error, counts, inputs, where)
    stalls = np.exp(of("stall_cycles")[0] - np.where(np.isfinite(cycles), cycles, busy))
    held = rows.keys()
    split = np.array([(kernel, "stall_cycles") in held and (kernel, "instructions") in held for kernel in kernels])
    # What few samples say is left to a law that weighs them as such.
    drawn = {key for key, yes in zip(rows, series.sampled.tolist(), strict=True) if yes}
    split &= np.array([not {(kernel, name) for name in SPLIT} & drawn for kernel in kernels])
    split &= spent.all(axis=1)
    share = np.where(split[:, None] & np.isfinite(busy), np.nan_to_num(stalls), np.nan)
    split &= np.isfinite(share).sum(axis=1) >= FEWEST
    if latencies is None or not split.any():
        empty = tuple[tuple[Composition | None, str], ...]((None, "") for _ in kernels)
        return Counted(
            kernels,
            where,
            clock,
            np.ones(4),
            frequency,
            total,
            split & False,
            None,
            None,
            empty,
            None,
            line,
            1.0,
            offset,
        )
    share = np.where(split[:, None], share, np.nan)
    relative = np.hypot(time_error, STALL_RESOLUTION)
    execution = _learn(
        EXECUTION_PER, busy + np.log(np.clip(1 - share, STALL_RESOLUTION, 1.0)), relative, counts, inputs, where
    )
    kept = np.clip(share, STALL_RESOLUTION, 1.0)
    stalled, of_stalls = busy + np.log(kept), np.hypot(_error_of(series, error, rows, kernels), STALL_RESOLUTION / kept)
    compositions: tuple[tuple[Composition | None, str], ...] = tuple((None, "") for _ in kernels)
    priors = dict(STALLS_PER)
    chance = {
        name: np.full(len(kernels), np.log(weight))
        for name, weight in priors.items()
        if name not in (WAITING, BEYOND_L1)
    }
    model = Counted(
        kernels, where, clock, latencies, frequency, total, split, None, None, compositions, caches, line, 1.0, offset
    )
    levels = np.stack([np.exp(of(name)[0]) for name in LEVELS])
    if caches is not None and np.isfinite(levels).any():
        compositions = _compositions(levels, counts, split, where, points, caches, latencies)
        model = replace(model, compositions=compositions)
        chances = model.chances()
        latency = model.latencies_at(np.exp(f))
        x, capacities = where.work.logarithm(points), caches.capacities(where.active(points))
        for h in range(HYPOTHESES):
            for kind, first in ((WAITING, 0), (BEYOND_L1, 1)):
                waiting = np.full(shape, np.nan)
                with np.errstate(divide="ignore"):
                    for at, (held_, name) in enumerate(compositions):
                        if held_ is not None and h < len(held_.weight):
                            each = (held_.per_work(x, capacities)[h] * latency)[first:].sum(axis=0)
                            waiting[at] = np.log(each) + counts[name][at]
                    chance[f"{kind} {h}"] = np.log(chances[h]) + np.log(priors[kind])
                counts[f"{kind} {h}"] = np.where(np.isfinite(waiting), waiting, np.nan)
    stalled, scale = _unsaturated(model, stalled, levels, counts, time, points)
    names = tuple(name for name in chance if np.isfinite(counts[name]).any())
    prior = np.stack([np.where(np.isfinite(chance[name]), chance[name], np.nan) for name in names])
    works = np.stack([counts[name] for name in names])
    stall = PerWork.learn(names, prior, stalled, of_stalls, works, inputs, where.variants)
    return replace(model, execution=execution, stall=stall, bandwidth=scale)


def located(series: Series) -> tuple[Array, Array]:
    """Medians over repetitions (s, n), and their relative standard errors, pooled over the configurations."""
    values = series.values
    count = np.isfinite(values).sum(axis=2)
    middle = median(values, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = (values / middle[..., None] - 1) ** 2
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    pooled = np.where(freedom > 0, np.nansum(np.where(np.isfinite(apart), apart, 0.0), axis=(1, 2)), 0.0)
    variance = (pooled / np.maximum(freedom, 1))[:, None] / np.maximum(count, 1)
    # A median of three and more scatters as a mean of two thirds of them.
    variance = np.where(count > 2, variance * np.pi / 2, variance)
    samples = series.samples
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(samples > 0, 1 / samples, 1.0)
    return middle, np.sqrt(variance + np.where(np.isfinite(samples), drawn, 0.0))


def _error_of(series: Series, error: Array, rows: Mapping[tuple[str, str], int], kernels: tuple[str, ...]) -> Array:
    """Relative standard error (K, n) of the kernels' stalls."""
    index = np.array([rows.get((kernel, "stall_cycles"), -1) for kernel in kernels])
    return np.asarray(np.where(index[:, None] >= 0, error[index], 0.0))


def _clock(where: Where, points: Array, time: Array, cycles: Array, frequency: float) -> Rates:
    """The clock of every configuration: cycles over times of all kernels that have both; the platform's elsewhere."""
    both = np.isfinite(time) & np.isfinite(cycles)
    known = both.any(axis=0)
    ratio = np.log(np.where(both, np.exp(cycles), 0.0).sum(axis=0) + ~known) - np.log(
        np.where(both, np.exp(time), 0.0).sum(axis=0) + ~known
    )
    usual = float(np.median(ratio[known])) if known.any() else float(np.log(frequency))
    values = np.where(known, ratio, usual)[None]
    return Rates(occupancy(where, points), values, np.zeros(values.shape), ((True,),))


def _learn(
    prior: dict[str, float], logs: Array, error: Array, counts: dict[str, Array], inputs: Array, where: Where
) -> PerWork:
    names = tuple(name for name in prior if np.isfinite(counts[name]).any())
    weights = np.log(np.array([[prior[name]] for name in names])) + np.zeros((1, len(logs)))
    works = np.stack([counts[name] for name in names])
    return PerWork.learn(names, weights, logs, error, works, inputs, where.variants)


def _compositions(
    levels: Array,
    counts: dict[str, Array],
    split: Mask,
    where: Where,
    points: Array,
    caches: Caches,
    latencies: Array,
) -> tuple[tuple[Composition | None, str], ...]:
    """The composition of each kernel, per unit of the work that it follows best."""
    found: list[tuple[Composition | None, str]] = [(None, "")] * len(split)
    x, capacities = where.work.logarithm(points), caches.capacities(where.active(points))
    served = np.nansum(levels, axis=0) > 0
    for name in ("instructions", "flops_dp"):
        work = counts[name]
        known = np.isfinite(work) & served
        rows = np.flatnonzero(split & (known.sum(axis=1) >= FEWEST))
        # Kernels known at the same configurations are fitted together.
        patterns, which = np.unique(known[rows], axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            mine = rows[which.ravel() == at]
            loads = levels[:, mine][..., pattern].swapaxes(0, 1) / np.exp(work[mine][:, None, pattern])
            fitted = fit_compositions(loads, x[pattern], capacities[..., pattern], latencies)
            for row, held in zip(mine.tolist(), fitted, strict=True):
                best = found[row][0]
                if best is None or held.error[0] < best.error[0]:
                    found[row] = held, name
    return tuple(found)


def _unsaturated(
    model: Counted, stalled: Array, levels: Array, counts: dict[str, Array], time: Array, points: Array
) -> tuple[Array, float]:
    """Stalls without those of configurations that fill a domain's bandwidth, where two others remain; and the measured
    over the described bandwidth."""
    domains = model.where.domains
    if domains is None or domains.domain is None:
        return stalled, 1.0
    nothing = np.zeros(time.shape)
    with np.errstate(divide="ignore"):
        memory = Spread(np.log(levels[3]), nothing, nothing)
    works = {name: Spread(counts[name], nothing, nothing) for name in ("bytes_mem_read", "bytes_mem_written")}
    need = model.need(memory, points, works)
    if need is None:
        return stalled, 1.0
    with np.errstate(invalid="ignore"):
        utilisation = np.exp(need.centre - time)
    scale = max(1.0, float(np.nanmax(np.where(np.isfinite(utilisation), utilisation, 0.0))))
    full = utilisation / scale > DOMAIN_FULL
    free = (np.isfinite(stalled) & ~full).sum(axis=1) >= 2
    return np.where(full & free[:, None], np.nan, stalled), scale
