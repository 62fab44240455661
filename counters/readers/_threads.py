"""Threads of one rank: reduced to the rank, and kept apart in a table of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Ints


@dataclass(frozen=True, slots=True)
class Reduced:
    """One row a kernel x rank.

    Attributes
    ----------
    kernels, ranks : ndarray, shape (n,)
    columns : dict of str to ndarray, shape (n,)
    threads : DataFrame or None
        ``kernel``, ``rank``, ``thread`` and the values of every thread, where some rank has more than one.
    """

    kernels: NDArray[np.object_]
    ranks: Ints
    columns: dict[str, Array]
    threads: pd.DataFrame | None
    notes: tuple[str, ...]


def reduce_threads(
    kernels: NDArray[np.object_],
    ranks: Ints,
    threads: NDArray[np.object_],
    columns: Mapping[str, Array],
    how: Mapping[str, str],
) -> Reduced:
    """Reduce the threads of every rank.

    Parameters
    ----------
    kernels, ranks, threads : ndarray, shape (m,)
        Of each row; a thread stands once for a kernel on a rank.
    columns : mapping of str to ndarray, shape (m,)
    how : mapping of str to {"max", "mean"}
        Columns that are not added: time passes for all threads at once, so a rank's is its slowest thread's.
    """
    if len(set(zip(kernels.tolist(), ranks.tolist(), strict=True))) == len(kernels):
        return Reduced(kernels, ranks, dict(columns), None, ())
    table = pd.DataFrame({"kernel": kernels, "rank": ranks, "thread": threads, **columns})
    grouped = table.groupby(["kernel", "rank"], sort=False, observed=True)
    single = {
        name: getattr(grouped[name], how[name])() if name in how else grouped[name].sum(min_count=1) for name in columns
    }
    index = grouped.size().index
    note = "ranks have several threads: counts are added over them, time is that of the slowest"
    return Reduced(
        index.get_level_values("kernel").to_numpy(dtype=object),
        index.get_level_values("rank").to_numpy(),
        {name: series.to_numpy(dtype=np.float64) for name, series in single.items()},
        table,
        (note,),
    )
