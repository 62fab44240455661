"""Balance of the threads of a rank, as measured: how much more the slowest thread does than the mean of its team.

A parallel region ends with its slowest thread (Calotoiu et al. 2013 reduce ranks by the maximum for the same reason).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.analysis.diagnosis.balance import HEAVY, MEASURES, UNEVEN
from ranksight.core.experiment import WHOLE, Experiment

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.analysis.diagnosis.evidence import Evidence

TABLE = "threads"
"""Name of the table of an experiment with a row for each kernel, rank and thread."""
COLUMNS = ["kernel", "ranks", "threads", "ratio", "thread", "metric", "lost", "named"]


def observe_teams(experiment: Experiment) -> dict[str, Any]:
    """Largest over mean of what the threads of a rank do, of each kernel at the run with most threads in all.

    Entries: ``ranks``, ``threads``, and ``kernels``: name to ``metric``, ``ratio`` (mean over ranks) and ``thread``
    (that does most on most ranks). Empty where no run has rows of several threads.
    """
    best: tuple[int, int, pd.DataFrame] | None = None
    for run in experiment.runs:
        rows = experiment.table(run, TABLE)
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


def table(evidence: Evidence, observed: Mapping[str, Any]) -> pd.DataFrame:
    """Balance of the threads of each kernel, the one that costs most first.

    Columns: ``kernel``, ``ranks`` and ``threads`` (of the run), ``ratio`` (largest over mean thread), ``thread`` (that
    does most), ``metric``, ``lost`` (part of the program's predicted time at the last configuration that the others
    wait for it), ``named`` (whether the team is uneven and costs more than
    :data:`ranksight.analysis.diagnosis.balance.HEAVY`).
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
        found = int(observed["ranks"]), int(observed["threads"]), ratio, str(entry["thread"]), str(entry["metric"])
        rows.append((kernel, *found, float(np.nan_to_num(lost)), named))
    return pd.DataFrame(rows, columns=COLUMNS).sort_values("lost", ascending=False, kind="stable", ignore_index=True)
