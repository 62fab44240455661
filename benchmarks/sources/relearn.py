"""RELeARN: 14 regions over ranks p = 32..512 and neurons n = 5,000..9,000, two repetitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tasks import Task, make
from ranksight.counters.readers.extrap import read_text

HELD = 512.0
LEAST = 1e-9


def load(data: Path) -> Iterator[Task]:
    """All p = 512 held out, for every n."""
    file = data / "scaling" / "relearn_data.txt"
    found = read_text(file, file.read_text(encoding="utf-8"))
    kernels = list(dict.fromkeys(kernel for values in found.points.values() for kernel, _ in values))
    for kernel in kernels:
        pairs = [
            (tuple(value for _, value in point), values[kernel, "time"])
            for point, values in found.points.items()
            if (kernel, "time") in values
        ]
        if np.mean([np.mean(values) for _, values in pairs]) < LEAST:
            continue
        train = [pair for pair in pairs if pair[0][0] < HELD]
        held = [pair for pair in pairs if pair[0][0] == HELD]
        yield make("relearn p 32..256 -> 512", kernel, "relearn", ("p", "n"), train, held)
