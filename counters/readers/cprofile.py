"""Python's cProfile: files of ``python -m cProfile -o FILE`` and the table that it prints; one file a rank.

Functions are kernels with their own time (``tottime``) and calls, named ``solve (heat.py:24)``. Methods of mpi4py are
named as the functions of MPI that they call. The table has three decimals of a second; a file has all.

A file is the marshalled dictionary of ``pstats``: ``(file, line, function) -> (primitive calls, calls, own time,
cumulative time, callers)``. Python's own reader of marshalled data is not made for files of others: the few types that
occur are read here.

Source: Python manual, "The Python Profilers"; ``Python/marshal.c``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError, readable
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._files import Format, damaged, head_of, number, rank_in, read_text

_TOTAL = re.compile(
    r"^[ \t]*\d{1,15} function calls (?:\(\d{1,15} primitive calls\) )?in (?P<seconds>\d[\d.]{0,20}) seconds", re.M
)
_HEADS = re.compile(r"^\s*ncalls\s+tottime\s+percall\s+cumtime\s+percall\s+filename:lineno\(function\)\s*$")
_REDUCED = re.compile(r"^\s*List reduced from (?P<all>\d{1,9}) to (?P<listed>\d{1,9}) due to restriction")
_ROW = re.compile(r"^\s*(?P<calls>\d+)(?:/\d+)?\s+(?P<own>\S+)\s+\S+\s+\S+\s+\S+\s+(?P<function>\S.*)$")
_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d{1,9})\((?P<name>.*)\)$")
_MPI = re.compile(r".*\bmethod '(?P<name>\w+)' of 'mpi4py\.MPI\.\w+' objects")
_START = b"{" + bytes([ord("{") | 0x80])
_TUPLES = b"()" + bytes([ord("(") | 0x80, ord(")") | 0x80])
UNCOUNTED = -1
"""Calls of a function that a sampling profiler wrote."""
DEPTH = 8
"""Containers within each other in a profile of Python: the table, a function's row, its callers, one of them."""


