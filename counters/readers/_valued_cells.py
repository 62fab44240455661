"""Cells of tables that state more than a number: units of time, minutes and seconds, per cent, scatter.

One rule for every table whose columns people name, whatever separates its cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.numerals import LONGER, MISSING, parse_number, parse_numbers, stated_scale
from ranksight.counters.readers._delimited import Delimited, Texts
from ranksight.counters.readers._durations import NUMBER, UNIT, plain_number, seconds, states_unit

MARKS = "*_`~ \t"
"""Emphasis around a cell."""
SIGN = re.compile(r"\u00b1|\+/?-")
SCATTER = re.compile(rf"{NUMBER}[ \t]?(?P<unit>%|{UNIT})?", re.IGNORECASE)
"""What a value scatters by, which is not read, behind the sign."""
LONGEST = 100  # characters of a cell with a value
_UNIT = re.compile(rf"(?:[\[(_](?:[num\u00b5\u03bc]?s|secs?|seconds?)[\])]?|{LONGER})$", re.IGNORECASE)
"""A unit of time at the end of a column's name."""


_SIDES = re.compile(r"\s*\d{1,9}(?:\s?[x*\u00d7]\s?\d{1,9}){1,5}\s*", re.IGNORECASE)


def without_unit(name: str) -> str:
    """A column's name without the unit of time that it ends with, blanks as ``_``."""
    return _UNIT.sub("", "_".join(name.split()))


def number_for(cell: str) -> str:
    """What to write for a cell of several sides, such as ``64x64x32``; empty for others."""
    if len(cell) > LONGEST or not _SIDES.fullmatch(cell):
        return ""
    sides = [int(each) for each in re.findall(r"\d+", cell)]
    side = f"{sides[0]} or " if len(set(sides)) == 1 else ""
    return f"write a number in place of sides, such as {side}{math.prod(sides)} for {cell.strip()}"


def are_numbers(cells: Sequence[str]) -> bool:
    """Whether all cells are numbers with decimal points."""
    return isinstance(cells, Texts) and cells.numbers() is not None


def bare_number(cell: str) -> str:
    """What of a cell is its number, to see what separates its decimals; empty where it is of several."""
    if len(cell) > LONGEST:
        return cell
    parts = with_scatter(cell)
    return plain_number((cell if parts is None else parts[0]).removesuffix("%"))


def with_numbers(path: Path, table: Delimited, names: Sequence[str], decimal: str) -> Delimited:
    """The `table` of `path` with the cells of the columns `names` as numbers in SI units, where they state what they
    are; others as they are.

    `decimal`: what separates the decimals of the file, and of the numbers. Raises InputError where some cells of a
    column state a unit and others, of a column whose name states none, do not.
    """
    columns, called, notes = dict(table.columns), dict(table.called), list(table.notes)
    for name in dict.fromkeys(names):
        if name not in columns or are_numbers(columns[name]) or not parse_numbers(list(columns[name]), decimal)[1]:
            continue
        cells, stated, of_cells = _plain(path, table.called.get(name, name), table.lines, list(columns[name]), decimal)
        columns[name] = cells
        called |= {name: ""} if stated else {}
        notes += of_cells
    return replace(table, columns=columns, called=called, notes=tuple(notes))


def _plain(
    path: Path, name: str, lines: Sequence[int], cells: Sequence[str], decimal: str
) -> tuple[list[str], bool, list[str]]:
    """Cells as numbers, whether these are in SI units whatever the column's name states, and notes."""
    values = [valued(cell, decimal) for cell in cells]
    notes = []
    if minutes := next((cell for cell in cells if cell.count(":") == 1 and valued(cell, decimal)[1]), ""):
        notes.append(f"has {minutes!r} in column {name!r}: read as minutes and seconds")
    if scattered := next((cell for cell in cells if with_scatter(cell)), ""):
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
    numbers = [text if unit or scale == 1 else _times(text, scale, decimal) for text, unit in values]
    return numbers, stated, notes


def _times(text: str, scale: float, decimal: str) -> str:
    """A number in other units; other texts as they are."""
    try:
        value = parse_number(text, decimal)
        return _written(value / round(1 / scale) if scale < 1 else value * scale, decimal) if value == value else text
    except InputError:
        return text


def _written(value: float, decimal: str) -> str:
    """A number in full precision with the decimal mark of its file."""
    return repr(value).replace(".", decimal)


def valued(cell: str, decimal: str = ".") -> tuple[str, bool]:
    """A cell's number in SI units, without its scatter, and whether the cell states what it is; others as they are."""
    if len(cell) > LONGEST:
        return cell, False
    if (parts := with_scatter(cell)) is not None:
        value, unit = valued(parts[0], decimal)
        return (value, unit) if unit or not parts[1] else valued(f"{value} {parts[1]}", decimal)
    try:
        if cell.endswith("%"):
            part = parse_number(cell[:-1].strip(), decimal)
            return (_written(part / 100, decimal), True) if part == part else (cell, False)
        if states_unit(cell):
            return _written(seconds(cell, decimal), decimal), True
    except InputError:
        pass
    return cell, False


def with_scatter(cell: str) -> tuple[str, str] | None:
    """The value of a cell with its scatter, and the unit behind both; None where the cell has none."""
    value, *rest = SIGN.split(cell, maxsplit=1)
    match = SCATTER.fullmatch(rest[0].strip()) if rest and value.strip() else None
    return None if match is None else (value.strip(MARKS + "("), match["unit"] or "")
