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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.core import html
from ranksight.core.errors import InputError, writable
from ranksight.core.files import new_folder, read_json, recover, sync, sync_tree, write_json
from ranksight.core.html import drawn
from ranksight.core.log import log
from ranksight.core.run import SCHEMA_VERSION, Run, named
from ranksight.core.runtables import ALL_RANKS, COUNTER_KEYS, MESSAGE_COLUMNS, RunTables, checked
from ranksight.core.units import format_si

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALL_RANKS", "COUNTER_KEYS", "MESSAGE_COLUMNS", "WHOLE", "Experiment", "Run", "read"]

WHOLE = "(whole program)"
"""The kernel of a value that belongs to the program and to no kernel."""


class Experiment(RunTables):
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
        super().__init__(path)
        self.application = application
        self.parameters = tuple(parameters)
        self._runs = {run.id: run for run in runs}

    @classmethod
    def create(cls, path: str | os.PathLike[str], application: str, parameters: Sequence[str]) -> Experiment:
        """Make a new, empty experiment at `path`.

        Raises InputError when something that is not an empty folder is there already, the folder cannot be written, or
        a parameter's name is taken (:func:`ranksight.core.run.named`).

        Examples
        --------
        >>> rs.Experiment.create("new.exp", "heat", ["ranks", "size"])
        <Experiment heat: 0 runs over ranks, size at new.exp>
        """
        path = Path(path)
        if path.exists() and not (path.is_dir() and _is_empty(path)):
            raise InputError(f"{path} exists already", "name another folder")
        experiment = cls(path, application, named(parameters))
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
        for kernel, times in self.largest_times(list(found.values())[: html.MOST]).items():
            heads.append(f"time of {kernel}")
            for row, seconds in zip(rows, times, strict=False):
                row.append(format_si(seconds, "s") if seconds == seconds else "")
        return html.table(f"{self.application}: {len(self)} runs at {self.path}", heads, rows)

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
            todo["counters"] = checked(run, counters)
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
        self.forget(run)

    def drop(self, run: Run) -> None:
        """Remove a run of an experiment that is nobody's yet."""
        shutil.rmtree(self.path / "runs" / run.id)
        del self._runs[run.id]
        self.forget(run)

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
