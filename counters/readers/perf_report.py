"""Text of ``perf report --stdio``: the table of each event; call graphs under the rows are passed over.

A row's periods are its own column where it was asked for (``-F +period``), else its percentage of the event's count,
which perf prints to two decimals: the provenance records the rounding. ``Self`` counts, ``Children`` does not.

Source: perf-report(1); linux ``tools/perf/ui/stdio/hist.c``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.reading import READERS, Reading
from ranksight.counters.objects import kernel_name, owner_of
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._samples import meaning, provenance

_SAMPLES = re.compile(r"^# Samples:\s+(?P<count>[\d.]+)(?P<prefix>[KMG]?)\s+of events? '(?P<event>[^']+)'")
_COUNT = re.compile(r"^# Event count \(approx\.\):\s+(?P<count>\d+)")
_COMMAND = re.compile(r"^# cmdline : (?P<command>.*)$")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_KNOWN = frozenset(
    {"Overhead", "Self", "Children", "Samples", "Period", "Command", "Shared Object", "Symbol", "sys", "usr"}
)
_MARK = re.compile(r"^\[[.kugH]\]\s+")
_PERCENT = re.compile(r"\d+(?:\.\d+)?%")


@dataclass(slots=True)
class _Section:
    """One event's table."""

    event: str
    samples: float
    count: float | None = None
    columns: list[tuple[str, int, int]] = field(default_factory=list)
    """Name, first and last place of each column."""
    separator: str = ""
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def _is_one(path: Path, head: bytes) -> bool:
    """Whether `path` is text of perf report."""
    text = _assemble.head_text(head)
    return re.search(r"(?m)^# Samples:\s+[\d.]+[KMG]?\s+of events? '", text) is not None and "\x00" not in text


def _read(path: Path, rank: int | None) -> Reading:
    """One file, of a rank where it is one.

    Raises InputError, naming file and line: a table without columns, a row that is damaged, no sample.
    """
    lines, notes = _assemble.read_text(path)
    sections = _sections(path, lines)
    if not sections:
        raise InputError(f"{path} holds no table of perf report", "print it with 'perf report --stdio'")
    cells: dict[str, dict[str, float]] = {}
    origin: dict[str, str] = {}
    totals: dict[str, tuple[float, float]] = {}
    for section in sections:
        what = meaning(section.event)
        exact = any("Period" in row for _, row in section.rows)
        if not exact and section.count is None:
            raise InputError(f"{path}: '# Event count' of {section.event} is missing", "print the whole report")
        for line, row in section.rows:
            value = _value(path, line, row, section.count) * what.scale
            kernel = _kernel(row)
            own = cells.setdefault(kernel, {})
            own[what.name] = own.get(what.name, 0.0) + value
        before, hits = totals.get(what.name, (0.0, 0.0))
        totals[what.name] = before + (section.count or 0.0) * what.scale, hits + section.samples
        origin[what.name] = provenance(section.event, section.samples)
        if not exact:
            origin[what.name] += "; from percentages of two decimals"
    command = next((match["command"] for line in lines[:100] if (match := _COMMAND.match(line))), "")
    return _assemble.build_cells(
        path,
        {kernel: {**dict.fromkeys(totals, 0.0), **own} for kernel, own in cells.items()},
        rank,
        notes,
        origin=origin,
        command=tuple(command.split()),
        worth={name: total / hits for name, (total, hits) in totals.items() if total > 0 and hits > 0},
    )


def _sections(path: Path, lines: Sequence[str]) -> list[_Section]:
    sections: list[_Section] = []
    heading = ""
    for number, line in enumerate(lines, start=1):
        line = line.rstrip()
        found = _SAMPLES.match(line)
        if found:
            samples = float(found["count"]) * _PREFIX[found["prefix"]]
            if samples >= limits.VALUE:
                raise InputError(f"{path}:{number} has {found['count'][:20]}... samples", "the report is damaged")
            sections.append(_Section(found["event"], samples))
            continue
        if not sections:
            continue
        section = sections[-1]
        count = _COUNT.match(line)
        if count:
            section.count = float(count["count"])
            if section.count >= limits.VALUE:
                raise InputError(f"{path}:{number} has {count['count'][:20]}... events", "the report is damaged")
        elif line.startswith("#") and set(line) <= set("#. ") and "." in line:
            section.columns = _columns(path, number, heading, line)
        elif line.startswith("#"):
            heading = line
            if not section.columns and not section.separator and line.startswith(("# Overhead", "# Children")):
                section.separator = _separator(line)
        elif line.strip() and section.separator:
            names = [name.strip() for name in heading[1:].split(section.separator)]
            fields = line.split(section.separator, len(names) - 1)
            if len(fields) != len(names):
                raise InputError(f"{path}:{number} has {len(fields)} of {len(names)} columns", "the report is cut off")
            section.rows.append((number, {n: f.strip() for n, f in zip(names, fields, strict=True)}))
        elif line.strip() and section.columns:
            first = section.columns[0]
            # a call graph's lines have no percentage under the first column
            if _PERCENT.fullmatch(line[: first[2]].strip()):
                section.rows.append((number, {name: line[a:b].strip() for name, a, b in section.columns}))
    for section in sections:
        if section.samples and not section.rows:
            raise InputError(f"{path}: the table of {section.event} has no rows", "the report is cut off")
    return [section for section in sections if section.rows]


def _separator(line: str) -> str:
    found = re.match(r"# \w+([^\w\s.])", line)
    return found[1] if found else ""


def _columns(path: Path, number: int, heading: str, dots: str) -> list[tuple[str, int, int]]:
    places = [(match.start(), match.end()) for match in re.finditer(r"\.+", dots)]
    ends = [start for start, _ in places[1:]] + [10**6]
    # a column's own width ends where the next begins; numbers are right-aligned in it
    names = [heading[start:end].strip() for (start, _), end in zip(places, ends, strict=True)]
    if not names or names[0] not in ("Overhead", "Children", "Self"):
        raise InputError(f"{path}:{number} has no names of columns above it", "the report is damaged")
    starts = [0, *(start for start, _ in places[1:])]
    return [(name, start, end) for name, start, end in zip(names, starts, ends, strict=True)]


def _value(path: Path, line: int, row: dict[str, str], count: float | None) -> float:
    text = row.get("Period", "")
    percent = row.get("Self", row.get("Overhead", ""))
    try:
        value = float(text) if "Period" in row else float(percent.rstrip("%")) / 100.0 * float(count or 0.0)
    except ValueError:
        raise InputError(f"{path}:{line}: {(text or percent)!r} is not a number", "the report is damaged") from None
    if not 0 <= value < _assemble.LARGEST or ("Period" not in row and value > 1.001 * float(count or 0.0)):
        raise InputError(f"{path}:{line}: {text or percent} cannot be", "the report is damaged")
    return value


def _kernel(row: dict[str, str]) -> str:
    """Kernel of a row, from its symbol and object, or from whatever the report was sorted by."""
    symbol = row.get("Symbol")
    if symbol is None:
        rest = [value for name, value in row.items() if name not in _KNOWN or name in ("Shared Object", "Command")]
        return " ".join(rest) or OTHER
    system = symbol.startswith("[k]")
    name = _MARK.sub("", symbol)
    place = row.get("Shared Object", "")
    if owner_of(name, place) == "mpi":
        return MPI
    known = kernel_name(name, place)
    return known if known and not system else OTHER


READERS.register("perf-report")(
    _assemble.FilePerRank("perf report --stdio: the tables of all events; functions", _is_one, _read)
)
