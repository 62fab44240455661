"""Learning the counted equation (:mod:`ranksight.model.kernel_time.counted`) from series.

Times are met exactly at the configurations measured: cycles that repeat better than times say how these change, stalls
divide them. Configurations whose traffic fills a memory domain say nothing of BF_mem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import LEVELS
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.kernel_time.composed import learn_composed
from ranksight.model.kernel_time.composition import Caches, Composition, fit_compositions
from ranksight.model.kernel_time.counted import BEYOND_L1, COUNTS, NOTHING, PER_RANK, WAITING, Counted
from ranksight.model.kernel_time.perwork import PerWork
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.kernel_time.where import Where, occupancy
from ranksight.model.quantity import Quantity
from ranksight.model.resource.equation import Machine
from ranksight.model.series.computation import waiting
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series, located
from ranksight.model.series.reduction import median

SPLIT = ("time", "cycles", "stall_cycles")
"""Metrics that divide a time."""
FEWEST = 3
"""Configurations that a kernel needs."""


def learn_counted(series: Series, machine: Machine, caches: Caches, domains: Domains, line: float) -> Counted | None:
    """Learn the laws of every kernel with a time at :data:`FEWEST` configurations or more.

    None where no kernel has enough configurations.

    `line`: bytes of a line of memory.
    """
    known = _Known.of(series)
    if not known.kernels:
        return None
    where, points = Where.of(series, domains), series.points
    inputs = where.inputs(points, points)
    time, error = known.logs("time"), known.errors("time")
    cycles, spent = _cycles(known, time, machine.frequency)
    clock = _clock(where, points, time, cycles, machine.frequency)
    busy, offset = _busy(time + clock.values[0], cycles)
    counts = _works(known, where, time)
    total = _learn(priors.TIME_PER, busy, error, counts, inputs, where)
    share = _stalled(known, cycles, busy, spent)
    split = np.isfinite(share).sum(axis=1) >= FEWEST
    model = Counted(known.kernels, where, clock, np.ones(4), machine.frequency, total, split & False, line, offset)
    if not machine:
        return model
    model = replace(model, latencies=np.array(machine.latencies))
    levels = np.stack([np.exp(known.logs(name)) for name in LEVELS])
    if caches:
        model = _with_compositions(model, levels, counts, split, points, caches)
        model = _fitted(model, ~split & spent & ~known.drawn, busy, error, counts, inputs, points)
    if not split.any():
        return model
    share = np.where(split[:, None], share, np.nan)
    executed = busy + np.log(np.clip(1 - share, priors.STALL_RESOLUTION, 1.0))
    execution = _learn(priors.EXECUTION_PER, executed, np.hypot(error, priors.STALL_RESOLUTION), counts, inputs, where)
    resolved = np.clip(share, priors.STALL_RESOLUTION, 1.0)
    stalled, of_stalls = (
        busy + np.log(resolved),
        np.hypot(known.errors("stall_cycles"), priors.STALL_RESOLUTION / resolved),
    )
    model = replace(model, split=split)
    if model.caches:
        counts |= _waiting(model, model.caches, counts, points)
    stalled, scale = _unsaturated(model, stalled, levels, counts, time, points)
    stall = _learn(priors.STALLS_PER, stalled, of_stalls, counts, inputs, where)
    return replace(model, execution=execution, stall=stall, bandwidth=scale)


@dataclass(frozen=True)
class _Known:
    """What series say of K kernels at n configurations: medians and relative errors of all s series, (s, n)."""

    series: Series
    kernels: tuple[str, ...]
    middle: Array
    error: Array

    @classmethod
    def of(cls, series: Series) -> _Known:
        """Of the kernels with a time at :data:`FEWEST` configurations that is not that of messages; the whole program
        is the sum of the others."""
        rows, (middle, error) = series.rows, located(series)
        messages = waiting(series)
        timed = [kernel for kernel in dict.fromkeys(series.kernels) if (kernel, "time") in rows]
        timed = [kernel for kernel in timed if kernel not in messages]
        kernels = [kernel for kernel in timed if (middle[rows[kernel, "time"]] > 0).sum() >= FEWEST]
        return cls(series, tuple(k for k in kernels if k != WHOLE or len(kernels) == 1), middle, error)

    @property
    def drawn(self) -> Mask:
        """Kernels (K,) whose times, cycles or stalls were sampled."""
        rows, sampled = self.series.rows, self.series.sampled
        drawn = [
            any(sampled[rows[kernel, name]] for name in SPLIT if (kernel, name) in rows) for kernel in self.kernels
        ]
        return np.array(drawn, dtype=bool)

    def _index(self, name: str) -> Index:
        rows = self.series.rows
        return np.array([rows.get((kernel, name), -1) for kernel in self.kernels])

    def logs(self, name: str) -> Array:
        """Logarithms of a metric, (K, n)."""
        index = self._index(name)
        values = np.where(index[:, None] >= 0, self.middle[index], np.nan)
        return np.where(values > 0, log(values), np.nan)

    def errors(self, name: str) -> Array:
        """Relative standard errors of a metric, (K, n)."""
        index = self._index(name)
        return np.asarray(np.where(index[:, None] >= 0, self.error[index], 0.0))


def _cycles(known: _Known, time: Array, frequency: float) -> tuple[Array, Mask]:
    """Logarithms (K, n) of the cycles of kernels of which all are near those of their time, and which kernels (K,) have
    no others: far cycles are not what the time was spent on, but files, sleep, or another program's turn."""
    cycles = known.logs("cycles")
    ratio = cycles - time
    usual = np.log(frequency) if frequency > 1 else float(np.nanmedian(ratio)) if np.isfinite(ratio).any() else 0.0
    low, high = usual + np.log(priors.CORE_CLOCKS)
    spent = (~np.isfinite(ratio) | ((ratio > low) & (ratio < high))).all(axis=1)
    return np.where(spent[:, None], cycles, np.nan), spent


