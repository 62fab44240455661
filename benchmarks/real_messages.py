"""Messages and bytes of programs that nobody here wrote, traced on 1 to 8 ranks and predicted on 16 and 32.

A trace takes seconds where a simulated count takes minutes, so this looks at every number of ranks. The programs are
those of :mod:`benchmarks.real_programs`, with its options.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.programs import Program
from benchmarks.real_programs import FURTHER, QUICK_FURTHER, command, folder_of, installed, sent
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import read
from ranksight.model.fitted_model import Model

TITLE = "Messages of real programs"
RANKS, QUICK_RANKS = tuple(range(1, 9)), (1, 2, 3, 4)
CLOSE = 0.1
"""Relative error up to which a prediction is close."""


def measure(program: Program, folder: Path, quick: bool) -> list[object]:
    """The row of a program."""
    case, environment = program.write(folder), dict(program.environment)
    *sizes, larger = program.sizes
    ranks, further = (QUICK_RANKS, QUICK_FURTHER) if quick else (RANKS, FURTHER)
    further = tuple(count for count in further if count <= program.most)
    name = f"{program.name}-traces{'-quick' if quick else ''}"
    command(folder, program.measure(ranks, tuple(sizes), case, Path(f"{name}.exp"), ("pmpi",)), environment)
    _, spent = command(folder, ["fit", f"{name}.exp", "-o", f"{name}.model.json", "--force", "--quiet"], environment)
    for more, size in ((further, sizes[-1]), (ranks[-1:], larger)):
        command(folder, program.measure(more, (size,), case, Path(f"{name}.check.exp"), ("pmpi",)), environment)
    found = sent(Model.load(folder / f"{name}.model.json"), read(folder / f"{name}.check.exp"))
    found.to_csv(folder / f"{name}.errors.csv")
    error = found["error"].abs()
    shares = (error.isna().mean(), (error <= CLOSE).mean(), found.loc[error.notna(), "inside"].mean())
    return [
        f"{program.name} ({program.language})",
        len(found),
        *(100 * float(x) for x in (error.median(), error.quantile(0.9), error.max(), *shares)),
        spent,
    ]


def run(settings: Settings) -> str:
    """The table."""
    rows, skipped, known = [], [], []
    with folder_of(settings) as folder:
        for program in installed(skipped):
            try:
                rows.append(measure(program, folder, settings.quick))
            except Skipped as reason:
                skipped.append(f"{program.name} ({reason})")
                continue
            if program.known:
                known.append(f"{program.name}: {program.known}.")
    if not rows:
        raise Skipped("; ".join(skipped) or "none is named")
    left = f"\n\nNot measured: {'; '.join(skipped)}." if skipped else ""
    ranks, further = ("1 to 4", "8 and 16") if settings.quick else ("1 to 8", "16 and 32")
    return (
        f"Programs of the distribution, traced on {ranks} ranks and three sizes, predicted on {further} ranks and, on "
        "the most traced, for a larger size: messages and bytes of each operation of each kernel, means over ranks, in "
        "percent of those traced there. CPU seconds of a fit.\n\n"
        + markdown(
            ["program", "values", "median error", "90 % below", "worst", "not predicted", "within 10 %",
             "in 90 % intervals", "fit, CPU s"], rows)
        + "".join(f"\n\n{text}" for text in known)
        + left
    )  # fmt: skip
