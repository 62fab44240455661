"""Text of ``perf report --stdio``: the table of each event; call graphs under the rows are passed over.

A row's periods are its own column where it was asked for (``-F +period``), else its percentage of the event's count,
which perf prints to two decimals: the provenance records the rounding. ``Self`` counts, ``Children`` does not.

Source: perf-report(1); linux ``tools/perf/ui/stdio/hist.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.meaning import ONE, SUM
from ranksight.core.reading import READERS, Reading
from ranksight.counters.objects import kernel_name, owner_of
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._files import Format, damaged, number, of_launcher, read_text
from ranksight.counters.readers._samples import meaning, provenance

_SAMPLES = re.compile(r"^# Samples:\s+(?P<count>[\d.]+)(?P<prefix>[KMG]?)\s+of events? '(?P<event>[^']+)'")
_COUNT = re.compile(r"^# Event count \(approx\.\):\s+(?P<count>\d+)")
_COMMAND = re.compile(r"^# cmdline : (?P<command>.*)$")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_KNOWN = frozenset(
    {"Overhead", "Self", "Children", "Samples", "Period", "Command", "Shared Object", "Symbol", "sys", "usr"}
)
_SEPARATED = re.compile(r"# (?:Overhead|Children)([^\w\s.])")
_MARK = re.compile(r"^\[[.kugH]\]\s+")
_SHARE = re.compile(r"-?(?:nan|\d[\d.,]*)%?")
_PERCENT = re.compile(r"\d+(?:[.,]\d+)?%")


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


def _is_one(path: Path, head: str) -> bool:
    return any(map(_SAMPLES.match, head.splitlines()))


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, notes = read_text(path)
    sections = _sections(path, lines)
    if not sections:
        raise InputError(f"{path} holds no table of perf report", "print it with 'perf report --stdio'")
    cells = Cells()
    origin: dict[str, str] = {}
    totals: dict[str, tuple[float, float]] = {}
    for section in sections:
        name, scale = meaning(section.event)
        exact = any("Period" in row for _, row in section.rows)
        if not exact and section.count is None:
            raise InputError(f"{path}: '# Event count' of {section.event} is missing", "print the whole report")
        for line, row in section.rows:
            cells.add(_kernel(row), {name: _value(f"{path}:{line}", row, section.count) * scale}, rank)
        before, hits = totals.get(name, (0.0, 0.0))
        totals[name] = before + (section.count or 0.0) * scale, hits + section.samples
        origin[name] = provenance(section.event, section.samples)
        if not exact:
            origin[name] += "; from percentages of two decimals"
    for kernel, own, _ in list(cells.rows):
        cells.add(kernel, dict.fromkeys(totals, 0.0), own)
    command = next((match["command"] for line in lines[:100] if (match := _COMMAND.match(line))), "")
    yield cells.reading(
        path,
        configuration={},
        notes=notes,
        origin=origin,
        command=tuple(command.split()),
        meaning=SUM if rank is None and (not command or of_launcher(command.split())) else ONE,
        worth={name: total / hits for name, (total, hits) in totals.items() if total > 0 and hits > 0},
    )


def _sections(path: Path, lines: Sequence[str]) -> list[_Section]:
    sections: list[_Section] = []
    heading = ""
    for at, line in enumerate(map(str.rstrip, lines), start=1):
        where = f"{path}:{at}"
        if line.startswith("# Samples:") and not _SAMPLES.match(line):
            raise damaged(f"{where} does not say how many samples there are")
        if found := _SAMPLES.match(line):
            samples = number(where, found["count"], "samples") * _PREFIX[found["prefix"]]
            sections.append(_Section(found["event"], samples))
            continue
        if not sections:
            continue
        section = sections[-1]
        if found := _COUNT.match(line):
            section.count = number(where, found["count"], "events")
        elif line.startswith("#") and set(line) <= set("#. ") and "." in line:
            section.columns = _columns(where, heading, line)
        elif line.startswith("#"):
            heading = line
            if not section.columns and not section.separator and (found := _SEPARATED.match(line)):
                section.separator = found[1]
        elif line.strip() and section.separator:
            names = [name.strip() for name in heading[1:].split(section.separator)]
            fields = line.split(section.separator, len(names) - 1)
            if len(fields) != len(names):
                raise damaged(f"{where} has {len(fields)} of {len(names)} columns")
            section.rows.append((at, {n: f.strip() for n, f in zip(names, fields, strict=True)}))
        # a call graph's lines have no percentage under the first column
        elif section.columns and _SHARE.fullmatch(share := line[: section.columns[0][2]].strip()):
            if not _PERCENT.fullmatch(share):
                raise damaged(f"{where}: {share!r} is not a percentage")
            section.rows.append((at, {name: line[a:b].strip() for name, a, b in section.columns}))
    for section in sections:
        if section.samples and not section.rows:
            raise damaged(f"{path}: the table of {section.event} has no rows")
    return [section for section in sections if section.rows]


def _columns(where: str, heading: str, dots: str) -> list[tuple[str, int, int]]:
    places = [(match.start(), match.end()) for match in re.finditer(r"\.+", dots)]
    ends = [start for start, _ in places[1:]] + [10**6]
    # a column's own width ends where the next begins; numbers are right-aligned in it
    names = [heading[start:end].strip() for (start, _), end in zip(places, ends, strict=True)]
    if not names or names[0] not in ("Overhead", "Children", "Self"):
        raise damaged(f"{where} has no names of columns above it")
    starts = [0, *(start for start, _ in places[1:])]
    return [(name, start, end) for name, start, end in zip(names, starts, ends, strict=True)]


def _value(where: str, row: dict[str, str], count: float | None) -> float:
    if "Period" in row:
        return number(where, row["Period"], "Period")
    share = number(where, row.get("Self", row.get("Overhead", "")).rstrip("%"), "Overhead") / 100.0
    if share > 1.001:
        raise damaged(f"{where}: a share of {share:.0%} cannot be")
    return share * float(count or 0.0)


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


READERS.register("perf-report")(Format("perf report --stdio: the tables of all events; functions", _is_one, _read))