def _busy(busy: Array, cycles: Array) -> tuple[Array, Array]:
    """Logarithms (K, n) of time x clock, and of that over the cycles (K,); NaN where it is not the same everywhere.

    Cycles repeat better than times; where the two go together they say how times change.
    """
    gap = busy - cycles
    offset = median(gap, axis=1)
    steady = np.isfinite(gap).any(axis=1)
    steady &= np.nan_to_num(np.abs(gap - offset[:, None])).max(axis=1) <= priors.STEADY_CYCLES
    offset = np.where(steady, offset, np.nan)
    return np.where(steady[:, None] & np.isfinite(cycles), cycles + offset[:, None], busy), offset


def _works(known: _Known, where: Where, time: Array) -> dict[str, Array]:
    """Logarithms (K, n) of what a kernel's time may be in proportion to, waiting aside."""
    points = known.series.points
    counts = {name: known.logs(name) for name in COUNTS}
    counts[PER_RANK] = np.broadcast_to(where.work.logarithm(points), time.shape)
    counts[NOTHING] = np.zeros(time.shape)
    return counts


def _stalled(known: _Known, cycles: Array, busy: Array, spent: Mask) -> Array:
    """Part (K, n) of the cycles that are stalls, NaN where it is not known well enough to divide the time."""
    keys = known.series.rows.keys()
    counted_both = [{(kernel, "stall_cycles"), (kernel, "instructions")} <= keys for kernel in known.kernels]
    # What few samples say is left to a law that weighs them as such.
    split = spent & np.array(counted_both) & ~known.drawn
    stalls = np.exp(known.logs("stall_cycles") - np.where(np.isfinite(cycles), cycles, busy))
    return np.where(split[:, None] & np.isfinite(busy), np.nan_to_num(stalls), np.nan)


def _waiting(model: Counted, caches: Caches, counts: dict[str, Array], points: Array) -> dict[str, Array]:
    """Logarithms (K, n) of the cycles that loads wait, with all levels and beyond the first."""
    latency = model.latencies_at(np.exp(model.clock.values[0]))
    x, capacities = model.where.work.logarithm(points), caches.capacities(model.where.active(points))
    result = {kind: np.full((len(model.kernels), len(points)), np.nan) for kind in (WAITING, BEYOND_L1)}
    for at, (composition, name) in enumerate(model.compositions):
        if composition is not None:
            cycles = composition.per_work(x, capacities)[0] * latency
            for kind, first in ((WAITING, 0), (BEYOND_L1, 1)):
                result[kind][at] = log(cycles[first:].sum(axis=0)) + counts[name][at]
    return {kind: np.where(np.isfinite(waiting), waiting, np.nan) for kind, waiting in result.items()}


def _clock(where: Where, points: Array, time: Array, cycles: Array, frequency: float) -> Rates:
    """The clock of every configuration: cycles over times of all kernels that have both; the platform's elsewhere."""
    timed_cycles = np.isfinite(time) & np.isfinite(cycles)
    known = timed_cycles.any(axis=0)
    ratio = np.log(np.where(timed_cycles, np.exp(cycles), 0.0).sum(axis=0) + ~known) - np.log(
        np.where(timed_cycles, np.exp(time), 0.0).sum(axis=0) + ~known
    )
    usual = float(np.median(ratio[known])) if known.any() else float(np.log(frequency))
    values = np.where(known, ratio, usual)[None]
    return Rates(occupancy(where, points), values, np.zeros(values.shape), ((True,),))