class _Profiles(Format):
    """The format, of text or marshalled."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """As :class:`Format` does, and files whose first key is a tuple of a dictionary."""
        if not path.is_dir() and head[:1] and head[0] in _START:
            return len(head) > 2 and head[1] in _TUPLES
        return super().recognises(path, head)


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    head = head_of(path, 2)
    cells, notes, wall, uncounted = Cells(), list[str](), 0.0, 0
    marshalled = bool(head) and head[0] in _START
    if marshalled:
        for name, calls, own in _functions(path):
            counted = {} if calls is None else {"visits": calls}
            cells.add(name, {"time": own, **counted}, rank_in(path) if rank is None else rank)
            uncounted += calls is None
    else:
        wall = _table(path, cells, rank, notes)
    if uncounted:
        notes.append(f"calls of {uncounted} functions are -1, as pyinstrument writes what it did not count: left out")
    if not cells.rows:
        raise InputError(f"{path} holds no function of Python", "is it a profile of cProfile?")
    yield cells.reading(
        path,
        configuration={},
        origin={"time": "measured (tottime)", "visits": "measured (ncalls)"},
        notes=notes,
        wall_time=wall or None,
    )


READERS.register("cprofile")(
    _Profiles(
        "Python's cProfile: files of -o, and tables; functions", lambda path, head: bool(_TOTAL.search(head)), _read
    )
)


def _kernel(file: str, line: int, name: str) -> str:
    if (mpi := _MPI.match(name)) is not None:
        return f"MPI_{mpi['name'][:1].upper()}{mpi['name'][1:]}"
    if file == "~" and name.startswith("<") and name.endswith(">"):
        return f"{{{name[1:-1]}}}"  # as the table has those that are not of Python
    return f"{name} ({Path(file).name}:{line})" if file != "~" else name


# ---- the table ------------------------------------------------------------------------------------------------------


def _table(path: Path, cells: Cells, rank: int | None, notes: list[str]) -> float:
    """Add the rows of the printed table; the seconds that it states. InputError where a row is damaged."""
    lines, remarks = read_text(path)
    total = next(
        (number(str(path), found["seconds"], "the time") for line in lines if (found := _TOTAL.match(line))), 0.0
    )
    first = next((at for at, line in enumerate(lines) if _HEADS.match(line)), None)
    if first is None:
        raise InputError(f"{path} holds no table of cProfile", "print it with 'python -m cProfile -s tottime'")
    notes += [*remarks, "cProfile prints times to the millisecond: give the file of -o for all digits"]
    for at, line in enumerate(lines[first + 1 :], first + 2):
        if not line.strip():
            break
        row = _ROW.match(line)
        if row is None:
            raise damaged(f"{path}:{at} is not a row of cProfile")
        place = _PLACE.match(row["function"])
        name = _kernel(place["file"], int(place["line"]), place["name"]) if place else _kernel("~", 0, row["function"])
        values = {
            "time": number(f"{path}:{at}", row["own"], name),
            "visits": number(f"{path}:{at}", row["calls"], name),
        }
        cells.add(name, values, rank)
    if (reduced := next(filter(None, map(_REDUCED.match, lines[:first])), None)) is not None:
        listed = sum(values["time"] for values in cells.rows.values())
        left = int(reduced["all"]) - int(reduced["listed"])
        notes.append(f"{left} functions with {max(total - listed, 0.0):.3g} s together are not listed and left out")
    return total


# ---- marshalled -----------------------------------------------------------------------------------------------------


def _functions(path: Path) -> Iterator[tuple[str, float | None, float]]:
    """Name, calls (None: not counted) and own time of each function of a file; InputError where it is damaged."""
    regular_file(path)
    with readable(path), path.open("rb") as stream:
        data = stream.read(limits.TEXT + 1)
    if len(data) > limits.TEXT:
        raise InputError(f"{path} is larger than {limits.TEXT >> 20} MiB", "is it a profile of cProfile?")
    try:
        rows = _Marshalled(data).value(0)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise damaged(f"{path} is no profile of cProfile: {error}") from error
    for key, row in rows.items() if isinstance(rows, dict) else ():
        if not isinstance(row, tuple) or len(row) != 5:
            raise damaged(f"{path}: the row of {key[2][:60]!r} is not one of cProfile")
        name = _kernel(*key)
        calls = None if row[1] == UNCOUNTED else number(str(path), row[1], f"calls of {name}")
        yield name, calls, number(str(path), row[2], f"time of {name}")


@dataclass(slots=True)
class _Marshalled:
    """Reads the types of values that a profile consists of."""

    data: bytes
    at: int = 0
    refs: list[object] = field(default_factory=list)

    def _take(self, form: str) -> int | float:
        size = struct.calcsize(form)
        (found,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return found  # type: ignore[no-any-return]

    def _count(self, form: str) -> int:
        count = int(self._take(form))
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError("a length beyond its end")
        return count

    def value(self, depth: int) -> object:
        """The next value; ValueError and others where the data are damaged, or hold other types."""
        if depth > DEPTH:
            raise ValueError(f"more than {DEPTH} containers within each other")
        code = self.data[self.at]
        self.at += 1
        kind, place = chr(code & 0x7F), None
        if code & 0x80:
            place = len(self.refs)
            self.refs.append(None)
        found = self._of(kind, depth)
        if place is not None:
            self.refs[place] = found
        return found

    def _of(self, kind: str, depth: int) -> object:
        if kind in "N0":
            return None
        if kind == "i":
            return self._take("<i")
        if kind == "l":
            return self._long()
        if kind == "g":
            return self._take("<d")
        if kind == "r":
            return self.refs[int(self._take("<I"))]
        if kind in "zZaAutZs":
            size = self._count("<B" if kind in "zZ" else "<i")
            self.at += size
            return self.data[self.at - size : self.at].decode("utf-8", "replace" if kind != "u" else "surrogatepass")
        if kind in "()":
            return tuple(self.value(depth + 1) for _ in range(self._count("<B" if kind == ")" else "<i")))
        if kind == "{":
            return self._dictionary(depth)
        raise ValueError(f"a value of the type {kind!r}")

    def _long(self) -> int:
        count = int(self._take("<i"))
        digits = [int(self._take("<H")) for _ in range(min(abs(count), 5))]
        if abs(count) > 5:  # beyond 64 bits
            raise ValueError("a number beyond 64 bits")
        value = sum(digit << (15 * at) for at, digit in enumerate(digits))
        return value if count >= 0 else -value

    def _dictionary(self, depth: int) -> dict[tuple[str, int, str], object]:
        found: dict[tuple[str, int, str], object] = {}
        while self.data[self.at] & 0x7F != ord("0"):
            key = self.value(depth + 1)
            # Checked before it is hashed: tuples of references to each other could take for ever.
            if not (isinstance(key, tuple) and list(map(type, key)) == [str, int, str]):
                raise ValueError("a key that is not file, line and function")
            found[key] = self.value(depth + 1)
        self.at += 1
        return found
