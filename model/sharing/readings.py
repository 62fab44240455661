"""What was counted of the kernels that share memory or a cache: their work, and what of it loads what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import Reduction
from ranksight.core.records import dataclass
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.computation import PROGRAM, in_cores, waiting
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.demand import BYTES, MEMORY, Demand

FEWEST = 3
"""Configurations that a kernel must have."""
BEGINS = -0.7
"""Slope of ln time over ln ranks at the fewest ranks below which times are those of strong scaling."""
SAMPLES = 25
"""Samples a configuration, in the mean, of which a kernel's sampled time must be made: from them on it is known to a
fifth, which distinguishes waiting for others from chance."""
EARLY = 0.2
"""Share of a domain's cores that may fill its memory interface."""


@dataclass(frozen=True)
class Readings:
    """Series of an experiment, each read once for all sets of its configurations that laws are learned from.

    `kept`: configurations that are looked at; all where None.
    """

    experiment: Experiment
    kept: frozenset[tuple[float, ...]] | None = None
    _read: dict[str, Series] = field(default_factory=dict)

    def among(self, points: Array) -> Readings:
        """The same of the configurations `points` (n, m) only."""
        return replace(self, kept=frozenset(tuple(point) for point in points.tolist()))

    def series(self, metrics: tuple[str, ...], over_ranks: Reduction | Mapping[str, Reduction] | None = None) -> Series:
        """See :func:`ranksight.model.series.reducing.series_from_experiment`; only series that have a value."""
        key = repr((metrics, over_ranks))
        if key not in self._read:
            self._read[key] = series_from_experiment(self.experiment, metrics, over_ranks)
        whole = self._read[key]
        if self.kept is None:
            return whole
        part = whole.at(np.array([tuple(point) in self.kept for point in whole.points.tolist()], dtype=bool))
        return part.select(np.asarray(np.isfinite(part.values).any(axis=(1, 2))))


@dataclass(frozen=True)
class Counted:
    """Times and counts of K kernels at n configurations, means per rank; NaN where missing."""

    series: Series  # all that was read
    kernels: tuple[str, ...]
    ranks: Array  # (n,): ranks in all
    active: Index  # (n,): ranks in the fullest domain
    time: Array  # (K, n)
    cycles: Array  # (K, n)
    work: Array  # (K, n)
    reads: Array  # (K, n)
    writes: Array  # (K, n)
    """Seconds of the slowest rank, of the mean one where they were sampled; instructions, or what replaces them; bytes,
    or what goes with them."""
    traffic: bool  # whether traffic and instructions were counted
    instructions: bool
    guessed: Mask  # (K,): kernels of which it is unknown how their work is divided

    @property
    def countless(self) -> Mask:
        """Kernels (K,) without work of their own: the traffic is their work."""
        return np.asarray(~(np.isfinite(self.work) & (self.work > 0)).any(axis=1))

    @property
    def same_active(self) -> bool:
        """Whether all runs had the same number of ranks in a domain."""
        return len(np.unique(self.active)) == 1


