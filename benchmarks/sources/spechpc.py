"""SPEChpc 2021 tiny on one Ice Lake node, LIKWID: strong scaling over 1 to 72 ranks, 18 cores a memory domain.

Trained inside the first domain, asked beyond it: bandwidth that runs out at 18 ranks doubles with the second domain,
which no function of the rank count alone can know. What counts here is that the intervals say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tasks import Task, make
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

DOMAIN = 18


def load(data: Path) -> Iterator[Task]:
    """Cycles of the slowest rank, from the memory group; files that hold access errors are left out."""
    pairs: dict[str, list[tuple[tuple[float], list[float]]]] = {}
    for file in sorted((data / "counters" / "spechpc_likwid_icelake" / "MEM_DP").iterdir()):
        program, ranks = re.findall(r"^(\w+)-\w+Rank(\d+)-", file.name)[0]
        try:
            for reading in READERS["likwid"].read(file):
                if reading.counters is not None and "cycles" in reading.counters:
                    cycles = float(reading.counters["cycles"].max())
                    pairs.setdefault(program, []).append(((float(ranks),), [cycles]))
        except InputError:
            continue
    for program, points in sorted(pairs.items()):
        points.sort()
        train = [pair for pair in points if pair[0][0] <= DOMAIN]
        held = [pair for pair in points if pair[0][0] > DOMAIN]
        yield make("spechpc ranks 1..18 -> 20..72", program, "spechpc", ("ranks",), train, held, "cycles")
