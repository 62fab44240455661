"""VTune's ``-report hw-events -format csv`` (and hotspots): hardware events and time of every function, sampled.

Any delimiter (VTune's own is a tab), any grouping: a column that counts nothing groups. Functions are the kernels; a
column of processes or threads is added over, a column of ranks (``-group-by process`` under MPI) does not exist.

Source: Intel VTune Profiler user guide, "Command Line Report" and "Hardware Event Count".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.reading import READERS, Reading
from ranksight.counters.names import unit_scale
from ranksight.counters.objects import kernel_name, owner_of
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._delimited import header, read_delimited
from ranksight.counters.readers._numbers import parse_numbers

_EVENT = re.compile(
    r"^Hardware Event Count:(?P<event>[\w.:=,]+?)(?P<precise>_PS)?(?::Self)?(?:\s*\((?P<prefix>[KMG])\))?$"
)
_TIME = re.compile(r"^CPU Time(?::Self)?(?:\s*\((?P<unit>\w+)\))?$")
_TABLE = re.compile(
    r"Hardware Event (?:Sample )?Count:|^Function\W.*\bCPU Time\b|^Function\W.*\bModule\b", re.MULTILINE
)
_KERNELS = ("Function", "Source Function", "Function Stack", "Source Function Stack", "Function / Call Stack")
_DELIMITERS = ("\t", ",", "^", ";", "|")
_PREFIX = {None: 1.0, "K": 1e3, "M": 1e6, "G": 1e9}


def _is_one(path: Path, head: bytes) -> bool:
    """Whether `path` is such a report."""
    text = _assemble.head_text(head)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return "\x00" not in text and _TABLE.search(first) is not None


def _read(path: Path, rank: int | None) -> Reading:
    """One file, of a rank where it is one.

    Raises InputError, naming file and line: no function or event among the columns, ragged rows, a value that is not a
    number.
    """
    lines, _ = _assemble.read_text(path)
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    names, _, _ = header(path, lines, delimiter)
    kernel = next((name for name in _KERNELS if name in names), None)
    wanted: dict[str, tuple[str, float]] = {}
    for name in names:
        event, time = _EVENT.match(name), _TIME.match(name)
        if event:
            wanted[name] = (event["event"], _PREFIX[event["prefix"]])
        elif time:
            wanted[name] = ("time", (unit_scale(time["unit"]) or 1.0) if time["unit"] else 1.0)
    if kernel is None or not wanted:
        raise InputError(
            f"{path}: {'no column of functions' if kernel is None else 'no column of events or time'}",
            "print it with 'vtune -report hw-events -group-by function -format csv'",
        )
    place = "Module" if "Module" in names else None
    table = read_delimited(path, [kernel, *([place] if place else []), *wanted], delimiter)
    functions = table.columns[kernel]
    modules = table.columns[place] if place else [""] * len(functions)
    rows: dict[str, dict[str, float]] = {}
    columns = {name: _numbers(path, name, table.columns[name], table.lines) for name in wanted}
    for at, (function, module) in enumerate(zip(functions, modules, strict=True)):
        row = rows.setdefault(_kernel(function.strip(), module.strip()), {})
        for name, (metric, scale) in wanted.items():
            if not np.isnan(columns[name][at]):
                row[metric] = row.get(metric, 0.0) + float(columns[name][at]) * scale
    left = [name for name in names if name not in wanted and name not in (kernel, place, "")]
    notes = list(table.notes)
    if left:
        notes.append(f"columns left out: {', '.join(left[:20])}{' ...' if len(left) > 20 else ''}")
    origin = {metric: f"sampled ({metric if metric != 'time' else 'CPU Time'})" for metric, _ in wanted.values()}
    return _assemble.build_cells(path, rows, rank, notes, origin=origin)


def _kernel(function: str, module: str) -> str:
    if owner_of(function, module) == "mpi":
        return MPI
    return kernel_name(function, module) or OTHER


def _numbers(path: Path, name: str, texts: Sequence[str], lines: Sequence[int]) -> Array:
    bare = [text.strip().removesuffix("s") if name.startswith("CPU Time") else text.strip() for text in texts]
    values, wrong = parse_numbers(bare)
    if wrong:
        where, text = lines[wrong[0]], texts[wrong[0]]
        raise InputError(f"{path}:{where}: {text!r} of {name} is not a number", "the file is damaged")
    with np.errstate(invalid="ignore"):
        bad = (values < 0) | (values >= _assemble.LARGEST)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"{path}:{lines[at]}: {name} is {values[at]:g}, which no counter holds", "the file is damaged")
    return values


READERS.register("vtune")(
    _assemble.FilePerRank("VTune: -report hw-events or hotspots -format csv; functions, sampled events", _is_one, _read)
)
