"""LULESH on one Ice Lake node, LIKWID: weak scaling over 1, 8 and 27 ranks, asked for 64.

Without a description of the node: that its memory domains fill up and others follow is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tasks import Task, make
from ranksight.core.reading import READERS

HELD = 64.0
LEAST = 1e-3
"""Seconds that a kernel must have everywhere."""


def load(data: Path) -> Iterator[Task]:
    """Times of the slowest rank of each kernel."""
    pairs: dict[str, list[tuple[tuple[float], list[float]]]] = {}
    for file in sorted((data / "counters" / "lulesh_likwid_icelake" / "ranks").iterdir()):
        ranks = float(re.findall(r"_(\d+)\.csv", file.name)[0])
        for reading in READERS["likwid"].read(file):
            assert reading.counters is not None
            for kernel, rows in reading.counters.groupby("kernel"):
                pairs.setdefault(str(kernel), []).append(((ranks,), [float(rows["time"].max())]))
    for kernel, points in sorted(pairs.items()):
        points.sort()
        if min(values[0] for _, values in points) < LEAST or len(points) < 4:
            continue
        train, held = ([pair for pair in points if (pair[0][0] < HELD) == early] for early in (True, False))
        yield make("lulesh node 1, 8, 27 -> 64", kernel, "lulesh node", ("ranks",), train, held)
