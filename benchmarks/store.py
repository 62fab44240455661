"""The store: writing and reading back 1,000 runs x 200 kernels x 64 ranks x 8 metrics, in a temporary folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.table import markdown
from ranksight.core.experiment import Experiment, Run, read

TITLE = "Store"
RUNS, KERNELS, RANKS = 1000, 200, 64
METRICS = ("time", "cycles", "instructions", "loads", "loads_l1", "loads_l2", "loads_l3", "loads_mem")
SEED = 13


def write(folder: Path, runs: int) -> float:
    """Make an experiment of `runs` runs and return the seconds it took, without making the numbers."""
    generator = np.random.default_rng(SEED)
    experiment = Experiment.create(folder, "store", ("ranks", "size"))
    names = [f"kernel_{at}" for at in range(KERNELS)]
    took = 0.0
    for number in range(runs):
        table = pd.DataFrame({"kernel": np.repeat(names, RANKS), "rank": np.tile(np.arange(RANKS), KERNELS)})
        for metric in METRICS:
            table[metric] = generator.lognormal(10, 1, size=len(table))
        start = time.perf_counter()
        experiment.add(Run({"ranks": RANKS, "size": number // 5}, repetition=number % 5, collector="store"), table)
        took += time.perf_counter() - start
    return took


def reading(folder: str) -> dict[str, float]:
    """Read all counters back in this process: seconds, rows, bytes of the peak."""
    start = time.perf_counter()
    table = read(folder).counters()
    total = float(table["time"].sum())
    return {
        "seconds": time.perf_counter() - start,
        "rows": float(len(table)),
        "sum": total,
        "peak": peak_memory(),
    }


def run(settings: Settings) -> str:
    """Table of seconds and memory."""
    runs = RUNS // 10 if settings.quick else RUNS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "experiment"
        written = write(folder, runs)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        code = f"import json; from benchmarks.store import reading; print(json.dumps(reading({str(folder)!r})))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
    rows = [
        ["runs, kernels, ranks, metrics", f"{runs:,} x {KERNELS} x {RANKS} x {len(METRICS)}"],
        ["rows read", f"{found['rows']:,.0f}"],
        ["on disk, MB", size / 1e6],
        ["writing, s", written],
        ["reading, s", found["seconds"]],
        ["peak memory of the reading process, MB", found["peak"] / 1e6],
    ]
    return markdown(["what", "figure"], rows)
