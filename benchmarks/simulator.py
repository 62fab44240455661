"""Predictions for many ranks against SimGrid's SMPI, which runs the bundled program at 64 to 1,024 ranks.

Computation is charged by the kernels themselves (``simulated.h``), so that a run repeats to the last digit; the network
is a described cluster with one rank a node. The tracer is linked into the program. What a user would have is all that a
prediction gets: traces and kernel times at 4 to 32 ranks, and a ping-pong between two nodes.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.collectives import Simulator, link
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown
from ranksight.comm.network import NetworkParameters
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.simulated import build_simulated
from ranksight.comm.tracer.tables import TraceTables, tabulate
from ranksight.experiment import Experiment, Run
from ranksight.model.assembly import assemble
from ranksight.platforms import Platform, load

TITLE = "Predictions for 64 to 1,024 simulated ranks"
HERE = Path(__file__).resolve().parent
TRAINED = (4, 8, 16, 27, 32)
ASKED = (64, 256)
FAR = {("slow", "ompi", "weak"): (128, 512, 1024)}
"""Asked as well where named: a run of 1,024 ranks takes minutes of processor time."""
SELECTORS = {"ompi": "openmpi-4.1", "mpich": "mpich"}
"""SMPI's choice of collective algorithms, and ours."""
NETWORKS = {"slow": "ethernet", "fast": "infiniband"}
PROGRAMS = {"weak": ("--n", "12"), "strong": ("--total", "48")}
OPTIONS = ("--iterations", "8", "--steps", "1", "--lookup-table", "64Ki", "--check", "1e300")


@dataclass(frozen=True, slots=True)
class Truth:
    """One simulated run: its traces, and the simulated seconds of every kernel and rank."""

    tables: TraceTables
    kernels: pd.DataFrame

    @property
    def _set_up(self) -> float:
        """When the last rank has the Cartesian communicator, the first thing that the program does.

        How a library makes communicators is no part of a prediction; SMPI's way takes time in proportion to the ranks.
        """
        rows = self.tables.messages
        return float(rows.loc[rows["operation"] == "Cart_create", "seconds"].max())

    @property
    def total(self) -> float:
        """From the communicator's set-up to MPI_Finalize, on the last rank."""
        return float(self.tables.ranks["wall_time"].max()) - self._set_up

    @property
    def communication(self) -> float:
        """Time inside MPI since then, mean over ranks."""
        return float(self.tables.ranks["mpi_time"].mean()) - self._set_up


class Machine:
    """A simulated cluster with the program built for it."""

    def __init__(self, folder: Path, network: str, nodes: int) -> None:
        self.folder = folder
        self.simulator = Simulator(folder, NETWORKS[network], nodes)

    def link(self) -> NetworkParameters:
        """LogGP parameters fitted to a ping-pong between two nodes."""
        return link(self.simulator)

    def run(self, program: str, ranks: int, selector: str, named: bool = True) -> Truth:
        """Run the bundled program; with `named` its kernels have names, which takes a copy of it for every rank."""
        traces = Path(tempfile.mkdtemp(prefix="traces-", dir=self.folder))
        environment = {"RANKSIGHT_TRACE_DIR": str(traces)}
        # The simulator runs copies of the program; kernels have names while these are there.
        copies = (f"--cfg=smpi/tmpdir:{traces}", f"--cfg=smpi/keep-temps:{'yes' if named else 'no'}")
        rows = self.simulator.start(
            ranks,
            ["./heat", *PROGRAMS[program], *OPTIONS],
            f"coll-selector:{selector}",
            environment=environment,
            options=copies,
        )
        found, lost = read_folder(traces, ranks)
        if lost:
            raise SystemExit(f"traces are missing: {lost[0]}")
        kernels = pd.DataFrame(rows, columns=["kernel", "rank", "time"]).astype({"rank": int, "time": float})
        tables = tabulate(found)
        shutil.rmtree(traces)
        return Truth(tables, kernels)


def prepare(folder: Path) -> None:
    """Build both programs in `folder`; Skipped without the simulator."""
    if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
        raise Skipped("SimGrid's smpicc and smpirun are not found: apt install libsimgrid-dev")
    subprocess.run(["smpicc", "-O2", "-o", "collectives", str(HERE / "collectives.c")], cwd=folder, check=True)
    flags = ("-O2", "-g", "-include", str(HERE / "simulated.h"), "-lm")
    build_simulated([ROOT / "examples" / "heat.c"], folder / "heat", flags)


