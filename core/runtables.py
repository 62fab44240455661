"""Tables of an experiment's runs: read from its folder when they are asked for, and held in memory.

Counters are a table kernel x rank x metric, messages a table kernel x rank x operation x communicator size x
message-size class.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.columns import Columns
from ranksight.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.run import Run

KEPT = 5_000_000
"""Numbers of tables that an experiment holds in memory once they were read: a fit reads each of them several times."""
ALL_RANKS = -1
"""The rank of a value that its source had already reduced over ranks."""
COUNTER_KEYS = ("kernel", "rank")
MESSAGE_COLUMNS = ("kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers")


class RunTables(ABC):
    """The tables of runs below a folder; :class:`ranksight.core.experiment.Experiment` knows the runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._footers: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {}
        self._tables: dict[tuple[str, str], pd.DataFrame] = {}
        self._arrays: dict[str, Columns] = {}
        self._held = 0

    @property
    @abstractmethod
    def runs(self) -> tuple[Run, ...]:
        """All runs."""

    def table(self, run: Run, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame | None:
        """One table of one run (``"counters"``, ``"messages"`` or a collector's own), or None where it has none.

        Raises InputError when the file is damaged, holds messages that nobody can have sent, or is larger than
        :mod:`ranksight.core.limits` allows.
        """
        held = self._tables.get((run.id, name))
        if held is None or (columns is not None and not set(columns) <= set(held.columns)):
            held = self._read(run, name, columns)
            if held is None or columns is not None or self._held + held.size > KEPT:
                return held
            self._tables[run.id, name] = held
            self._held += held.size
        return held.copy() if columns is None else held[list(columns)].copy()

    def _read(self, run: Run, name: str, columns: Sequence[str] | None) -> pd.DataFrame | None:
        """What :meth:`table` gives that is not in memory yet."""
        from ranksight.core.tables import read_frame

        file = self.path / "runs" / run.id / f"{name}.parquet"
        if not os.path.lexists(file):  # a link that leads nowhere is a table that is lost
            return None
        return read_frame(file, columns, run.configuration.get("ranks", np.inf))

    def arrays(self, run: Run) -> Columns | None:
        """The counters of one run as arrays, which are not to be written to, without pandas; None where it has none.

        Raises InputError as :meth:`table`.
        """
        held = self._arrays.get(run.id)
        if held is None and (held := self._read_arrays(run)) is not None:
            size = len(held) * (2 + len(held.values))
            if self._held + size <= KEPT:
                self._arrays[run.id] = held
                self._held += size
        return held

    def tables(
        self, name: str, columns: Sequence[str] | None = None, *, runs: Iterable[Run] | None = None
    ) -> Iterator[tuple[Run, pd.DataFrame]]:
        """The runs, of these or of all, that have a table (:meth:`table`), each with it."""
        for run in self.runs if runs is None else runs:
            if (table := self.table(run, name, columns)) is not None:
                yield run, table

    def counted(self, runs: Iterable[Run] | None = None) -> Iterator[tuple[Run, Columns]]:
        """The runs, of these or of all, that have counters (:meth:`arrays`), each with them."""
        for run in self.runs if runs is None else runs:
            if (arrays := self.arrays(run)) is not None:
                yield run, arrays

    def _read_arrays(self, run: Run, columns: Sequence[str] | None = None) -> Columns | None:
        """What :meth:`arrays` gives that is not in memory yet, or these columns of it."""
        from ranksight.core.tables import read_arrays

        file = self.path / "runs" / run.id / "counters.parquet"
        return read_arrays(file, columns) if os.path.lexists(file) else None

    def columns(self, run: Run, name: str) -> tuple[str, ...]:
        """Columns of one table of one run, without reading it; none where the run does not have it."""
        return self._footer(run, name)[0]

    def _rows(self, run: Run) -> int:
        """Rows of the counters of a run."""
        return self._footer(run, "counters")[1]

    def _footer(self, run: Run, name: str) -> tuple[tuple[str, ...], int]:
        """Columns and rows of a table, as its file says."""
        from ranksight.core.tables import open_table

        if (run.id, name) not in self._footers:
            file = self.path / "runs" / run.id / f"{name}.parquet"
            if not os.path.lexists(file):  # a link that leads nowhere is a table that is lost
                return (), 0
            with open_table(file) as source:
                self._footers[run.id, name] = tuple(source.schema_arrow.names), source.metadata.num_rows
        return self._footers[run.id, name]

    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics that some run's counters hold, in order of first appearance.

        >>> rs.read("heat.exp").metrics()
        ('time', 'instructions')
        """
        names: dict[str, None] = {}
        for run in self.runs:
            names.update(dict.fromkeys(name for name in self.columns(run, "counters") if name not in COUNTER_KEYS))
        return tuple(names)

    def counters(self, metrics: Sequence[str] | None = None, runs: Sequence[Run] | None = None) -> pd.DataFrame:
        """Counters of all runs in one table.

        Columns: ``run`` (category: id), ``kernel`` (category), ``rank`` (int32) and one float64 column a metric; NaN
        where a run lacks it.

        Examples
        --------
        >>> rs.read("heat.exp").counters(["time"]).groupby("kernel", observed=True)["time"].max()
        kernel
        exchange    0.000230
        solve       0.221184
        Name: time, dtype: float64
        """
        import pandas as pd

        names = self.metrics() if metrics is None else tuple(metrics)
        chosen = [run for run in (self.runs if runs is None else runs) if self.columns(run, "counters")]
        rows = [self._rows(run) for run in chosen]
        # Allocated once and filled run by run, so that the peak is one table and one run.
        total, end = sum(rows), 0
        rank, kernel = np.empty(total, np.int32), np.empty(total, np.int32)
        values = {name: np.full(total, np.nan) for name in names}
        listed: dict[str, int] = {}
        for run, count in zip(chosen, rows, strict=True):
            held = [name for name in (*COUNTER_KEYS, *names) if name in self.columns(run, "counters")]
            part = self._read_arrays(run, held)
            assert part is not None
            end += count
            here = slice(end - count, end)
            rank[here] = part.rank
            codes = [listed.setdefault(name, len(listed)) for name in part.kernels]
            kernel[here] = np.array(codes, np.int32)[part.code]
            for name in names:
                values[name][here] = part.values.get(name, np.nan)
        run_code = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
        columns = {
            "run": pd.Categorical.from_codes(run_code, categories=pd.Index([run.id for run in chosen])),
            "kernel": pd.Categorical.from_codes(kernel, categories=pd.Index(list(listed))),
            "rank": rank,
            **values,
        }
        return pd.DataFrame(columns, copy=False)

    def messages(self, runs: Sequence[Run] | None = None) -> pd.DataFrame:
        """Message tables of all runs: ``run`` and :data:`MESSAGE_COLUMNS`.

        `runs`: those of these; of all when not given. Bytes and seconds are sums over the calls of a rank.

        >>> list(rs.read("heat.exp").messages().columns[:5])
        ['run', 'kernel', 'rank', 'operation', 'comm_size']
        """
        import pandas as pd

        parts = [
            table.assign(run=run.id)
            for run in (self.runs if runs is None else runs)
            if (table := self.table(run, "messages")) is not None
        ]
        if not parts:
            return pd.DataFrame(columns=["run", *MESSAGE_COLUMNS])
        return pd.concat(parts, ignore_index=True)

    def largest_times(self, configurations: Sequence[Sequence[Run]], most: int = 3) -> dict[str, list[float]]:
        """Seconds of the kernels with the largest times at each of some configurations, the largest first."""
        each: list[dict[str, float]] = []
        for runs in configurations:
            timed = [run for run in runs if "time" in self.columns(run, "counters")]
            times: dict[str, list[float]] = {}
            for run in timed:
                table = self.table(run, "counters", ["kernel", "time"])
                means = {} if table is None else table.groupby("kernel", observed=True)["time"].mean().to_dict()
                for kernel, seconds in means.items():
                    times.setdefault(str(kernel), []).append(float(seconds))
            each.append({kernel: float(np.median(seconds)) for kernel, seconds in times.items()})
        total: dict[str, float] = {}
        for known in each:
            for kernel, seconds in known.items():
                total[kernel] = max(total.get(kernel, 0.0), seconds)
        largest = sorted(total, key=lambda kernel: -total[kernel])[:most]
        return {kernel: [known.get(kernel, float("nan")) for known in each] for kernel in largest}

    def forget(self, run: Run) -> None:
        """Keep nothing in memory of the tables of a run."""
        self._arrays.pop(run.id, None)
        self._tables = {key: table for key, table in self._tables.items() if key[0] != run.id}
        self._footers = {key: footer for key, footer in self._footers.items() if key[0] != run.id}


def on_rank(rank: float) -> str:
    """Words for a rank behind what is on it; nothing of values of all ranks together."""
    return "" if rank == ALL_RANKS else f" on rank {rank:g}"


def checked(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """The counters of a run as they are stored; InputError where a kernel stands twice on a rank."""
    import pandas as pd

    kernel = pd.Categorical(table["kernel"])
    rank = table["rank"].to_numpy(dtype=np.int32)
    places = kernel.codes.astype(np.int64) << 32 | (rank.astype(np.int64) + 1)
    if len(pd.unique(places)) < len(places):
        row = table[pd.Series(places).duplicated().to_numpy()].iloc[0]
        raise InputError(f"counters of run {run.id} hold kernel {row['kernel']!r}{on_rank(row['rank'])} twice")
    same = isinstance(table["kernel"].dtype, pd.CategoricalDtype)
    return table if same and table["rank"].dtype == rank.dtype else table.assign(kernel=kernel, rank=rank)
