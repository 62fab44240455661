"""Flat profile of gprof, as text: self time and calls of every function.

Source: GNU gprof manual, "The Flat Profile".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers import _assemble

_EACH = re.compile(r"^Each sample counts as (?P<seconds>[\d.eE+-]+) seconds")
_HEADS = re.compile(
    r"^\s*time\s+(?P<cumulative>\w*seconds|\S+)\s+(?P<self>seconds|\S+)\s+(?:calls\s+\S+/call\s+\S+/call\s+)?name\s*$"
)
_ROW = re.compile(
    r"^\s*(?P<percent>-?\d+\.\d+|-?nan)\s+(?P<cumulative>-?[\d.]+(?:e[+-]?\d+)?)\s+(?P<self>-?[\d.]+(?:e[+-]?\d+)?)"
    r"(?:\s+(?P<calls>-?\d+)(?:\s+(?P<own>-?[\d.]+)\s+(?P<total>-?[\d.]+))?)?\s+(?P<name>[^\d\s].*|\d*[^\d\s.].*)$"
)
_NOTHING = "no time accumulated"


def _is_one(path: Path, head: bytes) -> bool:
    """Whether `path` is text of gprof."""
    text = _assemble.head_text(head)
    return "Flat profile:" in text and ("Each sample counts as" in text or _NOTHING in text)


def _read(path: Path, rank: int | None) -> Reading:
    """One file, of a rank where it is one.

    Raises InputError, naming file and line: no flat profile, a damaged row, a function given twice.
    """
    lines, notes = _assemble.read_text(path)
    begins = [number for number, line in enumerate(lines) if line.startswith("Flat profile:")]
    if not begins:
        raise InputError(f"{path} holds no flat profile of gprof", "print it with 'gprof -p PROGRAM gmon.out'")
    if len(begins) > 1:
        raise InputError(f"{path}:{begins[1] + 1}: a second flat profile begins", "give every profile its own file")
    interval, cells = _rows(path, lines, begins[0])
    total = sum(cell["time"] for cell in cells.values())
    if 0 < interval < total / _assemble.LARGEST:
        raise InputError(f"{path}: a sample of {interval:g} s cannot be", "the file is damaged")
    sampled = f"sampled, n = {round(total / interval)} (one each {interval:g} s)" if interval else "sampled"
    origin = {"time": sampled, "visits": "measured (mcount)"}
    worth = {"time": interval} if interval > 0 else None
    return _assemble.build_cells(path, cells, rank, notes, origin=origin, worth=worth)


def _rows(path: Path, lines: Sequence[str], begin: int) -> tuple[float, dict[str, dict[str, float]]]:
    interval = 0.0
    cells: dict[str, dict[str, float]] = {}
    heads = -1
    for at in range(begin + 1, len(lines)):
        line = lines[at].rstrip()
        each = _EACH.match(line)
        if each:
            interval = _assemble.number(path, at + 1, each["seconds"])
        elif heads < 0:
            heads = at if _HEADS.match(line) else heads
        elif not line.strip() or line.lstrip().startswith("%"):
            break  # the explanation, or the call graph
        else:
            row = _ROW.match(line)
            if row is None or (at == len(lines) - 1):
                raise InputError(
                    f"{path}:{at + 1} is not a complete row of a flat profile", "the file is truncated or damaged"
                )
            name = row["name"].strip()
            own = _assemble.number(path, at + 1, row["self"])
            # functions of one name (static ones of several files) are one kernel
            cell = cells.setdefault(name, {"time": 0.0})
            cell["time"] += own
            if row["calls"] is not None:
                cell["visits"] = cell.get("visits", 0.0) + _assemble.number(path, at + 1, row["calls"])
    if heads < 0 or not cells:
        raise InputError(f"{path} holds a flat profile without functions", "was the program built and linked with -pg?")
    return interval, cells


READERS.register("gprof")(_assemble.FilePerRank("gprof: flat profile, text; functions", _is_one, _read))
