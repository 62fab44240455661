"""What a distant point does to an extrapolation: phases of the bundled program, trained on few ranks, asked at 8 times.

Time is that of a simulated processor, which executes an instruction a cycle and waits for every load past the first
level, with the generic platform's caches and latencies. Each rank is simulated with caches of its own, so what is said
of 32 ranks holds on two cores as on 32, and repeats to the digit; processor time of 32 ranks that take turns on two
cores would hold the misses that they cause each other. What a real processor overlaps is not in it.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.analysis.phases.analysis import Analysis
    from ranksight.core.experiment import Experiment

TITLE = "Distant points"
TRAINED = (1, 2, 4)
ASKED = 32
SMALL = (1, 2, 4, 8, 16)
OPTIONS = ("--iterations", "6", "--steps", "2", "--lookup-table", "64Ki")


def run(settings: Settings) -> str:
    """A table a problem size: error of each phase at eight times the ranks, without and with its distant point."""
    for tool in ("mpicc", "mpirun", "valgrind"):
        if shutil.which(tool) is None:
            raise Skipped(f"{tool} is not installed")
    sizes = ((24, 12),) if settings.quick else ((48, 24),)
    parts = []
    for size, small in sizes:
        with tempfile.TemporaryDirectory() as name:
            parts.append(_one(Path(name), size, small))
    trained = ", ".join(map(str, TRAINED))
    return (
        f"`heat --total SIZE` trained on {trained} ranks, predicted for {ASKED} and simulated there: seconds of one "
        "occurrence of a phase on a rank, `a p^b` through the trained rank counts alone (plain), and with the point "
        "that a smaller size gives where the gate lets it (distant). Time is simulated: `distant.py` says why.\n\n"
        + "\n\n".join(parts)
    )


def _one(folder: Path, size: int, small: int) -> str:
    from ranksight.analysis.phases.analysis import analyse
    from ranksight.analysis.phases.calls import read_calls, traced
    from ranksight.analysis.phases.relate import relate
    from ranksight.analysis.phases.table import phase_table
    from ranksight.cli import main
    from ranksight.core.experiment import read
    from ranksight.examples.build import build
    from ranksight.model.resource.equation import Machine
    from ranksight.platforms import load

    command = [
        "--",
        "mpirun",
        "--oversubscribe",
        "-n",
        "{ranks}",
        str(build("heat", folder)),
        "--total",
        "{size}",
        *OPTIONS,
    ]
    both = ["--collector", "callgrind-intervals", "--collector", "pmpi-events", "--quiet"]

    def measure(name: str, ranks: tuple[int, ...], cells: int, *more: str) -> Experiment:
        given = ["--ranks", ",".join(map(str, ranks)), "--size", str(cells), "-o", str(folder / name)]
        if main(["measure", *more, *both, *given, *command]) != 0:
            raise Skipped("a run failed")
        return read(folder / name)

    measure("trained", TRAINED, size)
    trained = measure("trained", SMALL, small, "--distant")
    asked = measure("asked", (ASKED,), size)
    platform, workload = load("generic"), {"size": float(size)}
    said = analyse(trained, platform, workload=workload, clock="simulated")
    calls = [read_calls(asked, runs) for runs in traced(asked).values()]
    truth = phase_table(calls, relate(calls), "simulated", Machine.of(platform))
    return _table(said, truth, size)


def _table(said: Analysis, truth: pd.DataFrame, size: int) -> str:
    rows: list[list[object]] = []
    plain_sum = distant_sum = true_sum = 0.0
    for phase in said.phases:
        group = phase.groups[0]
        value = float(truth.loc[truth["phase"] == phase.number - 1, "computation"].mean())
        plain, distant = float(phase.computation(ASKED, plain=True)), float(phase.computation(ASKED))
        weight = float(phase.weight.at(ASKED))
        plain_sum, distant_sum, true_sum = (
            plain_sum + weight * plain,
            distant_sum + weight * distant,
            true_sum + weight * value,
        )
        assert group.table is not None
        rows.append(
            [
                f"{phase.number}: {phase.label}"[:60],
                weight,
                group.table.spread * 100,
                math.nan if group.distant is None else group.distant.measured_ranks,
                math.nan if group.distant is None else group.distant.ranks,
                value * 1e6,
                100 * (plain / value - 1),
                100 * (distant / value - 1),
            ]
        )
    total = [100 * (each / true_sum - 1) for each in (plain_sum, distant_sum)]
    rows.append(["all phases x weight", math.nan, math.nan, math.nan, math.nan, true_sum * 1e6, *total])
    head = [
        f"size {size}", "weight", "spread of instructions, %", "ranks of the smaller size", "stand for",
        f"us at {ASKED} ranks", "plain, % off", "distant, % off",
    ]  # fmt: skip
    return markdown(head, rows)
