"""LULESH on Ice Lake, LIKWID: instructions and cycles of 22 kernels on one core, edge lengths 30 to 150."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tasks import Task, make
from ranksight.core.reading import READERS

HELD = 150.0
METRICS = ("instructions", "cycles")


def load(data: Path) -> Iterator[Task]:
    """Edges 30, 60, 90, 120 train; 150 is held out."""
    pairs: dict[tuple[str, str], list[tuple[tuple[float], list[float]]]] = {}
    for file in sorted((data / "counters" / "lulesh_likwid_icelake" / "sizes").iterdir()):
        size = float(re.findall(r"_(\d+)\.csv", file.name)[0])
        for reading in READERS["likwid"].read(file):
            assert reading.counters is not None
            for row in reading.counters.to_dict("records"):
                for metric in METRICS:
                    pairs.setdefault((metric, str(row["kernel"])), []).append(((size,), [float(row[metric])]))
    for (metric, kernel), points in sorted(pairs.items()):
        points.sort()
        train = [pair for pair in points if pair[0][0] < HELD]
        held = [pair for pair in points if pair[0][0] == HELD]
        yield make(f"lulesh {metric} edge 30..120 -> 150", kernel, "lulesh", ("edge",), train, held, metric)
