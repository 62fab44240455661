"""Mini-programs with the patterns of real ones, traced on few ranks and asked at many: counts alone are judged.

:data:`PROGRAMS` are below ``mini/``. Their runs and those that check them are kept where ``--cache FOLDER`` says, and
go on from there; ``RANKSIGHT_PROGRAMS=cg,sides`` names those to take.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pandas as pd

from benchmarks.real_programs import command, folder_of, sent
from benchmarks.settings import AS_ROOT, Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import read
from ranksight.model.fitted_model import Model

TITLE = "Mini-programs"
SOURCES = Path(__file__).with_name("mini")
RANKS, SIZES, LARGER = (1, 2, 4, 8), (16, 24, 32), 64
POWERS = ("cg",)
"""Programs that run on powers of two alone."""
FURTHER, LARGEST = (12, 16, 27, 32, 64), (16, 32)
"""Ranks asked at the largest size measured, and at twice that."""
PROGRAMS = (
    "stencil7",
    "stencil27",
    "cg",
    "pencils",
    "levels",
    "gathered",
    "sides",
    "chunks",
    "turns",
    "atoms",
    "blocks",
    "remote",
)
LAUNCH = ("mpirun", "--oversubscribe", "-n", "{ranks}")
SURE = 0.2
"""Error from which on an interval that does not hold the value is one too sure."""


def build(name: str, folder: Path) -> None:
    """Compile a program; a kernel that does nothing after a call stays in the traceback."""
    words = ["mpicc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", str(folder / name), str(SOURCES / f"{name}.c")]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"mpicc {name}.c: {done.stderr.strip()[-300:]}")


def measure(name: str, folder: Path, environment: dict[str, str]) -> tuple[Path, Path]:
    """The experiments that a program is learned from and checked with, measured where they are not yet."""
    build(name, folder)

    def runs(ranks: tuple[int, ...], sizes: tuple[int, ...], into: str) -> None:
        chosen = [str(count) for count in ranks if name not in POWERS or count & (count - 1) == 0]
        words = ["measure", "--ranks", ",".join(chosen), "--size", ",".join(map(str, sizes)), "--collector", "pmpi"]
        command(folder, [*words, "-o", into, "--quiet", "--", *LAUNCH, f"./{name}", "{size}"], environment)

    runs(RANKS, SIZES, f"{name}.exp")
    runs(FURTHER, SIZES[-1:], f"{name}.check.exp")
    runs(LARGEST, (LARGER,), f"{name}.check.exp")
    return folder / f"{name}.exp", folder / f"{name}.check.exp"


def judge(name: str, folder: Path, environment: dict[str, str]) -> pd.DataFrame:
    """Predicted against measured counts of a program; columns of :func:`benchmarks.real_programs.sent`."""
    learned, check = measure(name, folder, environment)
    model = folder / f"{name}.model.json"
    command(folder, ["fit", learned.name, "-o", model.name, "--force", "--quiet"], environment)
    table = sent(Model.load(model), read(check))
    table.to_csv(folder / f"{name}.errors.csv")
    return table


def row(name: str, table: pd.DataFrame) -> list[object]:
    """A row of the table: medians and shares in percent."""
    size = table["error"].abs()
    sure = ~table["inside"] & (size > SURE)
    shares = (size.median(), size.max(), size.isna().mean(), table.loc[size.notna(), "inside"].mean(), sure.mean())
    return [name, len(table), *(100 * float(share) for share in shares)]


def run(settings: Settings) -> str:
    """The table."""
    for needed in ("mpicc", "mpirun"):
        if shutil.which(needed) is None:
            raise Skipped(f"{needed} is not installed")
    chosen = [name for name in os.environ.get("RANKSIGHT_PROGRAMS", "").split(",") if name] or list(PROGRAMS)
    if settings.quick:
        chosen = chosen[:2]
    # Open MPI 4 has no other windows where a rank is alone.
    environment = {**AS_ROOT, "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_osc": "pt2pt"}
    tables: dict[str, pd.DataFrame] = {}
    skipped = []
    with folder_of(settings) as folder:
        for name in chosen:
            try:
                tables[name] = judge(name, folder, environment)
            except Skipped as reason:
                skipped.append(f"{name} ({reason})")
    if not tables:
        raise Skipped("; ".join(skipped))
    rows = [row(name, table) for name, table in tables.items()]
    rows.append(row("all", pd.concat(tables.values())))
    return (
        f"Programs of `benchmarks/mini`, measured on {', '.join(map(str, RANKS))} ranks and sizes "
        f"{', '.join(map(str, SIZES))}, asked on {', '.join(map(str, FURTHER))} ranks for the largest of these and on "
        f"{' and '.join(map(str, LARGEST))} for {LARGER}: messages and bytes of every operation of every kernel. Too "
        f"sure: outside of the 90 % interval and more than {SURE:.0%} off. All in percent.\n\n"
        + markdown(
            ["program", "counts", "median error", "worst", "not predicted", "in 90 % intervals", "too sure"], rows
        )
        + (f"\n\nNot measured: {'; '.join(skipped)}." if skipped else "")
    )
