"""Counters of a run as one value a kernel and metric: reduced over its ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, Experiment, Run
from ranksight.core.idle import working
from ranksight.core.metrics import REDUCTIONS, Reduction, metric
from ranksight.model.series.computation import EXCHANGED, THREADS
from ranksight.model.series.reduction import reduce

SENT = ("messages", "bytes_sent")


def traced(experiment: Experiment, run: Run) -> bool:
    """Whether all that kernels of a run sent is known: a kernel or rank that is not listed then sent nothing."""
    return "ranks" in run.configuration and "bytes" in experiment.columns(run, "messages")


def reduction_of(name: str, over_ranks: Reduction | Mapping[str, Reduction] | None) -> Reduction:
    if over_ranks is None:
        return metric(name).over_ranks
    how = over_ranks.get(name, metric(name).over_ranks) if isinstance(over_ranks, Mapping) else over_ranks
    if how not in REDUCTIONS:
        raise InputError(f"no reduction is named {how!r}", f"known: {', '.join(REDUCTIONS)}")
    return how


def reduced(experiment: Experiment, run: Run, how: Mapping[str, Reduction]) -> list[tuple[str, list[str], Array]]:
    """Metric, kernels and their values over ranks, of one run.

    Means are over the ranks that have a kernel. Of what is sent they are over all: a rank that a trace has no row of
    sent nothing.
    """
    columns = experiment.columns(run, "counters")
    names = [name for name in how if name in columns]
    table = experiment.arrays(run) if names else None
    if table is None or not len(table):
        return []
    rows = working(run, table)
    table = table if rows is None else table.select(rows)
    codes, kernels = table.code, list(table.kernels)
    whole = table.rank == ALL_RANKS
    order = np.lexsort((table.rank, codes))
    codes, whole = codes[order], whole[order]
    # A kernel x rank matrix, filled at (kernel, position of the rank within the kernel); NaN pads kernels that not
    # all ranks have.
    starts = np.searchsorted(codes, np.arange(len(kernels) + 1))
    position = np.arange(len(codes)) - starts[codes]
    result = []
    for name in names:
        column = table.values[name][order]
        if np.isinf(column).any():
            at = kernels[codes[int(np.flatnonzero(np.isinf(column))[0])]]
            raise InputError(
                f"{experiment.path / 'runs' / run.id}: {name} of kernel {at!r} is infinite",
                "correct the value and import the run again",
            )
        matrix = np.full((len(kernels), int(position.max()) + 1), np.nan)
        matrix[codes, position] = np.where(whole, np.nan, column)
        reduced = reduce(matrix, how[name], axis=1)
        if name in SENT and how[name] == "mean" and traced(experiment, run):
            reduced *= np.isfinite(matrix).sum(axis=1) / run.configuration["ranks"]
        present = whole & ~np.isnan(column)
        reduced[codes[present]] = column[present] * _times(run, name, how[name])
        keep = ~np.isnan(reduced)
        if keep.any():
            some = kernels if keep.all() else [k for k, yes in zip(kernels, keep, strict=True) if yes]
            result.append((name, some, reduced[keep]))
    return result


def _times(run: Run, name: str, how: Reduction) -> float:
    """What makes a value of all ranks together the reduction that is asked for: a rank's becomes a sum over ranks.

    Sums were divided where they were stored (:meth:`ranksight.core.reading.Reading.per_rank`), but for those of sockets
    and nodes.
    """
    meaning = run.meaning(name)
    single = how == "sum" and meaning.over in ("one", "mean", "max")
    return float(run.configuration.get("ranks", 1.0)) if single else 1.0


CYCLES = ("cycles", "reference_cycles", "stall_cycles", "cpu_time", "compute_cpu_time")
"""Times of threads that add up over them."""
NOT_ADDED = (*EXCHANGED, "visits")
"""Requirements that belong to the rank."""


def added(name: str, run: Run) -> bool:
    """Whether a tool that follows a process adds a metric up over its threads."""
    described = metric(name)
    if name == "time":
        return run.sampled(name)
    return name in CYCLES or (described.kind == "requirement" and described.additive and name not in NOT_ADDED)


def by_thread(experiment: Experiment, run: Run) -> bool:
    """Whether a run has a row for each thread of each rank."""
    ranks, threads = (float(run.configuration.get(name, 1)) for name in ("ranks", THREADS))
    if threads <= 1:
        return True
    table = experiment.table(run, "counters", ["rank"])
    return table is not None and table["rank"].nunique() >= ranks * threads
