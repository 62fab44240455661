"""Ranks that did nothing in a kernel: tools write zeros for them, or no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.experiment import COUNTER_KEYS

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Run


def at_work(run: Run, counters: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run's `counters` without those of ranks that did nothing in a kernel that others have.

    Tools that store kernel x rank as a matrix (Cube, spreadsheets) have zeros there, others no row. Both mean the same:
    a mean over ranks is over those that have the kernel. A kernel without samples may still have run.

    Parameters
    ----------
    run : Run
    counters : DataFrame
        ``kernel``, ``rank`` and one column of numbers a metric: all that the run has.
    """
    names = [name for name in counters.columns if name not in COUNTER_KEYS]
    if any(run.sampled(name) for name in names):
        return counters
    columns = [counters[name].to_numpy() for name in names]
    if not any((column == 0).any() for column in columns):
        return counters
    values = counters[names].to_numpy(dtype=np.float64)
    nothing = (np.nan_to_num(values) == 0).all(axis=1) & (values == 0).any(axis=1)
    if not nothing.any():
        return counters
    others = counters["kernel"].isin(counters["kernel"][np.nan_to_num(values).any(axis=1)].unique()).to_numpy()
    kept: pd.DataFrame = counters[~(nothing & others)]
    return kept
