"""Counts of ranks that are teams of threads: means over the cores at work.

A tool that follows a process adds up what its threads do, so that a rank of four threads has four times the
instructions of one core. The equation, the clock and the bandwidth of a memory domain are those of cores. Where
``threads`` is a parameter, counts of every kernel are therefore divided by it, unless the tool gave a row for each
thread already. Times pass for all threads at once and stay, but for sampled ones: each thread is sampled while it runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Mask
from ranksight.core.metrics import metric
from ranksight.model.series.computation import EXCHANGED, THREADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ranksight.core.experiment import Experiment, Run
    from ranksight.core.metrics import Reduction
    from ranksight.model.series.reducing import Series

CYCLES = ("cycles", "reference_cycles", "stall_cycles", "cpu_time", "compute_cpu_time")
"""Times of threads that add up over them."""
NOT_ADDED = (*EXCHANGED, "visits")
"""Requirements that belong to the rank."""


def per_core(experiment: Experiment, series: Series, how: Mapping[str, Reduction]) -> Series:
    """The series with counts as means over cores, where `threads` is a parameter of the experiment.

    `series`: of its ranks. `how` (mapping of metric to str): how ranks became one value: a sum over ranks stays a sum.
    """
    if THREADS not in series.parameters:
        return series
    column = series.parameters.index(THREADS)
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    divided: dict[str, Mask] = {name: np.zeros(len(series.points), dtype=bool) for name in how}
    for run in experiment.runs:
        place = places.get(run.point(series.parameters))
        if run.state == "complete" and place is not None and not _by_thread(experiment, run):
            for name in experiment.columns(run, "counters"):
                if name in divided and _added(name, run) and how[name] != "sum":
                    divided[name][place] = True
    nothing = np.zeros(len(series.points), dtype=bool)
    over = np.stack([divided.get(name, nothing) for name in series.metrics])
    scale = np.where(over, 1 / np.maximum(series.points[:, column], 1.0), 1.0)[..., None]
    return replace(series, values=series.values * scale, worth=None if series.worth is None else series.worth * scale)


def _added(name: str, run: Run) -> bool:
    """Whether a tool that follows a process adds a metric up over its threads."""
    found = metric(name)
    if name == "time":
        return run.sampled(name)
    return name in CYCLES or (found.kind == "requirement" and found.additive and name not in NOT_ADDED)


def _by_thread(experiment: Experiment, run: Run) -> bool:
    """Whether a run has a row for each thread of each rank."""
    ranks, threads = (float(run.configuration.get(name, 1)) for name in ("ranks", THREADS))
    if threads <= 1:
        return True
    table = experiment.table(run, "counters", ["rank"])
    return table is not None and table["rank"].nunique() >= ranks * threads
