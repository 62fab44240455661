"""Programs that nobody here wrote, measured on few ranks and predicted on more, and for a larger size.

Those of the distribution that are installed are taken (:mod:`benchmarks.programs`). Counts
are callgrind's and the tracer's, which no load of the machine changes. ``--cache FOLDER`` keeps the experiments, and
``RANKSIGHT_PROGRAMS=lammps,hpcc`` names those to take.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.programs import COLLECTED, PROGRAMS, Program
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import WHOLE, Experiment, read
from ranksight.model.application.agreement import message_series
from ranksight.model.fitted_model import Model
from ranksight.model.series.folding import OTHERS
from ranksight.model.uncertainty.forecast import INSUFFICIENT
from ranksight.reports.validation import validate

TITLE = "Real programs"
RANKS, FURTHER = (1, 2, 4, 8), (16, 32)
TRACED = (3, 6)
"""Numbers of ranks that are traced only: two ranks along a dimension do not show whether it is periodic."""
QUICK_RANKS, QUICK_FURTHER = (1, 2, 4), (8, 16)
LARGE = 5e-3
"""Share of the instructions from which a kernel's error counts."""
COUNTS = ("instructions", "loads", "stores")
COUNTED = ("callgrind", "pmpi")
"""Collectors that check predictions; simulating the most ranks would take longer than all else."""
VERBS = ("measure", "fit", "predict", "diagnose", "plan", "report")


