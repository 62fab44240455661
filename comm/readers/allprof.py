"""Traces of liballprof (the PMPI tracer of LogGOPSim): every call of every rank with its times.

One file a rank, ``pmpi-trace-rank-<rank>.txt``. A line is ``MPI_Function:start:arguments...:end``, times in
microseconds, arguments in the order of the C binding; a data type is ``code,size,extent``, a communicator
``handle,rank,size``. Bytes follow the tables of the tracer: what one rank hands over; of a receive the size of its
buffer is not what arrived, so none is counted.

Source: liballprof 1.0 (Hoefler, Schneider and Lumsdaine, "LogGOPSim", HPDC 2010), its generated wrappers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.comm.readers import _messages
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass

_FILE = re.compile(r"pmpi-trace-rank-(\d+)\.txt")
MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class _Call:
    """Where the arguments stand, counted from the first after the start time; -1 where there is none."""

    count: int = -1
    datatype: int = -1
    comm: int = -1
    peer: int = -1
    per_rank: bool = False


CALLS = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend"), _Call(1, 2, 5, 3)),
    "Sendrecv": _Call(1, 2, 10, 3),
    "Sendrecv_replace": _Call(1, 2, 7, 3),
    **dict.fromkeys(("Recv", "Irecv"), _Call(comm=5)),
    **dict.fromkeys(("Barrier", "Ibarrier"), _Call(comm=0)),
    **dict.fromkeys(("Bcast", "Ibcast"), _Call(1, 2, 4)),
    **dict.fromkeys(("Reduce", "Ireduce"), _Call(2, 3, 6)),
    **dict.fromkeys(("Allreduce", "Iallreduce", "Scan", "Exscan", "Iscan", "Iexscan"), _Call(2, 3, 5)),
    **dict.fromkeys(("Reduce_scatter_block", "Ireduce_scatter_block"), _Call(2, 3, 5, per_rank=True)),
    **dict.fromkeys(("Allgather", "Iallgather"), _Call(1, 2, 6)),
    **dict.fromkeys(("Allgatherv", "Iallgatherv"), _Call(1, 2, 7)),
    **dict.fromkeys(("Gather", "Igather"), _Call(1, 2, 7)),
    **dict.fromkeys(("Gatherv", "Igatherv"), _Call(1, 2, 8)),
    **dict.fromkeys(("Alltoall", "Ialltoall"), _Call(1, 2, 6, per_rank=True)),
}
"""Calls whose bytes follow from their arguments, by the standard's C bindings; others are counted without bytes."""
SCATTERS = {"Scatter": 7, "Iscatter": 7}
"""Scatter hands over at the root and receives elsewhere: position of the communicator; the root stands before it."""
UNKNOWN = (
    *("Alltoallv", "Alltoallw", "Ialltoallv", "Ialltoallw"),
    *("Scatterv", "Iscatterv", "Reduce_scatter", "Ireduce_scatter"),
)
"""Calls whose sizes lie in arrays, of which older versions of the tracer write the address alone."""


class Allprof:
    """Reads liballprof's traces; see the module."""

    text = "liballprof traces (pmpi-trace-rank-*.txt): calls, bytes, partners and time a rank"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is a folder of such files, or one of them."""
        if path.is_dir():
            return any(_FILE.fullmatch(file.name) for file in path.iterdir())
        return _FILE.fullmatch(path.name) is not None or head.startswith(b"# htor's PMPI Tracer")

    def read(self, path: Path) -> Iterator[Reading]:
        """Read the traces of all ranks in a folder, or in the folder of the file that is named.

        Raises InputError when a rank's file is missing or a line is damaged; file and line are named.
        """
        folder = path if path.is_dir() else path.parent
        files = {int(found[1]): file for file in folder.iterdir() if (found := _FILE.fullmatch(file.name))}
        ranks = _messages.complete(files, str(folder))
        tally = _messages.Tally(str(folder))
        blind = set[str]()
        times = {rank: _rank(tally, rank, files[rank], ranks, blind) for rank in range(ranks)}
        notes = ["times have a resolution of one microsecond"]
        if blind:
            notes.append(f"the trace does not hold the bytes of {', '.join(sorted(blind))}: they are 0")
        yield _messages.reading(tally, times, folder, notes)


READERS.register("liballprof")(Allprof())


def _rank(tally: _messages.Tally, rank: int, file: Path, ranks: int, blind: set[str]) -> dict[str, float]:
    """Add one rank's calls; its wall, MPI and compute time from the return of MPI_Init to MPI_Finalize."""
    begun = ended = last = -1.0
    inside = between = 0.0
    for line_number, line in _messages.lines(file):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{file}:{line_number}"
        name, *fields = line.strip().split(":")
        if not name.startswith("MPI_") or len(fields) < 2:
            raise InputError(f"{where}: {line[:60]!r} is not a call", "the trace is damaged")
        start = _messages.number(fields[0], where, "the start")
        # MPI_Finalize has no end: the tracer closes its file in it.
        end = start if fields[-1] == "-" else _messages.number(fields[-1], where, "the end")
        if end < start or start < last:
            raise InputError(f"{where}: {name} ends before it starts, or starts before the last call ended")
        operation = name.removeprefix("MPI_")
        if operation in ("Init", "Init_thread"):
            begun = end
        elif begun >= 0:
            between += start - last
            inside += end - start
        last = ended = end
        _call(tally, rank, operation, fields[1:-1], (end - start) * MICROSECOND, where, ranks, blind)
    if begun < 0:
        raise InputError(f"{file} has no MPI_Init", "the trace is cut off, or of another tool")
    return {
        "wall_time": (ended - begun) * MICROSECOND,
        "mpi_time": inside * MICROSECOND,
        "compute_time": between * MICROSECOND,
    }


def _call(
    tally: _messages.Tally,
    rank: int,
    operation: str,
    words: list[str],
    seconds: float,
    where: str,
    ranks: int,
    blind: set[str],
) -> None:
    def word(index: int) -> str:
        if index >= len(words):
            raise InputError(f"{where}: {operation} has {len(words)} arguments", "the trace is damaged")
        return words[index]

    def comm_size(index: int) -> int:
        parts = word(index).split(",")
        return _messages.whole(parts[2], where, "the communicator's size", 1) if len(parts) > 2 else ranks

    def extent(count: int, datatype: int) -> float:
        parts = word(datatype).split(",")
        if len(parts) < 2:
            raise InputError(f"{where}: the data type {word(datatype)[:40]!r} has no size", "trace with liballprof 1.0")
        return _messages.number(word(count), where, "the count") * _messages.number(parts[1], where, "a type's size")

    if operation in SCATTERS:
        comm = SCATTERS[operation]
        parts = word(comm).split(",")
        size = comm_size(comm)
        at_root = len(parts) > 1 and parts[1] == word(comm - 1)
        moved = extent(1, 2) * size if at_root else extent(4, 5)
        tally.add(WHOLE, rank, operation, size, moved, seconds)
        return
    call = CALLS.get(operation, _Call())
    size = comm_size(call.comm) if call.comm >= 0 else 0
    moved = extent(call.count, call.datatype) * (size if call.per_rank else 1) if call.count >= 0 else 0.0
    peer = _messages.whole(word(call.peer), where, "the partner", -(2**31)) if call.peer >= 0 else None
    if operation in UNKNOWN:
        blind.add(operation)
    tally.add(WHOLE, rank, operation, size, moved, seconds, peer=peer)
