"""Networks between nodes against SimGrid's SMPI: fat trees and dragonflies of several tapers, 64 to 1,024 ranks.

Eleven small programs (``network.c``) run on described platforms, one rank a node, collectives by SMPI's selector
``ompi``. A prediction gets what a user has: event traces at 8, 16 and 32 ranks, ping-pongs between two nodes of a
switch and between distant ones, and the topology as it is published. It is compared with predictions without topology
and replay. Five of the programs were written after the others.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.analysis.diagnosis.network import NetworkDiagnosis, diagnose_network
from ranksight.comm.matched import waiting
from ranksight.comm.readers.pmpi_traces import reading_of
from ranksight.comm.segments import fit_pieces
from ranksight.comm.sizes import summarise
from ranksight.comm.topology.described import to_dict
from ranksight.comm.topology.shape import ROUND_TRIP, Topology
from ranksight.comm.tracer.gathering import read_folder
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import Reading
from ranksight.examples.simulated.building import build_simulated
from ranksight.examples.simulated.cluster import Simulator, build_messages, link
from ranksight.model.application.exchanged import NO_REPLAY
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.model.priors import MESSAGES_AHEAD
from ranksight.platforms import Platform, load

TITLE = "Networks between nodes: topology, replay and waiting"
HERE = Path(__file__).resolve().parent
TRAINED = (8, 16, 32)
ASKED = (64, 256)
SHAPES = tuple((kind, taper) for kind in ("fat tree", "dragonfly") for taper in (1, 2, 4))
LARGE = ("halo", "imbalance", "allreduce", "ring", "wavefront")
"""Programs that the simulator runs at more than 64 ranks in minutes."""
SLOWER = (2, 4)
"""Latencies that sensitivity is judged by, over that of the platform."""
LARGEST = (512, 1024)
"""Ranks that programs of :data:`LARGE` are asked for on one network."""
LEAST = 1e-3
"""Part of the time below which all is the same."""
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
OTHERS: Mapping[str, tuple[float, int]] = {
    "transpose": (400.0, 16384),
    "rooted": (300.0, 32768),
    "unequal": (200.0, 65536),
    "pipeline": (100.0, 16384),
    "workers": (500.0, 16384),
}
"""Those written afterwards."""
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
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            f'<platform version="4.1"><cluster id="c" prefix="node-" suffix="" radical="0-{self.topology.nodes - 1}" '
            f'speed="1Gf" bw="{BANDWIDTH}Bps" lat="{latency}s" topology="{shape}" topo_parameters="{self.parameters}" '
            'sharing_policy="SPLITDUPLEX"/></platform>\n'
        )


def shape(kind: str, taper: int, nodes: int) -> Shape:
    """A platform of at least `nodes` nodes: switches of 16 nodes, or groups of 32 on 8 routers."""
    named = {"sharing": ROUND_TRIP, "name": f"taper {taper}"}
    if kind == "fat tree":
        found = Topology(kind, (16, nodes), BANDWIDTH, ((float(taper),) * 2,), routing="static", **named)
        return Shape(kind, taper, found, f"2;16,{nodes // 16};1,{16 // taper};1,1")
    groups = max(2, nodes // 32)
    # Links of a group to others: as many as its taper allows, all as wide.
    wide = max(32 // taper // (groups - 1), 1)
    real = 32 / ((groups - 1) * wide)
    found = Topology(kind, (4, 8, groups), BANDWIDTH, ((real, real),), routing="minimal", **named)
    return Shape(kind, taper, found, f"{groups},{wide};1,1;8,4;4")


class Machine:
    """A simulated platform with the programs on it."""

    def __init__(self, folder: Path, of: Shape, latency: float = LATENCY) -> None:
        self.folder, self.of = folder, of
        self.simulator = Simulator(folder, of.xml(latency))
        self.runs: dict[tuple[str, int], Truth] = {}  # those that were traced

    def run(self, program: str, ranks: int, traced: bool = True) -> Truth:
        """One run: traces, and each rank's seconds and computation."""
        traces = Path(tempfile.mkdtemp(prefix="traces-", dir=self.folder))
        micro, size = {**PROGRAMS, **OTHERS}[program]
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

    def traced(self, program: str, ranks: int) -> Truth:
        """A traced run, made once."""
        if (program, ranks) not in self.runs:
            self.runs[program, ranks] = self.run(program, ranks)
        return self.runs[program, ranks]

    def network(self, topology: bool = True) -> dict[str, object]:
        """The ``[network]`` table: a link measured between two nodes of a switch, and the published shape, with the
        latency of its switches as a ping-pong between the most distant nodes shows it."""
        near, shape = replace(link(self.simulator), opposite=self._opposite()), self.of.topology
        table: dict[str, object] = {"inter": near.to_dict(), "collectives": "openmpi-4.1"}
        if topology:
            (self.folder / "distant").write_text(f"node-0\nnode-{shape.nodes - 1}\n")
            hops = int(shape.hops(np.array([0]), np.array([shape.nodes - 1]))[0])
            near_trips, far_trips = (self._trips(hosts) for hosts in ("apart", "distant"))
            more = near_trips.assign(duration=(far_trips["duration"] - near_trips["duration"]).clip(lower=1e-9) / hops)
            table["topology"] = to_dict(replace(shape, hop_latency=fit_pieces(summarise(more)).function))
        return table

    def _opposite(self) -> float:
        """How much longer an exchange of large messages takes than one of them, over the time of its bytes."""
        single = self._trips("apart").set_index("bytes")["duration"].iloc[[-2, -1]]
        sizes = [str(size) for size in single.index]
        both = self.simulator.run(2, ["alltoall", *sizes], hosts="apart")["duration"]
        return max(float(np.ptp(both) / np.ptp(single)) - 1.0, 0.0)

    def _trips(self, hosts: str) -> pd.DataFrame:
        trips = self.simulator.run(2, ["trips"], hosts=hosts)
        return trips[trips["op"] == "pingpong"]

    def platform(self, topology: bool = True) -> Platform:
        """A platform of one core a node with this network."""
        plain = load("generic")
        layout = replace(plain.layout, sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1)
        caches = tuple(replace(cache, shared_by=1) for cache in plain.caches)
        return replace(plain, name="simulated", layout=layout, caches=caches, network=self.network(topology))


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
    build_simulated([HERE / "network.c"], folder / "network")
    subprocess.run(["smpicc", "-O2", "-o", "plain", str(HERE / "network.c")], cwd=folder, check=True)
    build_messages(folder)