@contextlib.contextmanager
def folder_of(settings: Settings) -> Iterator[Path]:
    """Where programs are measured: below the cache where there is one."""
    if settings.cache is not None:
        folder = settings.cache.absolute() / "real_programs"
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def command(folder: Path, words: list[str], environment: dict[str, str]) -> tuple[str, float]:
    """Run a line of the command line; what it printed, and its CPU seconds with its children's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = os.pathsep.join(part for part in (str(ROOT.parent), os.environ.get("PYTHONPATH", "")) if part)
    done = subprocess.run(
        [sys.executable, "-m", "ranksight", *words], cwd=folder, env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        raise Skipped(f"ranksight {words[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, spent


def measure(program: Program, folder: Path, quick: bool) -> tuple[list[object], list[object]]:
    """The rows of a program in the table of errors and in that of times."""
    case, environment = program.write(folder), dict(program.environment)
    *sizes, larger = program.sizes
    ranks, further = (QUICK_RANKS, QUICK_FURTHER) if quick else (RANKS, FURTHER)
    further = tuple(count for count in further if count <= program.most)
    name, seconds = f"{program.name}{'-quick' if quick else ''}", {}
    words = {
        "measure": program.measure(ranks, tuple(sizes), case, Path(f"{name}.exp")),
        "trace": program.measure(TRACED, tuple(sizes), case, Path(f"{name}.exp"), ("pmpi",)),
        "fit": ["fit", f"{name}.exp", "-o", f"{name}.model.json", "--force", "--quiet"],
        "predict": ["predict", f"{name}.model.json", "--ranks", ",".join(map(str, further)), "--size", str(larger)],
        "diagnose": ["diagnose", f"{name}.model.json"],
        "plan": ["plan", f"{name}.exp", "--ranks", str(further[-1]), "--size", str(larger)],
        "report": ["report", f"{name}.model.json", "-o", f"{name}.html", "--force"],
    }
    for verb in words:
        text, seconds[verb] = command(folder, words[verb], environment)
        (folder / f"{name}.{verb}.txt").write_text(text, encoding="utf-8")
    seconds["measure"] += seconds.pop("trace")
    check = Path(f"{name}.check.exp")
    at = ((further[:1], sizes[-1], COUNTED), (further, sizes[-1], ("pmpi",)), (ranks[-1:], larger, COUNTED))
    for more, size, collected in at:
        command(folder, program.measure(more, (size,), case, check, collected), environment)
    file = folder / f"{name}.model.json"
    model, held = Model.load(file), read(folder / check)
    found = errors(model, held)
    pd.concat(found).to_csv(folder / f"{name}.errors.csv")
    kept = len(set(model.fitted.kernels) - {WHOLE, OTHERS})
    row: list[object] = [f"{program.name} ({program.language})", kept, 100 * attributed(held)]
    row += [*_summary(found["kernels"]), *_summary(found["operations"])]
    every = pd.concat(found.values())
    row += [100 * float(every["error"].isna().mean()), 100 * float(every.loc[every["error"].notna(), "inside"].mean())]
    return row, [program.name, *(seconds[verb] for verb in VERBS), file.stat().st_size / 1e6]


def errors(model: Model, held: Experiment) -> dict[str, pd.DataFrame]:
    """Predicted against measured: counts of the kernels with :data:`LARGE` of the instructions, and what is sent.

    Columns: ``kernel``, ``metric``, ``error`` (relative, NaN where nothing is predicted) and ``inside``, whether the
    interval holds it.
    """
    table = validate(model, held).table
    kernels = ~table["kernel"].isin([WHOLE, OTHERS])
    heavy = table[(table["metric"] == "instructions") & (table["share"] >= LARGE) & kernels]
    mine = table[table["metric"].isin(COUNTS) & table["kernel"].isin(heavy["kernel"].unique())]
    at = [*model.parameters, "kernel"]
    mine = mine.merge(heavy[at].drop_duplicates(), on=at)
    return {"kernels": mine[["kernel", "metric", "error", "inside"]], "operations": sent(model, held)}


def sent(model: Model, held: Experiment) -> pd.DataFrame:
    """Messages and bytes of every operation of every kernel that sends, as columns of :func:`errors`."""
    communication, series = model.equation.communication, message_series(model.view(held))
    columns = ["kernel", "metric", "error", "inside"]
    if not communication or series is None:
        return pd.DataFrame(columns=columns)
    said = communication.functions.predict(series.points)
    values = np.nanmedian(series.values, axis=2)
    rows = []
    for at, key in enumerate(zip(series.kernels, series.metrics, strict=True)):
        row = communication.functions.rows.get(key)
        for k in np.flatnonzero(np.isfinite(values[at]) & (values[at] > 0)).tolist():
            if row is None or said.status[row, k] in INSUFFICIENT:
                rows.append((*key, np.nan, False))
                continue
            value, lower, upper = (float(part[row, k]) for part in (said.value, said.lower, said.upper))
            inside = lower <= values[at, k] * (1 + 1e-9) and upper >= values[at, k] * (1 - 1e-9)
            rows.append((*key, value / values[at, k] - 1, inside))
    return pd.DataFrame(rows, columns=columns)


def _summary(found: pd.DataFrame) -> tuple[float, float]:
    """Median and worst of the absolute error, in percent."""
    size = found["error"].abs()
    return (100 * float(size.median()), 100 * float(size.max())) if len(size) else (float("nan"), float("nan"))


def attributed(experiment: Experiment) -> float:
    """Least share, over the runs, of the program's instructions, MPI's own apart, that are in kernels."""
    shares = []
    for run in experiment.runs:
        table = experiment.table(run, "left_out")
        if table is not None and len(table := table[table["metric"] == "instructions"]):
            kept, other = float(table["kept"].sum()), float(table["other"].sum())
            shares.append(kept / (kept + other))
    return min(shares, default=float("nan"))


def installed(skipped: list[str]) -> Iterator[Program]:
    """The programs to take; those that are not installed are added to `skipped`, with what they lack."""
    chosen = [name for name in os.environ.get("RANKSIGHT_PROGRAMS", "").split(",") if name]
    for program in PROGRAMS:
        if chosen and program.name not in chosen:
            continue
        if missing := program.missing():
            skipped.append(f"{program.name} ({missing} not installed)")
        else:
            yield program


def run(settings: Settings) -> str:
    """The tables."""
    ranks, further = (QUICK_RANKS, QUICK_FURTHER) if settings.quick else (RANKS, FURTHER)
    rows, times, skipped, known = [], [], [], []
    with folder_of(settings) as folder:
        for program in installed(skipped):
            try:
                row, each = measure(program, folder, settings.quick)
            except Skipped as reason:
                skipped.append(f"{program.name} ({reason})")
                continue
            except Exception:
                traceback.print_exc()
                skipped.append(f"{program.name} (a fault: see above)")
                continue
            if program.known:
                known.append(f"{program.name}: {program.known}.")
            rows.append(row)
            times.append(each)
    if not rows:
        raise Skipped("; ".join(skipped) or "none is named")
    left = f"\n\nNot measured: {'; '.join(skipped)}." if skipped else ""
    return (
        f"Programs of the distribution, measured with {', '.join(COLLECTED)} on {', '.join(map(str, ranks))} ranks and "
        f"several sizes, traced on {' and '.join(map(str, TRACED))} ranks as well, predicted on "
        f"{' and '.join(map(str, further))} ranks (counters on {further[0]}), and on {ranks[-1]} for a larger size, "
        "and measured there. "
        f"Instructions, loads and stores of kernels with {LARGE:.1%} of the instructions or more; messages and bytes "
        "of each operation of each kernel. All in percent.\n\n"
        + markdown(
            ["program", "kernels", "instructions kept", "counts: median error", "worst", "sent: median error", "worst",
             "not predicted", "in 90 % intervals"], rows)
        + "".join(f"\n\n{text}" for text in known)
        + "\n\nCPU seconds of each verb, with the program's own:\n\n"
        + markdown(["program", *VERBS, "model, MB"], times)
        + left
    )  # fmt: skip
