"""The files that the tracer leaves, of one rank or of a group of ranks (layout: ``output.c``)."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.files import read_bytes

MAGIC = b"RNKSIGHT"
VERSION = 2

HEAD = (
    "rank", "size", "how", "number", "use_tsc", "cpu_mode", "init_begin", "init_end", "final_begin",
    "init_mono", "final_mono", "init_cpu", "final_cpu", "pss_before", "pss_end", "peak_before", "peak_end",
)  # fmt: skip
THREAD = ("last_pc", "last_end", "depth", "records_dropped", "peers_dropped", "events_dropped")
ENDS = ("finalize", "exit", "abort", "signal")

RECORD = np.dtype(
    [
        ("pc", "u8"), ("key", "u8"), ("count", "u8"), ("bytes", "u8"), ("inside", "u8"), ("compute", "u8"),
        ("next", "u8"), ("peer", "u8"), ("before", "u8"), ("lost", "i8"), ("index", "u8"), ("completed", "u8"),
    ]
)  # fmt: skip
PEER = np.dtype([("record", "u8"), ("peer", "i8"), ("count", "u8"), ("bytes", "u8"), ("next", "u8")])

EVENT = np.dtype(
    [("begin", "u8"), ("end", "u8"), ("bytes", "u8"), ("record", "u4"), ("peer", "i4"), ("tag", "i4"), ("spare", "i4")]
)
NO_PEER = -(2**31)

_TABLES = {b"RECS": ("records", RECORD), b"PEER": ("peers", PEER), b"EVNT": ("events", EVENT)}
"""Tables of a thread by the tag of their chunk."""
PYTHON_SITE = np.dtype([("code", "u8"), ("passed", "u8"), ("text", "S496")])

Array = NDArray[Any]


@dataclass(slots=True)
class ThreadTables:
    """Tables of one thread; item 0 of each took what found no place. Pointers in them mean nothing here."""

    state: dict[str, int]
    records: Array = field(default_factory=lambda: np.empty(0, RECORD))
    peers: Array = field(default_factory=lambda: np.empty(0, PEER))
    events: Array = field(default_factory=lambda: np.empty(0, EVENT))


@dataclass(slots=True)
class RankTrace:
    """What one rank left."""

    head: dict[str, int]  # the numbers named in :data:`HEAD`; times in ticks or ns, memory in bytes
    tick: float  # seconds a tick
    operations: tuple[tuple[str, str], ...]  # name and kind of each operation, by number
    maps: tuple[tuple[int, int, int, str], ...]  # executable mappings: begin, end, offset in the file, path
    threads: list[ThreadTables]  # the thread that called ``MPI_Init`` first
    python: tuple[str, ...] = ()
    """Functions of Python that are call sites, by number: name, file and first line, between tabs."""
    world: str = ""
    """Which MPI_COMM_WORLD the rank belongs to: empty for that which was launched; of one that a rank started its name,
    as ``spawn.c`` gives it."""
    started: tuple[tuple[str, int], ...] = ()
    """Worlds that this rank started as the root of a spawn: name, empty where they are not traced, and processes."""

    @property
    def ended(self) -> str:
        """How the rank ended: ``finalize``, ``exit``, ``abort`` or ``signal N``."""
        how = ENDS[self.head["how"]]
        return f"{how} {self.head['number']}" if how == "signal" else how


def is_trace(head: bytes) -> bool:
    """Whether a file that begins with `head` was left by the tracer."""
    return head.startswith(MAGIC)


def _chunks(path: Path, content: memoryview, begin: int) -> tuple[list[tuple[bytes, int, memoryview]], int]:
    """The chunks of the trace whose first one is at byte `begin`, and the byte after the last, which is empty."""
    found, at = list[tuple[bytes, int, memoryview]](), begin
    while not found or found[-1][0] != b"DONE":
        if at >= len(content):
            raise _damaged(path, len(content), "is cut off")
        if at + 16 > len(content):
            raise _damaged(path, at, "ends inside a chunk's head")
        tag, item, size = struct.unpack_from("=4sIQ", content, at)
        at += 16
        if size > len(content) - at:
            raise _damaged(path, at, f"chunk {tag!r} of {size} bytes goes past the end")
        found.append((tag, item, content[at : at + size]))
        at += (size + 7) // 8 * 8
    return found, at


def _damaged(path: Path, at: int, what: str) -> InputError:
    return InputError(f"{path}, byte {at}: {what}", "the trace is damaged; measure this run again")


def _table(path: Path, tag: bytes, item: int, part: memoryview, dtype: np.dtype[Any]) -> Array:
    if item != dtype.itemsize or len(part) % item:
        raise _damaged(path, 0, f"items of {tag.decode()} have {item} bytes, not {dtype.itemsize}")
    return np.frombuffer(part, dtype)


def _numbers(path: Path, part: memoryview, names: tuple[str, ...]) -> dict[str, int]:
    if len(part) != 8 * len(names):
        raise _damaged(path, 0, f"{len(part)} bytes where {8 * len(names)} are due")
    return dict(zip(names, struct.unpack(f"={len(names)}Q", part), strict=True))


def _mapping(path: Path, line: str) -> tuple[int, int, int, str]:
    fields = line.split(None, 5)
    try:
        begin, end = (int(word, 16) for word in fields[0].split("-"))
        return begin, end, int(fields[2], 16), fields[5]
    except (ValueError, IndexError):
        raise _damaged(path, 0, f"{line!r} is not a mapping") from None


def _worlds(path: Path, text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    world, *lines = text.splitlines() or [""]
    parts = [line.partition("\t") for line in lines]
    if not all(set(name) <= set("0123456789._") for name in (world, *(name for name, _, _ in parts))) or not all(
        number.isdecimal() and len(number) < 10 for _, _, number in parts
    ):
        raise _damaged(path, 0, "its list of started processes is not one")
    return world, tuple((name, int(number)) for name, _, number in parts)


def read(path: Path) -> list[RankTrace]:
    """Read the traces in one file.

    Raises InputError when the file is empty (the rank was killed before it could write, or the disk was full), of
    another version, from a machine of the other byte order, or damaged.
    """
    content = memoryview(read_bytes(path, limits.TRACE))
    if not content:
        raise InputError(f"{path} is empty: the rank was killed, or the disk was full", "measure this run again")
    traces, at = list[RankTrace](), 0
    while at < len(content):
        trace, at = _trace(path, content, at)
        traces.append(trace)
    return traces


def _trace(path: Path, content: memoryview, begin: int) -> tuple[RankTrace, int]:
    """The trace that begins at byte `begin`, and the byte after it."""
    if bytes(content[begin : begin + 8]) != MAGIC or len(content) < begin + 16:
        raise _damaged(path, begin, "is not a trace") if begin else InputError(f"{path} is not a trace of this tracer")
    version, order = struct.unpack_from("=II", content, begin + 8)
    if order != 0x01020304:
        raise InputError(f"{path} is from a machine of the other byte order than {sys.byteorder} endian")
    if version != VERSION:
        raise InputError(f"{path} has format version {version}, this version reads {VERSION}", "measure this run again")
    chunks, end = _chunks(path, content, begin + 16)
    head: dict[str, int] = {}
    tick, threads = 1e-9, list[ThreadTables]()
    operations: tuple[tuple[str, str], ...] = ()
    maps: tuple[tuple[int, int, int, str], ...] = ()
    python: tuple[str, ...] = ()
    world, started = "", tuple[tuple[str, int], ...]()
    for tag, item, part in chunks:
        if tag == b"HEAD":
            head = _numbers(path, part, (*HEAD, "estimate"))
            tick = _tick(head, struct.unpack("=d", struct.pack("=Q", head.pop("estimate")))[0])
        elif tag == b"OPER":
            lines = bytes(part).decode("ascii", "replace").splitlines()
            operations = tuple((name, kind) for name, _, kind in (line.partition("\t") for line in lines))
        elif tag == b"WRLD":
            world, started = _worlds(path, bytes(part).decode("ascii", "replace"))
        elif tag == b"MAPS":
            maps = tuple(_mapping(path, line) for line in bytes(part).decode("utf-8", "replace").splitlines())
        elif tag == b"PYTH":
            texts = _table(path, tag, item, part, PYTHON_SITE)["text"].tolist()
            python = tuple(text.decode("utf-8", "replace") for text in texts)
        elif tag == b"THRD":
            threads.append(ThreadTables(_numbers(path, part, THREAD)))
        elif tag in _TABLES and threads:
            name, dtype = _TABLES[tag]
            setattr(threads[-1], name, _table(path, tag, item, part, dtype))
    if not head or not threads or not operations:
        raise _damaged(path, end, "lacks its head, its operations or its tables")
    trace = RankTrace(head, tick, operations, maps, threads, python, world, started)
    _check(path, trace)
    return trace, end


def _tick(head: dict[str, int], estimate: float) -> float:
    """Seconds a tick: over the whole run where that is long enough to be exact, else as estimated during MPI_Init."""
    ticks, ns = head["final_begin"] - head["init_end"], head["final_mono"] - head["init_mono"]
    if not head["use_tsc"]:
        return estimate * 1e-9 if 0 < estimate < 1e3 else 1e-9
    return ns / ticks * 1e-9 if ns > 10_000_000 and ticks > 0 else estimate * 1e-9


def _check(path: Path, trace: RankTrace) -> None:
    head = trace.head
    if not (head["rank"] < head["size"] < 1 << 31 and head["how"] < len(ENDS) and 0 < trace.tick < 1):
        raise _damaged(path, 0, "its head holds impossible numbers")
    for thread in trace.threads:
        number = thread.records["key"][1:] >> np.uint64(32) & np.uint64(0xFFFF)
        if number.size and int(number.max()) >= len(trace.operations):
            raise _damaged(path, 0, "a record names an operation that the file does not")
        for what, records in (("a peer", thread.peers["record"][1:]), ("an event", thread.events["record"])):
            if records.size and int(records.max()) >= max(thread.records.size, 1):
                raise _damaged(path, 0, f"{what} belongs to a record that the file does not hold")
