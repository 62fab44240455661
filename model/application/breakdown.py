"""What is predicted of a program: its series, and what its time is made of, part by part and kernel by kernel.

The terms of the resource equation as rows of a table.

    T = sum_k i_k (CPI_exec,k + BF_mem,k sum_l n_kl l_l / i_k) / f + BF_comm T_comm + T_others

(Ding et al. 2018, equation 1). BF_comm has a table of its own
(:meth:`ranksight.model.application.communication.Exchanged.table`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.core.units import whole
from ranksight.model.application.exchanged import NOT_EXCHANGED, Exchanged
from ranksight.model.kernel_time.counted import Counted
from ranksight.model.laws.stacking import places
from ranksight.model.laws.view import Asked
from ranksight.model.quantity import CENTRAL, Quantity
from ranksight.model.resource.equation import LEVELS, Resources
from ranksight.model.uncertainty.forecast import NO_ROWS, Forecast
from ranksight.model.uncertainty.rows import join

TERMS = ("configuration", "kernel", "term", "value", "lower", "upper", "method")
"""Columns: ``kernel`` is None for T_others; ``lower`` and ``upper`` are None where the term was not given a spread."""
CPI, BLOCKING, CLOCK, OTHERS = "cpi_exec", "bf_mem", "clock", "t_others"
"""Cycles per instruction without memory stalls; share of the loads' latencies that the core waits for; cycles a
second; seconds outside of kernels and messages."""

ROUNDING = 1e-15
"""Values below this are zero: a CPI, blocking factor, clock in Hz and seconds are all far above it."""


@dataclass(frozen=True)
class Terms:
    """What kernels' times are made of, by the equation: CPI without stalls, BF_mem and the clock."""

    kernels: tuple[str, ...]
    cpi: Forecast  # cycles per instruction of execution, blocking factor, and cycles a second, (K, k)
    blocking: Forecast
    clock: Forecast
    counted: Mask  # (K,): whether stalls were counted
    method: tuple[str, ...]  # what each kernel's terms come from
    latencies: Array  # (4,): cycles of a load of each level

    def at(self, level: float) -> Terms:
        """The same with central intervals of probability `level`."""
        return replace(self, cpi=self.cpi.at(level), blocking=self.blocking.at(level), clock=self.clock.at(level))

    @property
    def shown_blocking(self) -> Forecast:
        """`blocking` as people read it: a share of latencies is from 0 to 1, and no interval ends beyond, except at a
        value that holds other stalls too."""
        value = np.where(self.blocking.value < ROUNDING, 0.0, self.blocking.value)
        lower = np.maximum(self.blocking.lower, 0.0)
        upper = np.fmax(np.minimum(self.blocking.upper, 1.0), value)
        return replace(self.blocking, value=value, lower=lower, upper=upper)


NO_TERMS = Terms((), NO_ROWS, NO_ROWS, NO_ROWS, np.zeros(0, dtype=bool), (), np.full(len(LEVELS), np.nan))
"""Terms where no equation describes a kernel."""


def terms_of(counted: Counted, resources: Resources, asked: Asked, mixed: Forecast, timed: Mapping[str, int]) -> Terms:
    """CPI, BF_mem and clock of every kernel that an equation describes.

    Where stalls were not counted, BF_mem is what brings the equation to the time of the mixture, `mixed`, a row each of
    the kernels in `timed`.
    """
    blocks = list[Terms]()
    if counted.split.any():
        times = asked.counted
        rows = np.flatnonzero(counted.split)
        names, method = tuple(counted.kernels[at] for at in rows), ("stalls counted",) * len(rows)
        shape = times.cpi.centre.shape
        centre, down, up = (np.broadcast_to(s, shape) for s in (times.clock.centre, times.clock.down, times.clock.up))
        rates = Quantity(centre, down, up)
        terms = (times.cpi, times.blocking, rates)
        cpi, blocking, rate = (Forecast.of(term.rows(rows)) for term in terms)
        blocks.append(Terms(names, cpi, blocking, rate, np.ones(len(rows), dtype=bool), method, counted.latencies))
    if resources:
        parts = asked.parts
        known = blocks[0].kernels if blocks else ()
        rows = np.array([at for at, kernel in enumerate(resources.kernels) if kernel not in known], dtype=np.intp)
        one = np.ones((len(rows), mixed.value.shape[1]))
        each, frequency = one * (resources.cpi * resources.scale)[rows, None], one * resources.machine.frequency
        place = places(tuple(timed), resources.kernels)[rows]
        factors: list[Array] = []
        for seconds, end in zip(parts.time.interval(CENTRAL), (mixed.value, mixed.lower, mixed.upper), strict=True):
            seconds = np.where((place >= 0)[:, None], end[place], seconds[rows])
            factors.append(ratio(seconds - parts.execution[rows], parts.waiting[rows], 0.0))
        # What is left of a time beyond all that its loads take is none of theirs, but what the runs showed.
        most = np.maximum(resources.seen[rows, 1:], 1.0)
        middle, low, high = (np.minimum(factor, most) for factor in factors)
        cpi, rate = (Forecast.settled(value, value, value) for value in (each, frequency))
        blocking = Forecast.settled(middle, low, high)
        names, method = (tuple(np.array(text, dtype=object)[rows]) for text in (resources.kernels, resources.evidence))
        latencies = np.array(resources.machine.latencies)
        blocks.append(Terms(names, cpi, blocking, rate, resources.counted[rows], method, latencies))
    if not blocks:
        return NO_TERMS
    return Terms(
        tuple(name for block in blocks for name in block.kernels),
        join([block.cpi for block in blocks]),
        join([block.blocking for block in blocks]),
        join([block.clock for block in blocks]),
        np.concatenate([block.counted for block in blocks]),
        tuple(text for block in blocks for text in block.method),
        blocks[0].latencies,
    )


