"""The tables in LIKWID's output, text and CSV, among whatever else the program and the launcher printed.

Text: a line ``Group 1: MEM_DP``, ``Region NAME, Group 1: MEM_DP`` (likwid-perfctr) or ``Region: NAME``, ``Group: 1``
(likwid-mpirun), then tables drawn with ``+``, ``-`` and ``|``. CSV: ``TABLE,[Region NAME,]Group 1 Raw,MEM_DP,ROWS,,``
and the rows. Names are not quoted in either: a region's name may hold commas, a metric's a vertical bar.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.counters.readers._files import damaged

_HEADER = re.compile(r"TABLE,(?:Region (?P<region>.*),)?Group (?P<group>\d{1,9}) (?P<kind>Raw|Metric)(?P<stat> STAT)?,"
                     r"(?P<name>.*?),(?P<rows>\d{1,9}),*\s*$")  # fmt: skip
_GROUP = re.compile(r"(?:Region (?P<region>.*), )?Group:? ?(?P<group>\d{1,9})(?:: (?P<name>\S+))?\s*$")
_REGION = re.compile(r"Region: (?P<region>.*\S)\s*$")
STATISTICS = ("Sum", "Min", "Max", "Avg")
"""Columns of tables over all hardware threads."""
_FIRST = {"Event": "events", "Metric": "metrics", "Region Info": "info"}


@dataclass(slots=True)
class Block:
    """One table of a group: columns are hardware threads, rows are events, metrics, or the region's calls and time."""

    region: str | None
    group: int
    group_name: str
    kind: str
    """``events``, ``metrics``, ``info``; with `` statistics`` added where the columns are sum, minimum, maximum."""
    line: int
    columns: list[str]
    rows: list[tuple[str, str, list[str], int]] = field(default_factory=list)
    """Name, counter register (events only), cells and line number of each row."""


def tables(path: Path, lines: Sequence[str]) -> Iterator[Block]:
    """All tables in `lines`, in order.

    Raises InputError, naming file and line, where a table breaks off or a row has too many or too few cells.
    """
    region: str | None = None
    group, name = 0, ""
    at = 0
    count = len(lines)
    while at < count:
        line = lines[at]
        start = line[:1]
        if start == "T" and line.startswith("TABLE,"):
            header = _HEADER.match(line)
            if header is None:
                raise damaged(f"{path}:{at + 1} is not a complete table header of LIKWID")
            at = yield from _delimited(path, lines, at, header)
            continue
        if start == "+" and at + 1 < count and line.rstrip().strip("+-") == "" and lines[at + 1][:1] == "|":
            block, at = _drawn(path, lines, at, region, group, name)
            if block is not None:
                yield block
            continue
        if (start == "R" or start == "G") and (found := _GROUP.match(line)) is not None:
            region, group, name = found["region"], int(found["group"]), found["name"] or ""
            # likwid-perfctr names region and group on one line, likwid-mpirun on two
            above = _REGION.match(lines[at - 1]) if at and region is None and not name else None
            if above is not None:
                region = above["region"]
        at += 1


@dataclass(frozen=True, slots=True)
class Output:
    """What one run printed: its tables, and all its lines, the first of which is line `begin` of the file, from 0."""

    begin: int
    lines: Sequence[str]
    blocks: list[Block]


def runs(path: Path, lines: Sequence[str]) -> list[Output]:
    """The runs whose output was appended to one file, in order.

    A table of a region, group and kind that was there before belongs to a further run, which begins with the last text
    between two tables before it: its program's output, or LIKWID's own head. Raises InputError as :func:`tables`; or
    where a table comes twice and no text is between.
    """
    blocks = list(tables(path, lines))
    begins, seen, gap = [0], dict[tuple[str | None, int, str], int](), 0
    places = [0, *(_after(lines, block) for block in blocks)]
    """First line behind the table before each."""
    for at, block in enumerate(blocks):
        if any(_is_text(line) for line in lines[places[at] : block.line - 1]):
            gap = at
        key = (block.region, block.group, block.kind)
        if key in seen:
            if gap <= begins[-1]:
                what = f"region {block.region!r}" if block.region is not None else "the whole run"
                raise InputError(
                    f"{path}:{block.line}: {block.kind} of {what}, group {block.group}, are on line {seen[key]} "
                    "already, without the output of another run between",
                    "the file is damaged, or its runs were mixed: give every run its own file",
                )
            begins.append(gap)
            seen = {(one.region, one.group, one.kind): one.line for one in blocks[gap:at]}
        seen[key] = block.line
    ends = [*begins[1:], len(blocks)]
    cuts = [places[begin] for begin in begins[1:]]
    return [
        Output(first, lines[first:last], blocks[begin:end])
        for first, last, begin, end in zip([0, *cuts], [*cuts, len(lines)], begins, ends, strict=True)
    ]


