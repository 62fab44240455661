"""Counts and bytes of every kernel's operations as series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.comm_blocking import costs_time
from ranksight.model.series.reducing import Series
from ranksight.model.structure.stated import BETWEEN

if TYPE_CHECKING:
    import pandas as pd


def message_tables(experiment: Experiment) -> Iterator[tuple[Run, pd.DataFrame]]:
    """Counts and bytes per rank of each run that has messages: ``kernel``, ``rank``, ``messages``, ``bytes_sent``.

    A row is of an operation, whose name is behind the kernel's. Operations that move nothing of their own (receives,
    completions, inquiries) are left out.
    """
    for run, every in experiment.tables("messages"):
        table = every[np.array([costs_time(str(name)) for name in every["operation"]], dtype=bool)]
        names = table["kernel"].astype(str) + BETWEEN + table["operation"].astype(str)
        counts, volumes = table["count"].astype(float), table["bytes"].astype(float)
        sent = table.assign(kernel=names, messages=counts, bytes_sent=volumes)
        yield run, sent.groupby(["kernel", "rank"], observed=True)[["messages", "bytes_sent"]].sum().reset_index()


def message_series(experiment: Experiment) -> Series | None:
    """``messages`` and ``bytes_sent`` of every kernel's operations, means over all ranks; None without traces.

    An operation that a traced run does not have moved nothing there.
    """
    configurations: dict[tuple[float, ...], int] = {}
    values_of: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    repeats: dict[int, int] = {}
    for run, table in message_tables(experiment):
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
