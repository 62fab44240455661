"""Communication where its time was measured: BF_comm over configurations, and the papers' fitted forms.

BF_comm is the measured time of communication over the modelled one (:mod:`ranksight.model.application.comm_blocking`).
What one call of an operation took is fitted, apart from any network, by ``t = a s + b`` (point-to-point) and ``t = a
log2 P + b s + c`` (collectives), of the least over ranks, which waits for nobody (:mod:`ranksight.comm.costs.fitted`).
Runs whose ranks shared cores give neither: the scheduler's waiting is in their times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.fitted import fit_collective, fit_point_to_point
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.waiting import shares_cores
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.core.units import format_si
from ranksight.model.application import thresholds
from ranksight.model.application.exchanged import EXCHANGED
from ranksight.model.structure.stated import BETWEEN

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.fitted_model import Model


ALGORITHMS = (
    *("kernel", "operation", "ranks", "bytes", "algorithm", "seconds", "share", "runs"),
    *("other", "other_seconds", "others"),
)
"""Columns of collectives' algorithms: ranks of the communicator, bytes and seconds of a call on the network, its share
of the communication; the algorithm in the runs; the fastest other one, what it takes, and the fastest few in words."""
SOME = 3
"""Other algorithms that are named."""
FITTED = ("operation", "formula", "scatter", "points", "reason")
KEYS = ["operation", "comm_size", "size_class"]


def observe_exchanges(experiment: Experiment) -> dict[str, Any]:
    """What messages took at the configurations measured with several ranks, none of which shared a core.

    Entries: ``fitted``: a row an operation of :data:`FITTED`, where operations were timed.
    """
    calls: list[pd.DataFrame] = []
    for run in experiment.runs:
        table = experiment.table(run, "messages")
        if table is None or run.configuration.get("ranks", 1) < 2:
            continue
        if shares_cores(run, experiment.table(run, "counters")):
            continue
        if (table["rank"] < 0).any() or not {"seconds", *KEYS} <= set(table.columns):
            continue
        calls.append(_calls(table))
    if not calls:
        return {}
    import pandas as pd

    forms = _forms(pd.concat(calls, ignore_index=True))
    return {"fitted": forms} if forms else {}


def _calls(table: pd.DataFrame) -> pd.DataFrame:
    """Bytes and seconds of one call of each operation, communicator and size class, the least over ranks."""
    rows = table[table["count"] > 0]
    sums = rows.groupby([*KEYS, "rank"], observed=True)[["count", "bytes", "seconds"]].sum().reset_index()
    each = sums.assign(bytes=sums["bytes"] / sums["count"], seconds=sums["seconds"] / sums["count"])
    return each.groupby(KEYS, observed=True)[["bytes", "seconds"]].min().reset_index()


def _forms(calls: pd.DataFrame) -> list[dict[str, Any]]:
    """The fitted form of each operation whose time alone gives its cost: those that return when all is done."""
    records = []
    for operation, rows in calls.groupby(calls["operation"].astype(str)):
        name = operation_name(str(operation))
        collective = name in OPERATIONS
        if not collective and name not in SENDS:
            continue
        row: dict[str, Any] = {"operation": str(operation), "formula": "", "scatter": np.nan, "points": len(rows)}
        try:
            if collective:
                form = fit_collective(rows["comm_size"], rows["bytes"], rows["seconds"])
            else:
                form = fit_point_to_point(rows["bytes"], rows["seconds"])
        except (InsufficientError, InputError) as error:
            records.append({**row, "reason": error.what, "scatter": None})
            continue
        records.append({**row, "formula": form.formula, "scatter": form.residual, "reason": ""})
    return records


def blocking_table(model: Model, points: Array, level: float) -> pd.DataFrame:
    """BF_comm at `points` (k, m): columns :data:`ranksight.model.application.communication.EXCHANGED`; empty where no
    communication time was measured or no network is described."""
    import pandas as pd

    sent, network = model.equation.communication, model.equation.network
    rows: list[dict[str, Any]] = []
    if sent.blocking is not None and network:
        exchanged = model.breakdown(points).exchanged
        rows = exchanged.at(level).table(model.parameters, points) if exchanged else []
    return pd.DataFrame(rows, columns=list(EXCHANGED))


def algorithms_table(model: Model, point: Array) -> pd.DataFrame:
    """Algorithm of each kernel's collectives at `point` (m,), and what others would take: columns :data:`ALGORITHMS`,
    the largest part of the communication first; empty where no network is described."""
    import pandas as pd

    sent, network = model.equation.communication, model.equation.network
    rows: list[dict[str, Any]] = []
    if sent and network:
        fabric, choice = network.fabric(), network.choice()
        traced = sent.points if len(sent.points) else model.training
        order = np.argsort(traced[:, model.parameters.index("ranks")], kind="stable")
        *runs, asked = sent.calls(np.concatenate([traced[order], point[None]]), network)
        total = dict(zip(sent.names, sent.exchanged(point[None], network).times.value[:, 0].tolist(), strict=True))
        for key, call in asked.items():
            each = thresholds.others(key[1], call, fabric, choice)
            if call.ranks < 2 or not each:
                continue
            other, seconds = next(iter(each.items()))
            before = [run[key].way for run in runs if key in run and run[key].way]
            share = total.get(BETWEEN.join(key), 0.0) / max(sum(total.values()), 1e-300)
            others = ", ".join(f"{way} {format_si(x, 's')}" for way, x in list(each.items())[:SOME])
            values = (*key, call.ranks, call.size, call.way, call.seconds, share, before[-1] if before else "")
            rows.append(dict(zip(ALGORITHMS, (*values, other, seconds, others), strict=True)))
    rows.sort(key=lambda row: -row["share"])
    return pd.DataFrame(rows, columns=list(ALGORITHMS))


def fitted_table(observed: Mapping[str, Any]) -> pd.DataFrame:
    """Fitted form of each operation: :data:`FITTED`; ``formula`` is empty and ``reason`` says why where none fits."""
    import pandas as pd

    return pd.DataFrame(observed.get("fitted", []), columns=list(FITTED))
