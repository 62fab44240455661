"""Work per rank that the user states, and the series that follow it alone.

Ding et al. 2018 (section 2) write the computation of a kernel as a function of the work per rank x = D / P. A parameter
named :data:`WORK_PER_RANK` is that x (``fit --work`` derives it): counts, rates and times of computation are then
functions of it and of what its formula does not name, and not of :data:`DIVIDERS`. Messages, imbalance and how full
nodes are go on depending on ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.mpi import communicates

if TYPE_CHECKING:
    from ranksight.model.series.reducing import Series

WORK_PER_RANK = "work_per_rank"
"""The parameter that computation depends on in place of :data:`DIVIDERS`."""
RUNNING = "(running)"
"""Kernel of the time in which the cores of a program run that was counted as a whole; its waiting is outside of it."""
PROGRAM = (WHOLE, RUNNING)
"""Kernels that are all of a program, with its messages."""
RANKS, THREADS = "ranks", "threads"
DIVIDERS = (RANKS, THREADS)
"""Parameters that work is divided by, or that do not change it."""
EXCHANGED = ("messages", "bytes_sent", "peers", "bytes_per_message")
"""Metrics of what ranks send."""
COUNTED = ("instructions", "cycles", "flops_dp", "loads")
"""Metrics that a kernel which computes has where they were counted."""
BLOCKING = "bf_mem"
"""Series of blocking factors (:mod:`ranksight.model.resource.blocking`)."""
NOT_OF_KERNELS = ("mpi_time", "wall_time", "time_halted", "visits")
"""Metrics of kind time or requirement that say nothing of computation."""


def in_cores(points: Array, parameters: Sequence[str]) -> Array:
    """The points (k, m) with the cores at work, ranks times threads, in place of the ranks."""
    if RANKS not in parameters or THREADS not in parameters:
        return points
    cores_of = np.array(points, dtype=np.float64)
    cores_of[:, parameters.index(RANKS)] *= cores_of[:, parameters.index(THREADS)]
    return cores_of


def cores(points: Array, parameters: Sequence[str]) -> Array:
    """Cores at work (k,) at `points` (k, m): ranks times threads; 1 where neither is a parameter."""
    columns = [at for at, name in enumerate(parameters) if name in DIVIDERS]
    return np.asarray(points[:, columns].prod(axis=1), dtype=np.float64)


def exchanging(series: Series) -> set[str]:
    """Kernels that exchange messages: they send, are MPI's (:mod:`ranksight.core.mpi`), or have a time and no counts,
    with other kernels that have counts."""
    keys = series.keys
    counted = {kernel for kernel, name in keys if name in COUNTED and kernel != WHOLE}
    names = {kernel for kernel, name in keys if name in EXCHANGED or communicates(kernel)}
    if counted:
        names |= {kernel for kernel, name in keys if name == "time" and kernel not in counted}
    return names


def waiting(series: Series) -> set[str]:
    """Kernels whose time is no work that ranks share: they exchange messages (:func:`exchanging`), or take none at some
    configurations, as one rank has nothing to exchange, and nothing was counted of what they compute."""
    known, positive = (np.asarray(each.any(axis=2)) for each in (np.isfinite(series.values), series.values > 0))
    none = np.asarray((known & ~positive).any(axis=1) & ~series.sampled)
    idle = {kernel for (kernel, name), some in zip(series.keys, none.tolist(), strict=True) if some and name == "time"}
    computing = {kernel for kernel, name in series.keys if name in COUNTED}
    return (exchanging(series) | idle) - computing - set(PROGRAM)


def apart_from_ranks(series: Series) -> Mask:
    """Which parameters change nothing in each series, (s, m): :data:`DIVIDERS`, in computation whose work per rank is
    stated.

    The whole program is computation where no kernel was measured apart.
    """
    aside = np.zeros((len(series), len(series.parameters)), dtype=bool)
    if WORK_PER_RANK not in series.parameters:
        return aside
    exchanged = exchanging(series)
    if set(series.kernels) - {WHOLE}:
        exchanged.add(WHOLE)
    kinds = {name: "ratio" if name == BLOCKING else metric(name).kind for name in set(series.metrics)}
    rows = np.array(
        [
            kernel not in exchanged and kinds[name] in ("requirement", "time", "ratio") and name not in NOT_OF_KERNELS
            for kernel, name in series.keys
        ],
        dtype=bool,
    )
    return np.asarray(rows[:, None] & np.isin(series.parameters, DIVIDERS))
