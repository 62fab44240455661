"""The vocabulary of measurement and its store on disk.

An *experiment* is one application and its runs; a *run* is one execution: one configuration (values of the parameters),
one repetition, one collector. Its counters are a table kernel x rank x metric, its messages a table kernel x rank x
operation x communicator size x message-size class.

On disk an experiment is a folder: ``experiment.json`` and ``runs/<id>/`` with ``run.json``, ``counters.parquet``,
``messages.parquet`` and ``raw/``. A run is written to a temporary folder, synced, then renamed, so that no
part of a run is ever visible, and a campaign that was killed resumes where it stopped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core import html
from ranksight.core.columns import Columns
from ranksight.core.errors import InputError, writable
from ranksight.core.files import new_folder, read_json, recover, sync, sync_tree, write_json
from ranksight.core.html import drawn
from ranksight.core.log import log
from ranksight.core.run import SCHEMA_VERSION, Run
from ranksight.core.units import format_si

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALL_RANKS", "COUNTER_KEYS", "MESSAGE_COLUMNS", "WHOLE", "Experiment", "Run", "read"]

ALL_RANKS = -1
"""The rank of a value that its source had already reduced over ranks."""
WHOLE = "(whole program)"
"""The kernel of a value that belongs to the program and to no kernel."""

KEPT = 5_000_000
"""Numbers of tables that an experiment holds in memory once they were read: a fit reads each of them several times."""
COUNTER_KEYS = ("kernel", "rank")
MESSAGE_COLUMNS = ("kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers")


class Experiment:
    """One application and its runs, backed by a folder.

    Build one with :meth:`create` or :meth:`read`. Runs are added with :meth:`add` and read back as pandas tables with
    :meth:`counters` and :meth:`messages`; tables are loaded when asked for, only the columns that are asked for.
    `synced`: whether a run that :meth:`add` stored is on disk when it returns. Without, an experiment that is nobody's
    yet is to be synced as a whole before it comes to its place, which takes a tenth of the time.

    Examples
    --------
    >>> experiment = rs.Experiment.read("heat.exp")
    >>> experiment.parameters, len(experiment), experiment.metrics()
    (('ranks', 'size'), 12, ('time', 'instructions'))
    """

    synced = True

    def __init__(self, path: Path, application: str, parameters: Sequence[str], runs: Iterable[Run] = ()) -> None:
        self.path = path
        self.application = application
        self.parameters = tuple(parameters)
        self._runs = {run.id: run for run in runs}
        self._footers: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {}
        self._tables: dict[tuple[str, str], pd.DataFrame] = {}
        self._arrays: dict[str, Columns] = {}
        self._held = 0

    @classmethod
    def create(cls, path: str | os.PathLike[str], application: str, parameters: Sequence[str]) -> Experiment:
        """Make a new, empty experiment at `path`.

        Raises InputError when something that is not an empty folder is there already, or the folder cannot be written.

        Examples
        --------
        >>> rs.Experiment.create("new.exp", "heat", ["ranks", "size"])
        <Experiment heat: 0 runs over ranks, size at new.exp>
        """
        path = Path(path)
        if path.exists() and not (path.is_dir() and _is_empty(path)):
            raise InputError(f"{path} exists already", "name another folder")
        if len(set(parameters)) != len(parameters):
            raise InputError(f"parameters {', '.join(parameters)} name one twice")
        experiment = cls(path, application, parameters)
        experiment._write_head()
        return experiment

    def _write_head(self) -> None:
        head = {"schema_version": SCHEMA_VERSION, "application": self.application, "parameters": self.parameters}
        with writable(self.path):
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
            write_json(self.path / "experiment.json", head)

    def correct(self, application: str, parameters: Sequence[str]) -> None:
        """Give an experiment that holds no run yet to another application or other parameters.

        What failed under the old ones is removed. Raises InputError when there are runs, or the folder cannot be
        written.
        """
        if self._runs:
            raise InputError(f"{self.path} holds runs of {self.application}", "name another folder")
        if (self.application, self.parameters) == (application, tuple(parameters)):
            return
        self.application, self.parameters = application, tuple(parameters)
        shutil.rmtree(self.path / "failed", ignore_errors=True)
        self._write_head()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Experiment:
        """Open the experiment at `path`; tables are not loaded yet.

        Raises InputError when the folder is not an experiment, is damaged, or was written by a newer version.

        >>> rs.Experiment.read("heat.exp")
        <Experiment heat: 12 runs over ranks, size at heat.exp>
        """
        path = Path(path)
        head = path / "experiment.json"
        if not path.exists():
            recover(path)
        if not head.is_file():
            other = "it is a file" if path.exists() else "no such folder"
            raise InputError(
                f"{path} is not an experiment: {'experiment.json is missing' if path.is_dir() else other}",
                "make one with 'ranksight measure' or 'ranksight import'",
            )
        content = read_json(head)
        version = content.get("schema_version")
        if not isinstance(version, int) or version < 1:
            raise InputError(f"{head}: schema_version is {version!r}", "the file is damaged or not ours")
        if version > SCHEMA_VERSION:
            raise InputError(
                f"{head}: schema version {version} is newer than {SCHEMA_VERSION}, which this version reads",
                "install a newer ranksight",
            )
        parameters = content.get("parameters")
        if not isinstance(parameters, list) or not all(isinstance(name, str) for name in parameters):
            raise InputError(f"{head}: 'parameters' is not a list of names", "the file is damaged or not ours")
        folder = path / "runs"
        runs = [Run.read(entry) for entry in sorted(folder.iterdir()) if _is_run(entry)] if folder.is_dir() else []
        for run in runs:
            if set(run.configuration) != set(parameters):
                raise InputError(
                    f"{folder / run.id / 'run.json'}: its parameters are {', '.join(run.configuration) or 'none'}, "
                    f"the experiment's are {', '.join(parameters)}"
                )
        log("read experiment %s: %d runs over %s", path, len(runs), ", ".join(parameters))
        return cls(path, str(content.get("application", path.name)), parameters, runs)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, ordered by configuration, repetition, collector."""
        return tuple(
            sorted(
                self._runs.values(),
                key=lambda r: (tuple(r.configuration[p] for p in self.parameters), r.repetition, r.collector),
            )
        )

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"<Experiment {self.application}: {len(self)} runs over {', '.join(self.parameters)} at {self.path}>"

    def _repr_html_(self) -> str:
        """A configuration a row, for notebooks, with the times of the largest kernels (means over ranks, medians over
        runs)."""
        found: dict[tuple[float, ...], list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.point(self.parameters), []).append(run)
        rows = [
            [
                *(f"{value:g}" for value in values),
                max(run.repetition for run in runs) + 1,
                ", ".join(dict.fromkeys(run.collector for run in runs)),
                sum(run.state != "complete" for run in runs) or "",
            ]
            for values, runs in found.items()
        ]
        heads = [*self.parameters, "repetitions", "collectors", "failed"]
        for kernel, times in self._largest(list(found.values())[: html.MOST]).items():
            heads.append(f"time of {kernel}")
            for row, seconds in zip(rows, times, strict=False):
                row.append(format_si(seconds, "s") if seconds == seconds else "")
        return html.table(f"{self.application}: {len(self)} runs at {self.path}", heads, rows)

    def _largest(self, configurations: Sequence[Sequence[Run]], most: int = 3) -> dict[str, list[float]]:
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

    def plot(self, metric: str | None = None, kernel: str | None = None, ax: Any = None) -> Any:
        """Draw measured values over the parameter with most values; the matplotlib axes are returned.

        Raises InputError when nothing measured the metric, or no kernel has the name.

        Examples
        --------
        >>> rs.read("heat.exp").plot(kernel="solve").get_xlabel()
        'ranks'

        Parameters
        ----------
        metric : str, optional
            The time where it was measured, otherwise the first metric.
        kernel : str, optional
            Of this kernel alone; otherwise of the program.
        ax : matplotlib axes, optional
            Drawn into; otherwise a new figure of pyplot.
        """
        return drawn("plot_runs", self, metric=metric, kernel=kernel, ax=ax)

    def add(
        self,
        run: Run,
        counters: pd.DataFrame | None = None,
        messages: pd.DataFrame | None = None,
        raw: Iterable[Path] = (),
        tables: Mapping[str, pd.DataFrame] | None = None,
    ) -> Run:
        """Store a run atomically and return it.

        Raises InputError when a table lacks a column, has a kernel x rank twice, or the run exists already.

        Parameters
        ----------
        run : Run
            Its configuration must give a value to every parameter of the experiment and to no other.
        counters : DataFrame, optional
            Columns ``kernel`` (str), ``rank`` (int, :data:`ALL_RANKS` where reduced) and one column of floats a metric.
        messages : DataFrame, optional
            Columns :data:`MESSAGE_COLUMNS`.
        raw : paths, optional
            Files to keep unchanged with the tables.
        tables : mapping of str to DataFrame, optional
            Further tables of the collector, stored under ``<name>.parquet``.

        Examples
        --------
        >>> experiment = rs.Experiment.create("own.exp", "heat", ["ranks"])
        >>> table = pd.DataFrame({"kernel": ["solve"], "rank": [0], "time": [1.5]})
        >>> experiment.add(rs.Run({"ranks": 1}, provenance={"time": "measured"}), table).id
        'ranks1-unknown-r0'
        """
        if set(run.configuration) != set(self.parameters):
            raise InputError(
                f"run {run.id} sets {', '.join(run.configuration) or 'nothing'}, not {', '.join(self.parameters)}"
            )
        if run.id in self._runs:
            raise InputError(f"run {run.id} is in {self.path} already")
        todo: dict[str, pd.DataFrame] = dict(tables or {})
        if counters is not None:
            missing = [name for name in COUNTER_KEYS if name not in counters.columns]
            if missing:
                raise InputError(f"counters of run {run.id} lack the column {', '.join(missing)}")
            todo["counters"] = _counters(run, counters)
        if messages is not None:
            missing = [name for name in MESSAGE_COLUMNS if name not in messages.columns]
            if missing:
                raise InputError(f"messages of run {run.id} lack the column {', '.join(missing)}")
            todo["messages"] = messages

        def fill(place: Path) -> None:
            from ranksight.core.tables import write_table

            for name, table in todo.items():
                write_table(place / f"{name}.parquet", table)
            for file in raw:
                (place / "raw").mkdir(exist_ok=True)
                shutil.copy(file, place / "raw" / file.name)

        return self._store(run, fill)

    def replace(self, run: Run, tables: Mapping[str, pd.DataFrame] | None = None) -> None:
        """Write what is known of a run anew, and some of its `tables`, of an experiment that is nobody's yet."""
        folder = self.path / "runs" / run.id
        run.write(folder)
        if tables:
            from ranksight.core.tables import write_table

            for name, table in tables.items():
                write_table(folder / f"{name}.parquet", table)
        self._runs[run.id] = run
        self._forget(run)

    def drop(self, run: Run) -> None:
        """Remove a run of an experiment that is nobody's yet."""
        shutil.rmtree(self.path / "runs" / run.id)
        del self._runs[run.id]
        self._forget(run)

    def _forget(self, run: Run) -> None:
        """Keep nothing in memory of the tables of a run."""
        self._arrays.pop(run.id, None)
        self._tables = {key: table for key, table in self._tables.items() if key[0] != run.id}
        self._footers = {key: footer for key, footer in self._footers.items() if key[0] != run.id}

    def adopt(self, run: Run, folder: Path) -> Run:
        """Store a copy of the tables and files in `folder`, another experiment's run, as `run`; see :meth:`add`."""
        return self._store(run, lambda place: shutil.copytree(folder, place, dirs_exist_ok=True, symlinks=True))

    def _store(self, run: Run, fill: Callable[[Path], object]) -> Run:
        """Put what `fill` writes into a folder in its place as one."""
        folder = self.path / "runs"
        folder.mkdir(exist_ok=True)
        place = new_folder(folder, ".new-")
        try:
            fill(place)
            run.write(place)
            if self.synced:
                sync_tree(place)
            os.rename(place, folder / run.id)
            if self.synced:
                sync(folder)
        except OSError as error:
            if (folder / run.id).exists():
                raise InputError(
                    f"run {run.id} came into {self.path} meanwhile", "let one command at a time measure into it"
                ) from error
            raise InputError(
                f"cannot store run {run.id} in {folder}: {error.strerror or error}", "free space or name another folder"
            ) from error
        finally:
            shutil.rmtree(place, ignore_errors=True)
        self._runs[run.id] = run
        return run

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


