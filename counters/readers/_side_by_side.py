"""The command that reads a table whose times have no column of their own: side by side, or one below another."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ranksight.core.metrics import METRICS
from ranksight.core.numerals import parse_numbers
from ranksight.counters.readers._parameter_columns import SCATTER, chosen
from ranksight.counters.readers._reshaping import CELLS
from ranksight.counters.readers.csv_table import COUNTS, Columns

MOST = 12
"""Columns that a command names one by one."""
_COORDINATE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(?:\s*([\[(][^\[\]()]{1,12}[\])]))?")
_DIGITS = re.compile(r"\d+")
_UNIT = re.compile(r"[\[(][^\[\]()]{1,12}[\])]\s*$")


def in_rows(path: Path, cells: Mapping[str, Sequence[str]], is_time: Callable[[str], bool]) -> str:
    """What says how a table is read by ``--pivot`` in which a column names metrics; empty where none does.

    The values are the column of numbers in which most differ. `is_time`: whether a name is that of a time.
    """
    numbers = [name for name in cells if name and not parse_numbers(list(cells[name]))[1]]
    texts = [name for name in cells if name and name not in numbers]
    listed = {name: list(dict.fromkeys(cells[name])) for name in texts}
    names = next((name for name in texts if any(is_time(each) for each in listed[name])), None)
    if names is None or not numbers:
        return ""
    value = max(numbers, key=lambda name: len(set(cells[name])))
    kernel = next((name for name in texts if name != names and len(listed[name]) > 1), None)
    metrics = ["time" if each == "time" else f"time={each}" for each in listed[names] if is_time(each)][:1]
    metrics += [each for each in listed[names] if each in METRICS and each != "time"]
    words = ["ranksight", "import", "csv", str(path), "--pivot", f"{names}={value}"]
    varied = [name for name in numbers if name != value and len(set(cells[name])) > 1]
    words += [word for name in varied for word in ("--parameter", name)]
    words += ["--kernel", kernel] if kernel is not None else []
    words += [word for name in metrics for word in ("--metric", name)]
    return f"metrics that column {names!r} names are read by: {shlex.join(words)}"


def side_by_side(path: Path, columns: Columns, cells: Mapping[str, Sequence[str]]) -> str:
    """What says how the table at `path` is read by ``--melt``; empty where it has no two columns that may be times.

    Columns whose names are numbers are at these numbers of ranks, or of the size where the ranks are a column. Without
    such, those that are no parameters are of kernels, or repetitions where their names differ by a number alone and
    their values in every row as little as those of repetitions.
    """
    decimal = columns.decimal or "."
    listed = [name for name in cells if name and "," not in name]
    numbers = [name for name in listed if not parse_numbers(list(cells[name]), decimal)[1]]
    texts = [name for name in listed if name not in numbers and len(set(cells[name])) > 1]
    molten = [name for name in numbers if _COORDINATE.fullmatch(name.strip())]
    others = [name for name in numbers if name not in molten and len(set(cells[name])) > 1]
    kernel = columns.kernel or next(iter(texts), None)
    if len(molten) > 1:
        new = next(name for name in ("ranks", "size", "threads", "number") if name not in cells)
        parameters = [new, *others]
    elif kernel is None and others:
        new = kernel = "kernel"
        sure = [name for name in others if name.casefold() in COUNTS]
        parameters = chosen({name: cells[name] for name in others}, sure, None, decimal, tied=False)
        molten = [name for name in numbers if name not in parameters]
        if len(molten) > 1 and _repeated({name: cells[name] for name in molten}, decimal):
            new, kernel = "repetition", None
    units = [_UNIT.search(name) for name in molten]
    one_unit = len({None if unit is None else unit[0].strip() for unit in units}) == 1
    if len(molten) < 2 or not one_unit or CELLS in cells or new in cells:
        return ""
    named = "[0-9]*" if new not in ("kernel", "repetition") and len(molten) > MOST else ",".join(molten)
    words = ["ranksight", "import", "csv", str(path), "--melt", f"{new}={named}"]
    words += [word for name in parameters for word in ("--parameter", name)]
    words += ["--kernel", kernel] if kernel is not None else []
    words += ["--repetition", new] if new == "repetition" else []
    return f"times in columns side by side are read by: {shlex.join([*words, '--metric', f'time={CELLS}'])}"


def _repeated(cells: Mapping[str, Sequence[str]], decimal: str) -> bool:
    """Whether columns are repetitions: names with one number each that alone differs, and values that only scatter."""
    stems = {_DIGITS.sub("#", name.strip()) for name in cells}
    if len(stems) != 1 or next(iter(stems)).count("#") != 1:
        return False
    values = np.stack([parse_numbers(list(column), decimal)[0] for column in cells.values()])
    return bool((values > 0).all() and (values.max(axis=0) <= SCATTER * values.min(axis=0)).all())
