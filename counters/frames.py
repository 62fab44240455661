"""Experiments of tables that are in memory already: the same readings as of a file with the same cells."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.campaign.importing import Import
from ranksight.campaign.naming import Naming
from ranksight.core.errors import InputError, meant
from ranksight.core.experiment import Experiment
from ranksight.core.leftout import warning
from ranksight.core.records import dataclass
from ranksight.counters.checking import Checks
from ranksight.counters.forming import formed
from ranksight.counters.readers._delimited import Delimited
from ranksight.counters.readers._reshaping import Shape
from ranksight.counters.readers.csv_table import Columns, read_table

WHERE = Path("the frame")
"""What messages call a table that is in no file."""
ROWS = "correct or leave out these rows"


@dataclass(frozen=True, slots=True)
class _InMemory(Shape):
    """Gives the cells of a frame as those of a file."""

    frame: pd.DataFrame

    def read(self, path: Path, wanted: Sequence[str], delimiter: str | None) -> Delimited:
        columns = {name: [_text(cell) for cell in self.frame[name].tolist()] for name in wanted}
        header = tuple(self.frame.columns[~self.frame.columns.duplicated(keep=False)])
        return Delimited(columns, range(1, len(self.frame) + 1), "\t", (), header)


def _text(cell: object) -> str:
    """A cell as a file has it; numbers in full precision."""
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    return repr(cell) if isinstance(cell, float) else str(cell).strip()


def from_frame(
    frame: pd.DataFrame,
    parameters: Sequence[str] | Mapping[str, str] = ("ranks",),
    kernel: str | None = None,
    time: str | None = None,
    *,
    metrics: Sequence[str] | Mapping[str, str] = (),
    rank: str | None = None,
    repetition: str | None = None,
    total: str | None = None,
    application: str = "program",
) -> Experiment:
    """An experiment of a table in memory, one row a measurement; the model is that of the same table in a file.

    The experiment is kept in a temporary folder and removed with the object; ``ranksight import csv`` makes one that
    stays. Rows without a usable value are left out with a warning. Raises InputError when a column is missing, a cell
    is not a number, a row is there twice, no row is usable, or one of the kernels seems to hold the others and `total`
    does not name it.

    Parameters
    ----------
    parameters : sequence of str, or mapping of str to str
        Columns that are parameters, or the name of each parameter and its column.
    kernel, rank, repetition : str, optional
        Columns that name the kernel, the rank and the repetition. Without `kernel` a row is of the whole program,
        without `rank` of all ranks together; without `repetition` rows of one configuration are repetitions.
    time : str, optional
        Column of the time in s; in ms or us where its name ends so, as ``time [ms]``. The column ``time`` where neither
        this nor `metrics` is given.
    metrics : sequence of str, or mapping of str to str
        Further columns, or the name of each metric and its column.
    total : str, optional
        The kernel that is the whole program; empty where no kernel holds the others.

    Examples
    --------
    >>> table = pd.DataFrame({"ranks": [1, 2, 4, 8], "seconds": [8.1, 4.1, 2.1, 1.1]})
    >>> model = rs.fit(rs.from_frame(table, parameters=["ranks"], time="seconds"))
    >>> model.parameters
    ('ranks',)
    """
    if time is None and not metrics and isinstance(frame, pd.DataFrame) and "time" in frame.columns:
        time = "time"
    given = {**({} if time is None else {"time": time}), **_named(metrics)}
    columns = Columns(_named(parameters), given, kernel, rank, repetition, total=total or None)
    _check(frame, columns)
    readings = read_table(WHERE, replace(columns, shape=_InMemory({}, {}, frame)))
    folder = Path(tempfile.mkdtemp(prefix="ranksight-"))
    try:
        checks = Checks(None)
        with Import(folder / "experiment", application, Naming(), False, lambda each: checks(formed(each))) as work:
            try:
                work.add(readings, "csv", WHERE)
            except InputError as error:
                # Options of the command line are no remedy here.
                named = "--kernel" in error.remedy
                remedy = "name the column as kernel, repetition or a parameter" if named else ROWS
                raise InputError(error.what, remedy) from error
            _refuse_holder(work, total)
            work.settle()
            if total and work.timers.overlap is not None:
                work.mark_inclusive(total)
            experiment = work.finish()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(experiment, shutil.rmtree, folder, True)
    for note in filter(None, (*work.meanings.notes, *work.notes, *checks.warnings(), warning(experiment))):
        warnings.warn(note, stacklevel=2)
    return experiment


def from_dict(columns: Mapping[str, Sequence[Any]], parameters: Sequence[str] | Mapping[str, str] = ("ranks",),
              kernel: str | None = None, time: str | None = None, **more: Any) -> Experiment:  # fmt: skip
    """An experiment of columns in memory, each a name and its cells; see :func:`from_frame`.

    Raises InputError as :func:`from_frame`, and when the columns are of different lengths.

    Parameters
    ----------
    columns : mapping of str to sequence
        Cells of each column; all of one length. Times are seconds.
    parameters, kernel, time
        Names of the columns that hold them, as for :func:`from_frame`.

    Examples
    --------
    >>> experiment = rs.from_dict({"ranks": [1, 2, 4, 8], "time": [8.1, 4.1, 2.1, 1.1]}, time="time")
    >>> len(experiment)
    4
    """
    try:
        frame = pd.DataFrame({name: list(cells) for name, cells in columns.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the columns make no table: {error}", "give lists of one length by their names") from error
    return from_frame(frame, parameters, kernel, time, **more)


def _named(given: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Names and their columns."""
    if isinstance(given, Mapping):
        return dict(given)
    return {name: name for name in ([given] if isinstance(given, str) else given)}


def _check(frame: pd.DataFrame, columns: Columns) -> None:
    """Raise InputError where columns are missing or there twice, or a row is."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{WHERE} is a {type(frame).__name__}", "give a pandas DataFrame, or use rs.from_dict")
    present = list(frame.columns)
    if not columns.metrics:
        raise InputError(f"{WHERE}: no column is named for the time", "write time='COLUMN', or metrics=['COLUMN']")
    for name in columns.names():
        if name not in present:
            near = meant(str(name), list(map(str, present)))
            raise InputError(f"{WHERE} has no column {name!r}", near or f"its columns: {', '.join(map(str, present))}")
        if present.count(name) > 1:
            raise InputError(f"{WHERE} has the column {name!r} twice", "give every column its own name")
    if not len(frame):
        raise InputError(f"{WHERE} has no rows", "give a row for each measurement")
    keys = columns.names() if columns.repetition is None else [
        name for name in columns.names() if name not in columns.metrics.values()
    ]  # fmt: skip
    if (twice := frame[keys].astype(str).duplicated()).any():
        row = int(np.flatnonzero(twice)[0]) + 1
        raise InputError(
            f"{WHERE}: row {row} is there before ({int(twice.sum())} of {len(frame)} rows are)",
            "drop_duplicates() removes them; name the column that numbers the repetitions where they are some",
        )


def _refuse_holder(work: Import, total: str | None) -> None:
    """Raise InputError where one timer seems to hold the others and nobody says whether it does."""
    held = work.timers.holder
    if held is not None and total is None:
        raise InputError(
            f"{WHERE}: {held.kernel} takes longest everywhere, and the others together {held.times:.2g} times as long",
            f"write total={held.kernel!r} if it is the whole program, total='' if no kernel holds the others",
        )
