"""Messages at other configurations, by kernel and operation, and who sends to whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import Experiment, Run
from ranksight.core.names import printable, short_names
from ranksight.core.records import dataclass
from ranksight.model.structure.stated import BETWEEN
from ranksight.reports.sweep import Sweep

MOST_CELLS = 96  # rows of a matrix of ranks; more ranks are put together


@dataclass(frozen=True)
class Traffic:
    """Messages per rank of every kernel's operations at the k points of a sweep."""

    names: tuple[str, ...]  # kernel and operation
    messages: Array  # (s, k): seconds are NaN where no network is described
    bytes: Array  # (s, k)
    seconds: Array  # (s, k)
    formulas: tuple[tuple[str, str], ...]  # of messages and bytes

    def labels(self, width: int, rows: Sequence[int]) -> list[str]:
        """Names in `rows` as shown: of kernels `width` columns (:func:`ranksight.core.names.short_names`)."""
        parts = [self.names[row].rpartition(BETWEEN) for row in rows]
        shown = short_names((kernel for kernel, _, _ in parts), width)
        return [f"{shown[kernel]}{BETWEEN}{printable(operation)}" for kernel, _, operation in parts]


def traffic(sweep: Sweep) -> Traffic | None:
    """Messages that the model knows of; None where none were traced."""
    equation = sweep.model.equation
    if not equation.communication:
        return None
    functions = equation.communication.functions
    said = functions.predict(sweep.points).at(sweep.level)
    names, rows = equation.communication.names, functions.rows
    index = {metric: np.array([rows[name, metric] for name in names]) for metric in ("messages", "bytes_sent")}
    seconds = np.full((len(names), len(sweep.points)), np.nan)
    if sweep.breakdown.exchanged:
        seconds = sweep.breakdown.exchanged.times.value
    return Traffic(
        names,
        said.value[index["messages"]],
        said.value[index["bytes_sent"]],
        seconds,
        tuple(
            (functions.formula(int(one)), functions.formula(int(two)))
            for one, two in zip(index["messages"], index["bytes_sent"], strict=True)
        ),
    )


@dataclass(frozen=True)
class Pairs:
    """Who sends to whom in one run."""

    run: str  # its id
    ranks: int  # ranks of the run, and how many of them one row or column holds
    step: int
    bytes: Array  # (g, g): from row to column
    messages: Array  # (g, g)


def pairs(experiments: Sequence[Experiment]) -> Pairs | None:
    """The matrix of the run with most ranks whose peers are known; None without one."""
    runs = [(run, experiment) for experiment in experiments for run in experiment.runs if run.state == "complete"]
    runs.sort(key=lambda pair: -_ranks(pair[0]))
    for run, experiment in runs:
        table = experiment.table(run, "peers")
        if table is None or not {"rank", "peer", "operation", "bytes", "count"} <= set(table.columns):
            continue
        sent = table[~table["operation"].astype(str).str.contains("recv", case=False)]
        sent = sent[(sent["rank"] >= 0) & (sent["peer"] >= 0)]
        if sent.empty:
            continue
        ranks = int(max(_ranks(run), sent["rank"].max() + 1, sent["peer"].max() + 1))
        step = -(-ranks // MOST_CELLS)
        cells = -(-ranks // step)
        shape = (cells, cells)
        place = (sent["rank"].to_numpy() // step, sent["peer"].to_numpy() // step)
        volume, count = np.zeros(shape), np.zeros(shape)
        np.add.at(volume, place, sent["bytes"].to_numpy(dtype=np.float64))
        np.add.at(count, place, sent["count"].to_numpy(dtype=np.float64))
        return Pairs(run.id, ranks, step, volume, count)
    return None


def _ranks(run: Run) -> int:
    return int(run.configuration.get("ranks", 0))
