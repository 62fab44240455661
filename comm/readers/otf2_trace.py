"""OTF2 event traces (Score-P, TAU): MPI calls with their region, bytes, partners and time, by the otf2 package.

An MPI call is the time between entering and leaving a region named ``MPI_*``; its kernel is the region it was called
from. Bytes of messages are those of the send events, bytes of collectives are converted by
:mod:`ranksight.comm.readers._score_p` into what one rank hands over.

Source: OTF2 3.0, ``OTF2_EvtReader`` events; Score-P 8, how MPI collectives are recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.readers import _messages, _score_p
from ranksight.comm.readers._events import EventLog
from ranksight.comm.readers._otf2_events import COLLECTIVE, ENTER, LEAVE, METRIC, events, silent
from ranksight.core import limits
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import WHOLE
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass

CHUNK, END = b"\3", b"\1"
"""First byte of a file of events or definitions, and its last."""
Collective = tuple[str, int, str, int, float, float]
"""Kernel, rank, operation, ranks of the communicator, bytes sent and received in one call."""


class Otf2:
    """Reads OTF2 archives; see the module."""

    text = "OTF2 event traces of Score-P and TAU: MPI calls a region and rank (extra: otf2)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is an anchor file, or a folder with Score-P's ``traces.otf2``."""
        return (path / "traces.otf2").is_file() if path.is_dir() else path.suffix == ".otf2"

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one archive.

        Raises InputError when the archive is damaged, lacks a location's events, or its events do not nest; ToolError
        when the otf2 package is not installed.
        """
        anchor = path / "traces.otf2" if path.is_dir() else path
        events = anchor.with_suffix("")
        inside = sorted(events.iterdir()) if events.is_dir() else []
        others = [file for file in (anchor.with_suffix(".def"), *inside) if os.path.lexists(file)]
        for file in (anchor, *others):
            regular_file(file)  # the library opens what has the names of its files, and would wait for a pipe
            if file.suffix in (".def", ".evt"):
                _ends(file)
        otf2 = _otf2()
        try:
            with silent(), otf2.reader.open(str(anchor)) as trace:
                reading = _read(trace, anchor, sum(file.stat().st_size for file in others))
        except InputError:
            raise
        except Exception as error:  # the package raises its own, C-level and built-in errors
            raise InputError(
                f"{anchor} is not an OTF2 archive that can be read: {type(error).__name__} {error}"[:400],
                "copy the whole folder with traces.def and traces/",
            ) from error
        yield reading


READERS.register("otf2")(Otf2())


def _ends(file: Path) -> None:
    """Raise InputError where a file lacks the mark of its end.

    The library reads on over the end of a file that was cut off, in memory that it has not written: what it finds there
    differs from process to process, and may be events. Compressed files begin otherwise and are left to it.
    """
    with file.open("rb") as content:
        first = content.read(1)
        content.seek(-min(file.stat().st_size, 1), os.SEEK_END)
        last = content.read(1)
    if not first or (first == CHUNK and last != END):
        raise InputError(f"{file} is cut off", "copy the whole folder with traces.def and traces/")


def _otf2() -> ModuleType:
    try:
        import otf2
        import otf2.events
    except ImportError as error:
        raise ToolError("the otf2 package is not installed", "pip install 'ranksight[otf2]'") from error
    module: ModuleType = otf2
    return module


@dataclass(frozen=True, slots=True)
class _Region:
    name: str
    mpi: bool
    operation: str


class _Regions(dict[int, _Region]):
    """Regions by number, looked up once."""

    def __init__(self, known: Any) -> None:
        self.known = known

    def __missing__(self, number: int) -> _Region:
        name = str(self.known[number].name)
        found = self[number] = _Region(name, name.startswith(("MPI_", "PMPI_")), _messages.plain(name))
        return found


class _Rank:
    """One location's open regions and times."""

    __slots__ = ("begun", "collective", "counted", "ended", "left", "number", "outer", "pending", "since", "stack")

    def __init__(self, number: int) -> None:
        self.number = number
        self.stack: list[tuple[_Region, int]] = []
        self.pending: list[tuple[float, int, int | None]] = []
        self.collective: tuple[float, float, int] | None = None
        self.begun = self.ended = -1
        self.counted = self.left = self.since = float("nan")
        self.outer = 0

    def enter(self, region: _Region, time: int) -> None:
        """Open a region; the first of MPI's begins a call."""
        if region.mpi:
            self.pending.clear()
            if not self.stack or not self.stack[-1][0].mpi:
                self.since = self.counted - self.left
        self.stack.append((region, time))