def experiment(place: Path, program: str, truths: Mapping[int, Truth]) -> Experiment:
    """What was seen at a few numbers of ranks."""
    made = Experiment.create(place, program, ["ranks"])
    for ranks, truth in truths.items():
        traced = truth.tables
        assert traced is not None
        collector, provenance = "pmpi-events", {"mpi_time": "simulated", "time": "simulated"}
        run = Run({"ranks": ranks}, collector=collector, provenance=provenance, wall_time=float(truth.seconds.max()))
        made.add(run, traced.counters, traced.messages, tables=dict(traced.tables))
        computed = {"kernel": ["solve"] * ranks, "rank": range(ranks), "time": truth.computing}
        made.add(Run({"ranks": ranks}, collector="charged", provenance={"time": "simulated"}), pd.DataFrame(computed))
    return made


def fitted(machine: Machine, program: str, topology: bool = True) -> Model:
    """A model of a program by its small runs on a machine."""
    with tempfile.TemporaryDirectory() as name:
        made = experiment(Path(name) / "runs", program, {p: machine.traced(program, p) for p in TRAINED})
        model, _ = assemble(made, ["time", "mpi_time"], platform=machine.platform(topology))
    return model


def waited(truth: Truth) -> float:
    """Seconds that a rank waited, mean, by its matched events."""
    assert truth.tables is not None
    found = waiting(truth.tables.tables["events"]).calls
    return float(found[["late_sender", "late_receiver", "collective"]].to_numpy().sum()) / len(truth.seconds)


