"""Ranks that did nothing in a kernel: tools write zeros for them, or no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Mask
from ranksight.core.columns import Columns

if TYPE_CHECKING:
    from ranksight.core.run import Run


def working(run: Run, counters: Columns) -> Mask:
    """Which rows of a run's `counters` are not of ranks that did nothing in a kernel that others have.

    Tools that store kernel x rank as a matrix (Cube, spreadsheets) have zeros there, others no row. Both mean the same:
    a mean over ranks is over those that have the kernel. A kernel without samples may still have run. `counters`: with
    all metrics that the run has.
    """
    values = counters.values
    if any(run.sampled(name) for name in values) or not any((column == 0).any() for column in values.values()):
        return np.ones(len(counters), dtype=bool)
    table = np.column_stack(list(values.values()))
    done = np.nan_to_num(table).any(axis=1)
    nothing = ~done & (table == 0).any(axis=1)
    others = np.zeros(len(counters.kernels), dtype=bool)
    others[counters.code[done]] = True
    return np.asarray(~(nothing & others[counters.code]))
