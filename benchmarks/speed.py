"""CPU time and peak memory of modelling many series, against Extra-P on the same numbers.

Every measurement runs in a process of its own, so that memory is that of the task alone.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.synthetic_functions import tasks_of
from benchmarks.table import markdown
from benchmarks.tasks import Array, stack
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.fitting.parallel import PIECE, fit_pieces
from ranksight.model.series.series import Series

TITLE = "Speed"
SEED, NOISE = 11, 0.1
CASES = {1: 10_000, 2: 1_000, 3: 100}
"""Number of models for each number of parameters."""
MANY = 100_000
DRAWN = 500
"""Distinct functions; more models repeat them with other noise."""


def values_of(parameters: int, count: int, seed: int = SEED) -> tuple[Array, Array, Array]:
    """Points (n, m), values (s, n, r) and targets (k, m) of `count` series."""
    tasks, _ = tasks_of(SEED, min(count, DRAWN), parameters, NOISE)
    values = stack(tasks)
    which = np.arange(count) % len(values)
    found = values[which]
    found[len(values) :] *= 1 + NOISE / 8 * np.random.default_rng(seed).uniform(-1, 1, size=found[len(values) :].shape)
    return tasks[0].points, found, tasks[0].targets


def series_of(parameters: int, count: int, seed: int = SEED) -> tuple[Series, Array]:
    """The same as the engine takes it, and the targets."""
    points, values, targets = values_of(parameters, count, seed)
    names = tuple(f"k{at}" for at in range(count))
    return Series(tuple("xyz"[:parameters]), points, values, names, ("time",) * count), targets


def measure(parameters: int, count: int) -> dict[str, float]:
    """Fit and predict in this process: CPU seconds without and with intervals, and peak memory in bytes."""
    series, targets = series_of(parameters, count)
    fit_series(series.select(np.arange(2))).predict(targets)
    start = time.process_time()
    fit_series(series, intervals=False)
    middle = time.process_time()
    fit_series(series).predict(targets)
    end = time.process_time()
    return {"choose": middle - start, "all": end - middle, "peak": peak_memory()}


def answered(series: Series, fitted: Fitted) -> int:
    """What becomes of a piece of very many series: the number of answers at 16 times the largest point."""
    return int((fitted.predict(16 * series.points[-1:]).status == 0).sum())


def measure_pieces(count: int, jobs: int) -> dict[str, float]:
    """Fit and predict `count` series of one parameter piece by piece: seconds on the clock and of CPU, peak memory."""
    pieces = (series_of(1, PIECE, seed)[0] for seed in range(max(1, count // PIECE)))
    wall = time.perf_counter()
    total = sum(fit_pieces(pieces, answered, jobs=jobs))
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "answered": total,
        "peak": peak_memory(),
    }


def _apart(call: str) -> dict[str, float]:
    code = f"import json; from benchmarks import speed; print(json.dumps(speed.{call}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def row_of_pieces(count: int, jobs: int) -> list[object]:
    """A row of the table of very many models."""
    found = _apart(f"measure_pieces({count}, {jobs})")
    what = f"{count:,} models, {jobs} process{'es' if jobs > 1 else ''}"
    return [what, found["wall"], found["cpu"], found["peak"] / 1e6]


def pieces_table(rows: list[list[object]]) -> str:
    """The table of very many models."""
    return (
        f"Very many models, fitted with intervals and predicted in pieces of {PIECE:,} made as they are needed "
        "(the CPU seconds hold the making of the numbers and the start of Python; memory is that of the first "
        "process):\n\n" + markdown(["what", "clock, s", "CPU, s", "peak memory, MB"], rows)
    )


def run(settings: Settings) -> str:
    """Tables of models, seconds and megabytes."""
    rows: list[list[object]] = []
    shrink = 10 if settings.quick else 1
    for parameters, count in CASES.items():
        count //= shrink
        found = _apart(f"measure({parameters}, {count})")
        what = f"{count:,} models, {parameters} parameter{'s' if parameters > 1 else ''}"
        rows.append([f"{what}, Ranksight", found["choose"], found["all"], found["peak"] / 1e6])
        if settings.extrap_python is not None:
            cpu, peak = _extrap(settings, parameters, count)
            rows.append([f"{what}, Extra-P", cpu, float("nan"), peak / 1e6])
    pieces = [row_of_pieces(count, jobs) for count, jobs in ((MANY // shrink, 1), (MANY // shrink, 2))]
    return (
        "CPU seconds of one process, after the first call; five points an axis, five repetitions, four targets; the "
        "time of Extra-P is that of its modeller alone. Peak memory is that of the whole process, series included.\n\n"
        + markdown(["what", "chosen, CPU s", "chosen with intervals and predicted, CPU s", "peak memory, MB"], rows)
        + "\n\n"
        + pieces_table(pieces)
    )


def _extrap(settings: Settings, parameters: int, count: int) -> tuple[float, float]:
    from benchmarks.methods.extrap import ExtraP, nulls

    assert settings.extrap_python is not None
    method = ExtraP(settings.extrap_python)
    points, values, targets = values_of(parameters, count)
    group: dict[str, object] = {
        "parameters": list("xyz"[:parameters]),
        "points": points.tolist(),
        "targets": targets.tolist(),
        "values": nulls(values),
    }
    (made,) = method.run([group])
    return float(made["cpu"]), method.peak  # type: ignore[arg-type]
