"""Whose times those are that no rank is named with: of the slowest rank, or of the mean.

Tables of times without ranks do not say it. Where instructions were counted by rank, they do: a kernel's time per
instruction changes little from run to run, so that the times are in proportion to the counts that they are of. What one
rank does alone is the same in every run by its largest count, and falls with the ranks by the mean.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.columns import Columns
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.idle import working
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

SLOWEST, MEAN, MEAN_OF_ALL = "slowest rank", "mean of the ranks that have a kernel", "mean of all ranks"
MEANINGS = (SLOWEST, MEAN, MEAN_OF_ALL)
WORK = "instructions"
FEWEST = 2
"""Configurations of a kernel that compare two meanings."""
CLEAR = 0.5
"""Part of the scatter of time per instruction by another meaning that the best may leave, to be taken."""


def values_of_totals(experiment: Experiment, times: Series) -> str:
    """One of :data:`MEANINGS` for the times (s, n, r) of kernels without ranks; empty where counts do not decide it."""
    parameters = experiment.parameters
    if "ranks" not in parameters or any(_by_rank(table) for _, table in experiment.counted()):
        return ""
    points = {tuple(point): at for at, point in enumerate(times.points.tolist())}
    rows_of = {kernel: at for at, (kernel, name) in enumerate(times.keys) if name == "time" and kernel != WHOLE}
    kernels = {kernel: at for at, kernel in enumerate(rows_of)}
    counts = np.full((len(MEANINGS), len(rows_of), len(points)), np.nan)
    for run, table in experiment.counted(run for run in experiment.runs if run.point(parameters) in points):
        place = points[run.point(parameters)]
        if WORK not in table.values or run.sampled(WORK):
            continue
        rows = working(run, table)
        table = table if rows is None else table.select(rows)
        ranks = float(run.configuration["ranks"])
        for code, kernel in enumerate(table.kernels):
            of_kernel = (table.code == code) & (table.rank != ALL_RANKS)
            work = table.values[WORK][of_kernel]
            work = work[np.isfinite(work)]
            if kernel in kernels and len(work) and ranks > 1:
                counts[:, kernels[kernel], place] = work.max(), work.mean(), work.sum() / ranks
    medians = reduce(times.values[list(rows_of.values())], "median", axis=2)
    return _steadiest(medians, counts)


def _by_rank(table: Columns) -> bool:
    """Whether counters of a run have times by rank."""
    return "time" in table.values and bool((np.isfinite(table.values["time"]) & (table.rank != ALL_RANKS)).any())


def _steadiest(times: Array, counts: Array) -> str:
    """The meaning by which time (K, n) per count (m, K, n) changes least; empty where none is clear."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pace = np.log(times / counts)
    known = np.isfinite(pace).all(axis=0)
    known &= known.sum(axis=1, keepdims=True) >= FEWEST
    # Where all meanings are the same count, nothing is to be decided.
    known &= (np.ptp(np.where(known, pace, 0.0), axis=0) > 0).any(axis=1, keepdims=True)
    if not known.any():
        return ""
    count = np.maximum(known.sum(axis=1), 1)
    pace = np.where(known, pace, 0.0)
    centre = pace.sum(axis=2) / count
    square = (np.where(known, pace - centre[:, :, None], 0.0) ** 2).sum(axis=2) / count
    weight = np.where(known, times, 0.0).sum(axis=1)
    scatter = np.sqrt((square * weight).sum(axis=1) / weight.sum())
    best = int(scatter.argmin())
    others = scatter[np.arange(len(scatter)) != best]
    # Means over those that have a kernel and over all are one where all have each kernel.
    distinct = others[~np.isclose(others, scatter[best], rtol=1e-6, atol=1e-12)]
    return MEANINGS[best] if len(distinct) and scatter[best] <= CLEAR * distinct.min() else ""
