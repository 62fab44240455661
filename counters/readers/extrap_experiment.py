"""Experiments that Extra-P 4 saved (``.extra-p``): an archive of ``experiment.json`` and, where they were kept, the
values of all repetitions as numpy arrays in ``values/N.vals``, at the places that ``values/N.indx`` lists.

Without them Extra-P keeps the median, mean and deviation of each point: the median is read, and a note says so. The
binary experiments of Extra-P 3 are read by :mod:`ranksight.counters.readers._extrap3`.

Source: Extra-P 4 ``extrap/fileio/experiment_io.py`` and ``values_io.py``.
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ranksight.core import limits
from ranksight.core.errors import readable
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._extrap3 import QUALIFIER, read_extrap3
from ranksight.counters.readers._files import damaged
from ranksight.counters.readers.extrap import Measurements

_HEAD = "experiment.json"
_VALUES, _INDEX = b"Extra-P VALUES\0\0", b"Extra-P INDEX\0\0\0"
_DAMAGES = (
    zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error, KeyError, ValueError, TypeError, AttributeError,
    EOFError, NotImplementedError, RecursionError, RuntimeError, IndexError, OverflowError, OSError,
)  # fmt: skip
"""What reading an archive, its JSON or an array raises where they are damaged."""


class ExtrapExperiment:
    """Reads what Extra-P saved; see the module."""

    text = "Extra-P 3 and 4 experiments (.extra-p): values of all repetitions, or medians"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is such an archive, or an experiment of Extra-P 3."""
        if QUALIFIER in head[:64]:
            return True
        if not head.startswith(b"PK\x03\x04"):
            return False
        try:
            with zipfile.ZipFile(path) as archive:
                return _HEAD in archive.namelist() and (path.suffix == ".extra-p" or b"Extra-P" in _part(archive, 4096))
        except _DAMAGES:
            return False

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one experiment; InputError where it is damaged, or larger than the limits."""
        regular_file(path)
        with readable(path), path.open("rb") as stream:
            version = 3 if QUALIFIER in stream.read(64) else 4
        try:
            if version == 3:
                measurements = read_extrap3(path)
            else:
                with zipfile.ZipFile(path) as archive:
                    measurements = _measurements(path, archive)
        except _DAMAGES as error:
            why = "lacks what it refers to" if isinstance(error, KeyError) else " ".join(str(error).split())[:200]
            raise damaged(f"{path} is no experiment of Extra-P {version}: {why}") from error
        yield from measurements.readings()


READERS.register("extrap-experiment")(ExtrapExperiment())


def _part(archive: zipfile.ZipFile, size: int, name: str = _HEAD) -> bytes:
    """The first bytes of a file of the archive, however large it says it is."""
    with archive.open(name) as stream:
        return stream.read(size)


def _measurements(path: Path, archive: zipfile.ZipFile) -> Measurements:
    text = _part(archive, limits.TEXT + 1)
    if len(text) > limits.TEXT:
        raise ValueError(f"{_HEAD} is larger than {limits.TEXT >> 20} MiB")
    content = json.loads(text)
    measurements, values = Measurements(path), _Values(archive)
    reduced = 0
    for kernel, metrics in content["measurements"].items():
        for metric, entries in metrics.items():
            for at, entry in enumerate(entries, 1):
                point = dict(zip(content["parameters"], entry["coordinate"], strict=True))
                repetitions = values.of(entry)
                reduced += repetitions is None and (entry.get("repetitions") or 1) > 1
                value = entry["median"] if repetitions is None else repetitions
                measurements.add(point, kernel, metric, value, f"{metric} of {kernel}, point {at}")
    if reduced:
        measurements.notes.append(
            f"{path.name}: {reduced} points hold the median of their repetitions alone: scatter is not known from them"
        )
    return measurements


class _Values:
    """The values of repetitions, which entries refer to by the number of a chunk and a place in it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._chunks: dict[int, tuple[io.BytesIO, memoryview]] = {}

    def of(self, entry: Mapping[str, Any]) -> list[float] | None:
        """The values of an entry; None where Extra-P did not keep them."""
        where = entry.get("values")
        if where is None:
            return None
        chunk, place = map(int, where)
        if chunk not in self._chunks:
            self._chunks = {chunk: (io.BytesIO(self._bytes(chunk, "vals", _VALUES)), self._index(chunk))}
        stream, index = self._chunks[chunk]
        stream.seek(index[place])
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("an array of another version")
        shape, _, dtype = npy.read_array_header_1_0(stream)
        size = math.prod(shape) * dtype.itemsize
        data = stream.read(size) if dtype.kind == "f" and size <= limits.TEXT else b""
        if not size or len(data) < size:
            raise ValueError("an array that breaks off, or not of numbers")
        return [float(value) for value in np.frombuffer(data, dtype)]

    def _index(self, chunk: int) -> memoryview:
        data = self._bytes(chunk, "indx", _INDEX)
        return memoryview(data[24 : 24 + 8 * ((len(data) - 24) // 8)]).cast("Q")

    def _bytes(self, chunk: int, kind: str, magic: bytes) -> bytes:
        data = _part(self._archive, limits.UNPACKED + 1, f"values/{chunk}.{kind}")
        if not data.startswith(magic) or len(data) > limits.UNPACKED:
            raise ValueError(f"values/{chunk}.{kind} is damaged, or too large")
        return data
