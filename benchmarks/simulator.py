"""Predictions for many ranks against SimGrid's SMPI, which runs the bundled program at 64 to 1,024 ranks.

Computation is charged by the kernels themselves (``examples/simulated/charged.h``), so that a run repeats to the last
digit; the network
is a described cluster with one rank a node, or several that share its link. The tracer is linked into the program. What
a user would have is all that a prediction gets: traces and kernel times at 4 to 32 ranks, a ping-pong between two
nodes, and where ranks share them another inside one and what all of one send together.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.collectives import cluster
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import TraceTables, tabulate
from ranksight.core.experiment import Experiment, Run
from ranksight.examples import simulated
from ranksight.examples.simulated.building import build_simulated
from ranksight.examples.simulated.cluster import Simulator, build_messages, link, node_bandwidth
from ranksight.model.fit import assemble
from ranksight.platforms import Platform, load

TITLE = "Predictions for 64 to 1,024 simulated ranks"
HERE = Path(__file__).resolve().parent
TRAINED = (4, 8, 16, 27, 32)
ASKED = {"weak": (64, 128, 256, 512, 1024), "strong": (64, 256, 512)}
"""A run of 1,024 ranks takes some 100 s of processor time and 1.4 GB."""
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

        How a library makes communicators is not part of a prediction; SMPI's way takes time in proportion to the ranks.
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


@dataclass(frozen=True, slots=True)
class Placed:
    """Ranks on the nodes of a cluster."""

    per_node: int = 1
    distribution: str = "block"


SHARED = (
    ("slow", "ompi", Placed(8)),
    ("slow", "ompi", Placed(8, "cyclic")),
    ("slow", "mpich", Placed(16)),
    ("fast", "ompi", Placed(8)),
    ("fast", "mpich", Placed(16, "cyclic")),
)
"""Network, collectives and placement of the runs with several ranks a node."""


class Machine:
    """A simulated cluster with the program built for it."""

    def __init__(self, folder: Path, network: str, ranks: int, placed: Placed = Placed()) -> None:
        self.folder = folder
        self.placed = placed
        nodes = max(2, -(-ranks // placed.per_node))
        description = cluster(NETWORKS[network], nodes, placed.per_node)
        self.simulator = Simulator(folder, description, placed.per_node, placed.distribution)

    def network(self, selector: str) -> dict[str, object]:
        """The ``[network]`` table of a platform: LogGP parameters fitted to ping-pongs, and a node's bandwidth."""
        inter = replace(link(self.simulator), node_bandwidth=node_bandwidth(self.simulator))
        table: dict[str, object] = {"inter": inter.to_dict(), "collectives": SELECTORS[selector]}
        if self.placed.per_node > 1:
            table["intra"] = link(self.simulator, "together").to_dict()
        return table

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
    build_messages(folder)
    flags = ("-O2", "-g", "-include", str(Path(simulated.__file__).with_name("charged.h")), "-lm")
    build_simulated([ROOT / "examples" / "heat.c"], folder / "heat", flags)


def described(machine: Machine, selector: str) -> Platform:
    """A platform of a core a rank with the measured network, and the MPI library's choice of algorithms."""
    plain, k = load("generic"), machine.placed.per_node
    layout = replace(plain.layout, sockets=1, cores_per_socket=k, domains_per_socket=1, cores_per_domain=k)
    caches = tuple(replace(cache, shared_by=1) for cache in plain.caches)
    return replace(plain, name="simulated", layout=layout, caches=caches, network=machine.network(selector))


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
    folder: Path,
    network: str,
    selector: str,
    program: str,
    trained: Sequence[int],
    asked: Sequence[int],
    placed: Placed = Placed(),
) -> list[dict[str, object]]:
    """Predicted and simulated times, a row a number of ranks."""
    machine = Machine(folder, network, max(asked), placed)
    place = folder / f"{network}-{selector}-{program}-{placed.per_node}-{placed.distribution}.exp"
    made = experiment(place, {p: machine.run(program, p, selector) for p in trained})
    model, _ = assemble(made, ["time", "mpi_time"], platform=described(machine, selector))
    model = model.placed(distribution=placed.distribution)
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
                **({"a node": f"{placed.per_node} {placed.distribution}"} if placed.per_node > 1 else {}),
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
            for program, asked in ASKED.items()
            for row in compare(folder, network, selector, program, TRAINED, asked[:1] if settings.quick else asked)
        ]
        shared = [
            row
            for network, selector, placed in SHARED
            for row in compare(
                folder, network, selector, "weak", TRAINED, (64,) if settings.quick else (64, 256), placed
            )
        ]
    return section(rows, shared)


def section(rows: list[dict[str, object]], shared: list[dict[str, object]]) -> str:
    """The text around the rows, and their tables."""
    text = (
        f"The bundled program ({' '.join(OPTIONS[:4])}; weak: {' '.join(PROGRAMS['weak'])}, strong: "
        f"{' '.join(PROGRAMS['strong'])}) in SimGrid's SMPI; slow is 1.25 GB/s and 5 us a link, fast 12.5 GB/s and "
        f"0.5 us. Trained on {', '.join(map(str, TRAINED))} ranks and a ping-pong between two nodes.\n\n"
    )
    text += f"One rank a node. {_errors(rows)}\n\n{_table(rows)}\n\n"
    text += (
        "Several ranks a node, which share its link: predicted with a second ping-pong inside a node and the bandwidth "
        f"that a full node reached in streams to another. {_errors(shared)}\n\n{_table(shared)}"
    )
    return text


def _errors(rows: list[dict[str, object]]) -> str:
    errors = pd.DataFrame(rows)[["error %", "error in MPI %"]].abs()
    total, inside = errors["error %"], errors["error in MPI %"]
    return (
        f"Total time: error {total.median():.1f} % in the median, {total.max():.1f} % at most; "
        f"time in MPI: {inside.median():.1f} % in the median, {inside.max():.1f} % at most."
    )


def _table(rows: list[dict[str, object]]) -> str:
    cells = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return markdown(list(rows[0]), cells)
