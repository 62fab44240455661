"""A program of many functions, as molecular dynamics or a solver library has them: time of the verbs, and what is kept.

The experiment is made up: functions whose cost falls off as in a profile of LAMMPS, a few of which take most of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import ROOT, Settings
from benchmarks.table import markdown
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fitted_model import Model
from ranksight.model.series.folding import OTHERS, select

TITLE = "Many kernels"
KERNELS, SENDING = 600, 30
SEED = 5
RANKS, SIZES = (1, 2, 4, 8), (8, 12, 16)
TAIL = 1.8
"""Exponent with which the cost of a function falls with its place in the order of costs."""
CALLS = 2e9
"""Instructions of the program for each cell of the smallest size."""
PERIOD = 1e-3
LARGE = 5e-3
"""Share of a metric from which a kernel must not be lost."""
COMMANDS = {
    "fit": ("fit", "first.exp", "-o", "first.model.json", "--force", "--quiet"),
    "fit of all kernels": ("fit", "first.exp", "-o", "all.model.json", "--force", "--quiet", "--all-kernels"),
    "plan": ("plan", "first.exp", "--ranks", "64", "--size", "32"),
    "compare": ("compare", "first.exp", "second.exp"),
}


def write(path: Path, kernels: int = KERNELS, sending: int = SENDING, change: float = 1.0) -> Experiment:
    """Write the experiment: counts of every kernel, sampled times and the messages of some; the first costs `change`.

    Work per rank is n^3 / p cells for most functions, faces for one in four; one in six is run once, whatever the size.
    """
    random = np.random.default_rng(SEED)
    made = Experiment.create(path, "many functions", ["ranks", "size"])
    names = np.array([f"Namespace::Class{at % 40}::function{at}(int, double*)" for at in range(kernels)])
    cost = (1.0 + np.arange(kernels)) ** -TAIL * random.lognormal(0, 0.7, kernels)
    cost = cost / cost.sum()
    cost[0] *= change
    kind = random.choice(3, kernels, p=(7 / 12, 1 / 4, 1 / 6))
    memory = random.lognormal(-3.5, 1, kernels)
    cpi = random.lognormal(-0.5, 0.3, kernels)
    for p in RANKS:
        for n in SIZES:
            cells = np.stack(
                [np.full(kernels, n**3 / p), np.full(kernels, 8 * (n**3 / p) ** (2 / 3)), np.full(kernels, 500)]
            )
            each = CALLS / SIZES[0] ** 3 * cost * cells[kind, np.arange(kernels)]
            even = 1 + 0.02 * np.linspace(-1, 1, p)[:, None]
            counts = _counts(np.floor(each * even), memory)
            table = pd.DataFrame({"kernel": np.tile(names, p), "rank": np.repeat(np.arange(p), kernels), **counts})
            here = {"ranks": p, "size": n}
            made.add(Run(here, 0, "callgrind", provenance=dict.fromkeys(counts, "simulated")), table)
            hits = random.poisson(each * even * cpi / 2e9 / PERIOD)
            rank, at = np.nonzero(hits)
            times = pd.DataFrame({"kernel": names[at], "rank": rank, "time": PERIOD * hits[rank, at]})
            drawn = times[["kernel", "rank"]].assign(metric="time", samples=times["time"] / PERIOD, worth=PERIOD)
            provenance = {"time": f"sampled, n = {hits.sum()}"}
            made.add(Run(here, 0, "perf-clock", provenance=provenance), times, tables={"sampling": drawn})
            made.add(Run(here, 0, "pmpi"), _sent(names[:: kernels // sending][:sending], p, n, each @ cpi / 2e9))
    return made


def _counts(instructions: np.ndarray, memory: np.ndarray) -> dict[str, np.ndarray]:
    """Fourteen metrics of kernels on all ranks, (p, K) flattened."""
    loads = np.floor(0.3 * instructions)
    mem, third, second = (np.floor(loads * memory * part) for part in (0.02, 0.1, 0.5))
    found = {
        "visits": np.ceil(instructions / 2e3), "instructions": instructions, "loads": loads,
        "stores": np.floor(0.1 * instructions), "loads_l1": loads - mem - third - second, "loads_l2": second,
        "loads_l3": third, "loads_mem": mem, "store_misses_l1": np.floor(0.2 * second),
        "store_misses_l2": np.floor(0.2 * third), "store_misses_l3": np.floor(0.2 * mem), "bytes_mem_read": 64 * mem,
        "bytes_mem_written": 64 * np.floor(0.2 * mem), "bytes_mem": 64 * (mem + np.floor(0.2 * mem)),
    }  # fmt: skip
    return {name: values.ravel() for name, values in found.items()}


def _sent(names: np.ndarray, ranks: int, size: int, seconds: float) -> pd.DataFrame:
    """Messages of some kernels, and the program's own times."""
    number = np.arange(1.0, len(names) + 1) * (1 if ranks == 1 else 1 + np.log2(ranks))
    who = {"kernel": np.tile(names, ranks), "rank": np.repeat(np.arange(ranks), len(names))}
    sent = pd.DataFrame({**who, "messages": np.tile(number, ranks), "bytes_sent": np.tile(number * 8 * size**2, ranks)})
    whole = {"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": 1.1 * seconds, "compute_cpu_time": seconds}
    return pd.concat([sent, pd.DataFrame(whole)], ignore_index=True)


