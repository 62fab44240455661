"""CPU time and peak memory of whole commands and of the engine, against Extra-P on the same numbers.

Every measurement runs in a process of its own, so that memory is that of the task alone. Inputs are generated
(:mod:`benchmarks.inputs`).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import inputs
from benchmarks.inputs import METRICS, values_of
from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.table import markdown
from benchmarks.tasks import Array
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series

TITLE = "Speed"
SEED = 11
CASES = {1: 10_000, 2: 1_000, 3: 100}
"""Number of models for each number of parameters."""
MANY = 100_000
MOST_EXTRAP = 1_000
"""Models up to which Extra-P's command is run."""
ROWS, SAMPLES = 1_000_000, 100_000
"""Of a table, and of the text of perf script."""


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


@dataclass(frozen=True)
class Used:
    """What a command took: CPU seconds, user and system, with its children; seconds on the clock; peak bytes."""

    cpu: float
    wall: float
    peak: float


def command(words: Sequence[str], cache: Path) -> Used:
    """Run a command line; compiled modules are kept in `cache`, as those of an installed program are.

    Raises
    ------
    RuntimeError
        When it fails.
    """
    surrounding = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    surrounding["PYTHONPYCACHEPREFIX"] = str(cache)
    with tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said, env=surrounding)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 4):  # 4: insufficient data for an answer
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)}: {said.read().decode()}")
    return Used(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024)


def commands(shrink: int, extrap_python: Path | None) -> list[list[object]]:
    """A row a whole command: what, CPU seconds, of Extra-P on the same file, seconds on the clock, peak memory in
    MB."""
    rows: list[list[object]] = []
    own = [sys.executable, "-m", "ranksight"]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "compiled"

        def row(what: str, words: Sequence[str], other: Sequence[str] = ()) -> None:
            made = [*own, *words, *(["--force", "--quiet"] if words[0] in ("import", "fit") else [])]
            used = command(made, cache)
            theirs = math.nan
            if other and extrap_python is not None:
                theirs = command([str(extrap_python), "-m", "extrap", *other], cache).cpu
            rows.append([what, used.cpu, theirs, used.wall, used.peak / 1e6])

        text, made, model = folder / "input", str(folder / "made.exp"), str(folder / "made.model")
        compile_modules(text, made, model, own, cache, extrap_python)
        for parameters, count in ((1, 1), (1, 1_000), (1, 10_000), (1, MANY), (2, 1_000), (3, 100)):
            count = max(1, count // shrink)
            what = f"{count:,} model{'s' if count > 1 else ''}, {parameters} parameter{'s' if parameters > 1 else ''}"
            inputs.extrap(text, parameters, count)
            row(f"import, {what}", ["import", "extrap", str(text), "-o", made])
            other = ["--text", str(text)] if count <= MOST_EXTRAP else []
            row(f"fit, {what}", ["fit", made, "--all-kernels", "-o", model], other)
            if count == MANY // shrink:
                row(f"fit, {what}, 2 processes", ["fit", made, "--all-kernels", "--jobs", "2", "-o", model])
            asked = [f"--{name}=128" for name in "xyz"[:parameters]]
            row(f"predict, {what}", ["predict", model, *asked])
        columns = ["--parameter", "ranks", "--kernel", "kernel", "--repetition", "repetition"]
        inputs.csv(text, ROWS // shrink)
        row(f"import csv, {ROWS // shrink:,} rows", ["import", "csv", str(text), *columns, "--metric=time", "-o", made])
        inputs.perf_script(text, SAMPLES // shrink)
        row(f"import perf script, {SAMPLES // shrink:,} samples", ["import", str(text), "--set", "ranks=4", "-o", made])
        kernels = 600 // shrink
        inputs.counters(text, kernels)
        metrics = [f"--metric={name}" for name in METRICS]
        of = f"{kernels} kernels of {len(METRICS)} metrics"
        row(f"import csv, {of}", ["import", "csv", str(text), *columns, *metrics, "-o", made])
        row(f"fit, {of}", ["fit", made, "-o", model])
        for verb in ("predict", "diagnose", "plan"):
            row(f"{verb}, {of}", [verb, model, "--ranks", "1024"])
        row(f"compare, {of}", ["compare", model, model, "--ranks", "1024"])
        row(f"report, {of}", ["report", model, "--force", "-o", str(folder / "page.html")])
    return rows


def compile_modules(
    text: Path, made: str, model: str, own: Sequence[str], cache: Path, extrap_python: Path | None
) -> None:
    """Run both programs once on one series, which compiles their modules."""
    inputs.extrap(text, 1, 1)
    command([*own, "import", "extrap", str(text), "-o", made, "--quiet"], cache)
    command([*own, "fit", made, "-o", model, "--quiet"], cache)
    command([*own, "predict", model, "--x=128"], cache)
    if extrap_python is not None:
        command([str(extrap_python), "-m", "extrap", "--text", str(text)], cache)


def _apart(call: str) -> dict[str, float]:
    code = f"import json; from benchmarks import speed; print(json.dumps(speed.{call}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


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
    load = os.getloadavg()
    whole = commands(shrink, settings.extrap_python)
    return (
        "CPU seconds of one process, after the first call; five points an axis, five repetitions, four targets; the "
        "time of Extra-P is that of its modeller alone. Peak memory is that of the whole process, series included.\n\n"
        + markdown(["what", "chosen, CPU s", "chosen with intervals and predicted, CPU s", "peak memory, MB"], rows)
        + f"\n\nWhole commands, from the start of Python on, modules compiled before, at a load of {load[0]:.1f} to "
        f"{os.getloadavg()[0]:.1f} processes; Extra-P's command reads the text and models it:\n\n"
        + markdown(["command", "CPU s", "Extra-P, CPU s", "clock, s", "peak memory, MB"], whole)
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
