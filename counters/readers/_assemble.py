"""From columns under a source's names to a :class:`Reading`: metrics in SI units, checked, threads reduced to ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.extensions import ExtensionArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.contract import check_values
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.metrics import METRICS, metric
from ranksight.core.reading import Reading
from ranksight.core.runtables import on_rank
from ranksight.core.sampled import TABLE, effective, sampling
from ranksight.core.units import counted
from ranksight.counters.forming import formed
from ranksight.counters.names import Translated, metric_name, translate
from ranksight.counters.readers._files import checked_ranks, damaged


class Cells:
    """Values by kernel, rank and thread; what comes again is added."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int, str], dict[str, float]] = {}

    def add(self, kernel: str, values: Mapping[str, float], rank: int | None = 0, thread: str = "") -> None:
        """Add values of a kernel; rank 0 where none is known."""
        row = self.rows.setdefault((kernel, rank or 0, thread), {})
        for name, value in values.items():
            row[name] = row.get(name, 0.0) + value

    def reading(self, path: Path, **settings: Any) -> Reading:
        """One reading of all values; `**settings`: as in :func:`build`, with its errors."""
        kernels, ranks, threads = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        return build(path, kernels, ranks, columns_of(self.rows.values()), threads=threads, **settings)


def columns_of(rows: Iterable[Mapping[str, float]]) -> dict[str, Array]:
    """Columns from one mapping a row; NaN where a row lacks a name."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}


def build(
    path: Path,
    kernels: Sequence[str] | NDArray[np.object_] | ExtensionArray,
    ranks: ArrayLike,
    columns: Mapping[str, Array],
    *,
    threads: Sequence[str] | NDArray[np.object_] | None = None,
    how: Mapping[str, str] | None = None,
    origin: str | Mapping[str, str] = "measured",
    aliases: Mapping[str, str] | None = None,
    configuration: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
    distinct: bool = False,
    worth: Mapping[str, Array | float] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
    **more: object,
) -> Reading:
    """One reading from columns under their source's names (SI units), one row a kernel x rank, or x thread.

    Threads are reduced to ranks, and kept apart in the table ``threads``. Counts that no counter holds are left out,
    with a note. Raises InputError when there is no row or no value, a kernel stands twice on a rank (and thread), or a
    time is absurd.

    Parameters
    ----------
    path : Path
        The file they came from.
    kernels, ranks, threads : sequences, shape (n,)
    columns : mapping of str to ndarray, shape (n,)
    how : mapping of str to {"max", "mean"}, optional
        Columns that are not added over threads. Default ``time``, which passes for all at once: the slowest thread's.
    origin, aliases
        As in :func:`ranksight.counters.names.translate`.
    configuration : mapping, optional
        Defaults to the number of ranks, where the source has values per rank.
    distinct : bool
        Whether no kernel can stand twice on a rank, so that this need not be looked for.
    worth : mapping of str to ndarray, shape (n,), or float, optional
        What a sample is worth in the columns that are made of samples (:mod:`ranksight.core.sampled`).
    tables : mapping of str to DataFrame, optional
        Further tables of the reading.
    **more
        Further attributes of :class:`ranksight.core.reading.Reading`.
    """
    if len(kernels) == 0:
        raise InputError(f"{path} holds no measurement", "is the file complete?")
    owners = _checked(path, np.asarray(ranks))
    columns, lost = _countable(columns, kernels, owners)
    notes = (*notes, *lost)
    kept = dict(tables or {})
    if threads is not None:
        apart = pd.DataFrame({"kernel": kernels, "rank": owners, "thread": threads, **columns})
        if apart.duplicated(["kernel", "rank"]).any():
            kept = {"threads": apart, **kept}
            notes = (*notes, "ranks have several threads: counts are added over them, time is that of the slowest")
            kernels, owners, columns = _over_threads(apart, columns, {"time": "max"} if how is None else how)
        distinct = True
    columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if not columns:
        raise InputError(f"{path} holds no number", "; ".join(lost) or "is the file complete?")
    translated = translate(columns, origin, aliases)
    names = kernels if isinstance(kernels, ExtensionArray) else list(kernels)
    check_values(translated.columns, names, owners, str(path))
    table = pd.DataFrame({"kernel": names, "rank": owners.astype(np.int32), **translated.columns})
    if not distinct and (twice := table.duplicated(["kernel", "rank"])).any():
        row = table[twice].iloc[0]
        raise InputError(f"{path} gives kernel {row['kernel']!r}{on_rank(row['rank'])} twice", "give one run a file")
    if configuration is None:
        present = checked_ranks(np.unique(owners).tolist(), str(path))
        configuration = {"ranks": float(len(present))} if present else {}
        if len(present) == 1:  # one of many, perhaps
            more["assumed"] = frozenset({"ranks"})
    if worth:
        kept[TABLE] = sampling(table, _worth(translated, columns, worth))
    given = Reading(
        configuration=configuration,
        counters=table,
        provenance=translated.provenance,
        names=translated.names,
        notes=(*notes, *translated.notes),
        source=(str(path),),
        tables=kept,
        **more,  # type: ignore[arg-type]
    )
    return formed(given, doubtful=False)


def _countable(
    columns: Mapping[str, Array], kernels: Sequence[str] | NDArray[np.object_] | ExtensionArray, ranks: Ints
) -> tuple[dict[str, Array], list[str]]:
    """The columns without counts below zero or beyond 63 bits, and a note on each column that had some."""
    kept, notes = dict(columns), []
    for name, values in columns.items():
        ours = metric(metric_name(name))
        least = 0.0 if ours.name in METRICS else -limits.VALUE  # a metric that nobody knows may be negative
        wrong = (values < least) | (values >= limits.VALUE)
        if not wrong.any() or ours.unit == "s":
            continue
        kept[name] = np.where(wrong, np.nan, values)
        at = int(np.argmax(wrong))
        place = "" if kernels[at] == WHOLE else f" of {kernels[at]}"
        more = f"; {counted(int(wrong.sum()), 'value')} left out" if wrong.sum() > 1 else ""
        value = "below zero" if values[at] == -np.inf else f"{values[at]:g}"
        notes.append(f"{name} is {value}{on_rank(ranks[at])}{place}, which no counter holds, and is left out{more}")
    return kept, notes


def _checked(path: Path, ranks: NDArray[Any]) -> Ints:
    least, most = ranks.min(), ranks.max()
    if least < ALL_RANKS or most >= 2**31:
        raise damaged(f"{path} names rank {max(least, most, key=abs)}")
    return ranks.astype(np.int64)


def _over_threads(
    apart: pd.DataFrame, columns: Mapping[str, Array], how: Mapping[str, str]
) -> tuple[list[str], Ints, dict[str, Array]]:
    """Kernels, ranks and columns of ranks, from those of threads."""
    grouped = apart.groupby(["kernel", "rank"], sort=False, observed=True)
    index = grouped.size().index
    single = {
        name: getattr(grouped[name], how[name])() if name in how else grouped[name].sum(min_count=1) for name in columns
    }
    return (
        index.get_level_values("kernel").tolist(),
        index.get_level_values("rank").to_numpy(),
        {name: series.to_numpy(dtype=np.float64) for name, series in single.items()},
    )


def _worth(
    translated: Translated, columns: Mapping[str, Array], worth: Mapping[str, Array | float]
) -> dict[str, Array]:
    """What a sample is worth in each metric, from what it is in the columns that it is the sum of."""
    found: dict[str, Array] = {}
    for name, value in translated.columns.items():
        parts = [(source, weight) for source, weight in translated.parts.get(name, ()) if source in worth]
        if not parts:
            continue
        variance, one = np.zeros(len(value)), np.zeros(len(value))
        for source, weight in parts:
            variance += weight**2 * worth[source] * np.nan_to_num(columns[source])
            one = np.maximum(one, abs(weight) * worth[source])
        found[name] = effective(np.nan_to_num(value), variance, one)
    return found
