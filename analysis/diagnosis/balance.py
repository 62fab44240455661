"""Load balance: how much more the busiest rank does than the mean, kernel by kernel, as measured; likewise threads.

A superstep ends with its slowest rank, so max / mean of what ranks compute, less one, is what they wait for it (load
imbalance factor; Calotoiu et al. 2013 reduce by the maximum for the same reason). Instructions measure it without the
scatter of times, where they were counted on every rank; cycles and times, where they were not. A parallel region ends
with its slowest thread in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.idle import working
from ranksight.model.plaindata import from_gaps

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.analysis.diagnosis.evidence import Evidence

MEASURES = ("instructions", "cycles", "time", "compute_cpu_time")
"""Metrics that measure what a rank computes, the steadiest first; times only where they were not sampled."""
UNEVEN = 1.05
"""Largest over mean from which ranks are called uneven; a twentieth is what dividing a grid by the ranks may leave."""
HEAVY = 0.01
"""Part of the program's time that must be lost before a kernel is named."""
COLUMNS = ["kernel", "ranks", "ratio", "before", "ahead", "having", "busiest", "metric", "lost", "named"]
TEAM_COLUMNS = ["kernel", "ranks", "threads", "ratio", "thread", "metric", "lost", "named"]


def observe_balance(experiment: Experiment) -> dict[str, Any]:
    """Largest over mean of what ranks do, of each kernel at each configuration with several ranks.

    Entries: ``configurations`` (a list of values of the parameters) and ``kernels``: name to ``metric`` (that measured
    it), ``ratio`` (a number or None for each configuration), ``having`` (ranks that have the kernel, likewise) and
    ``busiest`` (the rank that did most, likewise). Empty where no run has several ranks.
    """
    tables: dict[tuple[float, ...], dict[str, list[pd.DataFrame]]] = {}
    for run in experiment.runs:
        point = run.point(experiment.parameters)
        counters = experiment.arrays(run)
        if counters is None:
            continue
        of_ranks = counters.rank != ALL_RANKS  # others are kernels, or the whole program, that their source had reduced
        of_ranks &= working(run, counters)
        rank = counters.rank[of_ranks]
        if not (rank != rank[:1]).any():
            continue
        import pandas as pd  # which runs of one rank do without

        kernels_of = pd.Categorical.from_codes(
            counters.code[of_ranks], dtype=pd.CategoricalDtype(list(counters.kernels))
        )
        table = pd.DataFrame({"kernel": kernels_of, "rank": rank})
        for name in MEASURES:
            if name in counters.values and not run.sampled(name):
                part = table.assign(**{name: counters.values[name][of_ranks]}).dropna()
                tables.setdefault(point, {}).setdefault(name, []).append(part)
    if not tables:
        return {}
    points = list(tables)
    kernels: dict[str, dict[str, Any]] = {}
    for name in MEASURES:
        for at, point in enumerate(points):
            for kernel, ratio, having, busiest in _ratios(tables[point].get(name, []), name):
                none = [None] * len(points)
                entry = kernels.setdefault(
                    kernel, {"metric": name, "ratio": none, "having": [*none], "busiest": [*none]}
                )
                if entry["metric"] == name:
                    entry["ratio"][at], entry["having"][at], entry["busiest"][at] = round(ratio, 6), having, busiest
    return {"configurations": [list(point) for point in points], "kernels": kernels}


def _ratios(parts: list[pd.DataFrame], name: str) -> list[tuple[str, float, int, int]]:
    if not parts:
        return []
    import pandas as pd

    ranks = max(int(part["rank"].nunique()) for part in parts)
    rows = pd.concat(parts, ignore_index=True)
    each = rows.groupby(["kernel", "rank"], observed=True)[name].median()
    grouped = each.groupby("kernel", observed=True)
    # A rank without a row did nothing in the kernel.
    mean, most = grouped.sum() / ranks, grouped.max()
    busiest, having = grouped.idxmax(), grouped.count()
    return [
        (str(kernel), float(most[kernel] / mean[kernel]), int(having[kernel]), int(busiest[kernel][1]))
        for kernel in mean.index
        if mean[kernel] > 0
    ]


def table(evidence: Evidence, observed: Mapping[str, Any]) -> pd.DataFrame:
    """Balance of each kernel, the one that costs most first.

    Columns: ``kernel``, ``ranks`` (of the measured configuration with most ranks), ``ratio`` (largest over mean there),
    ``before`` (the same at the one with fewest), ``ahead`` (largest over mean as predicted at the last configuration
    asked for; NaN where it is not), ``having`` (ranks that have the kernel where it was measured), ``busiest`` (rank),
    ``metric`` (that measured it), ``lost`` (part of the program's predicted time there that ranks wait for the busiest
    rank of them; NaN where the imbalance has no answer there), ``named`` (whether it is uneven and costs more than
    :data:`HEAVY`).
    """
    import pandas as pd

    points = np.array(observed.get("configurations", []), dtype=np.float64)
    if not len(points) or "ranks" not in evidence.parameters:
        return pd.DataFrame(columns=COLUMNS)
    count = points[:, evidence.parameters.index("ranks")]
    order = np.argsort(count, kind="stable")
    total = float(evidence.total[-1])
    place = {kernel: at for at, kernel in enumerate(evidence.kernels)} if total > 0 else {}
    rows = []
    for kernel, entry in observed.get("kernels", {}).items():
        ratio = from_gaps(entry["ratio"])[order]
        known = np.flatnonzero(np.isfinite(ratio))
        if kernel == WHOLE or not len(known):
            continue
        last, first = float(ratio[known[-1]]), float(ratio[known[0]])
        ahead, lost = _predicted(evidence, place.get(kernel), last, total)
        named = last >= UNEVEN and lost >= HEAVY
        if evidence.balanced is not None and kernel in place and not evidence.balanced[place[kernel], -1]:
            lost = float("nan")
        most, metric = count[order][known[-1]], str(entry["metric"])
        having, busiest = (int(np.array(entry[name])[order][known[-1]]) for name in ("having", "busiest"))
        rows.append((kernel, int(most), last, first, ahead, having, busiest, metric, lost, named))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values("lost", ascending=False, kind="stable", ignore_index=True)