def read(path: str | os.PathLike[str]) -> Experiment:
    """Open the experiment at `path`; see :meth:`Experiment.read`.

    Raises InputError when the folder is not an experiment, is damaged, or was written by a newer version.

    Parameters
    ----------
    path : path
        Folder that ``measure`` or ``import`` wrote.

    Examples
    --------
    >>> experiment = rs.read("heat.exp")
    >>> experiment.parameters, len(experiment.runs), experiment.metrics()
    (('ranks', 'size'), 12, ('time', 'instructions'))
    """
    return Experiment.read(path)


def _counters(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """The counters of a run as they are stored; InputError where a kernel stands twice on a rank."""
    import pandas as pd

    kernel = pd.Categorical(table["kernel"])
    rank = table["rank"].to_numpy(dtype=np.int32)
    places = kernel.codes.astype(np.int64) << 32 | (rank.astype(np.int64) + 1)
    if len(pd.unique(places)) < len(places):
        row = table[pd.Series(places).duplicated().to_numpy()].iloc[0]
        raise InputError(f"counters of run {run.id} hold kernel {row['kernel']!r} on rank {row['rank']} twice")
    same = isinstance(table["kernel"].dtype, pd.CategoricalDtype)
    return table if same and table["rank"].dtype == rank.dtype else table.assign(kernel=kernel, rank=rank)


# ---- files ----------------------------------------------------------------------------------------------------------


def _is_empty(folder: Path) -> bool:
    """Whether a folder holds nothing but what was made before its head, by one that was killed or found no room."""
    return all(
        entry.name == ".campaign.lock"
        or entry.name.startswith(".experiment.json.")
        or (entry.name == "runs" and not any(entry.iterdir()))
        for entry in folder.iterdir()
    )


def _is_run(entry: Path) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")
