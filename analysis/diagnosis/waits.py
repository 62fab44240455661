"""Wait states: time in MPI that the messages do not explain, inferred from each rank's time in each operation.

Messages cost what LogGP says; a rank that arrives early waits besides. Two patterns are distinguished:

- *serialisation*: what rank r waits grows with r, as each starts only when the one before has sent (a ring or chain
  that hands something on, a file written in turns). The rank that waits longest waits for all others, so the time a
  step takes grows with the ranks whatever each has to do (the pattern behind Calotoiu et al. 2013, section 4, where
  volumes are constant and the time to receive is not);
- *late arrival*: some ranks wait at a collective operation or a receive for one that is late; the least over ranks is
  the operation's own time (:mod:`ranksight.comm.waiting`). With an event trace, waiting follows from its matched sends
  and receives (:mod:`ranksight.comm.matched`).

Times of ranks that shared cores hold the scheduler's waiting: late arrival is not reported then. A chain is, by its
order over many runs: the scheduler does not wait longer the higher the rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.comm import matched
from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.waiting import shares_cores, split
from ranksight.core import limits
from ranksight.core.experiment import Experiment, Run

MOVING = "spcwr"
"""Kinds of operations that send, receive, complete or are collective (:mod:`ranksight.comm.tracer.operations`); others
set communicators up, once, and start and end MPI."""
RECEIVES = ("recv", "wait", "probe")
"""Parts of the names of further operations that may wait, where a table does not record kinds."""
OFTEN = 5
"""Calls a rank from which waiting is a state of the program and not a single start together."""
COLUMNS = ("configuration", "kernel", "operation", "collective", "ranks", "calls", "seconds", "least", "waiting",
           "most", "order", "score", "trials", "part", "late", "shared")  # fmt: skip
CERTAIN = 4.0
"""Standard deviations by which waiting must follow the number of the rank, over all runs, to report a chain."""
ORDERED = 0.5
"""Rank correlation (Spearman) with the number of the rank below which a configuration is not said to wait in turn."""
FEWEST = 4
"""Ranks from which an order is looked for."""
HEAVY = 0.01
"""Part of the run's time that must be waited before a kernel is named."""


def observe_waits(experiment: Experiment) -> list[dict[str, Any]]:
    """Waiting of each kernel's operations at each configuration with several ranks.

    Entries: ``configuration`` (values of the parameters), ``kernel``, ``operation``, ``collective``, ``ranks``,
    ``calls`` (a rank), ``seconds`` and ``least`` (mean and least over ranks of the time in it), ``waiting`` (mean
    beyond the least, or that of an event trace), ``most`` (of a rank), ``order`` (rank correlation of the time with the
    rank's number, mean over repetitions), ``score`` and ``trials`` (its sum in standard deviations, and repetitions),
    ``part`` (of the run's wall time that ranks wait in it), ``late`` (the rank that waits least in every one of several
    repetitions; -1 where it changes, as it does by jitter), ``shared`` (whether ranks shared cores).
    """
    runs: dict[tuple[float, ...], list[tuple[pd.DataFrame, float, bool]]] = {}
    traced: dict[tuple[float, ...], list[pd.Series[float]]] = {}
    for run in experiment.runs:
        table = experiment.table(run, "messages")
        ranks = float(run.configuration.get("ranks", 1))
        if table is None or ranks < 2 or (table["rank"] < 0).any():
            continue
        table = table[_moving(table)]
        counters = experiment.table(run, "counters")
        wall = run.wall_time or 0.0
        if counters is not None and "wall_time" in counters.columns:
            wall = float(counters["wall_time"].max())
        point = run.point(experiment.parameters)
        runs.setdefault(point, []).append((table, wall, shares_cores(run, counters)))
        if (waited := _matched(experiment, run)) is not None:
            traced.setdefault(point, []).append(waited / ranks)
    rows: list[dict[str, Any]] = []
    for point, several in runs.items():
        ranks = int(point[experiment.parameters.index("ranks")])
        rows += _of_configuration(point, ranks, several, traced.get(point, []))
    return rows


def _matched(experiment: Experiment, run: Run) -> pd.Series[float] | None:
    """Seconds that all ranks waited, by (kernel, operation), from matched events; None where they are not there."""
    if not set(matched.COLUMNS) <= set(experiment.columns(run, "events")):
        return None
    if any("full table of events" in note for note in run.notes):
        return None
    events = experiment.table(run, "events", matched.COLUMNS)
    if events is None or not 0 < len(events) <= limits.EVENTS_ORDERED:
        return None
    calls = matched.waiting(events).calls
    waited = calls[["late_sender", "late_receiver", "collective"]].sum(axis=1)
    return waited.groupby([calls["kernel"].astype(str), calls["operation"].astype(str)]).sum()


def _moving(table: pd.DataFrame) -> pd.Series[bool]:
    """Rows of operations that move messages or wait for them."""
    if "kind" in table.columns:
        return table["kind"].astype(str).map(lambda kind: kind in MOVING)
    names = table["operation"].astype(str).map(operation_name)
    return names.map(lambda name: name in SENDS or name in OPERATIONS or any(part in name for part in RECEIVES))