def lost(experiment: Experiment) -> list[str]:
    """Kernels that are folded though they have :data:`LARGE` of a metric's total at some configuration."""
    folded = select(experiment).kernels
    found: set[str] = set()
    for run in experiment.runs:
        table = experiment.table(run, "counters")
        if table is not None and run.collector == "callgrind":
            share = table.drop(columns="rank").groupby("kernel", observed=True).sum()
            share = share / share.sum()
            found |= folded.intersection(share.index[(share >= LARGE).any(axis=1)].astype(str))
    return sorted(found)


def run(settings: Settings) -> str:
    """Table of CPU seconds, and the model's size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernels = KERNELS // 5 if settings.quick else KERNELS
        first = write(folder / "first.exp", kernels)
        write(folder / "second.exp", kernels, change=1.2)
        rows = [[what, *_timed(folder, words)] for what, words in COMMANDS.items()]
        models = {each: folder / f"{each}.model.json" for each in ("first", "all")}
        size = {each: file.stat().st_size / 1e6 for each, file in models.items()}
        kept = set(Model.load(models["first"]).fitted.kernels) - {OTHERS, WHOLE}
        missing = lost(first)
    return (
        f"A made-up program of {kernels} functions, {len(RANKS) * len(SIZES)} configurations, 15 metrics of each, "
        f"{SENDING} functions that send. {len(kept)} kernels are fitted by themselves, the rest as `(others)`; of "
        f"kernels with {LARGE:.1%} of a metric or more at some configuration {len(missing)} are lost. The model takes "
        f"{size['first']:.1f} MB ({size['all']:.1f} MB with all kernels).\n\n"
        + markdown(["verb", "CPU, s", "peak memory, MB"], rows)
    )


def _timed(folder: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """CPU seconds and peak memory of one command line in a process of its own."""
    code = (
        "import contextlib, io, json, time; from benchmarks.settings import peak_memory; "
        "from ranksight.cli.main import main; import os; "
        f"os.chdir({str(folder)!r})\nwith contextlib.redirect_stdout(io.StringIO()): code = main({list(words)!r})\n"
        "print(json.dumps([code, time.process_time(), peak_memory() / 1e6]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    status, seconds, memory = json.loads(done.stdout)
    if status not in (0, 4):
        raise RuntimeError(f"ranksight {words[0]} ended with {status}: {done.stderr[-300:]}")
    return seconds, memory
