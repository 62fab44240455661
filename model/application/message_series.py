"""Counts and bytes of every kernel's operations as series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.comm_blocking import costs_time
from ranksight.model.series.reducing import Series
from ranksight.model.structure.stated import BETWEEN

if TYPE_CHECKING:
    import pandas as pd


def message_table(experiment: Experiment, run: Run) -> pd.DataFrame | None:
    """Counts and bytes of a run per rank: ``kernel``, ``rank``, ``messages``, ``bytes_sent``; a row an operation.

    The kernel's name has the operation's behind it. Operations that move nothing of their own (receives, completions,
    inquiries) are left out.
    """
    table = experiment.table(run, "messages")
    if table is None:
        return None
    table = table[np.array([costs_time(str(name)) for name in table["operation"]], dtype=bool)]
    names = table["kernel"].astype(str) + BETWEEN + table["operation"].astype(str)
    rows = table.assign(kernel=names, messages=table["count"].astype(float), bytes_sent=table["bytes"].astype(float))
    return rows.groupby(["kernel", "rank"], observed=True)[["messages", "bytes_sent"]].sum().reset_index()


def message_series(experiment: Experiment) -> Series | None:
    """``messages`` and ``bytes_sent`` of every kernel's operations, means over all ranks; None without traces.

    An operation that a traced run does not have moved nothing there.
    """
    configurations: dict[tuple[float, ...], int] = {}
    values_of: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    repeats: dict[int, int] = {}
    for run in experiment.runs:
        table = message_table(experiment, run)
        if table is None:
            continue
        place = configurations.setdefault(run.point(experiment.parameters), len(configurations))
        at = (place, repeats.get(place, 0))
        repeats[place] = at[1] + 1
        sums = table.groupby("kernel", observed=True)[["messages", "bytes_sent"]].sum() / run.configuration["ranks"]
        for name in sums.columns:
            for kernel, value in sums[name].items():
                values_of.setdefault((str(kernel), str(name)), {})[at] = float(value)
    if not values_of:
        return None
    counts = np.array([repeats[place] for place in range(len(configurations))])
    traced = np.arange(counts.max()) < counts[:, None]
    values = np.where(traced, 0.0, np.full((len(values_of), *traced.shape), np.nan))
    for row, cells in enumerate(values_of.values()):
        for (place, repetition), value in cells.items():
            values[row, place, repetition] = value
    points = np.array(list(configurations), dtype=np.float64)
    kernels, names = tuple(kernel for kernel, _ in values_of), tuple(name for _, name in values_of)
    return Series(experiment.parameters, points, values, kernels, names)
