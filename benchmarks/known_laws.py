"""Programs whose laws are known: random kernels whose CPI, blocking factor, cache levels, clock, traffic, waiting,
communication and time outside kernels vary, and five loops on a simulated processor.

Each program is measured at few ranks and asked for 2 to 16 times as many. It is compared with the methods that need
none: time divided by the ranks from the last run, the last time as it is, and a power law through the last two. The
generator is the one of shared data, ``truth/programs.py``.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.series.reduction import reduce

TITLE = "Programs with known laws"
EVERYTHING = "--vary=cpi,bf,caches,clock,bandwidth,others,spin,comm"
NO_STALLS, NO_CYCLES = ("STALL",), ("STALL", "CYC")
CASES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("nothing", ("--vary=",), ()),
    ("CPI", ("--vary=cpi",), ()),
    ("blocking factor", ("--vary=bf",), ()),
    ("the same, stalls not counted", ("--vary=bf",), NO_STALLS),
    ("the same, no cycles", ("--vary=bf",), NO_CYCLES),
    ("levels", ("--vary=caches",), ()),
    ("levels, two sizes", ("--vary=caches", "--two-sizes"), ()),
    ("clock", ("--vary=clock",), ()),
    ("traffic near the limit", ("--vary=bandwidth",), ()),
    ("time outside kernels", ("--vary=others",), ()),
    ("waiting as instructions", ("--vary=spin",), ()),
    ("communication", ("--vary=comm",), ()),
    ("all but levels", ("--vary=cpi,bf,clock,bandwidth,others,spin,comm",), ()),
    ("everything", (EVERYTHING,), ()),
    ("the same, stalls not counted", (EVERYTHING,), NO_STALLS),
    ("the same, 5 % of noise", (EVERYTHING, "--noise=0.05"), ()),
    ("the same, 5 % of noise, stalls not counted", (EVERYTHING, "--noise=0.05"), NO_STALLS),
)
"""Name of a row, options of the generator, and columns that are left out."""
SEED, PROGRAMS = "20260101", 6
MACHINE = "haswell-e5-2680v3"
METRICS = {
    "INST": "instructions", "CYC": "cycles", "STALL": "stall_cycles", "L1": "loads_l1", "L2": "loads_l2",
    "L3": "loads_l3", "DRAM": "loads_mem", "FLOPS": "flops_dp", "time": "time",
}  # fmt: skip
TOTAL = "(whole)"


@dataclass(frozen=True, slots=True)
class Answer:
    """One predicted time.

    Attributes
    ----------
    whole : bool
        Whether it is the program's.
    error : float
        Predicted over true, minus one.
    ratio : float
        Upper over lower end of the interval.
    inside, ok : bool
    trivial : float
        Error of the best method that needs no model, chosen afterwards.
    """

    whole: bool
    error: float
    ratio: float
    inside: bool
    ok: bool
    trivial: float


def experiment(table: pd.DataFrame, parameters: list[str], place: Path) -> Experiment:
    """An experiment of a generator's table."""
    made = Experiment.create(place, "known laws", parameters)
    table = table.rename(columns=METRICS)
    table["kernel"] = table["kernel"].replace(TOTAL, WHOLE)
    for key, rows in table.groupby([*parameters, "rep"], sort=True):
        counters = rows.drop(columns=["ranks", "size", "rep"], errors="ignore").assign(rank=-1)
        made.add(Run(dict(zip(parameters, map(float, key), strict=False)), int(key[-1])), counters)
    return made