def _learn(
    prior: dict[str, float], logs: Array, error: Array, counts: dict[str, Array], inputs: Array, where: Where
) -> PerWork:
    names = tuple(name for name in prior if name in counts and np.isfinite(counts[name]).any())
    weights = np.log(np.array([[prior[name]] for name in names])) + np.zeros((1, len(logs)))
    works = np.stack([counts[name] for name in names])
    return PerWork.learn(names, weights, logs, error, works, inputs, where.variants)


def _with_compositions(
    model: Counted, levels: Array, counts: dict[str, Array], split: Mask, points: Array, caches: Caches
) -> Counted:
    """The model with the composition of each kernel whose loads were counted, per unit of the work that it follows
    best, or per instruction where its stalls were not counted."""
    best_of: list[tuple[Composition | None, str]] = [(None, "")] * len(split)
    where, latencies = model.where, model.latencies
    x, capacities = where.work.logarithm(points), caches.capacities(where.active(points))
    served = np.nansum(levels, axis=0) > 0
    for name, kernels in (("instructions", split | True), ("flops_dp", split)):
        work = counts[name]
        known = np.isfinite(work) & served
        rows = np.flatnonzero(kernels & (known.sum(axis=1) >= FEWEST))
        # Kernels known at the same configurations are fitted together.
        patterns, which = np.unique(known[rows], axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            chosen = rows[which.ravel() == at]
            loads = levels[:, chosen][..., pattern].swapaxes(0, 1) / np.exp(work[chosen][:, None, pattern])
            fitted = fit_compositions(loads, x[pattern], capacities[..., pattern], latencies)
            for row, composition in zip(chosen.tolist(), fitted, strict=True):
                best = best_of[row][0]
                if best is None or composition.error[0] < best.error[0]:
                    best_of[row] = composition, name
    if not any(composition is not None for composition, _ in best_of):
        return model if not split.any() else replace(model, caches=caches)
    return replace(model, caches=caches, compositions=tuple(best_of))


def _fitted(
    model: Counted, rest: Mask, busy: Array, error: Array, counts: dict[str, Array], inputs: Array, points: Array
) -> Counted:
    """The model with CPI_exec and BF_mem of those kernels of the `rest` (K,) whose loads were counted, fitted to their
    cycles `busy` (K, n), logarithms."""
    chosen = {
        row: composition
        for row, (composition, _) in enumerate(model.compositions)
        if composition is not None and rest[row]
    }
    if not chosen:
        return model
    rows, compositions = np.array(list(chosen), dtype=np.intp), list(chosen.values())
    x, capacities = model.where.work.logarithm(points), model.caches.capacities(model.where.active(points))
    latencies = model.latencies_at(np.exp(model.clock.values[0]))
    cpi = busy - counts["instructions"]
    composed = learn_composed(rows, compositions, np.exp(cpi[rows]), x, capacities, latencies)
    work = counts["instructions"][rows] + composed.at(compositions, x, capacities, latencies)[0].centre
    logs = busy[rows]
    fitted = Rates(inputs, logs - work, np.where(np.isfinite(logs), error[rows], 0.0), model.where.variants)
    return replace(model, composed=composed, fitted=fitted)


def _unsaturated(
    model: Counted, stalled: Array, levels: Array, counts: dict[str, Array], time: Array, points: Array
) -> tuple[Array, float]:
    """Stalls without those of configurations that fill a domain's bandwidth, where two others remain; and the measured
    over the described bandwidth."""
    domains = model.where.domains
    if not domains.limited:
        return stalled, 1.0
    memory = Quantity.exact(log(levels[3]))
    works = {name: Quantity.exact(counts[name]) for name in ("bytes_mem_read", "bytes_mem_written")}
    need = model.need(memory, points, works)
    with np.errstate(invalid="ignore"):
        utilisation = np.exp(need.centre - time)
    scale = max(1.0, float(np.nanmax(np.where(np.isfinite(utilisation), utilisation, 0.0))))
    full = utilisation / scale > priors.DOMAIN_FULL
    free = (np.isfinite(stalled) & ~full).sum(axis=1) >= 2
    return np.where(full & free[:, None], np.nan, stalled), scale