def predicted(model: Model, point: np.ndarray) -> tuple[float, float, float]:
    """Seconds of the program outside of its mean computation, as ``predict`` has them: the interval and its value."""
    found = model.breakdown(point[None])
    total, computing = found.total, float(found.computing[0])
    low, value, high = (float(each[0, 0]) - computing for each in (total.lower, total.value, total.upper))
    return low, value, high


def compare(folder: Path, kind: str, taper: int, program: str, asked: Sequence[int]) -> list[dict[str, object]]:
    """Simulated and predicted communication, a row a number of ranks."""
    machine = Machine(folder, shape(kind, taper, max(asked)))
    model, plain = fitted(machine, program), fitted(machine, program, topology=False)
    rows: list[dict[str, object]] = []
    for p in asked:
        truth, point = machine.run(program, p, traced=False), np.array([float(p)])
        replayed: NetworkDiagnosis = diagnose_network(model, point)
        outside = truth.seconds.max() - truth.computing.mean()
        (low, value, high), (_, shapeless, _) = (predicted(one, point) for one in (model, plain))
        prices = predicted(_without_replay(model), point)[1]
        law, hidden = model.equation.replay, _hidden(model, point)
        by_runs = replayed.communication * (1.0 if law is None else law[0].ratio)
        errors = [100 * (each / truth.communication - 1) for each in (replayed.communication, by_runs)]
        errors += [100 * (each / outside - 1) for each in (value, shapeless, prices)]
        rows.append(
            {
                "network": f"{kind} {taper}:1",
                "program": program,
                "ranks": p,
                "simulated, ms": 1e3 * outside,
                "hidden, ms": 1e3 * hidden,
                "replay %": errors[0],
                "as in runs %": errors[1],
                "predict %": errors[2],
                "interval %": f"{100 * (low / outside - 1):+.0f} to {100 * (high / outside - 1):+.0f}",
                "inside": bool(low <= outside <= high),
                "predict, no topology %": errors[3],
                "prices alone %": errors[4],
                "total by replay %": 100 * (replayed.time / float(truth.seconds.max()) - 1),
            }
        )
    return rows


def _hidden(model: Model, point: np.ndarray) -> float:
    """Seconds of messages that computation hid in all runs."""
    sent, exchanged = model.equation.communication, model.breakdown(point[None]).exchanged
    if sent is None or sent.hidden is None or not exchanged:
        return 0.0
    return float(exchanged.network[sent.hidden.rows(sent.kinds)].sum())


def _without_replay(model: Model) -> Model:
    """The same model, whose messages are priced alone."""
    equation = model.equation
    return replace(model, equation=replace(equation, communication=replace(equation.communication, replayed=NO_REPLAY)))


