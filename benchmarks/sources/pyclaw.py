"""PyClaw on Shaheen II: strong and weak scaling, 4 to 16,384 ranks in steps of eight, one run each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

HELD_FROM = 16384
COLUMNS = {"clawrun_s": "solver", "total_s": "total", "dynload_s": "dynamic loading"}


def load(data: Path) -> Iterator[Task]:
    """Trained on four points, 4 to 2,048 ranks; asked for 16,384. The solver alone is a split of its own."""
    table = pd.read_csv(data / "scaling" / "pyclaw_shaheen2.csv")
    for mode, series in table.groupby("mode"):
        for column, name in COLUMNS.items():
            pairs = [((ranks,), [value]) for ranks, value in zip(series["ranks"], series[column], strict=True)]
            train = [pair for pair in pairs if pair[0][0] < HELD_FROM]
            held = [pair for pair in pairs if pair[0][0] >= HELD_FROM]
            part = "solver" if name == "solver" else "start-up"
            yield make(f"pyclaw {mode} {part} 4..2048 -> 16384", name, "pyclaw", ("ranks",), train, held)
