"""VTune's ``-report hw-events -format csv`` (and hotspots): hardware events and time of every function, sampled.

Any delimiter (VTune's own is a tab), any grouping: a column that counts nothing groups. Functions are the kernels; a
column of processes or threads is added over, a column of ranks (``-group-by process`` under MPI) does not exist: values
are sums over the ranks that were profiled, unless the file's name states its rank.

Source: Intel VTune Profiler user guide, "Command Line Report" and "Hardware Event Count".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.meaning import ONE, SUM
from ranksight.core.numerals import MISSING, settled_mark
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted
from ranksight.counters.names import unit_scale
from ranksight.counters.objects import kernel_name, owner_of
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._delimited import header, read_delimited
from ranksight.counters.readers._files import Format, counter, grouped, read_text

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


def _is_one(path: Path, head: str) -> bool:
    return _TABLE.search(_first(head.splitlines())) is not None


def _first(lines: list[str]) -> str:
    return next((line for line in lines if line.strip()), "")


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, _ = read_text(path)
    delimiter = max(_DELIMITERS, key=_first(lines).count)
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
    place = ["Module"] if "Module" in names else []
    table = read_delimited(path, [kernel, *place, *wanted], delimiter)
    modules = table.columns["Module"] if place else [""] * len(table.lines)
    decimal = _decimal(path, {name: table.columns[name] for name in wanted}, wanted)
    cells = Cells()
    absent = dict.fromkeys(wanted, 0)
    for at, (line, function, module) in enumerate(zip(table.lines, table.columns[kernel], modules, strict=True)):
        values: dict[str, float] = {}
        for name, (metric, scale) in wanted.items():
            text = table.columns[name][at].strip()
            text = text.removesuffix("s") if metric == "time" else text
            if text.casefold() in MISSING:
                absent[name] += bool(text.strip(".-"))
            else:
                value = (grouped if metric == "time" else counter)(f"{path}:{line}", text, name, decimal)
                values[metric] = values.get(metric, 0.0) + value * scale
        cells.add(_kernel(function.strip(), module.strip()), values, rank)
    left = [name for name in names if name not in (kernel, *place, *wanted, "")]
    notes = list(table.notes)
    for name in (name for name, count in absent.items() if count):
        notes.append(f"{name} has no number for {counted(absent[name], 'function')} and is left out there")
    if left:
        notes.append(f"columns left out: {', '.join(left[:20])}{' ...' if len(left) > 20 else ''}")
    origin = {metric: f"sampled ({metric if metric != 'time' else 'CPU Time'})" for metric, _ in wanted.values()}
    over = SUM if rank is None else ONE
    yield cells.reading(path, configuration={}, notes=notes, origin=origin, meaning=over)


def _decimal(path: Path, columns: Mapping[str, Sequence[str]], wanted: Mapping[str, tuple[str, float]]) -> str:
    """What separates the decimals: events that are not counted by the thousand have none."""
    counts = {name for name, (metric, scale) in wanted.items() if metric != "time" and scale == 1.0}
    whole = [text for name in counts for text in columns[name]]
    times = [text.strip().removesuffix("s") for name in wanted if name not in counts for text in columns[name]]
    return settled_mark([*whole, *times], str(path), whole)


def _kernel(function: str, module: str) -> str:
    return MPI if owner_of(function, module) == "mpi" else kernel_name(function, module) or OTHER


READERS.register("vtune")(
    Format("VTune: -report hw-events or hotspots -format csv; functions, sampled events", _is_one, _read)
)
