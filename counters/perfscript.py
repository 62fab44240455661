"""Reading the text of ``perf script``: samples, summed by event and function.

The text is a stream, taken in blocks. Of a call chain only the frames are looked at that decide whose a sample is, the
innermost ones; each is remembered by its bytes, without the address and the offset, which differ from sample to sample
and say nothing of the function. Where the innermost one decides, one match of an expression is all that is looked at.
Samples without chains are one line each: times are cut off, so that those of one place in one loop become the same
bytes and are counted.

With ``--show-mmap-events`` it holds where files were mapped, so that functions without a symbol get names.

Source: the manual page perf-script(1), fields ``comm, pid, tid, cpu, time, period, event, ip, sym, dso``, with or
without call chains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.symbols import beginning
from ranksight.counters.attributing import NOBODYS, Frame, Group, resolve
from ranksight.counters.objects import not_for_mpi, owner_of

BLOCK = 4 << 20
MOST_REMEMBERED = 1 << 16

_TIME = re.compile(rb" \d+\.\d{6,9}: ")
_USUAL = re.compile(
    rb"\n?([^\n\[]+ )(?:\[\d+\] +)?\d+\.\d{6,9}: +(\d{1,18}) ([^\n]+)\n"
    rb"[ \t]*[0-9a-f]+ ([^\n[+]+)\+0x[0-9a-f]+( \([^\n]+\))(?:\n[ \t][^\n]*)*(?:\n\n|\n?\Z)"
)
"""A sample with a period and a chain whose innermost frame has a symbol: thread, period, event, symbol, object."""
_UNNAMED = b"[unknown] (/"
_COMMENT = re.compile(rb"(?m)^#[^\n]*")
_MAPPED = re.compile(
    rb"(?m)^[^\n]*PERF_RECORD_MMAP2? (?P<pid>-?\d{1,18})/-?\d+: "
    rb"\[(?P<begin>0x[0-9a-f]+)\((?P<size>0x[0-9a-f]+)\) @ "
    rb"(?P<offset>0x[0-9a-f]+|0)\b[^\n]*?\]: \S+ (?P<path>/[^\n]*)$"
)
_RECORD = re.compile(rb"(?m)^[^\n]*PERF_RECORD_MMAP2? [^\n]*$")
_FRAME = re.compile(r"\s*([0-9a-fA-F]+)(?:\s+(.*))?$")
_HEX = b"0123456789abcdef"
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")


class _Place(NamedTuple):
    """A line of a call chain."""

    address: int
    symbol: str
    object: str


@dataclass(frozen=True)
class Samples:
    """Samples by thread group, event and kernel."""

    table: pd.DataFrame
    """``pid`` (-1 where not written), ``event``, ``group`` (``application``, ``mpi``, ``other``), ``kernel`` (of the
    other two groups the object file), ``by_name`` (whether a run-time function was given to the application for its
    name alone), ``samples``, ``period`` (the sum; 0 where the text has no periods)."""
    total: int  # number of samples


def read(pieces: Iterable[bytes], source: str) -> Samples:
    """Read the text of ``perf script``.

    `pieces`: the text, in pieces of any size (an open binary file's ``read`` results, a pipe's). `source`: what errors
    call it. Raises InputError where a line is no sample; with its number.
    """
    return _Reader(source).run(pieces)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = 0
        self._chains: bool | None = None
        self._usual: dict[tuple[bytes, ...], list[int]] = {}
        """By thread, event and innermost frame, where that frame alone decides: what samples are counted in."""
        self._heads: dict[tuple[bytes, bytes], tuple[int, str, int]] = {}
        self._owners: dict[tuple[tuple[Frame, ...], frozenset[str]], tuple[Group, str, bool]] = {}
        self._frames: dict[tuple[int, bytes], tuple[Frame, bool]] = {}
        """By place, and by process where its files decide: the frame, and whether it decides whose a sample is."""
        self._maps: dict[int, list[tuple[int, int, int, str]]] = {}
        """By process: first address, the one behind the last, offset in the file, file."""
        self._own: dict[int, tuple[int, frozenset[str]]] = {}
        self._sums: dict[tuple[int, str, Group, str, bool], list[int]] = {}

    def run(self, pieces: Iterable[bytes]) -> Samples:
        for block in self._blocks(pieces):
            self._block(block)
            self._lines += block.count(b"\n")
        rows = [(*key, *sums) for key, sums in self._sums.items()]
        columns = ["pid", "event", "group", "kernel", "by_name", "samples", "period"]
        table = pd.DataFrame(rows, columns=columns).astype({"samples": "float64", "period": "float64"})
        return Samples(table, int(table["samples"].sum()))

    def _blocks(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Whole records, some megabytes at a time; ended by a line end."""
        rest: list[bytes] = []
        held = 0
        for piece in pieces:
            rest.append(piece)
            held += len(piece)
            if held < BLOCK:
                continue
            data = b"".join(rest)
            self._look(data)
            end = data.rfind(b"\n\n") + 2 if self._chains else data.rfind(b"\n") + 1
            if end < 2 or len(data) - end > limits.PERF_RECORD:
                if len(data) > BLOCK + limits.PERF_RECORD:
                    raise self._wrong(0, f"a record of more than {limits.PERF_RECORD} bytes")
                end = 0
            if end:
                yield data[:end]
            rest, held = [data[end:]], len(data) - end
        data = b"".join(rest)
        if data:
            data = data if data.endswith(b"\n") else data + b"\n"
            self._look(data)
            yield data

    def _look(self, data: bytes) -> None:
        """Find out from the first sample whether there are call chains: its own line then ends with the event."""
        if self._chains is None:
            for line in data.split(b"\n")[:-1]:
                if line.strip() and not line.startswith(b"#") and b"PERF_RECORD_MMAP" not in line:
                    self._chains = line.rstrip().endswith(b":")
                    return

    def _block(self, block: bytes) -> None:
        text = block if self._chains else _TIME.sub(b" @ ", block)
        if text.startswith(b"#") or b"\n#" in text:
            text = _COMMENT.sub(b"", text)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if b"PERF_RECORD_MMAP" in text:
            for found in _MAPPED.finditer(text):
                begin, size, offset = (int(found[name], 16) for name in ("begin", "size", "offset"))
                path = found["path"].decode("utf-8", "replace").rstrip()
                self._maps.setdefault(int(found["pid"]), []).append((begin, begin + size, offset, path))
            text = _RECORD.sub(b"", text)
        if self._chains:
            self._chained(text)
            return
        for record, count in Counter(text.split(b"\n")).items():
            self._add(text, record, *record.partition(b": "), count)

    def _chained(self, text: bytes) -> None:
        """Count the samples of whole records, each followed by an empty line."""
        usual, start, size, usually = self._usual, 0, len(text), _USUAL.match
        while start < size:
            match = usually(text, start)
            if match and (sums := usual.get(key := match.group(1, 3, 4, 5))):
                sums[0] += 1
                sums[1] += int(match[2])
                start = match.end()
                continue
            end = text.find(b"\n\n", start)
            record = text[start : end if end >= 0 else size]
            head, mark, tail = record.lstrip(b"\n").partition(b"\n")
            sums, alone = self._add(text, record, _TIME.sub(b" @ ", head, 1), mark, tail, 1)
            if match and alone:
                if len(usual) > MOST_REMEMBERED:
                    usual.clear()
                usual[key] = sums
            elif not match:
                for number, line in enumerate(tail.split(b"\n"), start=1):
                    if line and not line[:1].isspace():  # a frame is set in
                        self._fail(text, record, number)
            start += len(record) + 2

    def _add(
        self, text: bytes, record: bytes, head: bytes, mark: bytes, tail: bytes, count: int
    ) -> tuple[list[int], bool]:
        """Count a sample; the sums that it went to, and whether its innermost frame decided on them."""
        if not record.strip():
            return [0, 0], False
        about, period = _parted(head)
        pid, event, stated = self._heads.get(about) or self._first(text, record, head, mark)
        (group, kernel, by_name), alone = self._owner(text, record, tail, pid)
        period = period or stated
        sums = self._sums.get((pid, event, group, kernel, by_name))
        if sums is None:
            if len(self._sums) >= limits.PERF_FUNCTIONS:
                raise self._wrong(0, f"more than {limits.PERF_FUNCTIONS} functions")
            sums = self._sums[pid, event, group, kernel, by_name] = [0, 0]
        sums[0] += count
        sums[1] += count * period
        return sums, alone

    def _first(self, text: bytes, record: bytes, head: bytes, mark: bytes) -> tuple[int, str, int]:
        """Process, event and period of a sample's first line."""
        if not (head.rstrip().endswith(b":") if self._chains else mark):
            self._fail(text, record, 0)
        if len(self._heads) > MOST_REMEMBERED:
            self._heads.clear()
        about, period = _parted(head)
        first = self._head(text, record, head.rstrip().removesuffix(b":"))
        self._heads[about] = (*first[:2], 0) if period else first
        return first

    def _owner(self, text: bytes, record: bytes, tail: bytes, pid: int) -> tuple[tuple[Group, str, bool], bool]:
        """Whom a sample belongs to, by the frames of its chain up to the one that decides, and whether that is the
        innermost."""
        frames: list[Frame] = []
        start, number = 0, int(bool(self._chains))
        while start <= len(tail):
            end = tail.find(b"\n", start)
            end = len(tail) if end < 0 else end
            place = _place(tail[start:end])
            # where files were mapped differs from process to process
            held = self._frames.get(key := (pid if self._maps and _UNNAMED in place else -1, place))
            if held is None and place.strip():
                found = _frame(tail[start:end].decode("utf-8", "replace"))
                if found is None:
                    self._fail(text, record, number)
                    break
                frame = self._located(found, pid)
                held = frame, frame.object not in NOBODYS and owner_of(*frame) in ("mpi", "application")
                if len(self._frames) > MOST_REMEMBERED:
                    self._frames.clear()
                self._frames[key] = held
            if held is not None and held[0].object != "inlined":
                frames.append(held[0])
                if held[1]:
                    break
            start, number = end + 1, number + 1
        asked = tuple(frames), self._ours(pid)
        whose = self._owners.get(asked)
        if whose is None:
            if len(self._owners) > MOST_REMEMBERED:
                self._owners.clear()
            whose = self._owners[asked] = resolve(*asked)
        return whose, bool(start == 0 and frames and held is not None and held[1])

    def _ours(self, pid: int) -> frozenset[str]:
        """Libraries of a process that MPI does not use, as far as it has loaded them."""
        maps = self._maps.get(pid, ())
        count, found = self._own.get(pid, (0, frozenset()))
        if count != len(maps):
            found = not_for_mpi({path for *_, path in maps})
            self._own[pid] = len(maps), found
        return found

    def _located(self, frame: _Place, pid: int) -> Frame:
        """The frame, a function without a symbol named by where it begins in its file."""
        start = None
        if frame.symbol == "[unknown]":
            for begin, end, offset, path in self._maps.get(pid, ()):
                if path == frame.object:
                    # some versions of perf write addresses in memory, some offsets in the file
                    place = frame.address - begin + offset if begin <= frame.address < end else frame.address
                    start = beginning(path, place, offset=True)
                    if start is not None:
                        break
        return Frame(frame.symbol if start is None else f"{start:#018x}", frame.object)

    def _head(self, text: bytes, record: bytes, head: bytes) -> tuple[int, str, int]:
        words = head.decode("utf-8", "replace").split()
        if not words or re.fullmatch(r"[\d.]+", words[-1]):
            self._fail(text, record, 0)
        event, before = words[-1], words[:-1]
        after: list[str] = before
        if "@" in before:
            at = len(before) - before[::-1].index("@")
            before, after = before[: at - 1], before[at:]
        else:
            before = []
        period = int(after[-1]) if after and after[-1].isascii() and after[-1].isdigit() and len(after[-1]) < 19 else 0
        numbers = [word.split("/")[0] for word in before if re.fullmatch(r"\d{1,10}(?:/\d{1,10})?", word)]
        return (int(numbers[-1]) if numbers else -1), event, period

    def _fail(self, text: bytes, record: bytes, line: int) -> None:
        blank = len(record) - len(record.lstrip(b"\n"))
        at = text.count(b"\n", 0, max(text.find(record), 0)) + blank + line
        shown = record.split(b"\n")[blank + line].strip()[:60].decode("utf-8", "replace")
        raise self._wrong(at, f"{shown!r} is no sample")

    def _wrong(self, line: int, what: str) -> InputError:
        return InputError(
            f"{self._source}:{self._lines + line + 1}: {what}",
            "give the output of 'perf script', or of 'perf script -F comm,pid,tid,time,period,event,ip,sym,dso'",
        )


