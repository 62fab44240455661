"""A program of known behaviour, with a kernel whose name would break pages that do not escape it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core import places
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'
SIZES = (100, 200)
KERNELS = {
    "steady": lambda p, n: 1e-4 * n,
    HOSTILE: lambda p, n: 2e-4 * p,
    "$x_1$ {{ 7*7 }}": lambda p, n: 5e-4 + 0 * p,
}
"""Seconds per rank: the hostile one overtakes the steady one at n / 2 ranks, and the third nowhere."""


def write(path: Path, ranks: tuple[int, ...], sizes: tuple[int, ...] = SIZES, repetitions: int = 1) -> Experiment:
    """Measure the program."""
    experiment = Experiment.create(path, "known <program>", ["ranks", "size"])
    for p in ranks:
        for n in sizes:
            for repetition in range(repetitions):
                rows = [
                    {"kernel": kernel, "rank": rank, "time": time(p, n), "instructions": 1e9 * time(p, n), "visits": 10}
                    for kernel, time in KERNELS.items()
                    for rank in range(p)
                ]
                run = Run(
                    {"ranks": p, "size": n},
                    repetition=repetition,
                    collector="made-up",
                    command=("mpirun", "-n", str(p), "./known", "</script><b>"),
                    environment={"host": "node<1>", "cores": "64"},
                    provenance={"time": "measured", "instructions": "measured", "visits": "measured"},
                )
                peers = pd.DataFrame(
                    {"rank": range(p), "peer": np.roll(range(p), 1), "operation": "Isend", "count": 3, "bytes": 300.0}
                )
                defined = places.tables_of([("steady", "src/<heat>.c", 12), (HOSTILE, "???", 0)])
                experiment.add(run, pd.DataFrame(rows), tables={"peers": peers, **defined})
    return experiment


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """The program measured at 1 to 16 ranks."""
    return write(tmp_path_factory.mktemp("known") / "exp", (1, 2, 4, 8, 16))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """The program measured at 32 ranks, which the model does not know."""
    return write(tmp_path_factory.mktemp("fresh") / "exp", (32,))


@pytest.fixture(scope="session")
def model(known: Experiment) -> Model:
    """The model of the program."""
    return assemble(known)[0]
