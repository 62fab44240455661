"""Costs of a profile that belong to no kernel, by object file, so that missing work is noticed.

A profile of a process holds more than the program's own work: the MPI library waits, the loader binds symbols. Each
run keeps costs that belong to no kernel in its table ``left_out``, with one row per object file, rank and metric:
``object``, ``rank``, ``metric``, and in the metric's unit ``kept`` (in kernels; the object is empty where the source
does not say which), ``mpi`` (the MPI library's own and what it had others do for it), ``system`` (the loader; of
samples also run times and the operating system, where the call chain does not show for whom) and ``other`` (start-up,
and code that nobody is known to have called).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksight.core.metrics import metric
from ranksight.core.sampled import sampling_of
from ranksight.core.units import in_full

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Experiment, Run

TABLE = "left_out"
"""Name of the table."""
COLUMNS = ("object", "rank", "metric", "kept", "mpi", "system", "other")
MPI = "(MPI library)"
"""Kernel, in what other tools recorded, of all that the MPI library, its transports and process managers did."""
OTHER = "(system and start-up)"
"""Kernel, in what other tools recorded, of the loader, the operating system, start-up and what nobody is known to have
called."""
SHARE = 0.1
"""Share of what kernels hold from which ``other`` is too much to go unsaid. What MPI does is not counted: ranks that
wait execute as many of its instructions as they have time for. Nor is the system: the loader binds each symbol once,
however long the program runs, few libraries keep the frame pointers that would show the callers of a sample, and
starting MPI takes some 50 ms on every rank."""
CERTAIN = 2.0
NAMED = 3
"""Object files that a warning names; more are counted."""


def by_object(parts: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The table of a run, or a part of it, with the columns :data:`COLUMNS`.

    `parts`: ``group`` (``application``: kept, ``mpi``, ``system`` or ``other``), ``object``, ``rank`` and ``value``.
    `metric`: what the values are of.
    """
    import pandas as pd

    wide = parts.pivot_table(index=["object", "rank"], columns="group", values="value", aggfunc="sum", fill_value=0.0)
    wide = wide.rename(columns={"application": "kept"}).reindex(columns=["kept", *COLUMNS[-3:]], fill_value=0.0)
    table = wide.astype("float64").reset_index().astype({"object": object, "rank": "int32"}).assign(metric=metric)
    return pd.DataFrame(table[list(COLUMNS)]).rename_axis(columns=None)


def warning(experiment: Experiment) -> str:
    """A sentence on the run whose kernels lack most, with the names of object files; empty where none lacks much.

    A run lacks much where, of some metric, ``other`` is more than :data:`SHARE` of ``kept``, over all ranks. Of samples
    it must be so by :data:`CERTAIN` standard errors.
    """
    worst, found = SHARE, ""
    for run in experiment.runs:
        if not set(COLUMNS) <= set(experiment.columns(run, TABLE)):
            continue
        table = experiment.table(run, TABLE)
        if table is None:
            continue
        for name, rows in table.groupby("metric", sort=True):
            kept, other = float(rows["kept"].sum()), float(rows["other"].sum())
            share = other / kept if kept > 0 else float("inf") if other > 0 else 0.0
            least = share * (1 - CERTAIN * _error(experiment, run, str(name), kept, other))
            if least > worst:
                worst, found = least, _sentence(run, str(name), rows, share)
    return found


def _error(experiment: Experiment, run: Run, name: str, kept: float, other: float) -> float:
    """Relative standard error of `other` over `kept`: both are Poisson counts where they are made of samples."""
    table = sampling_of(experiment, run) if run.sampled(name) else None
    if table is None or not kept > 0 or not other > 0 or not (table["metric"] == name).any():
        return 0.0
    worth = float(table.loc[table["metric"] == name, "worth"].median())
    return float((worth / other + worth / kept) ** 0.5)


def _sentence(run: Run, name: str, rows: pd.DataFrame, share: float) -> str:
    sums = rows.groupby("object")["other"].sum().sort_values(ascending=False, kind="stable")
    total = float(sums.sum())
    named = [f"{object_} {value / total:.0%}" for object_, value in sums.head(NAMED).items() if value > 0]
    more = int((sums > 0).sum()) - len(named)
    where = ", ".join(f"{parameter} = {in_full(value)}" for parameter, value in run.configuration.items())
    much = f"{share:.0%} of what they hold" if share < 2 else f"{share:,.0f} times what they hold"
    compared = f", {much}" if share < float("inf") else ", and hold none"
    amount = f"{metric(name).format(total)}{'' if metric(name).unit else f' {name}'}"
    return (
        f"kernels lack {amount} at {where or 'the one configuration'}{compared}: "
        f"in {', '.join(named)}{f' and {more} more' if more > 0 else ''}, as start-up or without a known caller"
    )
