"""Pipe tables of Markdown, as results of scaling runs are posted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError, meant
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.counters.readers._delimited import Delimited, decode
from ranksight.counters.readers._reshaping import Shape
from ranksight.counters.readers._valued_cells import MARKS

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
        return Delimited(columns, [line for line, _ in found.rows], "|", notes, tuple(found.heads))


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
