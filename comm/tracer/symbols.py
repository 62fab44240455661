"""Names of functions from the symbol tables of ELF files, static functions included."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight._names import demangled

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
_CLONE = re.compile(r"(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)*)+$")

Array = NDArray[Any]


@dataclass(slots=True)
class SymbolTable:
    """Functions of one file: start and size in virtual addresses, and where each segment lies in the file."""

    starts: Array
    sizes: Array
    names: list[str]
    segments: Array

    def find(self, offsets: Array) -> list[str | None]:
        """Name of the function around each offset in the file, None where none is known.

        A function that states no size (written in assembly) reaches to the next one.
        """
        vaddr = np.zeros(offsets.shape, dtype=np.uint64)  # address 0 is in no function
        for segment in self.segments:
            inside = (offsets >= segment["offset"]) & (offsets < segment["offset"] + segment["filesz"])
            vaddr = np.where(inside, offsets - segment["offset"] + segment["vaddr"], vaddr)
        at = np.searchsorted(self.starts, vaddr, side="right") - 1
        found: list[str | None] = []
        for index, address in zip(list(at), list(vaddr), strict=True):
            size = int(self.sizes[index]) if index >= 0 else -1
            known = index >= 0 and (size == 0 or int(address) < int(self.starts[index]) + size)
            found.append(self.names[index] if known else None)
        return found


def read_symbols(path: Path) -> SymbolTable | None:
    """Functions of the ELF file `path`, from its symbol table, the separate debug file of its build id, or, where both
    are stripped, from what it exports. None where `path` cannot be read or is no 64-bit ELF file of this byte order."""
    try:
        content = path.read_bytes()
        sections, segments = _layout(content)
        kinds = sections["type"].tolist()
        if _SYMTAB in kinds:
            return _functions(content, sections, segments, _SYMTAB)
        debug = _debug_file(content, sections)
        if debug is not None:
            other = debug.read_bytes()
            other_sections, _ = _layout(other)
            if _SYMTAB in other_sections["type"].tolist():
                return _functions(other, other_sections, segments, _SYMTAB)
        return _functions(content, sections, segments, _DYNSYM) if _DYNSYM in kinds else None
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return None


def _layout(content: bytes) -> tuple[Array, Array]:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    phoff, shoff = struct.unpack_from("<QQ", content, 32)
    phnum, _, shnum = struct.unpack_from("<HHH", content, 56)
    sections = np.frombuffer(content, _SECTION, shnum, shoff) if shnum else np.empty(0, _SECTION)
    segments = np.frombuffer(content, _SEGMENT, phnum, phoff) if phnum else np.empty(0, _SEGMENT)
    return sections, segments[segments["type"] == _LOAD]


def _functions(content: bytes, sections: Array, segments: Array, kind: int) -> SymbolTable:
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
    texts = [names[at : names.index(b"\0", at)].decode("utf-8", "replace") for at in table["name"].tolist()]
    return SymbolTable(table["value"], table["size"], texts, segments)


def _debug_file(content: bytes, sections: Array) -> Path | None:
    """Debug file under /usr/lib/debug by the build id note."""
    for section in sections[sections["type"] == _NOTE]:
        at = int(section["offset"])
        name, size, kind = struct.unpack_from("<III", content, at)
        if kind == 3 and content[at + 12 : at + 12 + name] == b"GNU\0":
            build = content[at + 12 + name : at + 12 + name + size].hex()
            file = Path("/usr/lib/debug/.build-id") / build[:2] / f"{build[2:]}.debug"
            return file if file.is_file() else None
    return None


def plain_names(names: Sequence[str]) -> list[str]:
    """Names as the source has them: C++ demangled (where ``c++filt`` is installed), suffixes of clones cut off."""
    return demangled([_CLONE.sub("", name) for name in names])
