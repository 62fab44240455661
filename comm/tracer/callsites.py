"""From return addresses to kernels: the functions of the program that called MPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.tracer.rawfile import RankTrace
from ranksight.core.symbols import plain_names, read_symbols, unnamed

UNKNOWN = "(unknown)"
"""Kernel of a call from code that lies in no file: generated at run time, or unloaded since."""

_OFFSET_BITS = 44
Array = NDArray[Any]


class CallSites:
    """Call sites of all ranks as numbers that do not depend on where a rank's files were mapped.

    A site is ``file << 44 | offset``, of the byte before the return address, which belongs to the call; 0 where the
    address lies in no file.
    """

    def __init__(self) -> None:
        self._files: dict[str, int] = {"": 0}
        self._asked: list[Array] = []

    def sites(self, trace: RankTrace, pcs: Array) -> Array:
        """Sites of the return addresses `pcs` of one rank."""
        if not trace.maps or not pcs.size:
            return np.zeros(pcs.size, dtype=np.uint64)
        maps = sorted(trace.maps)
        begins, ends, offsets = (np.array([entry[i] for entry in maps], dtype=np.uint64) for i in range(3))
        numbers = np.array([self._files.setdefault(entry[3], len(self._files)) for entry in maps], dtype=np.uint64)
        before = pcs - np.uint64(1)
        at = np.searchsorted(begins, before, side="right").astype(np.int64) - 1
        chosen = np.maximum(at, 0)
        inside = (at >= 0) & (before < ends[chosen])
        value = (numbers[chosen] << np.uint64(_OFFSET_BITS)) | (before - begins[chosen] + offsets[chosen])
        found: Array = np.where(inside, value, np.uint64(0))
        self._asked.append(np.unique(found))
        return found

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
        return sites, np.array(plain_names([str(name) for name in names]), dtype=object)
