"""Collectives of two MPI libraries over 32 to 512 ranks (medians of some 1,600 calls)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

HELD_FROM = 512


def load(data: Path) -> Iterator[Task]:
    """Median time of every operation and library: 512 ranks held out."""
    table = pd.read_csv(data / "scaling" / "extrap_mpi_collectives.csv")
    for (library, operation), series in table.groupby(["mpi", "variable"]):
        by_ranks = {int(ranks): list(group["median"]) for ranks, group in series.groupby("Ranks")}
        train = [((ranks,), by_ranks[ranks]) for ranks in sorted(by_ranks) if ranks < HELD_FROM]
        held = [((ranks,), by_ranks[ranks]) for ranks in sorted(by_ranks) if ranks >= HELD_FROM]
        if len(train) >= 4 and held:
            yield make("collectives 32..256 -> 512", f"{operation}, {library}", "collectives", ("ranks",), train, held)
