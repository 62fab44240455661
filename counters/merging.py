"""Events that were counted in several runs of a program, merged by kernel; and the error of the merging.

A processor counts four to eight events at once. Each pass counts others, and all of them count cycles and instructions.
The programs of two passes are not the same to the digit: how far what every pass counts differs between them, kernel by
kernel, is how far events of different passes may belong to different runs.

    deviation = standard deviation over passes / mean over passes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core.experiment import COUNTER_KEYS
from ranksight.core.reading import Reading
from ranksight.counters.forming import worth_of
from ranksight.counters.readers._assemble import build

TABLE = "passes"
"""Table of a run: ``kernel``, ``event`` or metric that every pass counts, ``passes``, the ``mean`` over passes of its
sum over ranks, and the ``deviation`` relative to that."""
HEAVY = 0.01
"""Share of an event from which a kernel is named in the note."""
FAR = 0.1


def merged(passes: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """The table of what several passes counted, and notes on it; nothing where only one pass was made, or no event is
    in all of them.

    `passes`: of each, kernels as index and events as columns, sums over ranks. A kernel without samples in a pass
    counts as 0 there.
    """
    common = [name for name in passes[0].columns if all(name in each.columns for each in passes[1:])] if passes else []
    if len(passes) < 2 or not common:
        return None, ()
    kernels = passes[0].index
    for each in passes[1:]:
        kernels = kernels.union(each.index)
    counts = np.stack([each.reindex(kernels)[common].fillna(0.0).to_numpy(np.float64) for each in passes])
    mean = counts.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.where(mean > 0, counts.std(axis=0, ddof=1) / mean, 0.0)
    table = pd.DataFrame(
        {
            "kernel": np.repeat(kernels.to_numpy(), len(common)),
            "event": common * len(kernels),
            "passes": np.int32(len(passes)),
            "mean": mean.reshape(-1),
            "deviation": deviation.reshape(-1),
        }
    )
    return table, notes_of([table])


def notes_of(tables: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    """How far passes differ, by the tables of all runs."""
    if not tables:
        return ()
    rows = pd.concat(tables, keys=range(len(tables)), names=["run"]).reset_index("run")
    heavy = rows["mean"] >= HEAVY * rows.groupby(["run", "event"])["mean"].transform("sum")
    rows = rows.loc[(heavy & (rows["mean"] > 0)).to_numpy()].reset_index(drop=True)
    if rows.empty:
        return ()
    most = rows.iloc[int(rows["deviation"].to_numpy().argmax())]
    runs = f" of {len(tables)} runs" if len(tables) > 1 else ""
    note = (
        f"events{runs} were counted in {rows['passes'].max()} passes; what all of them count differs between passes by "
        f"{rows['deviation'].median():.1%} (median of kernels of 1 %), and by {most['deviation']:.1%} at most: "
        f"{most['event']} of {most['kernel']}"
    )
    far = "the passes differ: measure with fewer metrics, or longer runs"
    return (note, far) if most["deviation"] > FAR else (note,)


def together(readings: Sequence[Reading]) -> Reading:
    """One reading of passes whose files counted other events of the same kernels and ranks; see the module.

    What several passes count is taken from the first. Metrics that readers formed from the events of a pass are formed
    anew from those of all of them, or kept where their events are not in the table any more.
    """
    counted = [each.counters for each in readings if each.counters is not None]
    tables = [table.astype({"kernel": str}).set_index(["kernel", "rank"]) for table in counted]
    every = reduce(pd.DataFrame.combine_first, tables)
    columns = [[str(name) for name in table if name not in COUNTER_KEYS] for table in counted]
    own = [[name for name in has if not _formed(each, name)] for each, has in zip(readings, columns, strict=True)]
    metrics = list(dict.fromkeys(name for names in own for name in names))
    names, said, meanings = (
        {name: value for each in reversed(readings) for name, value in facts(each).items()} for facts in _FACTS
    )
    joined = _tables(readings)
    source = {metric: name for metric, name in names.items() if metric in metrics}
    table = every[metrics].reset_index()
    worth = worth_of(Reading(tables=joined), table)
    reading = build(
        Path("the passes of one run"),
        table["kernel"].tolist(),
        table["rank"].tolist(),
        {source.get(name, name): table[name].to_numpy(np.float64) for name in metrics},
        origin={source.get(name, name): said[name] for name in metrics if name in said},
        aliases={name: metric for metric, name in source.items()},
        configuration=readings[0].configuration,
        distinct=True,
        worth={source.get(name, name): each for name, each in worth.items()},
    )
    assert reading.counters is not None
    sums = [each[names].groupby("kernel").sum() for each, names in zip(tables, own, strict=True)]
    between, more = merged(sums)
    metrics_of_all = dict.fromkeys(name for has in columns for name in has)
    rest = [name for name in metrics_of_all if name not in reading.counters.columns]
    counters = reading.counters.join(every[rest], on=["kernel", "rank"]) if rest else reading.counters
    return replace(
        readings[0],
        counters=counters,
        provenance={**{name: said[name] for name in rest if name in said}, **reading.provenance},
        names={**reading.names, **source},
        meanings=meanings,
        tables={**joined, **reading.tables, **({} if between is None else {TABLE: between})},
        notes=(*dict.fromkeys(note for each in readings for note in each.notes), *more),
        source=tuple(dict.fromkeys(name for each in readings for name in each.source)),
    )


_FACTS: tuple[Callable[[Reading], Mapping[str, Any]], ...] = (
    lambda each: each.names,
    lambda each: each.provenance,
    lambda each: each.meanings,
)


def _tables(readings: Sequence[Reading]) -> dict[str, pd.DataFrame]:
    """Further tables of all passes: rows of metrics under each other, columns of metrics next to each other."""
    found: dict[str, pd.DataFrame] = {}
    for each in readings:
        for name, table in each.tables.items():
            keys = [key for key in ("kernel", "object", "rank", "thread", "metric") if key in table]
            rows = table.astype({key: str for key in ("kernel", "object") if key in table}).set_index(keys)
            found[name] = found[name].combine_first(rows) if name in found else rows
    return {name: table.reset_index() for name, table in found.items()}


def _formed(reading: Reading, name: str) -> bool:
    """Whether a metric is one that a formula makes of events."""
    return reading.provenance.get(name, "").startswith(("derived from", "lower bound from"))
