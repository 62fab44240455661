"""Measure, fit and predict the bundled program, then compare the prediction with runs at the predicted scale.

  ranksight demo --example       # with measurements that come with it: under a minute, nothing is run
  ranksight demo                 # about four minutes on two cores
  ranksight demo --quick         # about two
  ranksight demo --bug           # with a scalability bug planted, which the ranking has to name

A 3-D heat conduction solver is measured at 1, 2, 4 and 8 ranks and several sizes, with what the machine offers:
messages by the PMPI tracer, counts by callgrind, time by perf. The model then predicts 16 and 32 ranks and a larger
size; those are run, and predicted and measured are printed side by side. Everything stays in the folder that is named
at the end. More ranks than cores share the processors, so their wall time is not compared: counts, messages and
processor time are, and wall time is predicted for a machine with as many cores as ranks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli._lines import options, shell_line
from ranksight.core.errors import InputError, RanksightError, ToolError, UsageError

if TYPE_CHECKING:
    from ranksight.campaign.collecting import Collector
    from ranksight.campaign.measuring import Plan
    from ranksight.core.experiment import Experiment
    from ranksight.model.fitted_model import Model
    from ranksight.platforms import Platform

OPTIONS = ("--steps", "6", "--iterations", "5", "--lookup-table", "16Ki")
"""Enough to be sampled, little enough to be simulated, and a table that ranks sharing a core do not push out."""
SAMPLES_A_SECOND = 9973
"""Of processor time: the program runs for a fraction of a second, so it is sampled ten times as often as others."""
REACHES = (16, 64, 256, 1024)
"""Ranks whose time is predicted; kernels are ranked at the largest of them that the data suffice for."""


def run(chosen: argparse.Namespace) -> int:
    """Run the demonstration; 1 when a run failed."""
    from ranksight.cli._outcome import report
    from ranksight.core.experiment import Experiment
    from ranksight.platforms import load

    begin = time.monotonic()
    say = _silent if chosen.quiet else _say
    asked = load(chosen.platform) if chosen.platform is not None else None
    if chosen.example:
        return _example(chosen, asked, begin, say)
    folder = _folder(chosen)
    with _found_mpi():
        try:
            command = _command(folder, chosen, say)
            collectors = _collectors(say)
        except RanksightError:
            with suppress(OSError):
                folder.rmdir()  # where nothing is in it yet
            raise
        sizes, larger = ((8, 16), 32) if chosen.quick else ((12, 16, 24), 36)
        ranks = (1, 2, 4, 8)
        trained = Experiment.create(folder / "experiment", "heat", command.parameters)
        plan = _plan(command, ranks, sizes, collectors)
        say("")
        say(f"measuring at {_list(ranks)} ranks and sizes {_list(sizes)}")
        failed = _measure(trained, plan, chosen.quiet, report)
        if failed:
            return failed
        platform = asked or (load("generic") if chosen.quick else _this_node(folder, say))
        model = _fitted(trained, platform, folder, say)
        say("predicted; now measuring what was predicted")
        checked = Experiment.create(folder / "check", "heat", command.parameters)
        many = (16,) if chosen.quick else (16, 32)
        # Counting every instruction of many ranks takes long; their messages and processor time are read at both sizes.
        traced = {name: collector for name, collector in collectors.items() if name == "pmpi"}
        for where, size, using in ((many, sizes[0], collectors), (many, sizes[-1], traced), ((2,), larger, collectors)):
            failed = _measure(checked, _plan(command, where, (size,), using), chosen.quiet, report) if using else 0
            if failed:
                return failed
    return _end(model, trained, checked, folder, platform, begin, say)


def _example(chosen: argparse.Namespace, asked: Platform | None, begin: float, say: Any) -> int:
    """The demonstration on measurements that were made before: no MPI, compiler or collector is needed."""
    from ranksight.core.experiment import read
    from ranksight.examples.measured import unpack
    from ranksight.platforms import load

    if chosen.quick or chosen.bug:
        raise UsageError("ranksight demo: --example is measured already", "leave --quick and --bug out")
    folder = _folder(chosen)
    unpack(folder)
    trained, checked = read(folder / "experiment"), read(folder / "check")
    sizes, ranks = (sorted({int(run.configuration[name]) for run in trained.runs}) for name in ("size", "ranks"))
    say(f"measured before, on a virtual machine with 2 cores: {_list(ranks)} ranks, sizes {_list(sizes)}")
    platform = asked or load(str(folder / "this-node.toml"))
    model = _fitted(trained, platform, folder, say)
    return _end(model, trained, checked, folder, platform, begin, say)


def _fitted(trained: Experiment, platform: Platform, folder: Path, say: Any) -> Model:
    from ranksight.model.assembly import assemble

    say("")
    say("fitting")
    model, _ = assemble(trained, platform=platform)
    model.save(folder / "heat.model.json")
    return model


def _end(
    model: Model, trained: Experiment, checked: Experiment, folder: Path, platform: Platform, begin: float, say: Any
) -> int:
    """Print predictions and runs, and where all of it is."""
    size = float(model.training[:, model.parameters.index("size")].max())
    reach = _tell(model, trained, checked, folder, {"size": size}, platform)
    say("")
    say(f"{time.monotonic() - begin:.0f} s; experiment, model and plots are in {folder}")
    say(f"all of it in one page: {folder / 'heat.html'}")
    asked = options({"ranks": REACHES[: REACHES.index(reach) + 1], "size": size})
    words = [folder / "heat.model.json", *asked, "--metric", "time"]
    say(f"next: {shell_line('ranksight', 'predict', *words)}")
    return 0


def _folder(chosen: argparse.Namespace) -> Path:
    folder = Path(chosen.output or "ranksight-demo")
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        ours = (folder / "experiment" / "experiment.json").is_file()
        if not (chosen.force and ours):
            remedy = "give --force to replace it" if ours else "name another folder with -o"
            raise InputError(f"{folder} exists already", remedy)
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}", "name another folder with -o") from error
    return folder


@contextmanager
def _found_mpi() -> Iterator[None]:
    """Put an MPI of this Python environment on the PATH, and let Open MPI run as root in a container."""
    before = dict(os.environ)
    programs = str(Path(sys.executable).parent)
    if shutil.which("mpirun") is None and (Path(programs) / "mpirun").exists():
        os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    # On one node nothing but shared memory is needed; looking for networks takes Open MPI a second a start.
    os.environ.setdefault("OMPI_MCA_pml", "ob1")
    os.environ.setdefault("OMPI_MCA_btl", "^tcp,ofi,uct,usnic,openib")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _command(folder: Path, chosen: argparse.Namespace, say: Any) -> Any:
    """Build the program; the template of its command."""
    import subprocess

    from ranksight.campaign.launching import Template
    from ranksight.examples.build import build

    if shutil.which("mpirun") is None:
        raise ToolError("no mpirun is found", "load the site's MPI module, or: pip install 'ranksight[mpi]'")
    program = build("heat", folder)
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60)
    open_mpi = "Open MPI" in said.stdout or "PRRTE" in said.stdout
    more = ("--oversubscribe",) if open_mpi else ()
    if open_mpi and hasattr(os, "geteuid") and os.geteuid() == 0:
        say("running as root: Open MPI is set to allow it")
    words = ("mpirun", *more, "-n", "{ranks}", str(program.resolve()), "--n", "{size}", *OPTIONS)
    return Template((*words, "--bug") if chosen.bug else words)


def _this_node(folder: Path, say: Any) -> Platform:
    """This node, calibrated; its messages to others are those of the generic network."""
    from dataclasses import replace

    from ranksight.comm.calibration import calibrate_network
    from ranksight.platforms import load, save
    from ranksight.platforms.calibration.effort import QUICK
    from ranksight.platforms.calibration.node import calibrate

    say("")
    say("calibrating caches, memory and messages of this node; between nodes a generic network is assumed")
    node = calibrate("this-node", QUICK, _silent).platform
    here = calibrate_network(("mpirun", "-n", "2") if len(os.sched_getaffinity(0)) > 1 else _two(), 4.0)
    network: dict[str, Any] = {"inter": load("generic").network["inter"], here.level: here.parameters.to_dict()}
    platform = replace(node, network=network)
    save(platform, folder / "this-node.toml")
    return platform


def _two() -> tuple[str, ...]:
    """Two ranks on one core."""
    return ("mpirun", "--oversubscribe", "-n", "2")


def _collectors(say: Any) -> dict[str, Collector]:
    from ranksight.cli.measure import choose_collectors
    from ranksight.counters.collectors.perf_clock import PerfClock

    collectors = choose_collectors(None, say)
    if {"perf", "perf-clock", "callgrind"} <= set(collectors):
        del collectors["perf"]
        say("perf is left out: runs this short yield few samples of events, and callgrind counts them all")
    if "perf-clock" in collectors:
        collectors["perf-clock"] = PerfClock(frequency=SAMPLES_A_SECOND)
    return collectors


def _plan(command: Any, ranks: tuple[int, ...], sizes: tuple[int, ...], collectors: Mapping[str, Collector]) -> Plan:
    from ranksight.campaign.measuring import Plan

    return Plan(
        command, {"ranks": list(map(float, ranks)), "size": list(map(float, sizes))}, 1, collectors, timeout=600
    )


def _measure(experiment: Experiment, plan: Plan, quiet: bool, report: Any) -> int:
    from ranksight.campaign.measuring import measure
    from ranksight.cli._progress import Runs

    with Runs([run for run, _, _ in plan.runs()], quiet) as progress:
        outcome = measure(experiment, plan, watch=progress)
    return int(report(experiment, outcome, quiet=True))


def _tell(
    model: Model, trained: Experiment, checked: Experiment, folder: Path, size: dict[str, float], platform: Platform
) -> int:
    """Compare predicted with measured times, rank the kernels, draw, write the report; the ranks the data reach."""
    from matplotlib.figure import Figure

    from ranksight.cli.report import commands, origin
    from ranksight.reports.demonstration import (
        growth_blocks,
        largest_blocks,
        supported,
        validation_blocks,
        wall_time_blocks,
    )
    from ranksight.reports.html.context import Context
    from ranksight.reports.html.page import render, write
    from ranksight.reports.plots import plot_breakdown, plot_compute, plot_validation, save_figure
    from ranksight.reports.sweep import sweep
    from ranksight.reports.terminal import show
    from ranksight.reports.validation import validate

    check, known = validate(model, checked), validate(model, trained)
    cores = min((int(run.environment["cores"]) for run in trained.runs if "cores" in run.environment), default=1)
    show(*validation_blocks(check, cores))
    show(*wall_time_blocks(model, REACHES, size, platform.name, cores))
    reach = supported(model, REACHES, size)
    show(*largest_blocks(model, reach, size))
    show(*growth_blocks(model, REACHES[-1], size))
    check.table.to_csv(folder / "check.csv", index=False)
    timed = model.equation.resources is not None
    swept = sweep(model, to=reach, at=size)
    figure = Figure(figsize=(15 if timed else 6, 4.8), layout="constrained")
    axes = figure.subplots(1, 3 if timed else 1, squeeze=False)[0]
    plot_validation(check, axes[0])
    if timed:
        plot_compute(model, known, check, size, axes[1])
        plot_breakdown(swept, ax=axes[2])
    save_figure(figure, folder / "demo.png", folder / "demo.svg")
    runs = (trained, checked)
    context = Context(
        model,
        swept,
        runs,
        platform,
        folder / "heat.model.json",
        commands=commands((trained,)),
        origin=origin((trained,)),
    )
    write(render(context), folder / "heat.html", force=True)
    return reach


def _list(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _say(line: str) -> None:
    from ranksight.reports.terminal import Text, next_step, show

    command = line.removeprefix("next: ")
    show(next_step(command) if command != line else Text(line, hanging=2) if line.strip() else "")


def _silent(line: str) -> None:
    """Say nothing."""