@dataclass(frozen=True)
class EquationTerms:
    """Terms of the equation at k configurations."""

    parameters: tuple[str, ...]
    points: Array  # (k, m)
    terms: Terms  # CPI_exec, BF_mem and clock of the kernels that an equation describes
    others: Forecast  # T_others, one row where it is known
    kernels: Collection[str]  # those asked for

    def rows(self) -> list[dict[str, Any]]:
        """A row of :data:`TERMS` for each known value, T_others last."""
        where = [dict(zip(self.parameters, map(whole, point), strict=True)) for point in self.points.tolist()]
        result: list[dict[str, Any]] = []
        for at, kernel in enumerate(self.terms.kernels):
            if kernel in self.kernels:
                each = ((CPI, self.terms.cpi), (BLOCKING, self.terms.shown_blocking), (CLOCK, self.terms.clock))
                for name, values in each:
                    result += _rows(where, kernel, name, values, at, self.terms.method[at])
        for at in range(len(self.others.value)):
            result += _rows(where, None, OTHERS, self.others, at, "wall time minus kernels and messages")
        return result


def _rows(
    where: Sequence[dict[str, Any]], kernel: str | None, term: str, values: Forecast, at: int, method: str
) -> list[dict[str, Any]]:
    """Rows of one term of one kernel; values that are not known are left out, and no term is below zero."""
    # Least squares returns 1e-17 where a bound is active.
    ends = np.stack([getattr(values, end)[at] for end in ("value", "lower", "upper")])
    columns = np.where(ends < ROUNDING, 0.0, ends).T.tolist()
    result = []
    for place, (value, low, high) in zip(where, columns, strict=True):
        spread = (low, high) if -np.inf < low < high < np.inf else (None, None)
        if np.isfinite(value):
            result.append(dict(zip(TERMS, (place, kernel, term, value, *spread, method), strict=True)))
    return result


PARTS = ("execution", *LEVELS, "contention", "direct", "imbalance", "communication")
"""What an application's time is made of; ``contention`` is what sharing the bandwidth of memory or a cache adds,
``direct`` the time of kernels that have no counters, and what grows with the ranks in addition to such a law."""


@dataclass(frozen=True)
class Refined:
    """The forecast of all series with times by the laws that predict them, and what these are made of."""

    said: Forecast
    uneven: Array  # (k,)
    """What the busiest rank has of whole units of work over the mean, where times are means; 1 elsewhere."""
    methods: tuple[tuple[Index, Mask, NDArray[np.object_], Mask], ...] = ()
    """tuple of ((r,) intp, (r, k) bool, (r, k) object, (r, k) bool): rows, the configurations at which laws predict
    them, those laws, and where a function of time comes first."""
    terms: Terms = NO_TERMS  # CPI, blocking factor and clock of the kernels that an equation describes
    split: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """mapping of str to {kernel: (k,)}: seconds of each part of the kernels' times."""
    taken: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """mapping of str to {kernel: (k,)}: what the law that predicts a kernel's time takes it to do, NaN where it does
    not say: metrics, and the part of the time that its memory domain is at work
    (:data:`ranksight.model.laws.together.BUSY`)."""
    sums: Mapping[tuple[str, str], Forecast] = field(default_factory=dict)
    """Of each kernel and metric of messages, the sum of its operations' functions, one row each."""
    remarks: tuple[str, ...] = ()  # what is to be said of totals that differ from the sums of their parts


@dataclass(frozen=True)
class Breakdown:
    """Time of the whole application at k configurations, and what it is made of."""

    total: Forecast  # one row
    kernels: tuple[str, ...]  # all K kernels that have a time, then those that only send messages
    each: Mapping[str, Array]
    """mapping of str to (K, k): seconds per rank of each of :data:`PARTS` in each kernel; a kernel that calls MPI holds
    its messages' time."""
    busiest: Array  # (k,): what the slowest rank takes over the sum of the kernels' times, as these were measured
    terms: Terms = NO_TERMS  # CPI, blocking factor and clock of the kernels that an equation describes
    others: Forecast = NO_ROWS  # seconds outside of all kernels and messages, one row where they are known
    exchanged: Exchanged = NOT_EXCHANGED  # times of operations and BF_comm
    taken: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """As of :class:`Refined`."""

    def at(self, level: float) -> Breakdown:
        """The same with central intervals of probability `level`."""
        return replace(
            self,
            total=self.total.at(level),
            terms=self.terms.at(level),
            others=self.others.at(level),
            exchanged=self.exchanged.at(level),
        )

    @property
    def parts(self) -> dict[str, Array]:
        """Seconds of each of :data:`PARTS` over all kernels, and of ``others``, each (k,)."""
        seconds = {name: values.sum(axis=0) for name, values in self.each.items()}
        seconds["others"] = np.zeros_like(self.total.value[0]) + self.others.value.sum(axis=0)
        return seconds

    @property
    def program(self) -> tuple[str, ...]:
        """The kernels whose times make up the program's: what all outputs count as kernels. None where the program was
        measured as a whole."""
        return tuple(kernel for kernel in self.kernels if kernel != WHOLE)

    @property
    def computing(self) -> Array:
        """Seconds of the program without imbalance and communication, (k,)."""
        parts = self.parts
        return np.asarray(self.total.value[0] - parts["imbalance"] - parts["communication"])

    @property
    def by_kernel(self) -> Array:
        """Seconds of each kernel with all its parts, (K, k)."""
        return np.asarray(sum(self.each.values()), dtype=np.float64)
