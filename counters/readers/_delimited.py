"""Reading delimited text as it comes: gzip, byte-order marks, odd encodings, comments, quoted fields, ragged rows."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import io
import itertools
import math
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

from ranksight.core import limits
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.files import regular_file
from ranksight.core.records import dataclass
from ranksight.core.units import some_of

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS = (",", ";", "\t", "|")
BLANKS = " "
"""The delimiter of columns that stand below each other: any number of blanks and tabs."""
PIECE = 1 << 20
"""Bytes decoded at a time."""
ROWS = 200
"""Rows put into columns at a time: few enough to be gone before the collector of garbage looks at them twice."""
DISTINCT = 50_000
"""Texts of a column that are held once however often they stand there; a column with more is hardly one of names."""
_BLANK = tuple(bytes([code]) for code in range(128) if chr(code).isspace() and chr(code) not in "\r\n")
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class Texts(Sequence[str]):
    """A column of texts as Arrow holds them; each becomes an object of Python only where one is looked at."""

    def __init__(self, held: Any) -> None:
        self.held = held

    @cached_property
    def _listed(self) -> list[str]:
        same: dict[str, str] = {}  # a text that stands in many rows is held once
        return [same.setdefault(text, text) for text in self.held.to_pylist()]

    def __len__(self) -> int:
        return len(self.held)

    def __contains__(self, text: object) -> bool:
        return bool(pc.any(pc.equal(self.held, text)).as_py())

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._listed[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def numbers(self) -> Array | None:
        """The column as numbers, NaN where a text is empty; None where one needs a closer look."""
        try:
            found = pc.cast(pc.if_else(pc.equal(self.held, ""), None, self.held), pa.float64())
        except pa.ArrowInvalid:
            return None
        return np.array(found, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Delimited:
    """A table of texts."""

    columns: Mapping[str, Sequence[str]]  # the columns that were asked for: :class:`Texts` where the table is plain
    lines: Sequence[int]  # line of the file on which each row starts
    delimiter: str  # what separates the fields
    notes: tuple[str, ...]  # what was done to be able to read it
    header: tuple[str, ...]  # names of all columns
    called: Mapping[str, str] = field(default_factory=dict)
    """Columns that were called otherwise in the file, with a unit in the name."""


def decode(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a file, packed by gzip or not, in UTF-8, UTF-16, UTF-32 (by their marks) or, with a note,
    Windows-1252. Raises InputError when the file cannot be read, is empty, is not text, or unpacks to more than
    :mod:`ranksight.core.limits` allows.
    """
    found = _scan(path)
    with _text(path, found.encoding, newline="") as stream:
        return stream.read(), found.notes


def _bytes(path: Path) -> BinaryIO:
    """The content of a regular file, unpacked where it is packed by gzip."""
    regular_file(path)
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path)) if packed else path.open("rb")


