"""LIKWID: output of likwid-perfctr and likwid-mpirun, text and CSV, marker regions and whole runs, all groups.

Every column is a hardware thread: ``host:rank:thread`` in likwid-mpirun's tables, ``HWThread 3`` (older: ``Core 3``)
in likwid-perfctr's. Events of one name on several boxes of the uncore (``CAS_COUNT_RD`` on
``MBOX0C0`` to ``MBOX7C0``) are summed; one core of a socket records them for the whole socket and the others show
zero, so that the sum over ranks is right and no value is divided.

Source: likwid 5 ``src/applications/likwid.lua`` (printOutput) and ``likwid-mpirun.lua`` (printMpiOutput).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core import limits
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.meaning import OF_SOCKET
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.core.run import HOSTS
from ranksight.core.units import some_of
from ranksight.counters.names import metric_name, unit_scale
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._files import (
    Format,
    Ranked,
    by_rank,
    checked_ranks,
    counter,
    damaged,
    number,
    read_text,
    words,
)
from ranksight.counters.readers._likwid_tables import STATISTICS, Block, Output, runs, tables
from ranksight.counters.readers.likwid_powermeter import holds_meters

_MARKS = re.compile(
    r"^(?:TABLE,(?:Group \d|Region )|STRUCT,Info,3|CPU type:\t|DEBUG: Process \d+ measures with event set|"
    r"\|\s+(?:Event\s+\| Counter|Region Info) |ERROR - \[\./src/access)|likwid-accessD",
    re.MULTILINE,
)
_MPI_COLUMN = re.compile(r"(?P<host>[^:]+):(?P<rank>\d{1,9}):(?P<thread>\d{1,9})$")
_THREAD_COLUMN = re.compile(r"(?:HWThread|[Cc]ore)\s*(?P<thread>\d+)$")
_ANY_TABLE = re.compile(rb"\n(?:TABLE,(?:Group|Region) |\|\s+(?:Event\s+\| Counter|Region Info) )")
_BOX = re.compile(r"[A-Z]*BOX\d+|(?:DFC|UMC|CCH|HA|QPI|IMC|MC|CHA|M2M|EDC|ECLK|PBOX)\d*")
_UNIT = re.compile(r"\[(?P<unit>[^\[\]]+)\]\s*$")
_NAN = frozenset({"nan", "-nan"})
_NO_VALUE = frozenset({"-", "nil", "n/a"}) | _NAN
_Lost = dict[str, tuple[dict[str, None], dict[str, None]]]
"""Events and metrics with values that are nan, and of each the counters and the hardware threads."""
_ROWS = {
    "RDTSC Runtime [s]": "time", "Runtime (RDTSC) [s]": "time", "call count": "visits", "Region calls": "visits",
}  # fmt: skip
"""Rows that every table has."""
_METRICS = {
    "CPI": "CPI", "Clock": "frequency", "Memory data volume": "bytes_mem", "Runtime unhalted": "runtime_unhalted",
}  # fmt: skip
"""Metrics of LIKWID, without their units, that no events give."""
_HALTED = "time_halted"
_TRAFFIC = ("bytes_mem", "bytes_mem_read", "bytes_mem_written")
"""Metrics of the uncore, which one core of a socket counts for all of it."""
_REDUCED = {"time": "max", "frequency": "mean", "CPI": "mean", "runtime_unhalted": "mean", _HALTED: "mean"}
_ASLEEP = 0.05
"""Part of the time in which cores were halted from which a note says so."""
_PROBLEM_SIZE = re.compile(r"Running problem size\s+(\d+)")
"""What LULESH and programs made after it print."""
_INFORMATION = ("CPU name", "CPU type", "CPU clock")


@dataclass(frozen=True, slots=True)
class _Column:
    rank: int
    thread: str


def _is_one(path: Path, head: str) -> bool:
    return (_MARKS.search(head) is not None and not holds_meters(path)) or _holds_table(path)


def _files(folder: Path) -> Ranked:
    """The files of a folder by rank; those of likwid-mpirun, each of all ranks, are runs and no ranks of one."""
    found = by_rank(folder)
    file = next(iter(found[0].values()))
    if any(_MPI_COLUMN.match(name) for block in tables(file, read_text(file)[0]) for name in block.columns):
        raise InputError(f"{file} holds several ranks, and there are files of other ranks")
    return found


def _holds_table(path: Path) -> bool:
    """Whether one of LIKWID's tables stands after the program's own output, however long that is."""
    try:
        if not path.is_file() or path.stat().st_size > limits.TEXT:
            return False
        before = b""
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                if _ANY_TABLE.search(block := before + block):
                    return True
                before = block[-4096:]
    except OSError:
        pass
    return False


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    """What each run says whose output the file holds, one after another."""
    lines, notes = read_text(path)
    found = runs(path, lines)
    for one, other in itertools.pairwise(found):
        before, after = ({name for block in run.blocks for name in block.columns} for run in (one, other))
        if not before & after - set(STATISTICS):
            raise InputError(
                f"{path}:{other.blocks[0].line}: tables of other hardware threads follow those of line "
                f"{one.blocks[0].line}",
                "if they are of ranks of one run, give every rank its own file",
            )
    if len(found) > 1:
        notes = (*notes, f"{path.name} holds {len(found)} runs one after another: each became a run")
    for run in found:
        yield _reading(path, run, notes, rank)


READER = Format(
    "LIKWID: likwid-perfctr and likwid-mpirun, text and CSV, regions and whole runs", _is_one, _read, _files
)
READERS.register("likwid")(READER)


def _reading(path: Path, run: Output, notes: Sequence[str], rank: int | None) -> Reading:
    lines = run.lines
    blocks = [block for block in run.blocks if not block.kind.endswith("statistics")]
    if not any(block.kind == "events" for block in blocks):
        raise InputError(f"{path} holds no table of LIKWID", _why_empty(lines))
    for block in blocks:
        if not block.columns or not block.rows or len(set(block.columns)) != len(block.columns):
            raise damaged(f"{path}:{block.line}: a table without rows or columns, or one column twice")
    columns, by = _columns(path, blocks, rank)
    kernels = list(dict.fromkeys(_kernel(block) for block in blocks))
    groups = list(dict.fromkeys(block.group for block in blocks))
    lost: _Lost = {}
    sheets = [_sheet(path, [b for b in blocks if b.group == group], kernels, columns, lost) for group in groups]
    values, said = _joined(sheets, groups)
    said += _said_of(lost)
    if {"CAS_COUNT_RD", "CAS_COUNT_WR"} <= set(values):
        values.pop("bytes_mem", None)  # the counts are exact, LIKWID's volume is rounded
    if (halted := _halted(values)) is not None:
        values[_HALTED] = halted
        share = np.nansum(halted) / np.nansum(np.where(np.isfinite(halted), values["time"], np.nan))
        if share > _ASLEEP:
            said.append(
                f"{share:.0%} of the time passed while cores were halted (asleep, or waiting in the system): it is in "
                f"time and not in cycles; metric {_HALTED}"
            )
    measured = ~np.all([np.isnan(column) for column in values.values()], axis=0)
    values = {name: column[measured] for name, column in values.items()}
    flat_kernels, flat_ranks, threads = (
        np.array(each, dtype=object)[measured]
        for each in zip(
            *((kernel, own.rank, own.thread) for kernel in kernels for own in columns.values()), strict=True
        )
    )
    if by == "threads" and len(columns) > 1:
        said.append("columns are hardware threads: each is taken as a rank, in the order of the columns")
    if kernels != [WHOLE]:
        said.append("regions that lie inside one another are counted in both: LIKWID does not report which do")
    uncore = any("BOX" in counter for block in blocks for _, counter, _, _ in block.rows)
    if uncore:
        said.append("uncore events are recorded by one core of a socket for the whole socket; other ranks show 0")
    return build(
        path,
        flat_kernels,
        flat_ranks,
        values,
        threads=threads,
        how=_REDUCED,
        origin={
            "time": "measured (RDTSC)",
            "visits": "measured (marker API)",
            "bytes_mem": "derived by LIKWID",
            "runtime_unhalted": "derived by LIKWID: unhalted cycles over the nominal clock",
            _HALTED: "derived from time, cycles and frequency: time less cycles over frequency",
        },
        aliases={"CPI": "cpi"},
        configuration={} if by == "stated" else None,
        assumed=frozenset({"ranks"} if by == "threads" else ()),
        exclusive=kernels == [WHOLE],
        meanings=dict.fromkeys(_TRAFFIC, OF_SOCKET) if uncore else {},
        notes=(*notes, *said),
        command=_command(lines),
        environment=_environment(lines, blocks),
        tables=_hosts(columns.values()),
        wall_time=_wall_time(kernels, values),
    )


def _hosts(columns: Iterable[_Column]) -> dict[str, pd.DataFrame]:
    """The node of each rank, where the columns name it."""
    known = {column.rank: column.thread.rpartition(":")[0] for column in columns if ":" in column.thread}
    return {HOSTS: pd.DataFrame({"rank": list(known), "host": list(known.values())})} if known else {}


def _halted(values: dict[str, Array]) -> Array | None:
    """Seconds that pass without cycles; None where time, cycles or the clock are not known.

    LIKWID's "Runtime unhalted" counts cycles at the nominal clock, which in turbo is more than the time; its "Clock" is
    that of unhalted cycles.
    """
    cycles = next((column for name, column in values.items() if metric_name(name) == "cycles"), None)
    if cycles is None or not {"time", "frequency"} <= set(values):
        return None
    clock = values["frequency"]
    unhalted = np.divide(cycles, clock, out=np.full(cycles.shape, np.nan), where=clock > 0)
    return np.asarray(np.maximum(values["time"] - unhalted, 0.0), dtype=np.float64)


def _kernel(block: Block) -> str:
    return WHOLE if block.region is None else block.region.strip() or "(unnamed)"


def _wall_time(kernels: Sequence[str], columns: dict[str, Array]) -> float | None:
    if list(kernels) == [WHOLE] and "time" in columns and not np.isnan(columns["time"]).all():
        return float(np.nanmax(columns["time"]))
    return None


def _columns(path: Path, blocks: Sequence[Block], rank: int | None) -> tuple[dict[str, _Column], str]:
    """Rank and thread of every column, and how ranks are known: ``mpi``, ``stated`` (from outside), ``threads``."""
    lines: dict[str, int] = {}
    for block in blocks:
        for name in block.columns:
            lines.setdefault(name, block.line)
    mpi = {name: _MPI_COLUMN.match(name) for name in lines}
    threads = {name: _THREAD_COLUMN.match(name) for name in lines}
    wrong = [name for name in lines if mpi[name] is None and (threads[name] is None or any(mpi.values()))]
    if wrong:
        raise InputError(
            f"{path}:{lines[wrong[0]]}: column {wrong[0]!r} is neither host:rank:thread nor a hardware thread",
            "the table is damaged, or of a version that is not known",
        )
    if any(mpi.values()):
        found = {n: _Column(int(m["rank"]), f"{m['host']}:{m['thread']}") for n, m in mpi.items() if m is not None}
        checked_ranks([column.rank for column in found.values()], f"{path}:{min(lines.values())}")
        return found, "mpi"
    found = {
        name: _Column(place if rank is None else rank, match["thread"])
        for place, (name, match) in enumerate(threads.items())
        if match is not None
    }
    return found, "threads" if rank is None else "stated"


def _sheet(
    path: Path, blocks: Sequence[Block], kernels: Sequence[str], columns: dict[str, _Column], lost: _Lost
) -> dict[str, Array]:
    """Values of one group: name -> array over kernels x columns; uncore boxes summed. What is nan goes to `lost`."""
    place = {name: at for at, name in enumerate(columns)}
    width = len(columns)
    sheet: dict[str, Array] = {}
    for block in sorted(blocks, key=lambda b: b.kind == "metrics"):
        base = kernels.index(_kernel(block)) * width
        at = base + np.array([place[name] for name in block.columns])
        used: dict[str, str] = {}
        for name, register, cells, line in block.rows:
            key_name, scale = _row(name, block.kind)
            if key_name is None:
                continue
            row = _numbers(f"{path}:{line}", cells, name) * scale
            if absent := [head for head, cell in zip(block.columns, cells, strict=False) if cell.lower() in _NAN]:
                counters, heads = lost.setdefault(name, ({}, {}))
                counters.update({register: None} if register else {})
                heads.update(dict.fromkeys(absent))
            if block.kind == "events" and name in used and not _BOX.match(register):
                key_name = f"{name}:{register}"
            elif block.kind == "events" and name in used:
                sheet[key_name][at] += row
                continue
            used[name] = register
            target = sheet.setdefault(key_name, np.full(len(kernels) * width, np.nan))
            # time and calls stand in several tables; the first, in full precision, counts
            target[at] = np.where(np.isnan(target[at]), row, target[at])
    return sheet


def _row(name: str, kind: str) -> tuple[str | None, float]:
    """Name in the sheet and factor to SI of a row; None for a row that only repeats others, as a rate or rounded."""
    if name in _ROWS or kind != "metrics":
        return _ROWS.get(name, name), 1.0
    unit = _UNIT.search(name)
    bare = name[: unit.start()].strip() if unit else name
    scale = unit_scale(unit["unit"]) if unit else 1.0
    return (None, 1.0) if scale is None else (_METRICS.get(bare), scale)


def _numbers(where: str, cells: Sequence[str], name: str) -> Array:
    read = number if name in _ROWS else counter
    return np.array([np.nan if cell.casefold() in _NO_VALUE else read(where, cell, name) for cell in cells])


def _said_of(lost: _Lost) -> list[str]:
    """A note on each event or metric that LIKWID could not give on some hardware thread."""
    notes = []
    for name, (counters, heads) in lost.items():
        on = f" on {some_of(list(counters), 8)}" if counters else ""
        why = ": without one of its boxes the sum over them is no total" if any(map(_BOX.match, counters)) else ""
        notes.append(f"{name} is nan{on} ({some_of(list(heads))}) and is left out{why}")
    return notes


def _joined(sheets: Sequence[dict[str, Array]], groups: Sequence[int]) -> tuple[dict[str, Array], list[str]]:
    """One table from the groups, which were measured one after another.

    Time, calls and what every group counts are added; what only some groups count is scaled from their share of the
    time to all of it.
    """
    if len(sheets) == 1:
        return dict(sheets[0]), []
    names = list(dict.fromkeys(name for sheet in sheets for name in sheet))
    joined: dict[str, Array] = {}
    times = [sheet["time"] for sheet in sheets if "time" in sheet]
    whole = np.nansum(times, axis=0) if len(times) == len(sheets) else None
    for name in names:
        holding = [at for at, sheet in enumerate(sheets) if name in sheet]
        stacked = np.array([sheets[at][name] for at in holding])
        nothing = np.isnan(stacked).all(axis=0)
        if name in ("frequency", "CPI"):
            present = np.maximum((~np.isnan(stacked)).sum(axis=0), 1)
            joined[name] = np.where(nothing, np.nan, np.nansum(stacked, axis=0) / present)
            continue
        total = np.where(nothing, np.nan, np.nansum(stacked, axis=0))
        if len(holding) < len(sheets) and whole is not None:
            part = np.nansum([times[at] for at in holding], axis=0)
            with np.errstate(over="ignore"):  # a time near zero is refused with the values that it makes
                total = total * np.divide(whole, part, out=np.ones_like(whole), where=part > 0)
        joined[name] = total
    note = (
        f"groups {', '.join(map(str, groups))} were measured one after another: what not all of them count is scaled "
        "by their share of the time"
    )
    return joined, [note if whole is not None else "the groups' shares of the time are unknown: nothing is scaled"]


def _why_empty(lines: Sequence[str]) -> str:
    """What LIKWID, or the program, said instead of printing tables."""
    for at, line in enumerate(lines, start=1):
        if re.search(r"\bERROR\b|[Pp]ermission denied|[Cc]annot access|Exited with exit code|\bKilled\b", line):
            return f"line {at} says: {line.strip()[:120]}"
    return "the run left no measurement: run it again"


def _command(lines: Sequence[str]) -> tuple[str, ...]:
    mark = "DEBUG: Executable given on commandline:"
    return next((words(line[len(mark) :]) for line in lines[:200] if line.startswith(mark)), ())


def _environment(lines: Sequence[str], blocks: Sequence[Block]) -> dict[str, str]:
    said = {}
    for line in lines:
        if line.startswith("CPU "):
            key, _, value = line.partition(":")
            if key in _INFORMATION and key not in said:
                said[key] = value.strip().strip(",").strip()
    names = dict.fromkeys(block.group_name for block in blocks if block.group_name)
    if names:
        said["LIKWID groups"] = ", ".join(names)
    if size := next(filter(None, map(_PROBLEM_SIZE.match, lines)), None):
        said["problem_size"] = size[1]
    return said
