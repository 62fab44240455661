"""LULESH, weak scaling over 27 to 343 ranks, Caliper: times of kernels and MPI calls, one run each, not monotone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.tasks import Task, make
from ranksight.core.reading import READERS

HELD = 343.0
LEAST = 1e-3
"""Seconds that a kernel must take in every run."""


def load(data: Path) -> Iterator[Task]:
    """Mean exclusive time over ranks: 27, 64, 125, 216 ranks train; 343 is held out."""
    pairs: dict[str, list[tuple[tuple[float], list[float]]]] = {}
    for file in sorted((data / "scaling" / "lulesh_caliper_weak").iterdir()):
        for read in READERS["caliper"].read(file):
            reading = read.per_rank(file.name)
            assert reading.counters is not None
            for row in reading.counters.to_dict("records"):
                point = (float(reading.configuration["ranks"]),)
                pairs.setdefault(str(row["kernel"]), []).append((point, [float(row["time"])]))
    for kernel, points in sorted(pairs.items()):
        points.sort()
        train = [pair for pair in points if pair[0][0] < HELD]
        held = [pair for pair in points if pair[0][0] == HELD]
        if len(train) == 4 and held and min(value for _, (value,) in points) >= LEAST:
            yield make("lulesh weak 27..216 -> 343", kernel, "lulesh weak", ("ranks",), train, held)
