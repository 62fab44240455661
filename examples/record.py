"""Record the measurements of ``ranksight demo``: counts by Open MPI, times by a simulated cluster.

    python -m ranksight.examples.record FOLDER
    python -m ranksight.examples.record FOLDER --pack

The heat solver is run twice at every configuration. Open MPI runs it on this machine, where callgrind counts
instructions and loads and the tracer counts messages. SimGrid's SMPI runs it on the cluster
``platforms/machines/simulated.xml``, where kernels are charged for their operations and messages for the network: its
seconds are the times. Both runs have to send the same messages. Configurations of more ranks than
:data:`TRAINED` are too many for this machine: 16 ranks are traced on the cluster, and those in ``check`` have times
alone. ``--pack`` writes the archive that comes with the package, and the platform
file ``simulated.toml`` holds the network as ping-pongs on the cluster measured it. About an hour on two cores.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Template
from ranksight.campaign.measuring import Plan, measure
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import TraceTables, tabulate
from ranksight.core.errors import InputError
from ranksight.core.experiment import MESSAGE_COLUMNS, Experiment, Run
from ranksight.counters.collectors.callgrind import Callgrind
from ranksight.examples import measured
from ranksight.examples.build import build, source
from ranksight.examples.simulated.building import build_simulated
from ranksight.examples.simulated.cluster import Simulator, build_messages, link, node_bandwidth
from ranksight.platforms import load, save

VERSIONS: Mapping[str, tuple[str, ...]] = {".": ("--bug",), measured.MENDED: ()}
"""The two versions of the program, folder and options: the first searches a list of all ranks in every exchange."""
OPTIONS = ("--iterations", "10", "--steps", "50", "--lookup-table", "64Ki", "--check", "1e300")
TRAINED = {"ranks": (1.0, 2.0, 4.0, 8.0), "size": (16.0, 20.0, 24.0)}
TRACED = (16.0,)
"""Ranks of the training that the simulated cluster alone runs: a grid of processes with four in a row."""
CHECKED = {
    ".": ((128, 16), (128, 24), (256, 16), (512, 16)),
    measured.MENDED: ((64, 16), (64, 24), (128, 16), (256, 16)),
}
"""Ranks and sizes that no model is fitted to, by version: of the first at 8 to 32 times the ranks of the training."""
MACHINE = "simulated"
CORES = 4
"""Of a node of the machine; ranks fill one node after another."""
SELECTOR = "coll-selector:ompi"
"""SMPI's choice of collective algorithms: Open MPI's."""
KEYS = list(MESSAGE_COLUMNS[:5])


def description() -> str:
    """The cluster as SimGrid reads it."""
    return files("ranksight.platforms.machines").joinpath(f"{MACHINE}.xml").read_text()


def simulated(folder: Path, options: tuple[str, ...], configuration: Mapping[str, float]) -> tuple[Any, TraceTables]:
    """Seconds of every kernel and rank, and the traces, of one run on the cluster."""
    with tempfile.TemporaryDirectory(prefix="traces-", dir=folder) as place:
        traces, ranks = Path(place), int(configuration["ranks"])
        rows = Simulator(folder, description(), CORES).start(
            ranks,
            ["./heat-simulated", "--n", f"{configuration['size']:g}", *OPTIONS, *options],
            SELECTOR,
            environment={"RANKSIGHT_TRACE_DIR": place},
            options=(f"--cfg=smpi/tmpdir:{place}", "--cfg=smpi/keep-temps:yes"),
        )
        found, lost = read_folder(traces, ranks)
        if lost:
            raise InputError(f"traces of the simulated run are missing: {lost[0]}")
        kernels = pd.DataFrame(rows, columns=["kernel", "rank", "time"]).astype({"rank": int, "time": float})
        return kernels, tabulate(found)


def add_times(experiment: Experiment, configuration: Mapping[str, float], kernels: Any, traced: TraceTables) -> None:
    """Store the times of a simulated run: of kernels, in MPI, and of the whole program."""
    seconds = traced.counters[["kernel", "rank", "mpi_time", "wall_time", "compute_time"]]
    run = Run(
        configuration,
        collector="smpi",
        wall_time=float(traced.ranks["wall_time"].max()),
        provenance=dict.fromkeys(("time", "mpi_time", "wall_time", "compute_time"), "simulated by SimGrid's SMPI"),
        notes=(f"times are those of the simulated cluster {MACHINE}",),
    )
    experiment.add(run, kernels.merge(seconds, on=["kernel", "rank"], how="outer"))


def timed(counted: pd.DataFrame, traced: TraceTables) -> pd.DataFrame:
    """Messages as Open MPI's run sent them, with the seconds of the simulated run.

    Raises InputError when the two runs sent other messages.
    """
    both = counted.merge(traced.messages, on=KEYS, how="outer", suffixes=("", "_simulated"))
    if not (both["count"].eq(both["count_simulated"]) & both["bytes"].eq(both["bytes_simulated"])).all():
        raise InputError("Open MPI's run and the simulated one sent other messages", "record them with one program")
    return both.assign(seconds=both["seconds_simulated"])[list(counted.columns)]


def add_messages(experiment: Experiment, run: Run, messages: pd.DataFrame, traced: TraceTables) -> None:
    """Store the messages of a run; stretches between calls and what became of each rank are of the simulated run."""
    provenance = dict.fromkeys(("messages", "bytes_sent"), "measured")
    sums = traced.counters[["kernel", "rank", "messages", "bytes_sent"]]
    tables = {"peers": traced.peers, "phases": traced.phases, "ranks": traced.ranks}
    kept = replace(run, wall_time=None, provenance=provenance, notes=(), meanings={})
    experiment.add(kept, sums, messages, tables=tables)


def record(folder: Path, options: tuple[str, ...], checked: Sequence[tuple[int, int]]) -> None:
    """Run one version at all configurations; `folder` gets ``experiment`` and, of those `checked`, ``check``."""
    for name in ("counts", "experiment", "check"):
        shutil.rmtree(folder / name, ignore_errors=True)
    program = build("heat", folder)
    charges = Path(__file__).with_name("simulated") / "charged.h"
    build_simulated([source("heat")], folder / "heat-simulated", ("-O2", "-g", "-include", str(charges), "-lm"))
    command = ("mpirun", "--oversubscribe", "-n", "{ranks}", str(program), "--n", "{size}", *OPTIONS, *options)
    counts = Experiment.create(folder / "counts", "heat", list(TRAINED))
    collectors = {"callgrind": Callgrind(platform=load(MACHINE), sample=0), "pmpi": COLLECTORS["pmpi"]}
    grid = {name: list(values) for name, values in TRAINED.items()}
    # Callgrind counts as a processor with the caches that the platform file describes.
    if (outcome := measure(counts, Plan(Template(command), grid, 1, collectors))).failures:
        raise InputError(f"a run failed: {outcome.failures[0].what}")
    experiment = Experiment.create(folder / "experiment", "heat", counts.parameters)
    for run in counts.runs:
        if run.collector == "callgrind":
            experiment.add(run, counts.table(run, "counters"))
            continue
        kernels, traced = simulated(folder, options, run.configuration)
        messages = counts.table(run, "messages")
        assert messages is not None
        add_messages(experiment, run, timed(messages, traced), traced)
        add_times(experiment, run.configuration, kernels, traced)
    for ranks, size in itertools.product(TRACED, TRAINED["size"]):
        run = Run({"ranks": ranks, "size": size}, collector="pmpi")
        kernels, traced = simulated(folder, options, run.configuration)
        add_messages(experiment, run, traced.messages, traced)
        add_times(experiment, run.configuration, kernels, traced)
    check = Experiment.create(folder / "check", "heat", counts.parameters)
    for ranks, size in checked:
        configuration = {"ranks": float(ranks), "size": float(size)}
        add_times(check, configuration, *simulated(folder, options, configuration))


def describe(folder: Path) -> None:
    """Write the platform file: the described nodes, and the network as ping-pongs on the cluster measured it."""
    folder.mkdir(parents=True, exist_ok=True)
    build_messages(folder)
    cluster = Simulator(folder, description(), CORES)
    inter = replace(link(cluster), node_bandwidth=node_bandwidth(cluster), source="ping-pongs on the simulated cluster")
    intra = replace(link(cluster, "together"), source=inter.source)
    network = {"inter": inter.to_dict(), "intra": intra.to_dict(), "collectives": "openmpi-4.1"}
    machine = load(MACHINE)
    save(replace(machine, network=network), folder / "simulated.toml", overwrite=True)


def main() -> None:
    """Record what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pack", action="store_true", help="write the archive from what was recorded")
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    if chosen.pack:
        measured.pack(folder)
        return
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    describe(folder)
    for version, options in VERSIONS.items():
        record(folder / version, options, CHECKED[version])


if __name__ == "__main__":
    main()
