"""What simulated counts cost, and how far those of a part of a run, or of some of its ranks, are from those of all.

The bundled program, one that converges (``converging.c``), and LAMMPS where it is installed, on one rank, which waits
for no other: waiting takes as much processor time as the machine is busy. The cost is processor time of ``ranksight
measure --collector callgrind`` over the mean of the plain runs before and after it, with the package's bytecode in
place, as where it is installed. *Callgrind twice* is what three levels of caches took before all were simulated at once
and of a part of the run. The time left is what a campaign
would print at a quarter of its runs, over the time that it then took, both as processor time over the cores that the
ranks use. Kernels are those of 1 % of a rank's
instructions; loads of a level count where they are a thousandth of the kernel's loads. Ranks by class are those of the
bundled program on 12 ranks, which a grid of 3 x 2 x 2 places at its corners and between them. A second simulation of
all ranks shows what of the differences is that of two runs: messages come from other places in memory. *Inside* are
values that differ from the full simulation by less than twice the error that the run states, or than twice 0.1 %.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tracer_overhead import MELT
from ranksight.counters.spread import MATTERS

TITLE = "Cost of simulated counts"
METRICS = ("visits", "instructions", "loads", "stores", "loads_l1", "loads_l2", "loads_l3", "loads_mem")
CONVERGING = Path(__file__).with_name("converging.c")
_RANKS = ["mpirun", "--oversubscribe", "-n", "2"]
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(settings: Settings) -> str:
    """The tables."""
    if any(shutil.which(tool) is None for tool in ("mpicc", "mpirun", "valgrind")):
        raise Skipped("no MPI, or no valgrind")
    from ranksight.examples.build import build

    before_all = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        heat = str(build("heat", folder))
        programs = {f"bundled, {steps} steps": [heat, "--n", "24", "--steps", str(steps)] for steps in (200, 2000)}
        if settings.quick:
            programs = {"bundled, 20 steps": [heat, "--n", "16", "--steps", "20"]}
        else:
            words = ["mpicc", "-g", "-O2", "-o", str(folder / "converging"), str(CONVERGING), "-lm"]
            subprocess.run(words, check=True, capture_output=True)
            programs["converging, 683 turns"] = [str(folder / "converging"), "400", "0.001"]
        if not settings.quick and shutil.which("lmp") is not None:
            (folder / "in.melt").write_text(MELT.replace("20", "6"), encoding="ascii")
            variables = ["-var", "steps", "1000", "-var", "x", "1"]
            programs["LAMMPS, 1,000 steps"] = ["lmp", "-in", str(folder / "in.melt"), "-log", "none", *variables]
        _measure(folder / "first", [heat, "--n", "8", "--steps", "2"], "auto")  # compiles what is compiled once
        rows: list[list[object]] = []
        errors: list[list[object]] = []
        for at, (title, command) in enumerate(programs.items()):
            alone = [*_RANKS[:-1], "1", *command]
            before, part = _seconds(alone), folder / f"part{at}"
            spent = _measure(part, command, "auto")
            plain = (before + _seconds(alone)) / 2
            row: list[object] = [title, plain, spent / plain, "", ""]
            if "2000" not in title:
                row[3] = _measure(folder / f"whole{at}", command, "off") / plain
                row[4] = _callgrind_twice(command) / plain
                errors += [[title, *line] for line in _errors(part, folder / f"whole{at}")]
            rows.append(row)
        few, every, again = (folder / name for name in ("few", "every", "again"))
        command = [heat, "--n", "16", "--steps", "20" if settings.quick else "100"]
        seconds = [_measure(few, command, "auto", "12", "auto"), _measure(every, command, "auto", "12")]
        _measure(again, command, "auto", "12")
        for title, other in (("bundled, 12 ranks by class", few), ("the same, all ranks twice", again)):
            errors += [[title, *line] for line in _errors(other, every)]
        load = f"At a load of {before_all:.1f} to {os.getloadavg()[0]:.1f} processes."
        saved = f"{load} Processor time with ranks by class over that with all ranks: {seconds[0] / seconds[1]:.2f}."
        left = "" if settings.quick else _left(folder / "left", [heat, "--n", "{size}", "--steps", "200"])
        cost = markdown(["program", "plain run, CPU s", "part, times it", "all, times it", "callgrind twice"], rows)
        head = ["program", "metric", "values", "median, %", "largest, %", "inside, %"]
        return f"{cost}\n\n{saved}{left}\n\n{markdown(head, errors)}"


def _seconds(command: Sequence[str]) -> float:
    """Processor seconds that a command and all that it starts take."""
    before = _spent(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **_ROOT, "PYTHONPATH": str(ROOT.parent)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return _spent(resource.RUSAGE_CHILDREN) - before


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _measure(folder: Path, command: Sequence[str], sample: str, ranks: str = "1", by_class: str = "off") -> float:
    part = ["--sample", sample, "--sample-ranks", by_class]
    options = ["--collector", "callgrind", *part, "-q", "--ranks", ranks, "-o", str(folder)]
    launch = [*_RANKS[:-1], "{ranks}", *command]
    return _seconds([sys.executable, "-m", "ranksight", "measure", *options, "--", *launch])


def _callgrind_twice(command: Sequence[str]) -> float:
    """Processor seconds of callgrind with two last levels, of which the second counts dirty lines."""
    tool = ["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"]
    launch = [*_RANKS[:-1], "1", *tool]
    return _seconds([*launch, *command]) + _seconds([*launch, "--simulate-wb=yes", *command])


def _left(folder: Path, command: Sequence[str]) -> str:
    """The time left at a quarter of a campaign over what it then took, in a sentence."""
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.campaign.launching import Template
    from ranksight.campaign.measuring import Plan, measure
    from ranksight.cli import _progress
    from ranksight.cli._adapting import sampled
    from ranksight.core.experiment import Experiment
    from ranksight.core.run import Run

    took: list[tuple[Run, float]] = []
    begun = [0.0]

    def watch(run: Run, what: str) -> None:
        now = _spent(resource.RUSAGE_CHILDREN) + _spent(resource.RUSAGE_SELF)
        if what == "done":
            took.append((run, (now - begun[0]) / min(run.configuration["ranks"], _progress.cores())))
        begun[0] = now

    os.environ.update(_ROOT)
    collectors = {name: COLLECTORS[name] for name in ("callgrind", "perf-clock", "pmpi")}
    collectors = {name: each for name, each in collectors.items() if each.available().ok}
    grid = {"ranks": (1.0, 2.0, 4.0), "size": (12.0, 16.0, 24.0)}
    plan = Plan(Template((*_RANKS[:-1], "{ranks}", *command)), grid, 1, sampled(collectors, "auto", (), False))
    measure(Experiment.create(folder, "left", list(grid)), plan, watch)
    quarter = len(took) // 4
    ahead = sum(_progress.seconds_of(took[:quarter], [run for run, _ in took[quarter:]], _progress.cores()))
    then = sum(seconds for _, seconds in took[quarter:])
    return (
        f" Time left at a quarter of {len(took)} runs ({', '.join(plan.collectors)}; 1, 2 and 4 ranks, three sizes): "
        f"{ahead / then:.2f} times the {then:.0f} s that they took."
    )


def _errors(part: Path, whole: Path) -> list[list[object]]:
    """Of each metric the number of values, the median and largest difference from those of the whole run, and the share
    of the values that differ by less than twice their error and rounding."""
    one, other = (
        pd.read_parquet(next(folder.glob("runs/*/counters.parquet"))).set_index(["kernel", "rank"])
        for folder in (part, whole)
    )
    stated = _stated(part, one)
    heavy = other.index[other["instructions"] > 0.01 * other["instructions"].groupby("rank").transform("sum")]
    one, other = one.reindex(heavy).fillna(0.0), other.loc[heavy]
    lines: list[list[object]] = []
    for metric in METRICS:
        least = 0.0 if metric == "visits" else 1e-3 * other["loads"]
        error = 100 * (one[metric] / other[metric] - 1).where(other[metric] > least).dropna().abs()
        inside = ((one[metric] - other[metric]).abs() <= 2 * stated[metric].reindex(heavy).fillna(0.0))[error.index]
        if len(error):
            lines.append([metric, len(error), float(error.median()), float(error.max()), 100 * float(inside.mean())])
    return lines


def _stated(part: Path, counts: pd.DataFrame) -> pd.DataFrame:
    """Errors of the counts of a run by its table of samples; where it has none, those that do not matter."""
    stated = MATTERS * counts[list(METRICS)]
    file = next(part.glob("runs/*/sampling.parquet"), None)
    if file is not None:
        samples = pd.read_parquet(file)
        samples["error"] = samples["worth"] * samples["samples"] ** 0.5
        errors = samples.pivot(index=["kernel", "rank"], columns="metric", values="error").reindex(counts.index)
        stated = errors.reindex(columns=stated.columns).clip(lower=stated).fillna(stated)
    return stated
