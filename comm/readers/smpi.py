"""Time-independent traces of SimGrid's SMPI: what each rank computes and sends, without times.

A trace is one file of all ranks, a file that lists one file a rank, or a folder of those. A line is
``rank action parameters``; sizes are counts of a data type that a number names (none: bytes, or doubles where ``init``
has a parameter). Bytes follow the tables of the tracer: what one rank hands over. Times are not known (NaN).

Source: SimGrid 3.26 to 3.35, src/smpi/internals/smpi_replay.cpp (actions and their parameters) and
src/smpi/mpi/smpi_datatype.cpp (numbers of the data types).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ranksight.comm.readers import _messages
from ranksight.comm.readers._events import EventLog
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass

_LINE = re.compile(r"(?:rank-|p)?(\d{1,9})\s+(\S+)\s*(.*)")
_LISTED = re.compile(r"[^\s/][^\s]*\.txt")
SIZES = (8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8)
"""Bytes of the data types 0 (double), 1 (int), 2 (char), ... as SimGrid numbers them, on 64-bit machines."""
SILENT = {"comm_size", "comm_split", "comm_dup", "finalize", "location", "sleep"}
WAITS = {"wait": "Wait", "waitall": "Waitall", "waitany": "Waitany", "test": "Test"}
SENDS = {"send": "Send", "isend": "Isend", "recv": "Recv", "irecv": "Irecv"}
WHOLES = {"bcast": "Bcast", "reduce": "Reduce", "allreduce": "Allreduce", "scan": "Scan", "exscan": "Exscan"}
BLOCKS = {"gather": "Gather", "allgather": "Allgather", "alltoall": "Alltoall", "scatter": "Scatter"}
VECTORS = {"gatherv": "Gatherv", "allgatherv": "Allgatherv", "scatterv": "Scatterv", "alltoallv": "Alltoallv"}
SCATTERED = "reducescatter"
ACTIONS = {"init", "compute", "barrier", SCATTERED, *SILENT, *WAITS, *SENDS, *WHOLES, *BLOCKS, *VECTORS}


@dataclass(slots=True)
class _Trace:
    ranks: int
    tally: _messages.Tally
    flops: dict[int, float] = field(default_factory=dict)
    default: dict[int, int] = field(default_factory=dict)
    events: EventLog = field(default_factory=lambda: EventLog("flops"))
    since: dict[int, float] = field(default_factory=dict)


class Smpi:
    """Reads time-independent traces; see the module."""

    text = "time-independent traces of SimGrid's SMPI: messages and computation a rank"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line is an action, or names a file whose first line is one."""
        if path.is_dir():
            files = _folder(path)
            return bool(files) and _is_action(_first_line(files[0]))
        line = head.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        if _LISTED.fullmatch(line) and ".." not in Path(line).parts:
            other = path.parent / line
            return other.is_file() and _is_action(_first_line(other))
        return _is_action(line)

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one trace.

        Raises InputError when a rank's file is missing, an action is unknown or has too few parameters; file and line
        are named.
        """
        files = _files(path)
        ranks = _messages.complete(_ranks(files), str(path))
        trace = _Trace(ranks, _messages.Tally(str(path)))
        for file in files:
            for line_number, line in _messages.lines(file):
                if line.strip() and not line.startswith("#"):
                    _action(trace, line, f"{file}:{line_number}")
        flops = {rank: {"flops": trace.flops.get(rank, 0.0)} for rank in range(ranks)}
        notes = ("a time-independent trace holds no times of messages", *trace.events.notes)
        derived = {"flops": "derived from computed time and the simulated host's speed"}
        source = files[0] if len(files) == 1 else path
        tables = trace.events.tables()
        yield _messages.reading(trace.tally, flops, source, notes, tables=tables, provenance=derived)


READERS.register("smpi")(Smpi())


def _is_action(line: str) -> bool:
    found = _LINE.fullmatch(line.strip())
    return found is not None and found[2].lower() in ACTIONS


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.readline(4096).decode("utf-8", "replace")
    except OSError:
        return ""


def _folder(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if file.suffix in (".txt", ".ti") and file.is_file())


def _files(path: Path) -> list[Path]:
    """The files of a trace: those of a folder, those that a file lists, or the file itself."""
    if path.is_dir():
        files = [file for file in _folder(path) if _is_action(_first_line(file))]
        if not files:
            raise InputError(f"{path} holds no time-independent trace", "name the folder of the ranks' files")
        return files
    regular_file(path)
    if _is_action(_first_line(path)):
        return [path]
    files = []
    for line_number, line in _messages.lines(path):
        name = line.strip()
        if not name:
            continue
        inner = Path(name)
        if inner.is_absolute() or ".." in inner.parts or not _LISTED.fullmatch(name):
            raise InputError(
                f"{path}:{line_number}: {name[:60]!r} is neither an action nor a rank's file in this folder",
                "name the trace's own files",
            )
        files.append(path.parent / inner)
    if not files:
        raise InputError(f"{path} is empty")
    return files


def _ranks(files: list[Path]) -> set[int]:
    found: set[int] = set()
    for file in files:
        for line_number, line in _messages.lines(file):
            if line.strip() and not line.startswith("#"):
                match = _LINE.fullmatch(line.strip())
                if match is None:
                    raise InputError(f"{file}:{line_number}: {line[:60]!r} is not an action", "the trace is damaged")
                found.add(int(match[1]))
                if len(files) > 1:
                    break  # a rank's own file names no other
    return found


def _action(trace: _Trace, line: str, where: str) -> None:
    match = _LINE.fullmatch(line.strip())
    if match is None or int(match[1]) >= trace.ranks:
        raise InputError(f"{where}: {line[:60]!r} is not an action of one of {trace.ranks} ranks")
    _Action(trace, where, int(match[1]), match[2].lower(), match[3].split()).enter()


@dataclass(frozen=True, slots=True)
class _Action:
    """What a line says that a rank does, with its parameters."""

    trace: _Trace
    where: str
    rank: int
    name: str
    words: list[str]

    def enter(self) -> None:
        """Enter it into the trace."""
        trace, rank, name, p = self.trace, self.rank, self.name, self.trace.ranks
        if name == "init":
            trace.default[rank] = SIZES[0] if self.words else 1
        elif name == "compute":
            trace.flops[rank] = trace.flops.get(rank, 0.0) + self.number(0)
            trace.since[rank] = trace.since.get(rank, 0.0) + self.number(0)
        elif name in WAITS:
            self.call(WAITS[name], 0, 0)
        elif name == "barrier":
            self.call("Barrier", p, 0)
        elif name in SENDS:
            self.message()
        elif name in WHOLES:
            self.call(WHOLES[name], p, self.number(0) * self.width(3 if name == "reduce" else 2))
        elif name in BLOCKS:
            self.call(BLOCKS[name], p, self.block())
        elif name in VECTORS:
            self.call(VECTORS[name], p, self.vector())
        elif name == SCATTERED:
            self.call("Reduce_scatter", p, sum(self.number(i) for i in range(p)) * self.width(p + 1))
        elif name == "finalize":
            trace.events.add(rank, WHOLE, "Finalize", p, 0.0, counted=trace.since.pop(rank, 0.0))
        elif name not in SILENT:
            raise InputError(f"{self.where}: unknown action {name[:40]!r}", f"known: {', '.join(sorted(ACTIONS))}")

    def call(self, operation: str, ranks: int, size: float, peer: int | None = None) -> None:
        """Count a call of MPI, and keep when it was."""
        counted = self.trace.since.pop(self.rank, 0.0)
        self.trace.tally.add(WHOLE, self.rank, operation, ranks, size, peer=peer)
        self.trace.events.add(self.rank, WHOLE, operation, ranks, size, counted=counted)

    def number(self, index: int) -> float:
        """A parameter that is a number."""
        if index >= len(self.words):
            raise InputError(
                f"{self.where}: {self.name} has {len(self.words)} parameters", "the trace is cut off or damaged"
            )
        return _messages.number(self.words[index], self.where, f"parameter {index + 1}")

    def width(self, index: int) -> int:
        """Bytes of the data type that a parameter names; of the rank's default type where it is left out."""
        if index >= len(self.words):
            return self.trace.default.get(self.rank, 1)
        kind = _messages.whole(self.words[index], self.where, "the data type")
        if kind >= len(SIZES):
            raise InputError(f"{self.where}: data type {kind} has no known size", "trace predefined types")
        return SIZES[kind]

    def message(self) -> None:
        """Count a message between two ranks."""
        words = self.words
        # Since 3.21 a tag stands before the size.
        at = 2 if len(words) > 2 else 1
        peer = _messages.whole(words[0], self.where, "the partner", -(2**31)) if words else -1
        unknown = words[at : at + 1] and words[at].startswith("-")
        size = 0.0 if unknown else self.number(at) * self.width(at + 1)
        self.call(SENDS[self.name], self.trace.ranks, size, peer=peer if self.name.endswith("send") else None)

    def block(self) -> float:
        """Bytes that the rank hands over or takes in a collective of equal blocks."""
        p, name = self.trace.ranks, self.name
        if name == "alltoall":
            return self.number(0) * p * self.width(2)
        if name == "scatter":
            root = int(self.number(2)) if len(self.words) > 2 else -1
            return self.number(0) * p * self.width(3) if self.rank == max(root, 0) else self.number(1) * self.width(4)
        return self.number(0) * self.width(3 if name == "gather" else 2)

    def vector(self) -> float:
        """The same in a collective of blocks of any size."""
        p, name = self.trace.ranks, self.name
        if name == "scatterv":
            root = _messages.whole(self.words[p + 1], self.where, "the root") if len(self.words) > p + 1 else 0
            items = sum(self.number(i) for i in range(p)) if self.rank == root else self.number(p)
            return items * self.width(p + 2)
        if name == "alltoallv":
            return sum(self.number(1 + i) for i in range(p)) * self.width(2 * p + 2)
        return self.number(0) * self.width(p + (2 if name == "gatherv" else 1))
