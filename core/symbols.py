"""Functions of ELF files: their names from symbol tables, and their addresses, which stripped files hold as well.

A file keeps the ranges of its functions for unwinding (``.eh_frame``, with a sorted table of their beginnings in
``.eh_frame_hdr``). So a function without a symbol has a name that all tools agree on: where it begins, and its file.

Source: Linux Standard Base Core Specification 5.0, "Exception Frames"; System V ABI, "Symbol Table"; GDB manual,
"Debugging Information in Separate Files".
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.files import read_bytes
from ranksight.core.names import demangled
from ranksight.core.records import dataclass

_SYMBOL = np.dtype(
    [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
)
_SECTION = np.dtype(
    [
        ("name", "u4"), ("type", "u4"), ("flags", "u8"), ("addr", "u8"), ("offset", "u8"), ("size", "u8"),
        ("link", "u4"), ("info", "u4"), ("align", "u8"), ("entry", "u8"),
    ]
)  # fmt: skip
_SEGMENT = np.dtype(
    [
        ("type", "u4"), ("flags", "u4"), ("offset", "u8"), ("vaddr", "u8"), ("paddr", "u8"), ("filesz", "u8"),
        ("memsz", "u8"), ("align", "u8"),
    ]
)  # fmt: skip
_SYMTAB, _DYNSYM, _NOTE, _LOAD, _FUNCTION, _INDIRECT = 2, 11, 7, 1, 2, 10
_DYNAMIC, _NEEDED = 6, 1
_FRAMES = 0x6474E550
"""Kind of the segment that holds ``.eh_frame_hdr``."""
_TABLE = bytes((1, 0x1B, 0x03, 0x3B))
"""Version and encodings of every such table that linkers write: 32-bit, relative to where they are or to the table."""
_VERSION = re.compile(r"(?:-\d[\d.]*)?(?:\.so(?:\.\d+)*|\.dylib|\.a)?(?: \(deleted\))?$")
DEBUG = Path("/usr/lib/debug")
_OVERLAP = 16
"""How often the names of a table may repeat its bytes."""
_CLONE = re.compile(r"(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d{1,20}){0,4}){1,8}$")

Array = NDArray[Any]


@lru_cache(maxsize=4096)
def label(path: str) -> str:
    """Short name of an object file: ``/usr/lib/x86_64-linux-gnu/libc.so.6`` is ``libc``."""
    return _VERSION.sub("", path.rsplit("/", 1)[-1]) or path


def unnamed(start: int | None, path: str) -> str:
    """Name of the kernel of a function without a symbol, which begins at virtual address `start` of the file at `path`.

    Where `start` is None, not known, all such functions of a file are one kernel.
    """
    return f"{'(no symbol)' if start is None else hex(start)} [{label(path)}]"


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """Functions of one file."""

    starts: Array  # (n,) uint64: virtual addresses of functions with a symbol
    sizes: Array  # (n,) uint64
    names: list[str]  # as the table has them, mangled
    segments: Array  # where each segment lies in the file
    frames: Array  # (m,) uint64: where all functions begin that can be unwound, and where they end
    ends: Array  # (m,) uint64

    def addresses(self, offsets: Array) -> Array:
        """Virtual addresses of offsets in the file; 0, which is in no function, where none is loaded."""
        found = np.zeros(offsets.shape, dtype=np.uint64)
        for segment in self.segments:
            inside = (offsets >= segment["offset"]) & (offsets < segment["offset"] + segment["filesz"])
            found = np.where(inside, offsets - segment["offset"] + segment["vaddr"], found)
        return found

    def beginnings(self, addresses: Array) -> Array:
        """Where the function around each virtual address begins, by the table for unwinding; 0 where none is known."""
        if not self.frames.size:
            return np.zeros(addresses.shape, dtype=np.uint64)
        at = np.searchsorted(self.frames, addresses, side="right").astype(np.int64) - 1
        inside = (at >= 0) & (addresses < self.ends[np.maximum(at, 0)])
        return np.where(inside, self.frames[np.maximum(at, 0)], np.uint64(0))

    def find(self, offsets: Array) -> list[str | int | None]:
        """Name of the function around each offset in the file, or where it begins if it has none; None if not known.

        A function that states no size (written in assembly) reaches to the next one that is known to begin.
        """
        addresses = self.addresses(offsets)
        beginnings = self.beginnings(addresses)
        at = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        if not self.starts.size:
            named = np.zeros(addresses.shape, dtype=bool)
        else:
            chosen = np.maximum(at, 0)
            start, size = self.starts[chosen], self.sizes[chosen]
            named = (at >= 0) & np.where(size == 0, beginnings <= start, addresses < start + size)
        return [
            self.names[index] if known else int(start) or None
            for index, known, start in zip(at.tolist(), named.tolist(), beginnings.tolist(), strict=True)
        ]


@lru_cache(maxsize=256)
def _functions_of(path: str) -> SymbolTable | None:
    return read_symbols(Path(path))


def beginning(path: str, address: int, offset: bool = False) -> int | None:
    """Start address of the function around `address` of the file at `path`; None where the file does not hold it.

    `address`: virtual address, or with `offset` the offset in the file.
    """
    table = _functions_of(path) if 0 <= address < 1 << 63 else None
    if table is None:
        return None
    given = np.array([address], dtype=np.uint64)
    return int(table.beginnings(table.addresses(given) if offset else given)[0]) or None


def read_symbols(path: Path) -> SymbolTable | None:
    """Functions of the ELF file `path`: names from its symbol table, from a separate debug file (by build id, by
    ``.gnu_debuglink``, or fetched by debuginfod before), or, where all are stripped, from what it exports; beginnings
    from its table for unwinding. None where `path` cannot be read or is not a 64-bit ELF file of this byte order.

    Paths come from traces, which others may have written: what is not a regular file, or larger than
    :data:`ranksight.core.limits.OBJECT_FILE`, is not read.
    """
    try:
        content = read_bytes(path, limits.OBJECT_FILE)
        sections, headers = _layout(content)
        segments = headers[headers["type"] == _LOAD]
        frames = _frames(content, headers, segments)
        none = SymbolTable(np.empty(0, np.uint64), np.empty(0, np.uint64), [], segments, *frames)
        kinds = sections["type"].tolist()
        if _SYMTAB in kinds:
            return _functions(content, sections, _SYMTAB, none)
        for debug in _debug_files(path, content, sections):
            other = read_bytes(debug, limits.OBJECT_FILE)
            other_sections, _ = _layout(other)
            if _SYMTAB in other_sections["type"].tolist():
                return _functions(other, other_sections, _SYMTAB, none)
        return _functions(content, sections, _DYNSYM, none) if _DYNSYM in kinds else none
    except (InputError, OSError, ValueError, IndexError, OverflowError, struct.error, RuntimeError):
        return None


@lru_cache(maxsize=1024)
def needed(path: str) -> tuple[str, ...] | None:
    """Names of the shared libraries that the ELF file at `path` is linked with; None where it cannot be read."""
    try:
        content = read_bytes(Path(path), limits.OBJECT_FILE)
        sections, _ = _layout(content)
        held = sections[sections["type"] == _DYNAMIC]
        if not held.size:
            return ()
        entries = np.frombuffer(content, "<u8", int(held[0]["size"]) // 16 * 2, int(held[0]["offset"])).reshape(-1, 2)
        start = int(sections[int(held[0]["link"])]["offset"])
        places = [start + int(value) for tag, value in entries.tolist() if tag == _NEEDED]
        return tuple(content[at : content.index(b"\0", at)].decode("utf-8", "replace") for at in places)
    except (InputError, OSError, ValueError, IndexError, OverflowError, struct.error, RuntimeError):
        return None


def _layout(content: bytes) -> tuple[Array, Array]:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    phoff, shoff = struct.unpack_from("<QQ", content, 32)
    phnum, _, shnum = struct.unpack_from("<HHH", content, 56)
    sections = np.frombuffer(content, _SECTION, shnum, shoff) if shnum else np.empty(0, _SECTION)
    segments = np.frombuffer(content, _SEGMENT, phnum, phoff) if phnum else np.empty(0, _SEGMENT)
    return sections, segments


def _frames(content: bytes, headers: Array, segments: Array) -> tuple[Array, Array]:
    """Where functions begin and end, by the table for unwinding; nothing where it is absent or encoded otherwise."""
    nothing = np.empty(0, np.uint64), np.empty(0, np.uint64)
    held = headers[headers["type"] == _FRAMES]
    if not held.size:
        return nothing
    place, base = int(held[0]["offset"]), int(held[0]["vaddr"])
    if content[place : place + 4] != _TABLE:
        return nothing
    (count,) = struct.unpack_from("<I", content, place + 8)
    if place + 12 + 8 * count > len(content) or count > limits.FUNCTIONS:
        return nothing
    pairs = np.frombuffer(content, "<i4", 2 * count, place + 12).reshape(-1, 2).astype(np.int64) + base
    starts, entries = pairs[:, 0], pairs[:, 1]
    # An entry: length, distance to what entries share, beginning relative to where that stands, size.
    around = next((s for s in segments if s["vaddr"] <= base < s["vaddr"] + s["filesz"]), None)
    if around is None:
        return nothing
    offsets = entries - int(around["vaddr"]) + int(around["offset"])
    if count and (offsets.min() < 0 or offsets.max() + 16 > len(content)):
        return nothing
    data = np.frombuffer(content, np.uint8)
    words = data[offsets[:, None] + np.arange(8, 16)].copy().view("<i4").reshape(-1, 2).astype(np.int64)
    known = entries + 8 + words[:, 0] == starts
    ends = np.where(known, starts + (words[:, 1] & 0xFFFFFFFF), np.append(starts[1:], starts[-1:]))
    order = np.argsort(starts, kind="stable")
    return starts[order].astype(np.uint64), ends[order].astype(np.uint64)


def _functions(content: bytes, sections: Array, kind: int, table_of: SymbolTable) -> SymbolTable:
    section = sections[np.flatnonzero(sections["type"] == kind)[0]]
    strings = sections[int(section["link"])]
    table = np.frombuffer(content, _SYMBOL, int(section["size"]) // _SYMBOL.itemsize, int(section["offset"]))
    names = content[int(strings["offset"]) : int(strings["offset"]) + int(strings["size"])]
    kinds = table["info"] & 15
    table = table[((kinds == _FUNCTION) | (kinds == _INDIRECT)) & (table["section"] != 0)]
    # Aliases of one address: the longest, and of these the global one first.
    order = np.lexsort((table["info"] >> 4 == 1, table["size"], table["value"]))
    table = table[order]
    last = np.append(table["value"][1:] != table["value"][:-1], True) if table.size else np.empty(0, bool)
    table = table[last]
    return replace(table_of, starts=table["value"], sizes=table["size"], names=_texts(names, table["name"].tolist()))


def _texts(strings: bytes, places: Sequence[int]) -> list[str]:
    """The string at each place of a string table.

    Linkers let a name be the end of another; where that repeats the table many times over, it was made to. Raises
    ValueError when a string has no end, or all of them together are far longer than their table.
    """
    found: dict[int, str] = {}
    room = _OVERLAP * len(strings)
    for at in dict.fromkeys(places):
        end = strings.index(b"\0", at)
        room -= end - at
        if room < 0:
            raise ValueError("names overlap")
        found[at] = strings[at:end].decode("utf-8", "replace")
    return [found[at] for at in places]


def _debug_files(path: Path, content: bytes, sections: Array) -> list[Path]:
    """Files that hold the symbols that were stripped from `path`: those of its build id, and that of its link."""
    found = []
    for section in sections[sections["type"] == _NOTE]:
        at = int(section["offset"])
        name, size, kind = struct.unpack_from("<III", content, at)
        if kind == 3 and content[at + 12 : at + 12 + name] == b"GNU\0":
            build = content[at + 12 + name : at + 12 + name + size].hex()
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "debuginfod_client"
            fetched = Path(os.environ.get("DEBUGINFOD_CACHE_PATH") or cache) / build / "debuginfo"
            found += [DEBUG / ".build-id" / build[:2] / f"{build[2:]}.debug", fetched]
    link = _named_section(content, sections, b".gnu_debuglink")
    name_of, _, rest = link.partition(b"\0")
    if name_of and b"/" not in name_of and len(rest) >= 4:
        file, folder = name_of.decode("utf-8", "replace"), path.resolve().parent
        (checksum,) = struct.unpack("<I", rest[-4:])
        places = (folder / file, folder / ".debug" / file, DEBUG / folder.relative_to("/") / file)
        found += [place for place in places if _checksum(place) == checksum]
    return [file for file in found if file.is_file()]


def _checksum(path: Path) -> int | None:
    """CRC-32 of a regular file's content; None where there is none that is read."""
    try:
        return zlib.crc32(read_bytes(path, limits.OBJECT_FILE))
    except InputError:
        return None


def _named_section(content: bytes, sections: Array, name: bytes) -> bytes:
    """Content of the section of that name; empty without one."""
    (index,) = struct.unpack_from("<H", content, 62)
    if not 0 < index < len(sections):
        return b""
    strings = int(sections[index]["offset"])
    for section in sections:
        at = strings + int(section["name"])
        if content[at : at + len(name) + 1] == name + b"\0":
            return content[int(section["offset"]) : int(section["offset"]) + int(section["size"])]
    return b""


def plain_names(names: Sequence[str]) -> list[str]:
    """Names as the source has them: C++ demangled (where ``c++filt`` is installed), suffixes of clones cut off."""
    return demangled([_CLONE.sub("", name) for name in names])