def _of_configuration(
    point: tuple[float, ...],
    ranks: int,
    several: list[tuple[pd.DataFrame, float, bool]],
    traced: list[pd.Series[float]],
) -> list[dict[str, Any]]:
    """Waiting at one configuration: medians over repetitions of each rank's time, and of waiting in `traced` events."""
    pieces = [split(table).assign(repetition=at) for at, (table, _, _) in enumerate(several) if len(table)]
    if not pieces:
        return []
    counts = pd.concat([table for table, _, _ in several])
    calls = counts.groupby(["kernel", "operation"], observed=True)["count"].sum() / (ranks * len(several))
    wall = float(np.median([wall for _, wall, _ in several]))
    shared = any(shared for _, _, shared in several)
    rows = pd.concat(pieces, ignore_index=True)
    sums = rows.groupby(["kernel", "operation", "rank", "repetition"], observed=True)["seconds"].sum().unstack()
    late = _latest(sums)
    index = sums.index.to_frame(index=False)
    number = index.pop("rank").to_numpy()
    places, keys = pd.MultiIndex.from_frame(index).factorize()
    inside = (number >= 0) & (number < ranks)
    # A rank that never calls it spends no time there: the first of a chain receives nothing.
    each = np.zeros((len(keys), ranks))
    each[places[inside], number[inside]] = np.nan_to_num(sums.median(axis=1).to_numpy(dtype=float)[inside])
    each_run = np.zeros((len(keys), ranks, sums.shape[1]))
    each_run[places[inside], number[inside]] = np.nan_to_num(sums.to_numpy(dtype=float)[inside])
    records = []
    for (kernel, operation), seconds, times in zip(keys.tolist(), each, each_run, strict=True):
        name = operation_name(str(operation))
        least = float(seconds.min())
        orders = np.array([_order(run) for run in times.T])
        waiting = float(seconds.mean()) - least
        if traced:
            waiting = float(np.median([waited.get((str(kernel), str(operation)), 0.0) for waited in traced]))
        records.append(
            {
                "configuration": list(point),
                "kernel": str(kernel),
                "operation": str(operation),
                "collective": name in OPERATIONS,
                "ranks": ranks,
                "calls": float(calls.get((kernel, operation), 0.0)),
                "seconds": float(seconds.mean()),
                "least": least,
                "waiting": waiting,
                "most": float(seconds.max()),
                "order": float(orders.mean()),
                "score": float(orders.sum() * np.sqrt(ranks - 1)),
                "trials": len(orders) if ranks >= FEWEST else 0,
                "part": waiting / wall if wall > 0 else 0.0,
                "late": int(late.get((kernel, operation), -1)),
                "shared": bool(shared),
            }
        )
    return records


def _latest(sums: pd.DataFrame) -> dict[Any, int]:
    """The rank that waits least in an operation, by (kernel, operation), where it is the same in all repetitions."""
    places = sums.fillna(0.0).groupby(["kernel", "operation"], observed=True).idxmin()
    latest: dict[Any, int] = {}
    for key, row in zip(places.index.tolist(), places.to_numpy().tolist(), strict=True):
        ranks = {int(place[2]) for place in row}
        if len(row) > 1 and len(ranks) == 1:
            latest[key] = ranks.pop()
    return latest


def _order(seconds: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Spearman's correlation of a rank's time with its number; 0 for fewer ranks than show an order."""
    if len(seconds) < FEWEST or np.ptp(seconds) == 0:
        return 0.0
    return float(np.corrcoef(pd.Series(seconds).rank(), np.arange(len(seconds)))[0, 1])


def table(observed: list[Mapping[str, Any]]) -> pd.DataFrame:
    """The entries of :func:`observe_waits`, most ranks and most waiting first, with ``state``: ``serialisation``,
    ``late arrival``, ``undetermined`` (ranks shared cores) or empty where nothing is waited for."""
    frame = pd.DataFrame([dict(row) for row in observed])
    if frame.empty:
        return pd.DataFrame(columns=[*COLUMNS, "state"])
    heavy = frame["part"] >= HEAVY
    # Spearman's correlation of n ranks in no order has the variance 1 / (n - 1).
    each = frame.groupby(["kernel", "operation"])
    trials = each["trials"].transform("sum")
    certain: pd.Series[float] = each["score"].transform("sum") / np.sqrt(np.maximum(trials, 1))
    chain = heavy & ~frame["collective"] & (certain >= CERTAIN) & (frame["order"] >= ORDERED)
    late = heavy & ~chain & (frame["waiting"] > frame["least"]) & (frame["late"] >= 0) & (frame["calls"] >= OFTEN)
    state = np.where(frame["shared"], "undetermined", "late arrival")
    frame["state"] = np.where(chain, "serialisation", np.where(late, state, ""))
    return frame.sort_values(["ranks", "part"], ascending=False, kind="stable", ignore_index=True)
