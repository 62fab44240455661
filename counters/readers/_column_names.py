"""What the columns of a table mean by their names, where the user names none: what a table of four rows needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.metrics import METRICS
from ranksight.core.numerals import decimal_mark, parse_numbers
from ranksight.core.units import some_of
from ranksight.counters.forming import is_event
from ranksight.counters.names import metric_name
from ranksight.counters.readers._parameter_columns import BRACKET, chosen, of_runs
from ranksight.counters.readers._side_by_side import in_rows, side_by_side
from ranksight.counters.readers._valued_cells import without_unit
from ranksight.counters.readers.csv_table import COUNTS, Columns

TIMES = re.compile(
    r"times?|timing|t|s|secs?|seconds?|real(?:time)?|(?:run|exec|execution|total|elapsed)time|elapsed|duration|"
    r"wall(?:time|clock|clocktime)?"
)
KERNELS = re.compile(r"kernels?|functions?|routines?|regions?|timers?|sections?|name")
REPETITIONS = re.compile(r"rep(?:s|eat|etitions?)?|run|trial|sample|job(?:id)?")
RANK = re.compile(r"(?:mpi)?rank(?:id)?")
RANKS = re.compile(r"(?:mpi|n|num|numberof|total)?ranks|mpi(?:tasks|procs|processes)")
"""Names of columns in small letters, without signs and units."""
LOOKED_AT = 2000
"""Rows whose cells are looked at."""
_MEASURED = re.compile(
    r"[\[(](?:[num\u00b5\u03bc]?s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|%)[\])]$", re.IGNORECASE
)
"""End of the name of a column of times or shares, which is no parameter."""
_SECONDS = re.compile(r"[\[(](?:[num\u00b5\u03bc]?s|secs?|seconds?)[\])]$", re.IGNORECASE)
_SIGNS = re.compile(r"[^a-z0-9]")


def by_names(
    path: Path, columns: Columns, cells: Mapping[str, Sequence[str]], outside: bool = False, wide: bool = True
) -> tuple[Columns, str]:
    """`columns` with what nobody stated, by the names of the table's columns and their `cells`, and a note of it.

    The one column that is named as a time is the time, those named as metrics or events are metrics; those named as
    kernel, repetition or rank are these; of other columns of numbers that differ, those that people chose
    (:func:`chosen`) are parameters, unless all come from `outside` the table. Raises InputError, naming the columns,
    where none or several are named as times: with the command that reads times side by side, where the table's format
    may have them (`wide`).
    """
    listed = [name for name in cells if name]
    left = [name for name in listed if name not in columns.names()]
    stated = dict(columns.metrics)
    metrics = stated or _metrics(left)
    times = [name for name in left if _is_time(name)]
    if not stated:
        if len(times) > 1 or not (times or metrics):
            which = f"several columns may be the time: {some_of(times)}" if times else "no column is named as a time"
            shaped = "" if times or not wide else in_rows(path, cells, _is_time) or side_by_side(path, columns, cells)
            raise InputError(f"{path}: {which}", shaped or _remedy(listed, times, cells))
        metrics |= {"time": times[0]} if times else {}
    left = [name for name in left if name not in metrics.values()]
    kernel, repetition, rank = (
        given or next((name for name in left if words.fullmatch(_plain(name))), None)
        for given, words in ((columns.kernel, KERNELS), (columns.repetition, REPETITIONS), (columns.rank, RANK))
    )
    left = [name for name in left if name not in (kernel, repetition, rank)]
    measured = {*times, *(name for name in left if _MEASURED.search(name))}
    varied = [name for name in left if name not in measured and _numbers(cells[name]) and len(set(cells[name])) > 1]
    ranks = next((name for name in varied if RANKS.fullmatch(_plain(name))), None) if "ranks" not in varied else None
    if not columns.parameters:
        looked = {name: list(cells[name][:LOOKED_AT]) for name in (*varied, *metrics.values())}
        keys = [cells[name][:LOOKED_AT] for name in (kernel, repetition, rank) if name is not None]
        sure = [name for name in varied if name == ranks or name.casefold() in COUNTS]
        one = of_runs({name: looked[name] for name in varied}, keys, sure)
        varied = chosen(one, sure, looked.get(metrics.get("time", "")), _decimal(looked, columns, path))
    parameters = dict(columns.parameters) or {"ranks" if name == ranks else name: name for name in varied}
    parameters = {} if outside and not columns.parameters else parameters
    if not (parameters or outside):
        raise InputError(
            f"{path}: no column of numbers that differ is left for a parameter", _remedy(listed, times, cells)
        )
    several = "s" if len(parameters) > 1 else ""
    read = [f"parameter{several} {', '.join(parameters)}"] if parameters else []
    read += [f"{name} from {source!r}" for name, source in metrics.items()]
    roles = (("kernels", kernel), ("repetitions", repetition), ("ranks", rank))
    read += [f"{role} from {source!r}" for role, source in roles if source is not None]
    found = replace(columns, metrics=metrics, parameters=parameters, kernel=kernel, repetition=repetition, rank=rank)
    unread = [name for name in listed if name not in found.names()]
    remedy = "--metric NAME=COLUMN or --parameter COLUMN reads one"
    read += [f"not read: {some_of([repr(name) for name in unread])} ({remedy})"] if unread else []
    parts = [name for name in unread if _SECONDS.search(name) and "," not in name]
    if len(parts) > 1 and kernel is None and wide:
        words = [word for name, source in parameters.items() for word in ("--parameter", _stated(name, source))]
        words += ["--melt", f"kernel={','.join(parts)}", "--kernel", "kernel", "--metric", "time=value"]
        read.append(f"times of kernels are read by {shlex.join(words)}")
    return found, f"{path.name}: by the names of the columns: {'; '.join(read)}"


def _metrics(names: Sequence[str]) -> dict[str, str]:
    """The metrics that columns are by their names, and events of processors, each with its column; no time."""
    metrics = {name: name for name in names if name in METRICS and name != "time"}
    for name in names:
        bare = "_".join(BRACKET.sub("", name).split()).casefold()
        if name not in metrics and bare in METRICS and not TIMES.fullmatch(_plain(bare)):
            metrics.setdefault(bare, name)
    for name in names:
        if name not in metrics.values() and is_event(name):
            metrics.setdefault(name if metric_name(name) in metrics else metric_name(name), name)
    return metrics


def _stated(name: str, source: str) -> str:
    return name if name == source else f"{name}={source}"


def _is_time(name: str) -> bool:
    """Whether a column or metric is named as the time."""
    return any(TIMES.fullmatch(_plain(each)) for each in (name, without_unit(name)))


def _plain(name: str) -> str:
    return _SIGNS.sub("", name.casefold())


def _decimal(looked: Mapping[str, Sequence[str]], columns: Columns, path: Path) -> str:
    """What separates the decimals of the table; a point where that is open."""
    try:
        found = decimal_mark({cell for cells in looked.values() for cell in cells}, str(path))
    except InputError:
        found = None
    return columns.decimal or found or "."


def _numbers(cells: Sequence[str]) -> bool:
    """Whether the first cells are all numbers."""
    return not parse_numbers(list(cells)[:LOOKED_AT])[1]


def _remedy(listed: Sequence[str], times: Sequence[str], cells: Mapping[str, Sequence[str]]) -> str:
    """A command's options for these columns."""
    time = times[0] if times else "COLUMN"
    others = [name for name in listed if name not in times]
    parameter = next((name for name in others if _numbers(cells[name])), "ranks" if others else "COLUMN")
    return f"write --parameter {parameter!r} --metric time={time!r}; its columns: {some_of(listed, 8)}"