def _text(path: Path, encoding: str, newline: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(_bytes(path), encoding, errors="replace", newline=newline)


@dataclass(slots=True)
class _Scanned:
    """What a look at all of a file, a piece at a time, shows."""

    encoding: str = ""
    notes: tuple[str, ...] = ()
    plain: bool = True  # whether a line is a row: none is empty, or holds quotes or ends of lines of its own
    comment: int = 0  # byte behind the last ``#``
    trim: bool = False  # whether there may be blanks around texts


def _unpacked_most(path: Path) -> int:
    """Bytes that a packed file may hold: what packs better than any measurements is made to fill the memory."""
    return min(limits.UNPACKED, max(limits.UNPACKED_SMALL, limits.UNPACKED_GROWTH * path.stat().st_size))


def _scan(path: Path, table: bool = False) -> _Scanned:
    """Look at a file; `table` says whether it is to have lines. See :func:`decode`."""
    found = _Scanned()
    size, line, returns, blank = 0, 0, 0, True
    last = b""
    try:
        with _bytes(path) as stream:
            most = _unpacked_most(path) if isinstance(stream, gzip.GzipFile) else math.inf
            while piece := stream.read(PIECE):
                if size + len(piece) > most:
                    raise InputError(
                        f"{path} unpacks to more than {int(most) >> 20} MiB", "unpack it, or give it in parts"
                    )
                if not found.encoding:
                    found.encoding = next((name for mark, name in _MARKS if piece.startswith(mark)), "utf-8-sig")
                    decoder = codecs.getincrementaldecoder(found.encoding)()
                try:
                    text = decoder.decode(piece)
                except UnicodeDecodeError as error:
                    if found.encoding != "utf-8-sig":
                        raise InputError(f"{path} is marked as {found.encoding} but is none: {error.reason}") from error
                    found.encoding, found.notes = "cp1252", ("is not UTF-8: read as Windows-1252",)
                    decoder = codecs.getincrementaldecoder(found.encoding)("replace")
                    text = decoder.decode(piece)
                if "\x00" in text:
                    raise InputError(f"{path} holds NUL bytes: it is not text", "name a text table")
                blank = blank and not text.strip()
                if table:
                    end = max(text.rfind("\n"), text.rfind("\r"))
                    line = len(text) - end - 1 if end >= 0 else line + len(text)
                    if line > limits.LINE:
                        raise InputError(f"{path}: a line is longer than {limits.LINE >> 20} MiB", "is it a table?")
                    # A carriage return may belong to the line feed that the next piece begins with.
                    returns += piece.count(b"\r") - piece.count(b"\r\n") - (last[-1:] == b"\r" and piece[:1] == b"\n")
                    around = last + piece[:2]
                    empty = any(sign in part for sign in (b"\n\n", b"\n\r\n") for part in (around, piece))
                    found.plain &= b'"' not in piece and not empty
                    last = (last + piece[-2:])[-2:]
                    found.comment = size + at + 1 if (at := piece.rfind(b"#")) >= 0 else found.comment
                    found.trim |= not piece.isascii() or any(sign in piece for sign in _BLANK)
                size += len(piece)
            if found.encoding and decoder.getstate()[0] and found.encoding == "utf-8-sig":  # ends within a letter
                found.encoding, found.notes, blank = "cp1252", ("is not UTF-8: read as Windows-1252",), False
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        raise InputError(f"{path} cannot be unpacked: {error}", "copy it again") from error
    if blank:
        raise InputError(f"{path} is empty", "name a table with a header line and rows")
    found.plain &= returns == 0
    return found


def header(path: Path, lines: Iterable[str], delimiter: str | None = None) -> tuple[list[str], str, int]:
    """Names of the columns, the delimiter, and the number of lines before the first row.

    Leading lines that start with ``#`` are comments; where the first line after them holds numbers alone, the last of
    them is the header.
    """
    comment: str | None = None
    first, start = "", -1
    lines = iter(lines)
    for line in lines:
        start += 1
        if line.startswith("#"):
            comment = line
        elif line.strip():
            first = line.rstrip("\n")
            break
    if not first:
        raise InputError(f"{path} has no rows", "name a table with a header line and rows")
    if max(map(first.count, (*DELIMITERS, BLANKS, delimiter or BLANKS))) > limits.TABLE_COLUMNS:
        raise InputError(f"{path}:{start + 1} names more than {limits.TABLE_COLUMNS} columns", "give it in parts")
    found = delimiter or max(DELIMITERS, key=lambda mark: len(_split(first, mark)))
    names = _split(first, found)
    if delimiter is None and (len(names) == 1 or found == "\t"):
        second = next((line for line in lines if line.strip() and not line.startswith("#")), first)
        unlike = len(names) == 1 or len(_split(second.rstrip("\n"), found)) != len(names)
        if unlike and len(_split(first, BLANKS)) == len(_split(second, BLANKS)):
            found, names = BLANKS, _split(first, BLANKS)
    if comment is not None and all(_is_number(name) for name in names):
        candidate = _split(comment.lstrip("# "), found)
        if len(candidate) == len(names):
            return _checked(path, candidate, start), found, start
    if all(_is_number(name) for name in names):
        raise InputError(f"{path}:{start + 1} holds numbers where the columns' names should be", "add a header line")
    return _checked(path, names, start + 1), found, start + 1


def _checked(path: Path, names: Sequence[str], line: int) -> list[str]:
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise InputError(f"{path}:{line} names the column {twice[0]!r} twice", "give every column its own name")
    return list(names)


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return [field.strip() for field in next(_fields([line], delimiter), [])]
    except csv.Error:
        return [line]


def _fields(lines: Iterable[str], delimiter: str, strict: bool = False) -> Reader:
    """What parses `lines` into fields; blanks that follow each other are one delimiter."""
    if delimiter == BLANKS:
        lines = (line.expandtabs(1).strip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter == BLANKS, strict=strict)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def columns_of(path: Path, delimiter: str | None = None) -> list[str]:
    """Names of all columns of the table at `path`; InputError where it has none."""
    return header(path, _lines(path, _scan(path, table=True).encoding), delimiter)[0]


def read_delimited(path: Path, wanted: Sequence[str], delimiter: str | None = None) -> Delimited:
    """Read the columns `wanted` of the table at `path`.

    Raises InputError, naming file and line: a column is missing (with the nearest names), a row has too many or too few
    fields, a quote is never closed, there is no row.
    """
    scanned = _scan(path, table=True)
    encoding, notes = scanned.encoding, scanned.notes
    names, found, skip = header(path, _lines(path, encoding), delimiter)
    for name in wanted:
        if name not in names:
            folded = {column.casefold(): column for column in names}
            near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
            listed = ", ".join(folded[key] for key in near) if near else ", ".join(column for column in names if column)
            raise InputError(f"{path} has no column {name!r}", f"{'nearest' if near else 'its columns'}: {listed}")
    places = [names.index(name) for name in wanted]
    if (plain := _plain_table(path, scanned, found, skip, len(names), places)) is not None:
        return _once(Delimited(dict(zip(wanted, plain[1], strict=True)), plain[0], found, notes, tuple(names)))
    columns: list[list[str]] = [[] for _ in wanted]
    same: list[dict[str, str]] = [{} for _ in wanted]
    lines = array("q")
    with _text(path, encoding) as stream:
        numbered = _rows(path, itertools.islice(stream, skip, None), found, skip)
        while some := list(itertools.islice(numbered, ROWS)):
            lines.extend(line for line, _ in some)
            if len(lines) > limits.TABLE_ROWS:
                raise InputError(f"{path} holds more than {limits.TABLE_ROWS} rows", "give it in parts")
            fields = list(zip(*(_fitting(path, line, row, len(names)) for line, row in some), strict=True))
            for column, known, place in zip(columns, same, places, strict=True):
                texts: Iterable[str] = map(str.strip, fields[place])
                if len(known) < DISTINCT:
                    texts = tuple(texts)
                    texts = map(known.setdefault, texts, texts)
                column += texts
    if not lines:
        raise InputError(f"{path} has a header but no rows")
    return _once(Delimited(dict(zip(wanted, columns, strict=True)), lines, found, notes, tuple(names)))


def _once(table: Delimited) -> Delimited:
    """The table without rows that hold the header again, as tables do that were put one behind the other."""
    if not all(name in column for name, column in table.columns.items()):
        return table
    same = [[text == name for text in column] for name, column in table.columns.items()]
    row = ~np.logical_and.reduce(same)
    if row.all() or not row.any():
        return table
    columns = {name: list(itertools.compress(column, row)) for name, column in table.columns.items()}
    lines = list(itertools.compress(table.lines, row))
    again = some_of([line for line, kept in zip(table.lines, row, strict=True) if not kept], 5)
    return replace(table, columns=columns, lines=lines, notes=(*table.notes, f"has its header again, in lines {again}"))


def _plain_table(
    path: Path, scanned: _Scanned, delimiter: str, skip: int, width: int, places: Sequence[int]
) -> tuple[range, list[Texts]] | None:
    """The lines of the rows, and the columns at `places`, of a table whose every line behind the first `skip` is one of
    `width` fields, without quotes and comments; None of any other."""
    if scanned.encoding != "utf-8-sig" or not scanned.plain or delimiter == BLANKS or width < 2:
        return None
    chosen = [str(place) for place in places]
    parts: list[pa.RecordBatch] = []
    rows = 0
    with _bytes(path) as stream:
        start = sum(len(stream.readline()) for _ in range(skip))
        if not start or scanned.comment > start:
            return None
        try:
            # Only the columns asked for are held, and a piece of the text. A line has to end within two pieces.
            reader = open_csv(
                stream,
                ReadOptions(use_threads=False, column_names=[str(place) for place in range(width)], block_size=PIECE),
                ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False, ignore_empty_lines=False),
                ConvertOptions(column_types=dict.fromkeys(chosen, pa.string()), include_columns=chosen),
            )
            for part in reader:
                rows += part.num_rows
                if rows > limits.TABLE_ROWS:
                    raise InputError(f"{path} holds more than {limits.TABLE_ROWS} rows", "give it in parts")
                parts.append(part)
        except pa.ArrowInvalid:  # rows that do not fit, which are named one by one, and long lines
            return None
    if not rows:
        return None
    table = pa.Table.from_batches(parts)
    columns = [table.column(name) for name in chosen]
    if scanned.trim:
        columns = [pc.utf8_trim_whitespace(column) for column in columns]
    return range(skip + 1, skip + 1 + rows), list(map(Texts, columns))


def _fitting(path: Path, line: int, row: list[str], width: int) -> list[str]:
    """A row of as many fields as the header, but for an empty one at its end."""
    if len(row) == width:
        return row
    if len(row) == width + 1 and not row[-1].strip():
        return row[:-1]
    raise InputError(
        f"{path}:{line} has {len(row)} fields, the header has {width}",
        "correct the row, or quote the fields that contain the delimiter",
    )


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file with any ends of lines, one at a time."""
    with _text(path, encoding) as stream:
        yield from stream


def _rows(path: Path, lines: Iterable[str], delimiter: str, skip: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of `lines`, which follow the first `skip` of the file, each with its line."""
    reader = _fields(lines, delimiter, strict=True)
    line = skip + 1
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()) and not row[0].startswith("#"):
                yield line, row
            line = skip + reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}:{line}: {error}", "is a quote not closed, or the delimiter another one?") from error
