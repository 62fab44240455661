"""Messages where their time was measured: how long they hold the program up, and the papers' fitted forms.

What a program takes outside of its computation, in units of what its messages alone would take on the described
network,

    BF_comm = (T_app - T_comp - T_others) / T_comm,

is 1 where nothing waits and nothing overlaps, more with waiting, less with overlap (Ding et al. 2018, Table 2;
:func:`ranksight.comm.waiting.blocking_factor`). Apart from any network, what one call of an operation took is fitted by
``t = a s + b`` (point-to-point) and ``t = a log2 P + b s + c`` (collectives), of the least over ranks, which waits for
nobody (:mod:`ranksight.comm.costs.fitted`). Runs whose ranks shared cores tell neither: the scheduler's waiting is in
their times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.fitted import fit_collective, fit_point_to_point
from ranksight.comm.costs.messages import message_times
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.waiting import blocking_factor, shares_cores
from ranksight.errors import InputError, InsufficientError
from ranksight.experiment import WHOLE, Experiment, Run

if TYPE_CHECKING:
    from ranksight.comm.costs.fabric import Fabric

BLOCKING = ("configuration", "ranks", "application", "computation", "messages", "factor")
FITTED = ("operation", "formula", "scatter", "points", "reason")
KEYS = ["operation", "comm_size", "size_class"]


def observe_exchanges(experiment: Experiment, fabric: Fabric | None = None) -> dict[str, Any]:
    """What messages took at the configurations measured with several ranks, none of which shared a core.

    Returns
    -------
    dict
        ``blocking``: a row a configuration of :data:`BLOCKING`, means over repetitions, where `fabric` is given;
        ``fitted``: a row an operation of :data:`FITTED`. Each where there is something to tell.
    """
    blocking: dict[tuple[float, ...], list[tuple[float, float, float]]] = {}
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
        times = _times(experiment, run)
        if fabric is not None and times is not None:
            seconds = message_times(table, fabric).fillna(0.0).groupby(table["rank"]).sum()
            point = tuple(float(run.configuration[name]) for name in experiment.parameters)
            blocking.setdefault(point, []).append((*times, float(seconds.max())))
    found: dict[str, Any] = {}
    if rows := [row for point, several in blocking.items() if (row := _blocking(experiment, point, several))]:
        found["blocking"] = rows
    if calls and (forms := _forms(pd.concat(calls, ignore_index=True))):
        found["fitted"] = forms
    return found


def _times(experiment: Experiment, run: Run) -> tuple[float, float] | None:
    """Seconds from MPI_Init to MPI_Finalize, and those between MPI calls, mean over ranks."""
    counters = experiment.table(run, "counters")
    if counters is None or not {"wall_time", "compute_time"} <= set(counters.columns):
        return None
    whole = counters[counters["kernel"] == WHOLE]
    wall, compute = float(whole["wall_time"].max()), float(whole["compute_time"].mean())
    return (wall, compute) if 0 < compute <= wall else None


def _blocking(
    experiment: Experiment, point: tuple[float, ...], several: list[tuple[float, float, float]]
) -> dict[str, Any] | None:
    application, computation, messages = np.mean(several, axis=0).tolist()
    try:
        factor = float(blocking_factor(application, computation, messages))
    except InputError:  # nothing described carries the time that is left
        return None
    where = dict(zip(experiment.parameters, point, strict=True))
    numbers = {"application": application, "computation": computation, "messages": messages, "factor": factor}
    return {"configuration": where, "ranks": int(where["ranks"]), **numbers} if np.isfinite(factor) else None


def _calls(table: pd.DataFrame) -> pd.DataFrame:
    """Bytes and seconds of one call of each operation, communicator and size class, the least over ranks."""
    rows = table[table["count"] > 0]
    sums = rows.groupby([*KEYS, "rank"], observed=True)[["count", "bytes", "seconds"]].sum().reset_index()
    each = sums.assign(bytes=sums["bytes"] / sums["count"], seconds=sums["seconds"] / sums["count"])
    return each.groupby(KEYS, observed=True)[["bytes", "seconds"]].min().reset_index()


def _forms(calls: pd.DataFrame) -> list[dict[str, Any]]:
    """The fitted form of each operation whose time alone tells its cost: those that return when all is done."""
    found = []
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
            found.append({**row, "reason": error.what, "scatter": None})
            continue
        found.append({**row, "formula": form.formula, "scatter": form.residual, "reason": ""})
    return found


def blocking_table(observed: Mapping[str, Any]) -> pd.DataFrame:
    """BF_comm of each configuration measured: :data:`BLOCKING`, seconds; empty where nothing tells it."""
    return pd.DataFrame(observed.get("blocking", []), columns=list(BLOCKING))


def fitted_table(observed: Mapping[str, Any]) -> pd.DataFrame:
    """Fitted form of each operation: :data:`FITTED`; ``formula`` is empty and ``reason`` says why where none fits."""
    return pd.DataFrame(observed.get("fitted", []), columns=list(FITTED))