def _parted(head: bytes) -> tuple[tuple[bytes, bytes], int]:
    """What a sample's first line says without its period, and the period; 0 where none stands behind the time."""
    before, mark, after = head.rpartition(b" @ ")
    words = after.split()
    if mark and len(words) == 2 and words[0].isdigit() and len(words[0]) < 19:
        return (before, words[1]), int(words[0])
    return (head, b""), 0


def _place(line: bytes) -> bytes:
    """A line of a call chain without address and offset where it names a function by a symbol; else the line itself."""
    address, _, place = line.strip().partition(b" ")
    at = place.rfind(b"+0x")
    end = place.find(b" ", at)
    known = at > 0 and place.startswith(b"(", end + 1) and not place[at + 3 : end].strip(_HEX)
    if not known or not place.endswith(b")") or not address or address.strip(_HEX) or place.startswith(b"[unknown]"):
        return line
    return place[:at] + place[end:]


def _frame(line: str) -> _Place | None:
    """Read ``address symbol+offset (object)``; None where it is none."""
    match = _FRAME.match(line)
    if match is None:
        return None
    place = (match[2] or "").rstrip()
    if place.endswith(" (deleted))"):
        opening, place = place.rfind(" (", 0, -len(" (deleted))")), place[: -len(" (deleted))")] + ")"
    else:
        opening = place.rfind("(") if place.endswith(")") else -1
    if opening < 0:
        return _Place(int(match[1], 16), _OFFSET.sub("", place) or "[unknown]", "")
    symbol, path = place[:opening].strip(), place[opening:].strip()[1:-1]
    return _Place(int(match[1], 16), _OFFSET.sub("", symbol) or "[unknown]", path)