def _read(trace: Any, anchor: Path, size: int) -> Reading:
    tick = 1.0 / float(trace.timer_resolution)
    tally = _messages.Tally(str(anchor))
    ranks: dict[int, _Rank] = {}
    numbers: dict[int, int] = {}
    sizes = dict[Any, int]()
    collectives: dict[Collective, list[float]] = {}
    log = EventLog("instructions")
    known = trace.definitions
    world = max((_members(comm, sizes) for comm in known.comms), default=0)
    regions = _Regions(known.regions)
    for kind, location, time, rest in events(trace, limits.EVENTS_PER_BYTE * size):
        rank = ranks.get(location)
        if rank is None:
            rank = ranks[location] = _Rank(_number(known.locations[location], len(ranks)))
            numbers.setdefault(rank.number, location)
        if rank.begun < 0:
            rank.begun = time
        rank.ended = time
        if kind == ENTER:
            rank.enter(regions[rest[0]], time)
        elif kind == LEAVE:
            _leave(tally, collectives, log, rank, regions[rest[0]], time, tick, anchor)
        elif kind == METRIC:
            metric, values = rest
            rank.counted = _instructions(metric, values, rank.counted)
            if rank.left != rank.left:
                rank.left = rank.counted
        elif kind == COLLECTIVE:
            _, comm, _, sent, received = rest
            rank.collective = (float(sent), float(received), _members(known.comms[comm], sizes))
        else:
            receiver, comm, _, size = rest[:4]
            rank.pending.append((float(size), _members(known.comms[comm], sizes), receiver))
    _convert(tally, collectives)
    threads = len(ranks) - len(numbers)
    count = _messages.complete(numbers, str(anchor))
    firsts = {number: ranks[location] for number, location in numbers.items()}
    times = {
        number: {"wall_time": (rank.ended - rank.begun) * tick, "mpi_time": rank.outer * tick}
        for number, rank in firsts.items()
    }
    notes = [_score_p.NOTE]
    if threads:
        notes.append(f"{threads} further threads: their calls are with their rank, its times are the first thread's")
    if world and world != count:
        notes.append(f"the trace holds {count} locations of {world} ranks")
    tables = log.tables() if not threads else {}
    return _messages.reading(tally, times, anchor, (*notes, *log.notes), tables=tables)


def _convert(tally: _messages.Tally, collectives: dict[Collective, list[float]]) -> None:
    """Add the collectives once all are read, as they show together how bytes are counted."""
    names = {key[2]: operation_name(key[2]) for key in collectives}
    itself = _score_p.counts_itself((names[key[2]], key[4], key[5], key[3]) for key in collectives)
    for (kernel, rank, operation, comm, sent, received), (count, seconds) in collectives.items():
        size = _score_p.handed_over(names[operation], sent, received, max(comm, 1), itself)
        tally.add(kernel, rank, operation, comm, size, seconds, int(count))


def _leave(
    tally: _messages.Tally,
    collectives: dict[Collective, list[float]],
    log: EventLog,
    rank: _Rank,
    region: _Region,
    time: int,
    tick: float,
    anchor: Path,
) -> None:
    if not rank.stack or rank.stack[-1][0] is not region:
        raise InputError(
            f"{anchor}: rank {rank.number} leaves {region.name} without having entered it",
            "the trace is cut off or damaged",
        )
    _, entered = rank.stack.pop()
    if not region.mpi:
        return
    outer = not rank.stack or not rank.stack[-1][0].mpi
    duration = time - entered
    if duration < 0:
        raise InputError(
            f"{anchor}: rank {rank.number} leaves {region.name} before it enters it", "the trace is damaged"
        )
    if outer:
        rank.outer += duration
    kernel = next((caller.name for caller, _ in reversed(rank.stack) if not caller.mpi), WHOLE)
    operation = region.operation
    if outer:
        sent = rank.collective[0] if rank.collective is not None else sum(size for size, _, _ in rank.pending)
        start, end = (entered - rank.begun) * tick, (time - rank.begun) * tick
        log.add(rank.number, kernel, operation, 0, sent, start, end, rank.since)
        rank.left = rank.counted
    if rank.collective is not None:
        sent, received, members = rank.collective
        rank.collective = None
        if len(collectives) >= limits.MESSAGE_ROWS:
            raise InputError(f"{anchor} makes more than {limits.MESSAGE_ROWS} rows", "import a shorter trace")
        row = collectives.setdefault((kernel, rank.number, operation, members, sent, received), [0.0, 0.0])
        row[0] += 1
        row[1] += duration * tick
        return
    size, comm, peer = rank.pending[0] if rank.pending else (0.0, 0, None)
    tally.add(kernel, rank.number, operation, comm, size, duration * tick, peer=peer)
    for size, comm, peer in rank.pending[1:]:
        # A call that starts several messages (Startall) is one call; its further messages add their bytes.
        tally.add(kernel, rank.number, operation, comm, size, 0.0, peer=peer)
    rank.pending.clear()


def _instructions(metric: Any, values: Any, before: float) -> float:
    """Instructions of a metric event, as PAPI accumulates them; `before` where it holds other metrics."""
    names = [str(member.name) for member in getattr(metric, "members", ())]
    if "PAPI_TOT_INS" not in names or len(names) != len(values):
        return before
    return float(values[names.index("PAPI_TOT_INS")])


def _members(comm: Any, known: dict[Any, int]) -> int:
    """Ranks of a communicator; 0 where the archive does not say."""
    if comm not in known:
        group = getattr(comm, "group", None)
        kind = str(getattr(group, "group_type", ""))
        members = getattr(group, "members", ())
        known[comm] = 1 if "SELF" in kind else (len(members) if "MPI" in str(getattr(group, "paradigm", "MPI")) else 0)
    return known[comm]


def _number(location: Any, otherwise: int) -> int:
    """The rank that a location's process group names (``MPI Rank 3``), or the order of appearance."""
    words = str(location.group.name).split()
    return int(words[-1]) if words and words[-1].isdecimal() and len(words[-1]) < 10 else otherwise
