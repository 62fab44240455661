"""CPU time and peak memory of modelling many series, against Extra-P on the same numbers.

Every measurement runs in a process of its own, so that memory is that of the task alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.synthetic_functions import tasks_of
from benchmarks.table import markdown
from benchmarks.tasks import Array, stack

TITLE = "Speed"
SEED, NOISE = 11, 0.1
CASES = {1: (10_000, 0), 2: (1_000, 0), 3: (100, 0)}
"""Number of models for each number of parameters."""
DRAWN = 500
"""Distinct functions; more models repeat them with other noise."""


def values_of(parameters: int, count: int) -> tuple[Array, Array, Array]:
    """Points (n, m), values (s, n, r) and targets (k, m) of `count` series."""
    tasks, _ = tasks_of(SEED, min(count, DRAWN), parameters, NOISE)
    values = stack(tasks)
    generator = np.random.default_rng(SEED)
    which = np.arange(count) % len(values)
    scatter = 1 + NOISE / 8 * generator.uniform(-1, 1, size=(count, *values.shape[1:]))
    return (
        tasks[0].points,
        np.where(np.arange(count)[:, None, None] < len(values), 1.0, scatter) * values[which],
        tasks[0].targets,
    )


def measure(parameters: int, count: int, jobs: int = 1) -> dict[str, float]:
    """Fit and predict in this process: CPU seconds of choosing, of the intervals, and peak memory in bytes."""
    from ranksight.model.fitting import fit_series
    from ranksight.model.series import Series

    points, values, targets = values_of(parameters, count)
    names = tuple(f"k{at}" for at in range(count))
    series = Series(tuple("xyz"[:parameters]), points, values, names, ("time",) * count)
    fit_series(series.select(np.arange(min(2, count))), space="default").predict(targets)
    wall, start = time.perf_counter(), time.process_time()
    fitted = fit_series(series, space="default", jobs=jobs)
    middle = time.process_time()
    fitted.predict(targets)
    end = time.process_time()
    return {
        "choose": middle - start,
        "all": end - start,
        "wall": time.perf_counter() - wall,
        "peak": peak_memory(),
    }


def _apart(parameters: int, count: int, jobs: int = 1) -> dict[str, float]:
    code = (
        f"import json; from benchmarks.speed import measure; print(json.dumps(measure({parameters}, {count}, {jobs})))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(settings: Settings) -> str:
    """Table of models, seconds and megabytes."""
    rows: list[list[object]] = []
    shrink = 10 if settings.quick else 1
    for parameters, (count, _) in CASES.items():
        count //= shrink
        found = _apart(parameters, count)
        rows.append(
            [
                f"{count:,} models, {parameters} parameters, Ranksight",
                found["choose"],
                found["all"],
                found["peak"] / 1e6,
            ]
        )
        if settings.extrap_python is not None:
            cpu, peak = _extrap(settings, parameters, count)
            rows.append([f"{count:,} models, {parameters} parameters, Extra-P", cpu, float("nan"), peak / 1e6])
    if not settings.quick:
        for count in (100_000, 1_000_000):
            found = _apart(1, count)
            rows.append(
                [f"{count:,} models, 1 parameter, Ranksight", found["choose"], found["all"], found["peak"] / 1e6]
            )
        found = _apart(1, 100_000, jobs=2)
        rows.append(
            [
                f"100,000 models, 1 parameter, --jobs 2: {found['wall']:.1f} s on the clock",
                float("nan"),
                float("nan"),
                float("nan"),
            ]
        )
    return (
        "CPU seconds, one process, after the first call; five points an axis, five repetitions, four targets; the time "
        "of Extra-P is that of its modeller alone. Peak memory is that of the whole process.\n\n"
        + markdown(["what", "choose, CPU s", "and intervals, CPU s", "peak memory, MB"], rows)
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