def busiest_ranks(observed: Mapping[str, Any], kernels: Collection[str]) -> set[tuple[tuple[float, ...], int]]:
    """The configurations measured, each with a rank that did most in one of `kernels`."""
    return {
        (tuple(point), int(rank))
        for kernel in kernels
        for point, rank in zip(observed["configurations"], observed["kernels"][kernel]["busiest"], strict=True)
        if rank is not None
    }


def _predicted(evidence: Evidence, at: int | None, measured: float, total: float) -> tuple[float, float]:
    """Largest over mean at the last configuration, and what waiting for the busiest rank takes of `total`.

    The imbalance is the model's where the model has one for the kernel; otherwise the last that was measured.
    """
    if at is None:
        return float("nan"), 0.0
    mean = float(evidence.mean[at, -1])
    ratio = float("nan") if evidence.ratio is None else float(evidence.ratio[at, -1])
    if mean > 0 and ratio > 1:
        # What the others wait for it inside of kernels is lost as well, and so is what waits for another kernel's.
        return ratio, (ratio - 1) * mean / total
    lost = (measured - 1) * mean / total
    return float("nan"), lost / (1 + lost)


def observe_teams(experiment: Experiment) -> dict[str, Any]:
    """Largest over mean of what the threads of a rank do, of each kernel at the run with most threads in all.

    Entries: ``ranks``, ``threads``, and ``kernels``: name to ``metric``, ``ratio`` (mean over ranks) and ``thread``
    (that does most on most ranks). Empty where no run has rows of several threads.
    """
    best: tuple[int, int, pd.DataFrame] | None = None
    for run in experiment.runs:
        rows = experiment.table(run, "threads")
        if rows is None or not {"kernel", "rank", "thread"} <= set(rows.columns):
            continue
        ranks, threads = rows["rank"].nunique(), rows.groupby("rank")["thread"].nunique().max()
        if threads > 1 and (best is None or ranks * threads > best[0] * best[1]):
            best = int(ranks), int(threads), rows
    if best is None:
        return {}
    ranks, threads, rows = best
    kernels: dict[str, dict[str, Any]] = {}
    for name in (name for name in MEASURES if name in rows.columns):
        known = rows[["kernel", "rank", "thread", name]].dropna()
        each = known.groupby(["kernel", "rank"], observed=True)[name]
        # A thread without a row did nothing in the kernel.
        ratio = threads * each.max() / each.sum().where(each.sum() > 0)
        slowest = known.loc[each.idxmax(), ["kernel", "thread"]]
        for kernel, value in ratio.groupby("kernel", observed=True).mean().dropna().items():
            most = slowest.loc[slowest["kernel"] == kernel, "thread"].mode().iloc[0]
            kernels.setdefault(str(kernel), {"metric": name, "ratio": round(float(value), 6), "thread": str(most)})
    return {"ranks": ranks, "threads": threads, "kernels": kernels}


def teams_table(evidence: Evidence, observed: Mapping[str, Any]) -> pd.DataFrame:
    """Balance of the threads of each kernel, the one that costs most first.

    Columns: ``kernel``, ``ranks`` and ``threads`` (of the run), ``ratio`` (largest over mean thread), ``thread`` (that
    does most), ``metric``, ``lost`` (part of the program's predicted time at the last configuration that the others
    wait for it), ``named`` (whether the team is uneven and costs more than :data:`HEAVY`).
    """
    import pandas as pd

    total = float(evidence.total[-1])
    rows = []
    for kernel, entry in observed.get("kernels", {}).items():
        if kernel == WHOLE or kernel not in evidence.kernels or not total > 0:
            continue
        ratio = float(entry["ratio"])
        lost = (1 - 1 / max(ratio, 1.0)) * float(evidence.computing[evidence.kernels.index(kernel), -1]) / total
        named = ratio >= UNEVEN and lost >= HEAVY
        outlier = int(observed["ranks"]), int(observed["threads"]), ratio, str(entry["thread"]), str(entry["metric"])
        rows.append((kernel, *outlier, float(np.nan_to_num(lost)), named))
    return pd.DataFrame(rows, columns=TEAM_COLUMNS).sort_values(
        "lost", ascending=False, kind="stable", ignore_index=True
    )