def read_counts(
    readings: Readings,
    domains: Domains,
    demand: Demand,
    how: str,
    over_ranks: Reduction | Mapping[str, Reduction] | None = None,
) -> Counted | None:
    """Read what :func:`ranksight.model.sharing.fit_sharing.fit_sharing` learns from; None where there is nothing.

    `how`: how repetitions become one value; the median where ``auto``. `over_ranks`: how ranks do, where not in each
    metric's own way.
    """
    experiment = readings.experiment
    present = experiment.metrics()
    traffic = demand.metrics
    counted = bool(demand.line) or bool(set(BYTES) & set(present))
    if not _showing(experiment, demand, traffic, counted):
        return None
    wanted = tuple(name for name in ("time", "cycles", "instructions", *traffic) if name in present)
    series = readings.series(wanted, over_ranks)
    # A domain is shared by cores: from here on ranks are ranks times threads.
    series = replace(series, points=in_cores(series.points, series.parameters))
    rows = series.rows
    values = reduce(series.values, "median" if how == "auto" else how, axis=2)
    nothing = np.full(len(series.points), np.nan)
    ranks = series.points[:, series.parameters.index("ranks")]
    active = domains.active(ranks)
    program = next((kernel for kernel in PROGRAM if (kernel, "instructions") in rows), "")
    least = _least(readings, series, program, how) if program else nothing

    def of(kernel: str, name: str) -> Array:
        if kernel == program and name == "instructions":
            return least
        return values[rows[kernel, name]] if (kernel, name) in rows else nothing

    def work(kernel: str) -> tuple[Array, Array, Array]:
        """Work, bytes read and bytes written."""
        if counted:
            return of(kernel, "instructions"), *demand.moved(of, kernel)
        columns = _work(of, kernel, series.parameters, ranks, domains)
        return columns, columns, nothing

    samples, columns = series.samples, {}
    messages = waiting(series)
    for kernel in dict.fromkeys(series.kernels):
        if kernel in messages or (kernel, "time") not in rows or np.nanmean(samples[rows[kernel, "time"]]) < SAMPLES:
            continue
        work_of = work(kernel)
        loads = np.isfinite(work_of[1]) if counted else work_of[1] > 0
        at = (of(kernel, "time") > 0) & loads
        if at.sum() >= FEWEST and len(np.unique(active[at])) >= (1 if counted else FEWEST):
            columns[kernel] = work_of
    if not columns:
        return None
    done, reads, writes = (np.array(column) for column in zip(*columns.values(), strict=True))
    time, cycles = (np.array([of(kernel, name) for kernel in columns]) for name in ("time", "cycles"))
    guessed = np.array([not counted and _guessed(of, kernel, ranks, domains) for kernel in columns])
    measured = counted, "instructions" in present
    return Counted(series, tuple(columns), ranks, active, time, cycles, done, reads, writes, *measured, guessed)


def _showing(experiment: Experiment, demand: Demand, traffic: tuple[str, ...], counted: bool) -> bool:
    """Whether an experiment may show how kernels share what `traffic` loads."""
    present = experiment.metrics()
    if "ranks" not in experiment.parameters or "time" not in present:
        return False
    if counted:
        return not _simulated(experiment, traffic) or (demand.line > 0 and demand.name == MEMORY)
    return not set(LEVELS) & set(present)  # what memory served is known better than by the work


def _simulated(experiment: Experiment, traffic: tuple[str, ...]) -> bool:
    """Whether traffic was simulated."""
    sources = [text for run in experiment.runs for name, text in run.provenance.items() if name in traffic]
    return any("simulated" in text for text in sources)


def _work(of: Any, kernel: str, parameters: tuple[str, ...], ranks: Array, domains: Domains) -> Array:
    """Work of a rank where no traffic was counted: instructions, or that of strong scaling where times begin like it.

    Where it is guessed (:func:`_guessed`), it is that as well. Other times, and those that another parameter moves,
    do not determine the work: NaN.
    """
    work, time = of(kernel, "instructions"), of(kernel, "time")
    if np.isfinite(work).any():
        return np.asarray(work)
    if parameters == ("ranks",) and (_begins(time, ranks) or _guessed(of, kernel, ranks, domains)):
        return np.asarray(np.nanmax(np.where(time > 0, time, np.nan)) / ranks)
    return np.full(len(ranks), np.nan)


def _begins(time: Array, ranks: Array) -> bool:
    """Whether times (n,) fall nearly as 1 / ranks at the fewest of them."""
    known = np.flatnonzero(time > 0)
    if len(known) < FEWEST:
        return False
    first, second = known[np.argsort(ranks[known])][:2]
    return bool(np.log(time[second] / time[first]) / np.log(ranks[second] / ranks[first]) < BEGINS)


def _guessed(of: Any, kernel: str, ranks: Array, domains: Domains) -> bool:
    """Whether times alone, of one domain that may have been full from the first, leave open how work is divided."""
    if np.isfinite(of(kernel, "instructions")).any() or _begins(of(kernel, "time"), ranks):
        return False
    return bool((ranks <= domains.active(ranks)).all() and ranks.min() > EARLY * domains.cores)


def _least(readings: Readings, series: Series, program: str, how: str) -> Array:
    """Instructions of the rank with the fewest, of the kernel that is the `program`, at the configurations of
    `series`."""
    given = readings.series(("instructions",), "min")
    given = replace(given, points=in_cores(given.points, given.parameters))
    row = given.kernels.index(program)
    values = reduce(given.values[row], "median" if how == "auto" else how, axis=1)
    places = {tuple(point): float(value) for point, value in zip(given.points.tolist(), values, strict=True)}
    return np.array([places.get(tuple(point), np.nan) for point in series.points.tolist()])
