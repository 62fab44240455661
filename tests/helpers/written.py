"""Event traces written as the collectors would, of programs whose phases are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.experiment import Experiment, Run

Call = tuple[str, str, float, float, float]
"""Kernel, operation, bytes, seconds of computation before, instructions before."""


def sweeps(p: int, size: float, overhead: float = 0.0) -> Iterator[Call]:
    """Steps of which each holds an exchange and as many pipeline sweeps as the square grid has edges."""
    edge, work = round(p**0.5), size**3 / p
    slow = 1.0 if work < 100_000 else 2.0  # instructions take longer where the caches hold no more
    yield "setup", "Bcast", 8, 1e-3, 5e4
    for _ in range(12):
        i = 50 * work + overhead
        yield "exchange", "Irecv", 8 * work ** (2 / 3), i * slow * 1e-9, i
        yield "exchange", "Irecv", 8 * work ** (2 / 3), 0.0, 10
        yield "exchange", "Isend", 8 * work ** (2 / 3), 1e-6, 500
        yield "exchange", "Waitall", 0, 0.0, 20
        for _ in range(3 * edge):
            i = 30 * work / (3 * edge)
            yield "sweep", "Recv", 0, 0.0, 15
            yield "sweep", "Send", 8 * work / (3 * edge), i * slow * 1e-9, i
        yield "norm", "Allreduce", 8, 20 * work * slow * 1e-9, 20 * work
    yield "main", "Finalize", 0, 1e-5, 100


def write(
    folder: Path,
    runs: dict[tuple[int, float], Callable[[int, float], Iterator[Call]]],
    counted: bool = True,
    cores: int = 1000,
    inside: float = 1e-5,
) -> Experiment:
    """An experiment over ranks and size whose ranks all make the same calls."""
    experiment = Experiment.create(folder, "made", ["ranks", "size"])
    for (p, size), program in runs.items():
        calls = list(program(p, size))
        gap = np.array([call[3] for call in calls])
        begin = np.cumsum(gap) + inside * np.arange(len(calls))
        one = pd.DataFrame(
            {
                "thread": 0,
                "kernel": [call[0] for call in calls],
                "operation": [call[1] for call in calls],
                "comm_size": p,
                "begin": begin,
                "end": begin + inside,
                "bytes": [int(call[2]) for call in calls],
                "peer": pd.array([pd.NA] * len(calls), dtype="Int32"),
            }
        )
        configuration = {"ranks": float(p), "size": float(size)}
        events = pd.concat([one.assign(rank=rank) for rank in range(p)], ignore_index=True)
        environment = {"cores": str(cores)}
        experiment.add(Run(configuration, collector="pmpi-events", environment=environment), tables={"events": events})
        if counted:
            count = np.array([call[4] for call in calls])
            miss = np.where(gap * 1e9 > 1.5 * count, count / 36.0, 0.0)  # stalls that double the time at 40 - 4 cycles
            table = pd.DataFrame(
                {"number": np.arange(len(calls)), "operation": one["operation"], "instructions": count}
            )
            table = table.assign(loads_l1=count / 2, loads_l2=0.0, loads_l3=miss, loads_mem=0.0)
            intervals = pd.concat([table.assign(rank=rank) for rank in range(p)], ignore_index=True)
            run = Run(configuration, collector="callgrind-intervals", environment=environment)
            experiment.add(run, tables={"intervals": intervals})
    return experiment