def _after(lines: Sequence[str], block: Block) -> int:
    """The line behind a table, from 0."""
    last = block.rows[-1][3] if block.rows else block.line + 1
    return last + (last < len(lines) and lines[last].startswith("+"))


def _is_text(line: str) -> bool:
    """Whether a line between two tables belongs to neither: it is not a heading."""
    bare = line.strip()
    return bool(bare.strip("+-|, ")) and not (_GROUP.match(bare) or _REGION.match(bare) or bare.startswith("TABLE,"))


def _cells(line: str, count: int) -> list[str] | None:
    """Cells of a drawn row; bars beyond `count` cells belong to the first."""
    text = line.strip()
    if not (text.startswith("|") and text.endswith("|")) or len(text) < 2:
        return None
    parts = text[1:-1].split("|")
    extra = len(parts) - count
    if extra < 0:
        return None
    if extra:
        parts = ["|".join(parts[: extra + 1]), *parts[extra + 1 :]]
    return [part.strip() for part in parts]


def _drawn(
    path: Path, lines: Sequence[str], at: int, region: str | None, group: int, name: str
) -> tuple[Block | None, int]:
    begin, rule = at, lines[at].rstrip()
    heads = [part.strip() for part in lines[at + 1].strip().strip("|").split("|")]
    if heads[0] not in _FIRST or len(heads) < 2:
        return None, at + 1  # a table that the program drew
    if len(heads) != rule.count("+") - 1:
        raise damaged(f"{path}:{begin + 2} has {len(heads)} cells under a rule of {rule.count('+') - 1}")
    kind = _FIRST[heads[0]]
    skip = 2 if kind == "events" and heads[1] == "Counter" else 1
    columns = heads[skip:]
    block = Block(region, group, name, kind, begin + 1, columns)
    if tuple(columns[:4]) == STATISTICS:
        block.kind += " statistics"
    rules = 1
    at += 2
    while at < len(lines):
        line = lines[at]
        if line.startswith("+"):
            rules += 1
            if rules == 3:
                return block, at + 1
        else:
            cells = _cells(line, len(heads))
            if cells is None:
                break
            block.rows.append((cells[0], cells[1] if skip == 2 else "", cells[skip:], at + 1))
        at += 1
    raise damaged(f"{path}:{min(at, len(lines) - 1) + 1}: the table that begins on line {begin + 1} breaks off")


def _delimited(path: Path, lines: Sequence[str], at: int, header: re.Match[str]) -> Generator[Block, None, int]:
    begin = at
    rows, at = int(header["rows"]), at + 1
    kind = "events" if header["kind"] == "Raw" else "metrics"
    suffix = " statistics" if header["stat"] else ""
    place = (header["region"], int(header["group"]), header["name"])

    def fields(line: int) -> list[str]:
        if line >= len(lines) or not lines[line].strip():
            raise damaged(f"{path}:{line + 1}: the table of line {begin + 1} breaks off")
        return lines[line].rstrip("\r\n").split(",")

    heads = fields(at)
    if heads[0] == "Region Info":
        info = Block(*place, "info", at + 1, _named(heads[1:]))
        for _ in range(2):
            at += 1
            cells = fields(at)
            info.rows.append((cells[0], "", cells[1 : len(info.columns) + 1], at + 1))
        yield info
        at += 1
        heads = fields(at)
    if heads[0] != ("Event" if kind == "events" else "Metric"):
        raise damaged(f"{path}:{at + 1}: the table of line {begin + 1} has no heading")
    skip = 2 if kind == "events" else 1
    block = Block(*place, kind + suffix, begin + 1, _named(heads[skip:]))
    width = len(heads)
    for _ in range(rows):
        at += 1
        cells = fields(at)
        if cells[0] == "TABLE":
            raise damaged(f"{path}:{at + 1}: the table of line {begin + 1} ends before its {rows} rows")
        if len(cells) > width:  # a comma in the name of a metric
            cells = [",".join(cells[: len(cells) - width + 1]), *cells[len(cells) - width + 1 :]]
        unfinished = kind == "events" and not suffix and at == len(lines) - 1
        if unfinished or len(cells) < len(block.columns) + skip:
            found = "ends without a line break" if unfinished else f"has {len(cells) - skip} values"
            raise damaged(f"{path}:{at + 1} {found} in a table of {len(block.columns)} columns")
        block.rows.append((cells[0], cells[1] if skip == 2 else "", cells[skip : skip + len(block.columns)], at + 1))
    yield block
    return at + 1


def _named(heads: Sequence[str]) -> list[str]:
    names = [head.strip() for head in heads]
    while names and not names[-1]:
        names.pop()
    return names
