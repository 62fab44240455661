"""Networks between nodes against SimGrid's SMPI: fat trees and dragonflies of several tapers, 64 to 1,024 ranks.

Six small programs (``network.c``) run on described platforms, one rank a node, collectives by SMPI's selector ``ompi``.
A prediction gets what a user has: event traces at 8, 16 and 32 ranks, ping-pongs between two nodes of a switch and
between distant ones, and the topology as it is published. Beside it are the predictions without topology and replay.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.collectives import Simulator, link
from benchmarks.settings import Settings, Skipped
from benchmarks.simulated import build_simulated
from benchmarks.table import markdown
from ranksight.comm.matched import waiting
from ranksight.comm.topology.shape import Topology
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.readers.pmpi_traces import reading_of
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import Reading
from ranksight.platforms import Platform, load

TITLE = "Networks between nodes: topology, replay and waiting"
HERE = Path(__file__).resolve().parent
TRAINED = (8, 16, 32)
ASKED = (64, 256, 1024)
STEPS = 10
BANDWIDTH, LATENCY = 1.25e9, 2e-6
PROGRAMS: Mapping[str, tuple[float, int]] = {
    "halo": (500.0, 40000),
    "imbalance": (2000.0, 20000),
    "alltoall": (500.0, 4096),
    "allreduce": (500.0, 8192),
    "ring": (100.0, 8192),
    "wavefront": (200.0, 4096),
}
"""Microseconds of computation a step, and bytes of a message."""
EVENTS = 1_000_000


@dataclass(frozen=True)
class Shape:
    """A platform that is simulated, and what is published of it."""

    kind: str
    taper: int
    topology: Topology
    parameters: str  # as the simulator takes them

    def xml(self, latency: float) -> str:
        """The simulator's description."""
        shape = "FAT_TREE" if self.kind == "fat tree" else "DRAGONFLY"
        return (
            '<?xml version=\'1.0\'?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f'<platform version="4.1"><cluster id="c" prefix="node-" suffix="" radical="0-{self.topology.nodes - 1}" '
            f'speed="1Gf" bw="{BANDWIDTH}Bps" lat="{latency}s" topology="{shape}" topo_parameters="{self.parameters}" '
            'sharing_policy="SPLITDUPLEX"/></platform>\n'
        )


def shape(kind: str, taper: int, nodes: int) -> Shape:
    """A platform of at least `nodes` nodes: switches of 16 nodes, or groups of 32 on 8 routers."""
    if kind == "fat tree":
        found = Topology(kind, (16, nodes), BANDWIDTH, ((float(taper),) * 2,), name=f"taper {taper}")
        return Shape(kind, taper, found, f"2;16,{nodes // 16};1,{16 // taper};1,1")
    groups = max(2, nodes // 32)
    # Links of a group to others: as many as its taper allows, all as wide.
    wide = max(32 // taper // (groups - 1), 1)
    real = 32 / ((groups - 1) * wide)
    found = Topology(kind, (4, 8, groups), BANDWIDTH, ((real, real),), routing="minimal", name=f"taper {real:.3g}")
    return Shape(kind, taper, found, f"{groups},{wide};1,1;8,4;4")


class Machine:
    """A simulated platform with the programs on it."""

    def __init__(self, folder: Path, of: Shape, latency: float = LATENCY) -> None:
        self.folder, self.of = folder, of
        self.simulator = Simulator(folder, "ethernet", of.topology.nodes)
        (folder / "platform.xml").write_text(of.xml(latency))

    def run(self, program: str, ranks: int, traced: bool = True) -> Truth:
        """One run: traces, and each rank's seconds and computation."""
        traces = Path(tempfile.mkdtemp(prefix="traces-", dir=self.folder))
        micro, size = PROGRAMS[program]
        environment = {"RANKSIGHT_TRACE_DIR": str(traces), "RANKSIGHT_TRACE_EVENTS": str(EVENTS)}
        copies = (f"--cfg=smpi/tmpdir:{traces}", "--cfg=smpi/keep-temps:yes") if traced else ()
        rows = self.simulator.start(
            ranks,
            ["./network" if traced else "./plain", program, str(STEPS), str(micro), str(size)],
            "coll-selector:ompi",
            environment=environment,
            options=copies,
        )
        tables = None
        if traced:
            found, _ = read_folder(traces, ranks)
            tables = reading_of(found, {"ranks": float(ranks)})
        shutil.rmtree(traces)
        each = pd.DataFrame(rows, columns=["rank", "seconds", "computing"]).astype(float).sort_values("rank")
        return Truth(tables, each["seconds"].to_numpy(), each["computing"].to_numpy())

    def platform(self, topology: bool = True) -> Platform:
        """A platform of one core a node with the measured links and the published shape."""
        near = link(self.simulator)
        plain = load("generic")
        layout = replace(plain.layout, sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1)
        caches = tuple(replace(cache, shared_by=1) for cache in plain.caches)
        return replace(
            plain, name="simulated", layout=layout, caches=caches,
            network={"inter": near.to_dict(), "collectives": "openmpi-4.1"},
        )  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """One simulated run."""

    tables: Reading | None
    seconds: np.ndarray  # (P,): of all steps
    computing: np.ndarray  # (P,)

    @property
    def communication(self) -> float:
        """Seconds of a rank that it does not compute, mean."""
        return float((self.seconds - self.computing).mean())


def prepare(folder: Path) -> None:
    """Build the programs in `folder`, traced and plain; Skipped without the simulator."""
    if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
        raise Skipped("SimGrid's smpicc and smpirun are not found: apt install libsimgrid-dev")
    import subprocess

    build_simulated([HERE / "network.c"], folder / "network")
    subprocess.run(["smpicc", "-O2", "-o", "plain", str(HERE / "network.c")], cwd=folder, check=True)
    subprocess.run(["smpicc", "-O2", "-o", "collectives", str(HERE / "collectives.c")], cwd=folder, check=True)


def experiment(place: Path, program: str, truths: Mapping[int, Truth]) -> Experiment:
    """What was seen at a few numbers of ranks."""
    made = Experiment.create(place, program, ["ranks"])
    for ranks, truth in truths.items():
        traced = truth.tables
        assert traced is not None
        collector, provenance = "pmpi-events", {"mpi_time": "simulated", "time": "simulated"}
        run = Run({"ranks": ranks}, collector=collector, provenance=provenance, wall_time=float(truth.seconds.max()))
        made.add(run, traced.counters, traced.messages, tables=dict(traced.tables))
    return made
