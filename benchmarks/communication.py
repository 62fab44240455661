"""Wall times of programs with a known blocking factor of communication, at numbers of ranks beyond those measured.

A square grid of ranks exchanges faces with four neighbours and reduces 8 bytes, by LogGP on a known network; the wall
time is computation + BF_comm x (halo + reduction), and BF_comm grows as a power of the ranks. What a user would have is
all that a prediction gets: IPM profiles and computation times at 4 to 36 ranks, and timings of single messages. The
generator is the one of shared data, ``truth/communication.py``.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.comm.calibration import from_timings
from ranksight.comm.readers.ipm import Ipm
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import assemble
from ranksight.platforms import Platform, load

TITLE = "Programs with a known BF_comm"
FACTORS = ("0.3", "1", "3")
SLOPES = ("-0.2", "0", "0.2")


@dataclass(frozen=True, slots=True)
class Case:
    """One program.

    Attributes
    ----------
    factor, slope : str
        BF_comm at 36 ranks, and the power of the ranks that it grows with.
    ranks : (n,) float64
    wall : (n,) float64
        True seconds.
    measured : (n,) bool
        Whether the model was fitted to that number of ranks.
    predicted, lower, upper : (n,) float64
        Seconds.
    blocking : (n,) float64
        Predicted BF_comm.
    """

    factor: str
    slope: str
    ranks: np.ndarray
    wall: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    blocking: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Relative errors, (n,)."""
        return np.asarray(self.predicted / self.wall - 1)

    @property
    def inside(self) -> np.ndarray:
        """Whether the interval holds the truth, (n,)."""
        return np.asarray((self.lower <= self.wall) & (self.wall <= self.upper))


def machine(timings: Path) -> Platform:
    """The generic platform with the network of the timings."""
    found = from_timings([timings], "inter")
    return replace(load("generic"), network={found.level: found.parameters.to_dict()})


def experiment(folder: Path, factor: str, place: Path) -> Experiment:
    """The profiles and the computation times of one program."""
    made = Experiment.create(place, "halo", ["ranks"])
    for profile in sorted((folder / f"bf{factor}").glob("*.xml")):
        for found in Ipm().read(profile):
            run = Run(found.configuration, collector="ipm", provenance=dict(found.provenance))
            made.add(run, found.counters, found.messages)
    with open(folder / f"bf{factor}.csv", newline="") as stream:
        for row in csv.DictReader(stream):
            content = {"kernel": [row["kernel"]], "rank": [-1], "time": [float(row["time"])]}
            made.add(Run({"ranks": float(row["ranks"])}, collector="table"), pd.DataFrame(content))
    return made


def case(folder: Path, factor: str, slope: str, place: Path) -> Case:
    """Fit one program, and predict it wherever its truth is known."""
    with open(folder / "truth.csv", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["bf"] == factor]
    ranks, wall = (np.array([float(row[name]) for row in rows]) for name in ("ranks", "wall"))
    made = experiment(folder, factor, place)
    model, _ = assemble(made, platform=machine(folder / "pp.csv"))
    said = model.breakdown(ranks[:, None])
    total = said.total
    known = np.isin(ranks, [run.configuration["ranks"] for run in made.runs])
    blocking = np.full(len(ranks), np.nan) if not said.exchanged else said.exchanged.factor.value[0]
    return Case(factor, slope, ranks, wall, known, total.value[0], total.lower[0], total.upper[0], blocking)


def cases(generator: Path, slopes: tuple[str, ...], factors: tuple[str, ...]) -> list[Case]:
    """Programs of all slopes and factors, written by the generator."""
    found = []
    for slope in slopes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, str(generator), str(folder), "--bf", ",".join(factors), f"--bf-slope={slope}"]
            subprocess.run(command, check=True)
            found += [case(folder, factor, slope, folder / f"{factor}.exp") for factor in factors]
    return found


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    generator = settings.data.parent / "truth" / "communication.py"
    if not generator.is_file():
        raise Skipped(f"{generator} is not there")
    found = cases(generator, SLOPES[1:2] if settings.quick else SLOPES, FACTORS)
    errors = np.concatenate([np.abs(each.error[~each.measured]) for each in found])
    inside = np.concatenate([each.inside[~each.measured] for each in found])
    trained = max(float(np.abs(each.error[each.measured]).max()) for each in found)
    rows = [
        [
            each.factor,
            each.slope,
            *(f"{100 * error:+.2f}" for error in each.error[~each.measured]),
            *(f"{value:.3g}" for value in each.blocking[~each.measured]),
            f"{each.inside[~each.measured].sum()} of {int((~each.measured).sum())}",
        ]
        for each in found
    ]
    larger = [f"{p:.0f}" for p in found[0].ranks[~found[0].measured]]
    head = ["BF_comm at 36 ranks", "power", *(f"error % at {p}" for p in larger), *(f"BF_comm at {p}" for p in larger)]
    text = (
        "IPM profiles and computation times at 4 to 36 ranks of a program whose wall time is computation + BF_comm x "
        "(halo exchange + reduction), and timings of single messages. Nobody states the algorithm of the reduction. "
        f"Wall time: error {100 * float(np.median(errors)):.2g} % in the median, {100 * float(errors.max()):.2g} % at "
        f"most, {100 * float(inside.mean()):.0f} % inside the 90 % interval; at the configurations measured at most "
        f"{100 * trained:.1g} %.\n\n"
    )
    return text + markdown([*head, "inside"], rows)