def described(parameters: NetworkParameters, selector: str) -> Platform:
    """A platform of one core a node with the measured network, and the MPI library's choice of algorithms."""
    plain = load("generic")
    layout = replace(plain.layout, sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1)
    caches = tuple(replace(cache, shared_by=1) for cache in plain.caches)
    network = {"inter": parameters.to_dict(), "collectives": SELECTORS[selector]}
    return replace(plain, name="simulated", layout=layout, caches=caches, network=network)


def experiment(place: Path, truths: dict[int, Truth]) -> Experiment:
    """What was seen at a few numbers of ranks, as an experiment."""
    made = Experiment.create(place, "heat", ["ranks"])
    for ranks, truth in truths.items():
        traced = truth.tables
        made.add(
            Run({"ranks": ranks}, collector="pmpi", provenance={"mpi_time": "simulated"}),
            traced.counters,
            traced.messages,
            tables={"peers": traced.peers, "phases": traced.phases, "ranks": traced.ranks},
        )
        made.add(Run({"ranks": ranks}, collector="charged", provenance={"time": "simulated"}), truth.kernels)
    return made


def compare(
    folder: Path, network: str, selector: str, program: str, trained: Sequence[int], asked: Sequence[int]
) -> list[dict[str, object]]:
    """Predicted and simulated times, a row a number of ranks."""
    machine = Machine(folder, network, max(asked))
    place = folder / f"{network}-{selector}-{program}.exp"
    made = experiment(place, {p: machine.run(program, p, selector) for p in trained})
    model, _ = assemble(made, ["time", "mpi_time"], platform=described(machine.link(), selector))
    rows: list[dict[str, object]] = []
    for p in asked:
        truth = machine.run(program, p, selector, named=False)
        said = model.breakdown(np.array([[float(p)]]))
        total = float(said.total.value[0, 0])
        communication = float(said.parts["communication"][0])
        rows.append(
            {
                "network": network,
                "collectives": selector,
                "scaling": program,
                "ranks": p,
                "simulated, ms": 1e3 * truth.total,
                "predicted, ms": 1e3 * total,
                "error %": 100 * (total / truth.total - 1),
                "in MPI, ms": 1e3 * truth.communication,
                "predicted in MPI, ms": 1e3 * communication,
                "error in MPI %": 100 * (communication / truth.communication - 1),
                "inside 90 %": "yes" if said.total.lower[0, 0] <= truth.total <= said.total.upper[0, 0] else "no",
            }
        )
    return rows


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        rows = [
            row
            for network in NETWORKS
            for selector in SELECTORS
            for program in PROGRAMS
            for row in compare(folder, network, selector, program, TRAINED, asked(network, selector, program, settings))
        ]
    return section(rows)


def asked(network: str, selector: str, program: str, settings: Settings) -> tuple[int, ...]:
    """Numbers of ranks that are simulated beyond those trained on."""
    return ASKED[:1] if settings.quick else tuple(sorted((*ASKED, *FAR.get((network, selector, program), ()))))


def section(rows: list[dict[str, object]]) -> str:
    """The text around the rows, and their table."""
    errors = pd.DataFrame(rows)[["error %", "error in MPI %"]].abs()
    text = (
        f"The bundled program ({' '.join(OPTIONS[:4])}; weak: {' '.join(PROGRAMS['weak'])}, strong: "
        f"{' '.join(PROGRAMS['strong'])}) in SimGrid's SMPI, one rank a node; slow is 1.25 GB/s and 5 us a link, fast "
        f"12.5 GB/s and 0.5 us. Trained on {', '.join(map(str, TRAINED))} ranks and a ping-pong between two nodes.\n\n"
        f"Total time: error {errors['error %'].median():.1f} % in the median, {errors['error %'].max():.1f} % at most; "
        f"time in MPI: {errors['error in MPI %'].median():.1f} % in the median, "
        f"{errors['error in MPI %'].max():.1f} % at most.\n\n"
    )
    heads = list(rows[0])
    cells = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return text + markdown(heads, cells)
