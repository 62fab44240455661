"""Pipe tables of Markdown, as results of scaling runs are posted: cells may state units, minutes and per cent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError, meant
from ranksight.core.numerals import MISSING, parse_number, stated_scale
from ranksight.core.units import some_of
from ranksight.counters.readers._column_names import without_unit
from ranksight.counters.readers._delimited import Delimited, decode
from ranksight.counters.readers._durations import NUMBER, UNIT, seconds, states_unit
from ranksight.counters.readers._reshaping import Shape

MARKS = "*_`~ \t"
"""Emphasis around a cell."""
SIGN = re.compile(r"\u00b1|\+/?-")
SCATTER = re.compile(rf"{NUMBER}[ \t]?(?P<unit>%|{UNIT})?", re.IGNORECASE)
"""What a value scatters by, which is not read, behind the sign."""
LONGEST = 100  # characters of a cell with a value
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
            columns[name], stated, of_cells = _plain(path, name, lines, columns[name])
            called |= {name: ""} if stated else {}
            notes = (*notes, *of_cells)
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
        yield _Found(first, [re.sub(r"[`*]", "", cell).strip(MARKS) for cell in heads], rows)


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


def _plain(path: Path, name: str, lines: Sequence[int], cells: Sequence[str]) -> tuple[list[str], bool, list[str]]:
    """Cells as numbers, whether these are in SI units whatever the column's name states, and notes."""
    values = [_valued(cell) for cell in cells]
    notes = []
    if minutes := next((cell for cell in cells if cell.count(":") == 1 and _valued(cell)[1]), ""):
        notes.append(f"has {minutes!r} in column {name!r}: read as minutes and seconds")
    if scattered := next((cell for cell in cells if _scattered(cell)), ""):
        notes.append(f"has {scattered!r} in column {name!r}: the value is read, its scatter is not")
    stated = any(unit for _, unit in values)
    bare = [at for at, (cell, unit) in enumerate(values) if not unit and cell.casefold() not in MISSING]
    scale = 1.0
    if stated and bare:
        # The unit in the column's name is that of cells without one.
        if without_unit(name) == "_".join(name.split()):
            at = bare[0]
            raise InputError(
                f"{path}:{lines[at]}: {cells[at]!r} states no unit, other cells of column {name!r} do", "add its unit"
            )
        scale = stated_scale(name, "s")
    numbers = [text if unit or scale == 1 else _times(text, scale) for text, unit in values]
    return numbers, stated, notes


def _times(text: str, scale: float) -> str:
    """A number in other units; other texts as they are."""
    try:
        return repr(parse_number(text) / round(1 / scale))
    except InputError:
        return text


def _valued(cell: str) -> tuple[str, bool]:
    """A cell's number in SI units, without its scatter, and whether the cell states what it is; others as they are."""
    if len(cell) > LONGEST:
        return cell, False
    if (parts := _scattered(cell)) is not None:
        value, unit = _valued(parts[0])
        return (value, unit) if unit or not parts[1] else _valued(f"{value} {parts[1]}")
    try:
        if cell.endswith("%"):
            part = parse_number(cell[:-1].strip())
            return (repr(part / 100), True) if part == part else (cell, False)
        if states_unit(cell):
            return repr(seconds(cell)), True
    except InputError:
        pass
    return cell, False


def _scattered(cell: str) -> tuple[str, str] | None:
    """The value of a cell with its scatter, and the unit behind both; None where the cell has none."""
    value, *rest = SIGN.split(cell, maxsplit=1)
    match = SCATTER.fullmatch(rest[0].strip()) if rest and value.strip() else None
    return None if match is None else (value.strip(MARKS + "("), match["unit"] or "")
