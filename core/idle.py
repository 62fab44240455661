"""Ranks that did nothing in a kernel: tools write zeros for them, or no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Mask
from ranksight.core.columns import Columns

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Run


def at_work(run: Run, counters: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run's `counters` without those of ranks that did nothing in a kernel that others have.

    Tools that store kernel x rank as a matrix (Cube, spreadsheets) have zeros there, others no row. Both mean the same:
    a mean over ranks is over those that have the kernel. A kernel without samples may still have run.

    Parameters
    ----------
    counters : DataFrame
        ``kernel``, ``rank`` and one column of numbers a metric: all that the run has.
    """
    rows = working(run, Columns.of(counters))
    return counters if rows is None else counters[rows]


def working(run: Run, counters: Columns) -> Mask | None:
    """Which rows :func:`at_work` keeps; None where it keeps all."""
    values = counters.values
    if any(run.sampled(name) for name in values) or not any((column == 0).any() for column in values.values()):
        return None
    table = np.column_stack(list(values.values()))
    done = np.nan_to_num(table).any(axis=1)
    nothing = ~done & (table == 0).any(axis=1)
    if not nothing.any():
        return None
    others = np.zeros(len(counters.kernels), dtype=bool)
    others[counters.code[done]] = True
    return np.asarray(~(nothing & others[counters.code]))
