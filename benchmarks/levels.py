"""Loads by level at sizes and capacities that were not run, against simulation there.

Eight kernels (``memory.c``) run at :data:`SIZES`. They are asked at sizes between these and beyond, in the caches of
the runs and of other machines, and simulated there: the simulation is exact. Values are loads of the second level, the
third and memory that are a thousandth of the kernel's loads.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pandas as pd

from benchmarks.real_programs import command, folder_of
from benchmarks.settings import AS_ROOT, Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import read
from ranksight.core.metrics import LEVELS
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import on

TITLE = "Loads by level"
SOURCE = Path(__file__).with_name("memory.c")
SIZES, BETWEEN, BEYOND = (60, 90, 150, 240, 390), (75, 120, 190, 310), (520, 700)
MEASURED, OTHERS = "generic", ("broadwell-e5-2697v4", "milan-7713", "icelake-8360y")
LAUNCH = ("mpirun", "-n", "{ranks}", "./memory", "{size}")


def simulate(folder: Path, sizes: tuple[int, ...], platform: str, into: str, sample: str = "off") -> None:
    """Measure an experiment, where it is not yet; in full unless it is the one that is learned from."""
    words = ["measure", "--ranks", "1", "--size", ",".join(map(str, sizes)), "--sample", sample]
    command(
        folder,
        [*words, "--collector", "callgrind", "--platform", platform, "-o", into, "--quiet", "--", *LAUNCH],
        AS_ROOT,
    )


def judged(model: Model, folder: Path, sizes: tuple[int, ...]) -> pd.DataFrame:
    """Of each value of kernels of 1e5 instructions its error in percent, whether it is usable, and whether the interval
    holds it."""
    rows = []
    experiment = read(folder)
    for run in experiment.runs:
        size = run.configuration["size"]
        counters = experiment.table(run, "counters")
        if size not in sizes or counters is None:
            continue
        counted = counters.groupby("kernel", observed=True).sum(numeric_only=True)
        table = model.predict(ranks=1, size=size).table()
        for row in table[table["metric"].isin(LEVELS[1:])].itertuples():
            if row.kernel in counted.index and counted.at[row.kernel, "instructions"] > 1e5:
                true, loads = (float(counted.at[row.kernel, name]) for name in (row.metric, "loads"))
                if true > 1e-3 * loads:
                    inside = row.lower <= true <= row.upper
                    rows.append((row.kernel, 100 * abs(row.value / true - 1), row.status == "ok", inside))
    return pd.DataFrame(rows, columns=["kernel", "error", "usable", "inside"])


def run(settings: Settings) -> str:
    """The table."""
    if any(shutil.which(tool) is None for tool in ("mpicc", "mpirun", "valgrind")):
        raise Skipped("no MPI, or no valgrind")
    beyond = () if settings.quick else BEYOND
    lines: list[list[object]] = []
    with folder_of(settings) as folder:
        words = ["mpicc", "-g", "-O1", "-o", str(folder / "memory"), str(SOURCE), "-lm"]
        subprocess.run(words, check=True, capture_output=True)
        simulate(folder, SIZES, MEASURED, "memory.exp", "auto")
        fit = ["fit", "memory.exp", "--platform", MEASURED, "-o", "memory.model", "--all-kernels"]
        command(folder, [*fit, "--force", "--quiet"], AS_ROOT)
        model = Model.load(folder / "memory.model")
        simulate(folder, (*BETWEEN, *beyond), MEASURED, f"{MEASURED}.exp")
        tables = {"caches of the runs, between the sizes": judged(model, folder / f"{MEASURED}.exp", BETWEEN)}
        tables["caches of the runs, beyond the sizes"] = judged(model, folder / f"{MEASURED}.exp", beyond)
        for name in OTHERS[: 1 if settings.quick else None]:
            simulate(folder, (SIZES[1], *BETWEEN[1:]), name, f"{name}.exp")
            moved = on(model, name)
            tables[f"{name}, sizes of the runs"] = judged(moved, folder / f"{name}.exp", SIZES)
            tables[f"{name}, between the sizes"] = judged(moved, folder / f"{name}.exp", BETWEEN)
        every = pd.concat(tables.values())
        for title, table in {**tables, **dict(list(every.groupby("kernel"))), "all": every}.items():
            usable = table[table["usable"]]
            errors = usable["error"]
            figures = (errors.median(), errors.quantile(0.9), errors.max(), 100 * usable["inside"].mean())
            if len(table):
                lines.append([title, len(table), 100 * table["usable"].mean(), *map(float, figures)])
    head = ["what", "values", "usable, %", "median error, %", "nine of ten below, %", "largest, %", "in intervals, %"]
    return (
        f"Kernels at sizes {', '.join(map(str, SIZES))}; asked at {', '.join(map(str, (*BETWEEN, *beyond)))}. Errors "
        "and intervals are those of usable values.\n\n" + markdown(head, lines)
    )
