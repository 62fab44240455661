"""Learning how the messages of phases grow.

Source: Panadero et al. 2015, section 2.2.1, models data volumes by regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import Calls, traced
from ranksight.analysis.phases.messages import Messages
from ranksight.analysis.phases.relate import UNRELATED, Related
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.blocking import costs_time
from ranksight.model.application.communication import Communication
from ranksight.model.application.network import Network
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.series.series import Series
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.structure.structured import structured
from ranksight.platforms import Platform

_METRICS = ("messages", "bytes_sent")


def phase_messages(
    experiment: Experiment, given: Sequence[Calls], related: Related, platform: Platform
) -> Messages | None:
    """Learn how the phases' messages grow; None without messages or without a described network."""
    if not platform.network:
        return None
    tables = {
        _point(experiment, calls.configuration): _counts(table)
        for calls, table in zip(given, related.labelled, strict=True)
    }
    names = sorted({kernel for table in tables.values() for kernel in table["kernel"]})
    if not names:
        return None
    values = np.full((len(_METRICS) * len(names), len(tables), 1), np.nan)
    for at, (calls, table) in enumerate(zip(given, tables.values(), strict=True)):
        sums = table.groupby("kernel")[list(_METRICS)].sum() / calls.ranks
        for row, metric in enumerate(_METRICS):
            mine = sums[metric].reindex(names).to_numpy(dtype=float)
            values[row * len(names) : (row + 1) * len(names), at, 0] = mine
    points = np.array(list(tables), dtype=np.float64)
    kernels = tuple(names) * len(_METRICS)
    series = Series(experiment.parameters, points, values, kernels, tuple(np.repeat(_METRICS, len(names)).tolist()))
    first = {point: runs[0].id for point, runs in traced(experiment).items()}

    def table_of(run: Run) -> pd.DataFrame | None:
        point = _point(experiment, run.configuration)
        return tables[point] if first.get(point) == run.id else None

    functions = structured(experiment, series, fit_series(series), table_of)
    network = Network(dict(platform.network), platform.cores if "inter" in platform.network else 1 << 30)
    return Messages(platform.name, tuple(experiment.parameters), Communication(functions), network)


def _point(experiment: Experiment, configuration: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(float(configuration[name]) for name in experiment.parameters)


def _counts(table: pd.DataFrame) -> pd.DataFrame:
    """Counts and bytes of a configuration: ``kernel`` (phase and operation), ``rank``, ``messages``, ``bytes_sent``."""
    known = {name: costs_time(name) for name in table["operation"].unique()}
    chosen = table[(table["phase"] != UNRELATED) & table["operation"].map(known).astype(bool)]
    names = (chosen["phase"] + 1).astype(str) + BETWEEN + chosen["operation"].astype(str)
    grouped = chosen.assign(kernel=names).groupby(["kernel", "rank"])["bytes"]
    return pd.DataFrame({"messages": grouped.size().astype(float), "bytes_sent": grouped.sum()}).reset_index()
