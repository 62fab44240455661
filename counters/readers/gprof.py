"""Flat profile of gprof, as text: self time and calls of every function.

Source: GNU gprof manual, "The Flat Profile".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._files import LARGEST, Format, damaged, number, read_text

_EACH = re.compile(r"^Each sample counts as (?P<seconds>[\d.eE+-]+) seconds")
_HEADS = re.compile(
    r"^\s*time\s+(?P<cumulative>\w*seconds|\S+)\s+(?P<self>seconds|\S+)\s+(?:calls\s+\S+/call\s+\S+/call\s+)?name\s*$"
)
_ROW = re.compile(
    r"^\s*(?P<percent>-?\d+\.\d+|-?nan)\s+(?P<cumulative>-?[\d.]+(?:e[+-]?\d+)?)\s+(?P<self>-?[\d.]+(?:e[+-]?\d+)?)"
    r"(?:\s+(?P<calls>-?\d+)(?:\s+(?P<own>-?[\d.]+)\s+(?P<total>-?[\d.]+))?)?\s+(?P<name>[^\d\s].*|\d*[^\d\s.].*)$"
)
_NOTHING = "no time accumulated"


def _is_one(path: Path, head: str) -> bool:
    return "Flat profile:" in head and ("Each sample counts as" in head or _NOTHING in head)


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, notes = read_text(path)
    begins = [number for number, line in enumerate(lines) if line.startswith("Flat profile:")]
    if not begins:
        raise InputError(f"{path} holds no flat profile of gprof", "print it with 'gprof -p PROGRAM gmon.out'")
    if len(begins) > 1:
        raise InputError(f"{path}:{begins[1] + 1}: a second flat profile begins", "give every profile its own file")
    interval = 0.0
    cells = Cells()
    headed = False
    for at, line in enumerate(map(str.rstrip, lines[begins[0] + 1 :]), begins[0] + 2):
        if each := _EACH.match(line):
            interval = number(f"{path}:{at}", each["seconds"], "the interval")
        elif not headed:
            headed = _HEADS.match(line) is not None
        elif not line or line.lstrip().startswith("%"):
            break  # the explanation, or the call graph
        elif (row := _ROW.match(line)) is None or at == len(lines):
            raise damaged(f"{path}:{at} is not a complete row of a flat profile")
        else:
            if row["calls"] is None and row["name"].split(" ")[0] in ("nan", "-nan"):
                raise damaged(f"{path}:{at}: calls are {row['name'].split(' ')[0]}")
            # functions of one name (static ones of several files) are one kernel
            values = {"time": number(f"{path}:{at}", row["self"], "self seconds")}
            if row["calls"] is not None:
                values["visits"] = number(f"{path}:{at}", row["calls"], "calls")
            cells.add(row["name"].strip(), values, rank)
    if not cells.rows:
        raise InputError(f"{path} holds a flat profile without functions", "was the program built and linked with -pg?")
    total = sum(row["time"] for row in cells.rows.values())
    if 0 < interval < total / LARGEST:
        raise damaged(f"{path}: a sample of {interval:g} s cannot be")
    sampled = f"sampled, n = {round(total / interval)} (one each {interval:g} s)" if interval else "sampled"
    yield cells.reading(
        path,
        configuration={},
        notes=notes,
        origin={"time": sampled, "visits": "measured (mcount)"},
        worth={"time": interval} if interval > 0 else None,
    )


READERS.register("gprof")(Format("gprof: flat profile, text; functions", _is_one, _read))
