"""The messages of phases on a described network, where their time in MPI was not measured truthfully.

Counts and bytes of each phase's operations are modelled as those of kernels are, over all configurations traced, and
put on the network in the same way: see :mod:`ranksight.model.application.communication`.

Source: Panadero et al. 2015, section 2.2.1, models data volumes by regression; its physical trace is run, not computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import Calls, traced
from ranksight.analysis.phases.relate import UNRELATED, Related
from ranksight.core.arrays import Array
from ranksight.core.experiment import Experiment, Run
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import costs_time
from ranksight.model.application.communication import Communication
from ranksight.model.application.network import Network
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.structure.structured import structured
from ranksight.platforms import Platform

_METRICS = ("messages", "bytes_sent")


@dataclass(frozen=True)
class Messages(Stored):
    """Messages of all phases, and the network they go over."""

    platform: str  # name of the network's platform
    parameters: tuple[str, ...]  # of the experiment
    communication: Communication  # its rows are named ``number: operation``
    network: Network

    def times(self, ranks: Array, workload: Mapping[str, float], level: float) -> dict[int, Array]:
        """Seconds of each phase's messages in the whole run, by its number, at k rank counts."""
        points = np.array([[p if name == "ranks" else workload[name] for name in self.parameters] for p in ranks])
        predicted = self.communication.times(points, self.network.fabric(), self.network.choice()).at(level)
        seconds_of: dict[int, Array] = {}
        for at, name in enumerate(self.communication.names):
            number = int(name.partition(BETWEEN)[0])
            seconds_of[number] = seconds_of.get(number, np.zeros(len(points))) + predicted.value[at]
        return seconds_of

    def _fits(self) -> bool:
        numbers = [name.partition(BETWEEN)[0] for name in self.communication.names]
        return all(number.isdecimal() for number in numbers)


def phase_messages(
    experiment: Experiment, traces: Sequence[Calls], related: Related, platform: Platform
) -> Messages | None:
    """Learn how the phases' messages grow; None without messages or without a described network."""
    if not platform.network:
        return None
    tables = {
        _point(experiment, calls.configuration): _counts(table)
        for calls, table in zip(traces, related.labelled, strict=True)
    }
    pairs = zip(traces, tables.values(), strict=True)
    each = [table.groupby("kernel")[list(_METRICS)].sum() / calls.ranks for calls, table in pairs]
    sums = pd.DataFrame(pd.concat(dict(enumerate(each)), names=["at"]).unstack("at"))
    if sums.empty:
        return None
    sums = sums.reindex(columns=pd.MultiIndex.from_product([_METRICS, range(len(each))]))
    values = sums.to_numpy(dtype=float).reshape(len(sums), len(_METRICS), -1).swapaxes(0, 1)
    kernels, metrics = tuple(sums.index) * len(_METRICS), np.repeat(_METRICS, len(sums)).tolist()
    points = np.array(list(tables), dtype=np.float64)
    series = Series(experiment.parameters, points, values.reshape(-1, len(points), 1), kernels, tuple(metrics))
    first = {point: runs[0].id for point, runs in traced(experiment).items()}

    def of_first_runs() -> Iterator[tuple[Run, pd.DataFrame]]:
        for run in experiment.runs:
            point = _point(experiment, run.configuration)
            if first.get(point) == run.id:
                yield run, tables[point]

    functions = structured(experiment, series, fit_series(series), of_first_runs)
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
