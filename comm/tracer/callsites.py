"""From return addresses to kernels: the functions of the program that called MPI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.tracer.rawfile import RankTrace
from ranksight.core.errors import InputError
from ranksight.core.names import printable
from ranksight.core.symbols import plain_names, read_symbols, unnamed

UNKNOWN = "(unknown)"
"""Kernel of a call from code that lies in no file: generated at run time, or unloaded since."""

_OFFSET_BITS = 44
_PYTHON = np.uint64(1 << 63)
"""Of a call site that is a function of Python: ``RS_PYTHON`` of the tracer, and its number."""
_ANGLES = re.compile(r"<(\w+)>")
Array = NDArray[Any]


def python_name(text: str) -> str:
    """Name of the kernel that is a function of Python, such as ``Grid.exchange (heat.py:24)``.

    `text`: its qualified name, its file and the line where it begins, between tabs, as the tracer writes them; a name
    alone where it is no function.
    """
    name, file, line = (*text.split("\t"), "", "")[:3]
    if not file:
        return printable(name)
    parts = file.split("/")
    place = "/".join(parts[-2:] if parts[-1].startswith("__") else parts[-1:])
    return printable(_ANGLES.sub(r"(\1)", f"{name.replace('.<locals>', '')} ({place}:{line})"))


class CallSites:
    """Call sites of all ranks as numbers that do not depend on where a rank's files were mapped.

    A site is ``file << 44 | offset``, of the byte before the return address, which belongs to the call; 0 where the
    address lies in no file. The sites of functions of Python are numbered, with the highest bit set.
    """

    def __init__(self) -> None:
        self._files: dict[str, int] = {"": 0}
        self._python: dict[str, int] = {}
        self._asked: list[Array] = []

    def sites(self, trace: RankTrace, pcs: Array) -> Array:
        """Sites of the return addresses `pcs` of one rank."""
        if not pcs.size:
            return np.zeros(0, dtype=np.uint64)
        found = np.where(pcs < _PYTHON, self._in_files(trace, pcs), self._in_python(trace, pcs))
        self._asked.append(np.unique(found))
        return found

    def _in_python(self, trace: RankTrace, pcs: Array) -> Array:
        numbers = [self._python.setdefault(python_name(text), len(self._python)) for text in trace.python]
        if not numbers:
            return np.zeros(pcs.size, dtype=np.uint64)
        own = pcs & ~_PYTHON
        known = own < np.uint64(len(numbers))
        at = np.where(known, own, np.uint64(0)).astype(np.int64)
        return np.where(known, np.array(numbers, dtype=np.uint64)[at] | _PYTHON, np.uint64(0))

    def _in_files(self, trace: RankTrace, pcs: Array) -> Array:
        if not trace.maps:
            return np.zeros(pcs.size, dtype=np.uint64)
        maps = sorted(trace.maps)
        if any(not 0 <= number < 1 << 64 for entry in maps for number in entry[:3]):
            raise InputError("a trace maps a file at an address that no process has", "the trace is damaged")
        begins, ends, offsets = (np.array([entry[i] for entry in maps], dtype=np.uint64) for i in range(3))
        numbers = np.array([self._files.setdefault(entry[3], len(self._files)) for entry in maps], dtype=np.uint64)
        before = pcs - np.uint64(1)
        at = np.searchsorted(begins, before, side="right").astype(np.int64) - 1
        chosen = np.maximum(at, 0)
        inside = (at >= 0) & (before < ends[chosen])
        value = (numbers[chosen] << np.uint64(_OFFSET_BITS)) | (before - begins[chosen] + offsets[chosen])
        return np.where(inside, value, np.uint64(0))

    def kernels(self) -> tuple[Array, Array]:
        """All sites that were asked for, sorted, and the name of the kernel of each (an array of str)."""
        sites = np.unique(np.concatenate([np.zeros(1, np.uint64), *self._asked]))
        names = np.full(sites.size, UNKNOWN, dtype=object)
        files = sites >> np.uint64(_OFFSET_BITS)
        offsets = sites & np.uint64((1 << _OFFSET_BITS) - 1)
        for path, number in self._files.items():
            mine = np.flatnonzero(files == number)
            if number == 0 or mine.size == 0:
                continue
            symbols = read_symbols(Path(path))
            found = symbols.find(offsets[mine]) if symbols is not None else [None] * mine.size
            names[mine] = [name if isinstance(name, str) else unnamed(name, path) for name in found]
        plain = np.array(plain_names([str(name) for name in names]), dtype=object)
        python = np.flatnonzero(sites >= _PYTHON)
        if python.size:
            plain[python] = np.array(list(self._python), dtype=object)[(sites[python] & ~_PYTHON).astype(np.int64)]
        return sites, plain
