"""The counted equation: a kernel's time from its work, the cycles that takes, and the cycles it waits.

At every measured configuration, with c cycles, s of them stalled, T the time and f = c / T the clock,

    T_exec = T (c - s) / c,   T_stall = T s / c,   T = T_exec + T_stall

so that the measured time is met exactly. T_exec f is work times CPI_exec, T_stall f is waiting times BF_mem, with
waiting sum_l n_l l_l of the loads that each level serves (Ding et al. 2018, equation 1, with the stalls taken out
of the CPI). CPI_exec, BF_mem and f are rates (:mod:`ranksight.model.kernel_time.rates`) of work per rank and of the
occupancy of a memory domain; the levels are one composition (:mod:`ranksight.model.kernel_time.composition`).

Ranks of a memory domain share its bandwidth: where together they ask for more, the kernel waits until they ask for just
that, and such configurations say nothing of BF_mem,

    T >= active ranks x bytes of a rank / bandwidth of the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log, log_ratio
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.composed import Composed
from ranksight.model.kernel_time.composition import NO_CACHES, Caches, Composition
from ranksight.model.kernel_time.perwork import NOT_COUNTED, PerWork
from ranksight.model.kernel_time.rates import Rates, changed
from ranksight.model.kernel_time.where import NOWHERE, RANKS, Where, occupancy
from ranksight.model.plaindata import Some
from ranksight.model.process.covariance import unseen
from ranksight.model.quantity import Quantity, add, larger, product
from ranksight.model.series.domains import needs
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import Forecast

COUNTS = ("instructions", "flops_dp", "bytes_mem_read", "bytes_mem_written")
"""Metrics whose functions the equation asks for."""
PER_RANK, NOTHING, WAITING, BEYOND_L1 = "work per rank", "nothing", "waiting", "waiting beyond L1"
"""Kinds of work that are no metric. Loads that the first level serves may be hidden altogether."""


def timed_alone(functions: Functions) -> frozenset[str]:
    """Kernels of which nothing but their times is known, and whose functions know of memory domains."""
    counted = {kernel for kernel, name in functions.rows if name in COUNTS}
    known = functions.fitted.of_domains
    rows = functions.rows.items()
    return frozenset(kernel for (kernel, name), row in rows if name == "time" and known[row] and kernel not in counted)


@dataclass(frozen=True)
class Counted(Some):
    """Laws of K kernels' times."""

    kernels: tuple[str, ...]
    where: Where
    clock: Rates  # of one row, over the share of a node's cores that work
    latencies: Array  # (4,): cycles at `frequency`
    frequency: float  # clock that the latencies hold at
    total: PerWork  # time times clock, of every kernel
    split: Mask  # (K,): whether a kernel's stalls were counted
    line: float  # bytes of a load that memory serves
    offset: Array  # (K,): logarithm of time x clock over cycles; NaN where it changes or cycles were not counted
    execution: PerWork = NOT_COUNTED  # of all kernels, where stalls were counted; without values where they were not
    stall: PerWork = NOT_COUNTED
    bandwidth: float = 1.0  # measured over described bandwidth of a domain, 1 or more
    compositions: tuple[tuple[Composition | None, str], ...] = ()
    """Of each kernel, and the metric that it is per unit of; empty where no kernel has one."""
    caches: Caches = NO_CACHES
    composed: Composed | None = None  # CPI_exec and BF_mem of kernels whose loads were counted and stalls were not
    fitted: Rates | None = None  # what is left of the cycles of these r kernels
    _sizes = "kernels:k latencies:4 frequency:>0 split:k line:>0 offset:k bandwidth:>0"

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Counted:
        """The same kernels with ranks placed in another way."""
        domains = self.where.domains.placed(placement, ranks_per_node)
        return replace(self, where=replace(self.where, domains=domains))

    def frequencies(self, points: Array) -> Quantity:
        """ln f, one row (1, k)."""
        mean, spread = self.clock.at(occupancy(self.where, points))
        return Quantity(mean, spread, spread)

    def work(self, name: str, points: Array, counts: Forecast, rows: Mapping[tuple[str, str], int]) -> Quantity:
        """Logarithms of one kind of work of all kernels at `points`."""
        shape = (len(self.kernels), len(points))
        if name == NOTHING:
            return Quantity.exact(np.zeros(shape))
        if name == PER_RANK:
            return Quantity.exact(np.broadcast_to(self.where.work.logarithm(points), shape))
        return counts.quantity(np.array([rows.get((kernel, name), -1) for kernel in self.kernels]))

    def loads(
        self, points: Array, work_points: Array, works: dict[str, Quantity], factor: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Logarithms of the loads that each level serves (4, K, k), by the best hypothesis of each kernel, and their
        deviations downwards and upwards (K, k); in caches `factor` times as large."""
        x = self.where.work.logarithm(work_points)
        capacities = factor * self.caches.capacities(self.where.active(points))
        shape = len(self.kernels), len(points)
        each, sides = np.full((4, *shape), np.nan), np.zeros((2, *shape))
        for at, (composition, name) in enumerate(self.compositions):
            if composition is not None:
                each[:, at] = log(composition.per_work(x, capacities)[0]) + works[name].centre[at]
                sides[:, at] = works[name].down[at], works[name].up[at]
        return each, *sides

    def at(self, points: Array, counts: Forecast, rows: Mapping[tuple[str, str], int], work_points: Array) -> Times:
        """Times of all kernels at `points` (k, m).

        `counts`: of the series that `rows` names by (kernel, metric). `work_points` (k, m): where work per rank is
        taken: with the ranks that would all have as much as the busiest.
        """
        inputs, f = self.where.inputs(points, work_points), self.frequencies(points)
        inverse = f.inverse()
        works = {name: self.work(name, work_points, counts, rows) for name in (*COUNTS, PER_RANK, NOTHING)}
        # What no run shows: a deviation that grows with the distance from the measured ones.
        inverse = inverse.wider(unseen(inputs, self.total.rates[0].inputs))
        costs = self.total.at([works[name] for name in self.total.names], inputs)
        whole = product([costs, inverse]).wider(self.regime(inputs))
        shape = whole.centre.shape
        none = Quantity(*np.full((3, *shape), np.nan))
        loads, levels, memory, kinds = self._waiting(points, work_points, f, works)
        need = self.need(memory, points, works)
        fitted = self._by_loads(points, work_points, inputs, f, works["instructions"], need)
        if not self.stall:
            empty = none.centre
            unknown = np.repeat(empty[..., None], 4, axis=2)
            return Times(whole, none, empty, empty, unknown, none, none, f, unknown, empty, fitted)
        execution = self.execution.at([works[name] for name in self.execution.names], inputs)
        waiting = log(levels.sum(axis=2))
        stalls = self.stall.at([kinds[name] for name in self.stall.names], inputs)
        stalls, blocking = self._bounded(stalls, waiting, kinds.get(WAITING, none))
        core = product([add([execution, stalls]), inverse])
        time = larger(core, need)
        with np.errstate(invalid="ignore", divide="ignore"):
            levels = levels if self.caches else np.ones_like(levels)
            waits = np.exp(stalls.centre - f.centre)[..., None] * levels / levels.sum(axis=2, keepdims=True)
            # A saturated domain hides what a core alone would wait for.
            seconds = np.exp(execution.centre - f.centre)
            contention = np.maximum(np.exp(time.centre) - np.exp(core.centre), 0.0)
            busy = np.exp(need.centre - time.centre)
        work = works["instructions"]
        cpi = Quantity(execution.centre - work.centre, execution.down, execution.up)
        return Times(whole, time, seconds, contention, waits, cpi, blocking, f, loads, busy, fitted)

    def _bounded(self, stalls: Quantity, waiting: Array, loads: Quantity) -> tuple[Quantity, Quantity]:
        """Stall cycles and BF_mem (K, k), which is at most 1: a core waits no longer than its loads take.

        Where runs showed more, stalls hold others than those of loads, and the most that was measured is the bound.
        `waiting` (K, k): logarithm of the cycles that loads take; NaN where these were not counted. `loads`: the same
        with its deviations.
        """
        blocking = stalls.moved(-waiting)
        if WAITING not in self.stall.names:
            return stalls, blocking
        measured = self.stall.rates[self.stall.names.index(WAITING)].values
        bound = np.exp(np.fmax.reduce(measured, axis=1, initial=0.0))[:, None]
        bounded = blocking.at_most(bound)
        if not (beyond := bounded.up < blocking.up).any():
            return stalls, blocking
        # How many loads there are remains as uncertain as it is.
        within = bounded.moved(waiting).wider(loads.down, loads.up)
        sides = ("centre", "down", "up")
        return Quantity(*(np.where(beyond, getattr(within, side), getattr(stalls, side)) for side in sides)), bounded

    def _by_loads(
        self,
        points: Array,
        work_points: Array,
        inputs: Array,
        f: Quantity,
        instructions: Quantity,
        need: Quantity,
    ) -> Fitted | None:
        """Times of the kernels whose CPI_exec and BF_mem were fitted to their cycles; None where there is none."""
        if self.composed is None or self.fitted is None:
            return None
        rows = self.composed.rows
        chosen = [composition for composition, _ in (self.compositions[row] for row in rows) if composition is not None]
        x, capacities = self.where.work.logarithm(work_points), self.caches.capacities(self.where.active(points))
        cpi, waits = self.composed.at(chosen, x, capacities, self.latencies_at(np.exp(f.centre[0])))
        mean, spread = self.fitted.at(inputs)
        cycles = product([instructions.rows(rows), cpi]).moved(mean).wider(spread)
        core = product([cycles, f.inverse()]).wider(unseen(inputs, self.total.rates[0].inputs))
        time = larger(core, need.rows(rows))
        seconds = np.exp(core.centre)
        return Fitted(rows, time, (1 - waits.sum(axis=0)) * seconds, waits * seconds, np.exp(time.centre) - seconds)

    def regime(self, inputs: Array, of_core: bool = False) -> Array:
        """Standard deviation (k,) of the logarithm of a rate that another regime may change at `inputs` (k, d).

        What a core does (`of_core`) changes with its work and with those that share its memory domain, however many
        ranks there are elsewhere.
        """
        acting = np.any(self.where.variants, axis=0)
        if of_core:
            acting &= np.array(self.where.columns) != RANKS
        return changed(inputs[:, acting], self.total.rates[0].inputs[:, acting])

    def _waiting(
        self, points: Array, work_points: Array, f: Quantity, works: dict[str, Quantity]
    ) -> tuple[Array, Array, Quantity, dict[str, Quantity]]:
        """Loads of each level (K, k, 4) and the cycles that they wait, loads from memory with their spread, and all
        kinds of work with the cycles that loads wait."""
        if not self.caches:
            none = np.full((4, len(self.kernels), len(points)), np.nan)
            unknown = np.moveaxis(none, 0, 2)
            return unknown, unknown, Quantity(*none[:3]), works
        each, down, up = self.loads(points, work_points, works)
        latencies = self.latencies_at(np.exp(f.centre[0]))[:, None]
        cycles = np.exp(each) * latencies
        kinds = {
            name: Quantity(log(cycles[first:].sum(axis=0)), down, up) for name, first in ((WAITING, 0), (BEYOND_L1, 1))
        }
        memory = Quantity(each[3], down, up)
        if self.caches.doubt:
            # Where a working set is about as large as a cache, how large the cache is decides who serves it.
            factors = np.exp([self.caches.doubt, -self.caches.doubt])
            ends = [np.exp(self.loads(points, work_points, works, float(each))[0]) * latencies for each in factors]
            for name, first in ((WAITING, 0), (BEYOND_L1, 1)):
                with np.errstate(invalid="ignore"):
                    sides = [np.abs(log(end[first:].sum(axis=0)) - kinds[name].centre) for end in ends]
                kinds[name] = kinds[name].wider(*np.nan_to_num(sides, posinf=0.0))
        loads, levels = (np.moveaxis(part, 0, 2) for part in (np.exp(each), cycles))
        return loads, levels, memory, {**works, **kinds}

    def _fits(self) -> bool:
        parts = [part for part in (self.total, self.execution, self.stall) if part]
        kernels = len(self.kernels)
        return (
            bool(self.total)
            and bool(self.execution) == bool(self.stall)
            and len(self.compositions) in (0, kernels)
            and {name for _, name in self.compositions} <= {"", *COUNTS}
            and len(self.clock.values) == 1
            and (self.composed is None or self._has_compositions(self.composed))
            and all(part.prior.shape[1] == kernels for part in parts)
            and all(rate.inputs.shape[1] == len(self.where.columns) for part in parts for rate in part.rates)
        )

    def _has_compositions(self, composed: Composed) -> bool:
        """Whether its kernels have what their fitted equation needs."""
        rows = composed.rows
        inside = len(self.compositions) > 0 and bool(((rows >= 0) & (rows < len(self.kernels))).all())
        fitted = self.fitted is not None and len(self.fitted.values) == len(rows) and bool(self.caches)
        if not inside or not fitted:
            return False
        chosen = [self.compositions[row][0] for row in rows.tolist()]
        return all(
            each is not None and bool((member < len(each.weight)).all())
            for each, member in zip(chosen, composed.member, strict=True)
        )

    def latencies_at(self, frequency: Array) -> Array:
        """Cycles (4, k) of a load at clocks `frequency` (k,): caches go with the clock, memory does not."""
        latencies = np.repeat(self.latencies[:, None], len(frequency), axis=1)
        latencies[3] *= frequency / self.frequency
        return latencies

    def need(self, memory: Quantity, points: Array, works: dict[str, Quantity]) -> Quantity:
        """Logarithm of the seconds that a domain needs for the traffic of the ranks at work in it, by counted bytes or
        the loads that memory serves; NaN where that is not known."""
        domains = self.where.domains
        if not domains.limited:
            return Quantity(*np.full((3, *memory.centre.shape), np.nan))
        read, written = works["bytes_mem_read"], works["bytes_mem_written"]
        of_bytes, line = np.isfinite(read.centre), memory.moved(np.log(self.line))
        names = ("centre", "down", "up")
        read = Quantity(*(np.where(of_bytes, getattr(read, name), getattr(line, name)) for name in names))
        one = needs(domains, np.exp(read.centre), np.nan_to_num(np.exp(written.centre)))[1]
        seconds = log_ratio(self.where.active(points) * one, self.bandwidth)
        return Quantity(seconds, read.down, read.up)


_NOTHING = np.zeros((1, 0))
NO_KERNELS = Counted(
    kernels=(),
    where=NOWHERE,
    clock=Rates(_NOTHING.T, _NOTHING, _NOTHING, ((True,),)),
    latencies=np.ones(4),
    frequency=1.0,
    total=NOT_COUNTED,
    split=np.zeros(0, dtype=bool),
    line=1.0,
    offset=np.zeros(0),
)
"""Of a program of which no kernel was counted."""


@dataclass(frozen=True)
class Fitted:
    """Times of r kernels by the equation with CPI_exec and BF_mem fitted to cycles, and seconds of their parts."""

    rows: Index  # (r,): among all kernels
    time: Quantity  # logarithms of seconds, (r, k)
    execution: Array  # (r, k)
    levels: Array  # (4, r, k)
    contention: Array  # (r, k): what sharing the bandwidth of a domain adds

    def times(self, longer: Quantity) -> Fitted:
        """All times by the factors `longer` (r, k)."""
        ratio = np.exp(longer.centre)
        parts = {name: getattr(self, name) * ratio for name in ("execution", "levels", "contention")}
        return replace(self, time=product([self.time, longer]), **parts)


@dataclass(frozen=True)
class Times:
    """Times of K kernels at k configurations, logarithms of seconds."""

    total: Quantity  # by work and its cost alone
    time: Quantity  # by the counted equation; NaN where stalls were not counted
    execution: Array  # (K, k): seconds of T_exec
    contention: Array  # (K, k): seconds that sharing the bandwidth of a domain adds
    levels: Array  # (K, k, 4): seconds of waiting for each level, without contention
    cpi: Quantity  # ln CPI_exec
    blocking: Quantity  # ln BF_mem
    clock: Quantity  # ln f, (1, k)
    loads: Array  # (K, k, 4): served by each level; NaN where they were not counted
    busy: Array  # (K, k)
    """Part of the time that the interface of a memory domain is at work; NaN where that is not known."""
    fitted: Fitted | None = None

    def times(self, ratio: Array, deviation: Array) -> Times:
        """All times by `ratio` (K, k), whose logarithm has the standard `deviation` (K, k), longer."""
        longer = Quantity.even(np.log(ratio), deviation)
        return replace(
            self,
            total=product([self.total, longer]),
            time=product([self.time, longer]),
            execution=self.execution * ratio,
            contention=self.contention * ratio,
            levels=self.levels * ratio[..., None],
            fitted=None if self.fitted is None else self.fitted.times(longer.rows(self.fitted.rows)),
        )
