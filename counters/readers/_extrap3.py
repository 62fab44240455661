"""Binary experiments of Extra-P 3: objects one after another, each begun by its name.

Parameters, metrics, regions, call paths and coordinates come first, then Extra-P's comments, generators and models,
which are passed over, and last the points: records of one size. Of a point's repetitions a file holds their number,
least, greatest and median: of up to three that is all of them.

Source: Extra-P 4 ``extrap/fileio/file_reader/extrap3_experiment_reader.py``.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from ranksight.core import limits
from ranksight.core.files import read_bytes
from ranksight.counters.readers.extrap import Measurements

QUALIFIER = b"EXTRAP_EXPERIMENT"
_POINT = b"ExperimentPoint"
_STATISTICS = "qqdddddddddqq"
"""Coordinate, repetitions, mean with its interval, deviation, median with its interval, least, greatest, metric, call
path."""


class _Objects:
    """The content from its beginning on; ValueError where it breaks off."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.order = "<" if content[:2] == b"\1\0" else ">"
        self.at = 2

    def numbers(self, kinds: str) -> tuple[Any, ...]:
        form = struct.Struct(self.order + kinds)
        if self.at + form.size > len(self.content):
            raise ValueError("it breaks off")
        self.at += form.size
        return form.unpack_from(self.content, self.at - form.size)

    def text(self) -> str:
        (length,) = self.numbers("I")
        if length > limits.LINE or self.at + length > len(self.content):
            raise ValueError("it breaks off")
        self.at += length
        return self.content[self.at - length : self.at].decode("utf-8")


def read_extrap3(path: Path) -> Measurements:
    """Read an experiment; ValueError, KeyError or struct.error where it is damaged."""
    objects = _Objects(read_bytes(path, limits.TEXT))
    if objects.text().encode() != QUALIFIER:
        raise ValueError("it is of another format")
    objects.text()  # the version
    metrics, kernels, coordinates = _described(objects)
    measurements, reduced = Measurements(path), 0
    for at, record in enumerate(_points(objects), 1):
        coordinate, repetitions, *_, median, _, _, least, greatest, metric, kernel = record
        values = {1: [median], 2: [least, greatest], 3: [least, median, greatest]}.get(repetitions)
        reduced += values is None
        measurements.add(
            coordinates[coordinate], kernels[kernel], metrics[metric], values or [median], f"experiment point {at}"
        )
    if reduced:
        measurements.notes.append(
            f"{path.name}: {reduced} points hold the median of their repetitions alone: scatter is not known from them"
        )
    return measurements


def _described(objects: _Objects) -> tuple[dict[int, str], dict[int, str], dict[int, dict[str, float]]]:
    """Metrics, call paths and coordinates by their numbers; stops before the first object of another kind."""
    metrics, regions, paths = dict[int, str](), dict[int, str](), dict[int, str]()
    coordinates: dict[int, dict[str, float]] = {}
    letters, named = 0, set[str]()
    while True:
        begin = objects.at
        kind = objects.text()
        if kind not in ("Parameter", "Metric", "Region", "Callpath", "Coordinate"):
            objects.at = begin
            return metrics, paths, coordinates
        (number,) = objects.numbers("q")
        if kind == "Parameter":
            objects.text()
        elif kind == "Metric":
            metrics[number] = objects.text()
            objects.text()  # the unit
        elif kind == "Region":
            name, file = objects.text(), objects.text()
            (line,) = objects.numbers("q")
            tried = (name, f"{name} ({file}:{line})", f"{name} ({file}:{line}) #{number}")
            regions[number] = next((each for each in tried if each not in named), tried[-1])
            named.add(regions[number])
        elif kind == "Callpath":
            region, parent = objects.numbers("qq")
            paths[number] = regions[region] if parent == -1 else f"{paths[parent]}->{regions[region]}"
            letters += len(paths[number])
            if letters > limits.NAMES:
                raise ValueError(f"its call paths have more than {limits.NAMES} characters")
        else:
            (length,) = objects.numbers("q")
            coordinates[number] = {objects.text(): objects.numbers("d")[0] for _ in range(min(length, limits.LINE))}


def _points(objects: _Objects) -> list[tuple[Any, ...]]:
    """The records that the content ends with; none may be cut."""
    form = struct.Struct(f"{objects.order}I{len(_POINT)}s{_STATISTICS}")
    content = memoryview(objects.content)[objects.at :]
    count, begin = 0, struct.pack(f"{objects.order}I", len(_POINT)) + _POINT
    while (at := len(content) - (count + 1) * form.size) >= 0 and content[at : at + len(begin)] == begin:
        count += 1
    if bytes(content[: len(content) - count * form.size]).count(begin):
        raise ValueError("it breaks off within a point")
    return [record[2:] for record in form.iter_unpack(content[len(content) - count * form.size :])]