def ahead(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Root mean square of the logarithms of the errors of each law, those of :data:`MESSAGES_AHEAD`; of messages that
    computation hides, of all that they take."""
    errors = []
    for row in rows:
        share = float(row["simulated, ms"]) / max(float(row["simulated, ms"]), float(row["hidden, ms"]))
        errors.append([1 + share * float(row[name]) / 100 for name in ("prices alone %", "as in runs %")])
    found = np.sqrt(np.mean(np.log(np.maximum(errors, LEAST)) ** 2, axis=0))
    return dict(zip(MESSAGES_AHEAD, found.tolist(), strict=True))


def sensitivity(folder: Path, program: str, ranks: int = 64) -> list[dict[str, object]]:
    """What more latency costs: simulated, and predicted from the model of the faster network."""
    kind, taper, point = "fat tree", 2, np.array([float(ranks)])
    base = Machine(folder, shape(kind, taper, ranks))
    model, before = fitted(base, program), base.run(program, ranks, traced=False).communication
    predicted_before = diagnose_network(_on(model, base.network()), point).communication
    rows: list[dict[str, object]] = []
    for times in SLOWER:
        slow = Machine(folder, shape(kind, taper, ranks), times * LATENCY)
        more = slow.run(program, ranks, traced=False).communication - before
        predicted = diagnose_network(_on(model, slow.network()), point).communication - predicted_before
        error = 100 * (predicted / more - 1)
        rows.append({"program": program, "latency": f"x {times}", "more, ms": 1e3 * more, "error %": error})
    return rows


def _on(model: Model, table: dict[str, object]) -> Model:
    """The same model on another network."""
    equation = model.equation
    assert equation.network
    moved = replace(equation, network=replace(equation.network, table=table))
    return replace(model, equation=moved)


def waits(folder: Path, program: str, ranks: int = 64) -> dict[str, object]:
    """Waiting time, simulated and predicted."""
    machine = Machine(folder, shape("fat tree", 2, ranks))
    simulated = waited(machine.traced(program, ranks))
    predicted = sum(diagnose_network(fitted(machine, program), np.array([float(ranks)])).waits.values())
    error = 100 * (predicted / simulated - 1)
    return {"program": program, "ranks": ranks, "waiting, ms": 1e3 * simulated, "error %": error}


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        rows = []
        for kind, taper in SHAPES[2:3] if settings.quick else SHAPES:
            for program in PROGRAMS:
                asked = ASKED if program in LARGE and not settings.quick else ASKED[:1]
                rows += compare(folder, kind, taper, program, asked)
        asked = ASKED[:1] if settings.quick else LARGEST
        largest = [row for program in LARGE for row in compare(folder, *SHAPES[1], program, asked)]
        others = [
            row
            for kind, taper in (SHAPES[2:3] if settings.quick else (SHAPES[1], SHAPES[2], SHAPES[5]))
            for program in OTHERS
            for row in compare(folder, kind, taper, program, ASKED[:1])
        ]
        latency = [row for program in LARGE for row in sensitivity(folder, program)]
        waiting_times = [waits(folder, program) for program in ("wavefront", "imbalance")]
    table = pd.DataFrame(rows)
    tapered = table[(table["program"] == "alltoall") & table["network"].str.contains("4:1")]["replay %"].abs()
    parts_of = rows + largest, others, rows + largest + others
    found = [", ".join(f"{name} {value:.2g}" for name, value in ahead(part).items()) for part in parts_of]
    taken = ", ".join(f"{name} {value:g}" for name, value in MESSAGES_AHEAD.items())
    parts = [
        f"Programs of {STEPS} steps in SimGrid's SMPI, links of {BANDWIDTH / 1e9:g} GB/s and {LATENCY * 1e6:g} us, "
        f"one rank a node, traced on {', '.join(map(str, TRAINED))} ranks. Errors of the time outside computation: "
        "replay, mean over ranks, and the same as runs took over it; predict, until the last rank ends, with topology "
        "and without. Hidden: what messages take that computation hid in all runs. All-to-all on taper 4: "
        f"{tapered.max():.1f} % at most.",
        _summary(rows),
        _table(rows),
        f"512 and 1,024 ranks: {_summary(largest)}",
        _table(largest),
        f"Further programs, written after these: {_summary(others)}",
        _table(others),
        f"Root mean square of the logarithms of errors: {found[0]}; of the further programs {found[1]}; of all "
        f"{found[2]}. The model has {taken}.",
        "More latency, fat tree 2:1, 64 ranks:",
        _table(latency),
        "Waiting time, mean over ranks:",
        _table(waiting_times),
    ]
    return "\n\n".join(parts)


def _summary(rows: list[dict[str, object]]) -> str:
    """Errors of rows in words."""
    table = pd.DataFrame(rows)
    columns = {"replay": "replay %", "predict": "predict %", "predict without topology": "predict, no topology %"}
    errors = [f"{name} {table[of].abs().median():.1f} / {table[of].abs().max():.1f} %" for name, of in columns.items()]
    return (
        f"{len(table)} cases, errors (median / largest): {', '.join(errors)}; "
        f"{100 * table['inside'].mean():.0f} % inside the 90 % interval."
    )


def _table(rows: list[dict[str, object]]) -> str:
    cells = [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return markdown(list(rows[0]), cells)
