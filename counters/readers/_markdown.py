"""Pipe tables of Markdown, as results of scaling runs are posted: cells may state units, minutes and per cent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError, meant
from ranksight.core.numerals import MISSING, parse_number
from ranksight.core.units import some_of
from ranksight.counters.readers._delimited import Delimited, decode
from ranksight.counters.readers._reshaping import Shape

UNITS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
         "μs": 1e-6, "ns": 1e-9, "min": 60.0, "mins": 60.0, "m": 60.0, "h": 3600.0, "%": 0.01}  # fmt: skip
"""Units that a cell may state, in s and parts of one."""
MARKS = "*_`~ \t"
"""Emphasis around a cell."""
CLOCK = re.compile(r"(?:(\d{1,5}):)?(\d{1,5}):(\d{2}(?:\.\d{1,9})?)")
RULE = re.compile(r":?-+:?")
PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class _Found:
    """One table of a file."""

    line: int  # of its heads
    heads: list[str]
    rows: list[tuple[int, list[str]]]  # line and cells


@dataclass(frozen=True, slots=True)
class MarkdownTable(Shape):
    """Gives the cells of the one table of a Markdown file that has the columns asked for."""

    numbers: Sequence[str] = ()  # columns whose cells are numbers, with or without a unit
    needed: Sequence[str] = ()  # columns that every row has to fill: parameters, kernels, ranks

    def read(self, path: Path, wanted: Sequence[str], delimiter: str | None) -> Delimited:
        """See :class:`Shape`. Raises InputError when no table or several have the columns, a row is ragged, or cells
        are merged."""
        text, notes = decode(path)
        found = _chosen(path, text, wanted)
        places = {name: found.heads.index(name) for name in wanted}
        for line, cells in found.rows:
            _whole(path, line, cells, {name: places[name] for name in self.needed if name in places}, len(found.heads))
        columns = {name: [cells[at].strip(MARKS) for _, cells in found.rows] for name, at in places.items()}
        called: dict[str, str] = {}
        lines = [line for line, _ in found.rows]
        for name in filter(places.__contains__, self.numbers):
            columns[name], stated, minutes = _plain(path, name, lines, columns[name])
            called |= {name: ""} if stated else {}
            if minutes:
                notes = (*notes, f"has {minutes!r} in column {name!r}: read as minutes and seconds")
        return Delimited(columns, lines, "|", notes, tuple(found.heads), called)


def _chosen(path: Path, text: str, wanted: Sequence[str]) -> _Found:
    """The one table that has all columns."""
    tables = list(_tables(path, text))
    if not tables:
        html = "a table of HTML is not read" if "<table" in text.lower() else "no table is in it"
        raise InputError(f"{path}: {html}", "give a table such as '| ranks | time |', then '|---|---|', then rows")
    fitting = [table for table in tables if set(wanted) <= set(table.heads)]
    if len(fitting) > 1:
        raise InputError(
            f"{path} has {len(fitting)} tables with these columns (lines {some_of([t.line for t in fitting])})",
            "leave one of them in the file",
        )
    if not fitting:
        heads = list(dict.fromkeys(itertools.chain(*(table.heads for table in tables))))
        missing = next((name for name in wanted if name not in heads), "")
        if not missing:
            raise InputError(f"{path}: no table has all of {', '.join(wanted)}", "put them into one table")
        remedy = meant(missing, heads) or f"its columns: {some_of(heads, 8)}"
        raise InputError(f"{path} has no column {missing!r}", remedy)
    (table,) = fitting
    if twice := [name for name in wanted if table.heads.count(name) > 1]:
        raise InputError(f"{path}:{table.line} names the column {twice[0]!r} twice", "give every column its own name")
    if not table.rows:
        raise InputError(f"{path}:{table.line}: the table has no rows")
    return table


def _tables(path: Path, text: str) -> Iterator[_Found]:
    """All pipe tables: a line of heads, a rule of as many cells, and the rows up to a line without a pipe."""
    lines = text.splitlines()
    at = 0
    while at + 1 < len(lines):
        heads, rule = _cells(lines[at]), _cells(lines[at + 1])
        if not heads or len(heads) != len(rule) or not all(RULE.fullmatch(cell.strip()) for cell in rule):
            at += 1
            continue
        if len(heads) > limits.TABLE_COLUMNS:
            raise InputError(f"{path}:{at + 1} names more than {limits.TABLE_COLUMNS} columns", "give it in parts")
        rows, first = [], at + 1
        at += 2
        while at < len(lines) and (cells := _cells(lines[at])):
            rows.append((at + 1, cells))
            at += 1
        yield _Found(first, [cell.strip(MARKS) for cell in heads], rows)


def _cells(line: str) -> list[str]:
    """Cells of a line with pipes; none of another."""
    line = line.strip()
    if "|" not in line or len(line) > limits.LINE:
        return []
    cells = PIPE.split(line.removeprefix("|"))
    cells = cells[:-1] if len(cells) > 1 and not cells[-1] else cells
    return [cell.replace("\\|", "|") for cell in cells]


def _whole(path: Path, line: int, cells: Sequence[str], needed: Mapping[str, int], width: int) -> None:
    """Raise InputError where a row has another number of cells, or cells that stand for several."""
    merged = "merged cells are not read"
    remedy = "write the value into every row and column that it is for"
    if any(cell == "" or cell.strip() == "^^" for cell in cells):
        raise InputError(f"{path}:{line}: {merged}", remedy)
    if len(cells) != width:
        raise InputError(f"{path}:{line} has {len(cells)} cells, the heads are {width}: {merged}", remedy)
    for name, at in needed.items():
        if not cells[at].strip(MARKS):
            raise InputError(f"{path}:{line}: the cell of column {name!r} is empty: {merged}", remedy)


def _plain(path: Path, name: str, lines: Sequence[int], cells: Sequence[str]) -> tuple[list[str], bool, str]:
    """Cells as numbers in SI units, whether they state a unit, and one that is minutes and seconds."""
    found, stated, bare, minutes = [], False, "", ""
    for cell in cells:
        number, unit = _valued(cell)
        found.append(number)
        stated |= unit
        if unit and ":" in cell and cell.count(":") == 1:
            minutes = minutes or cell
        if not unit and cell.casefold() not in MISSING:
            bare = bare or cell
    if stated and bare:
        line = lines[cells.index(bare)]
        raise InputError(f"{path}:{line}: {bare!r} states no unit, other cells of column {name!r} do", "add its unit")
    return found, stated, minutes


def _valued(cell: str) -> tuple[str, bool]:
    """A cell's number in SI units and whether the cell states what it is; other cells as they are."""
    if clock := CLOCK.fullmatch(cell):
        hours, minutes, seconds = clock.groups(default="0")
        return repr(3600 * int(hours) + 60 * int(minutes) + float(seconds)), True
    unit = next((unit for unit in sorted(UNITS, key=len, reverse=True) if cell.endswith(unit)), None)
    if unit is None:
        return cell, False
    text = cell.removesuffix(unit).strip()
    try:
        value = parse_number(text)
    except InputError:
        return cell, False
    if value != value:
        return cell, False
    scale = UNITS[unit]
    return repr(value / round(1 / scale) if scale < 1 else value * scale), True
