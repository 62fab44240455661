"""SCREAM on Summit: timers of a climate model, trained on three node counts, asked for the largest.

Strong scaling from 1,024 to 4,608 nodes; the timers are nested. Those under a second somewhere are at the resolution
of what was printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

TRAIN_TO = 3072
LEAST = 1.0
"""Seconds that a timer must have everywhere."""


def load(data: Path) -> Iterator[Task]:
    """Timers of the slowest rank that were measured at all node counts."""
    table = pd.read_csv(data / "scaling" / "scream_summit.csv")
    counts = sorted(table["nodes"].unique())
    for kernel, series in table.groupby("kernel"):
        values = {nodes: list(group["wallmax"]) for nodes, group in series.groupby("nodes")}
        if sorted(values) != counts or min(map(min, values.values())) < LEAST:
            continue
        train, held = (
            [((float(nodes),), values[nodes]) for nodes in counts if (nodes <= TRAIN_TO) == early]
            for early in (True, False)
        )
        yield make("scream nodes 1024..3072 -> 4608", str(kernel), "scream", ("nodes",), train, held)