def answers(folder: Path, platform: str, dropped: Iterable[str] = ()) -> list[Answer]:
    """Fit the program in `folder`, without the columns `dropped`, and predict what was not measured."""
    with open(folder / "truth.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    sizes = sorted({float(row["size"]) for row in rows if row["trained"] == "1"})
    parameters = ["ranks", "size"] if len(sizes) > 1 else ["ranks"]
    table = pd.read_csv(folder / "counters.csv").drop(columns=list(dropped))
    model = fit(experiment(table, parameters, folder / "e"), platform=platform)
    size = max(float(row["size"]) for row in rows)
    found = []
    true = {
        (float(row["ranks"]), row["kernel"]): float(row["time"])
        for row in rows
        if row["trained"] == "0" and float(row["size"]) == size
    }
    said = model.predict(
        ranks=sorted({ranks for ranks, _ in true}), metrics=["time"], **({"size": size} if len(sizes) > 1 else {})
    )
    for each in said.answers:
        ranks, name = each.configuration["ranks"], each.kernel or TOTAL
        if (ranks, name) in true:
            value = true[ranks, name]
            trivial = _trivial(table[(table["kernel"] == name) & (table["size"] == table["size"].max())], ranks, value)
            inside = bool(each.lower <= value <= each.upper)
            found.append(
                Answer(name == TOTAL, each.value / value - 1, each.upper / each.lower, inside, each.ok, trivial)
            )
    return found


def _trivial(rows: pd.DataFrame, ranks: float, true: float) -> float:
    """Smallest error of ideal scaling, the last value and a power law through the last two."""
    points = np.array(sorted(rows["ranks"].unique()), dtype=float)
    values = [rows.loc[rows["ranks"] == p, "time"].to_numpy()[None] for p in points]
    times = np.array([float(reduce(each, "median", axis=1)[0]) for each in values])
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.log(times[-1] / times[-2]) / np.log(points[-1] / points[-2])
        guesses = [times[-1] * points[-1] / ranks, times[-1], times[-1] * (ranks / points[-1]) ** slope]
    return float(np.nanmin(np.abs(np.array(guesses) / true - 1)))


def row(name: str, found: list[Answer]) -> list[str]:
    """A row of the table."""
    cells = [name]
    for whole in (False, True):
        mine = [each for each in found if each.whole == whole]
        size = 100 * np.abs([each.error for each in mine])
        ok = np.array([each.ok for each in mine])
        inside = np.array([each.inside for each in mine])
        cells += [
            f"{np.median(size):.2g} / {np.percentile(size, 90):.2g} / {size.max():.2g}",
            f"{100 * np.median([each.trivial for each in mine]):.2g}",
            f"{100 * ok.mean():.0f}",
            f"{100 * inside[ok].mean():.0f}" if ok.any() else "",
            f"{np.median([each.ratio for each in mine]):.3g}",
            str(int(((size > 25) & ok & ~inside).sum())),
        ]
    return cells


def as_table(rows: list[list[str]]) -> str:
    """The rows under their heading, as Markdown."""
    part = ["error %", "without a model %", "answered %", "inside %", "ratio", "gross"]
    return markdown(["varies", *part, *(f"program: {each}" for each in part)], rows)


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    generator = settings.data.parent / "truth" / "programs.py"
    if not generator.is_file():
        raise Skipped(f"{generator} is not there")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for at, (name, options, dropped) in enumerate(CASES):
            place = Path(temporary) / str(at)
            count = "2" if settings.quick else str(PROGRAMS)
            command = [sys.executable, str(generator), str(place), "--seed", SEED, "--programs", count, *options]
            subprocess.run(command, check=True)
            folders = sorted(entry for entry in place.iterdir() if (entry / "truth.csv").is_file())
            rows.append(row(name, [each for folder in folders for each in answers(folder, MACHINE, dropped)]))
        simulated = generator.parent / "simulated"
        for folder in sorted(entry for entry in simulated.iterdir() if (entry / "truth.csv").is_file()):
            place = Path(temporary) / "simulated"
            place.mkdir()
            for file in ("truth.csv", "counters.csv"):
                (place / file).write_bytes((folder / file).read_bytes())
            rows.append(row("five loops on a simulated core", answers(place, str(simulated / "machine.toml"))))
    text = (
        "Kernels and whole programs, measured at 1 to 48 ranks (the simulated core: 1 to 64), asked for 2 to 16 times "
        f"as many; {PROGRAMS} random programs a row, seed {SEED}. Errors in percent: median / 90 % below / largest; "
        "the median error of the best method without a model, chosen afterwards; percent answered; percent of those "
        "inside the 90 % interval; median ratio of the interval's ends; answers over 25 % off and outside.\n\n"
    )
    return text + as_table(rows)
