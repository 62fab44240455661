"""The time in which cores run, and that in which they wait, of programs that were counted as a whole.

    T = T_running + T_waiting,    T_running = mean over ranks of (time - time_halted) = c / f

Cycles, and the laws that are made of them, are of the running time alone. Cores that are halted wait: for the start and
end of the processes, for files, asleep in messages, and for the system, which takes its share of any time. That grows
with the ranks where the running time falls, and no law of the one holds for the other. So the running time is a kernel,
and T_waiting, from the time of the slowest rank, is what the program takes outside of it
(:mod:`ranksight.model.application.others`).
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.waiting import HINDERED
from ranksight.core.arrays import Array
from ranksight.core.columns import Columns
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.metrics import metric
from ranksight.core.units import format_si, in_full
from ranksight.core.view import Change, View
from ranksight.model.priors import KERNELS_EXCESS, OTHERS_NEGLIGIBLE
from ranksight.model.series.computation import RUNNING

HALTED = "time_halted"
BETWEEN_CALLS, AT_WORK = "compute_time", "compute_cpu_time"
"""Time between MPI calls by the clock, and processor time of the same stretches."""


def parted(experiment: Experiment) -> Experiment:
    """The experiment with the running time as a kernel, where its runs know of it and it is not all of their time.

    No kernel must have been measured, and no message: these have the waiting in their times. Raises InputError where
    cores were halted for longer than a run took.
    """
    runs = [run for run in experiment.runs if run.state == "complete"]
    silent = (run for run in runs if not experiment.columns(run, "messages"))
    counted = (run for run in silent if {"time", HALTED} <= set(experiment.columns(run, "counters")))
    shares = np.array([_share(run, table) for run, table in experiment.counted(counted)])
    known = len(shares) == len(runs) > 0 and bool(np.isfinite(shares).all())
    return View(experiment, Parted()) if known and shares.max() > OTHERS_NEGLIGIBLE else experiment


def unworked(experiment: Experiment) -> str:
    """A sentence on the time between MPI calls in which no processor worked, of runs whose ranks had a core each; empty
    where that is little, or not known."""
    known = {BETWEEN_CALLS, AT_WORK}
    uncrowded = (run for run in experiment.runs if run.state == "complete" and not run.crowded)
    timed = [run for run in uncrowded if known <= set(experiment.columns(run, "counters"))]
    sums = []
    for run, table in experiment.counted(timed):
        took, worked = (np.nan_to_num(table.values[name]).sum() for name in (BETWEEN_CALLS, AT_WORK))
        if took > 0 < worked:
            sums.append((1 - worked / took, took, worked, run))
    if not sums or np.median([share for share, *_ in sums]) <= 1 - 1 / HINDERED:
        return ""
    share, took, worked, run = max(sums, key=lambda each: each[0])
    at = ", ".join(f"{name}={in_full(value)}" for name, value in run.configuration.items())
    return (
        f"no processor worked in up to {share:.0%} of the time between MPI calls ({format_si(took - worked, 's')} of "
        f"{format_si(took, 's')} over all ranks at {at}): files were read or written, ranks slept, or other programs "
        f"had the cores; {BETWEEN_CALLS} has that time and {AT_WORK} has not, and no law predicts it by itself"
    )


def _share(run: Run, table: Columns) -> float:
    """Share of a run's time in which its cores wait; NaN where that is not known."""
    if set(table.kernels) != {WHOLE}:
        return np.nan
    time, halted = table.values["time"], table.values[HALTED]
    if not np.isfinite(time).all() or not np.isfinite(halted).all() or not (time > 0).all():
        return np.nan
    longer = np.flatnonzero(halted > (1 + KERNELS_EXCESS) * time)
    if len(longer):
        at = longer[0]
        place = ", ".join(f"{name}={in_full(value)}" for name, value in run.configuration.items())
        raise InputError(
            f"{HALTED} is {halted[at]:.4g} s on rank {table.rank[at]} at {place}, and the run took {time[at]:.4g} s",
            "import it again without that column, or correct it",
        )
    running = _running(time, halted)
    return 1 - running / float(time.max()) if running > 0 else np.nan


def _running(time: Array, halted: Array) -> float:
    """Mean running time of the ranks."""
    return float(np.maximum(time - halted, 0.0).mean())


class Parted(Change):
    """The running time of whole programs as a kernel."""

    def counters(self, table: Columns) -> Columns:
        """See :meth:`~ranksight.core.experiment.Change.counters`."""
        if not {"time", HALTED} <= set(table.values):
            return table
        count, nothing = len(table), np.full(len(table), np.nan)
        running = np.full(count, _running(table.values["time"], table.values[HALTED]))
        values = {}
        for name, column in table.values.items():
            # What adds up over kernels is of those alone, and the waiting of the program.
            of_whole = name in ("time", HALTED) or not metric(name).additive
            of_kernel = nothing if name == HALTED else running if name == "time" else column
            values[name] = np.concatenate([column if of_whole else nothing, of_kernel])
        code = np.repeat(np.array([0, 1], dtype=np.intp), count)
        return Columns((WHOLE, RUNNING), code, np.tile(table.rank, 2), values)
