"""Measuring a network: a ping-pong program compiled on the spot and run on two ranks.

``pingpong.c`` measures sizes in scattered order and twice, repeats each until the order statistics around its first
quartile agree or its share of the time is spent, and prints every measurement; the fit is
:mod:`ranksight.comm.loggp`'s. Kielmann, Bal and Verstoep (IPDPS 2000 workshops) separate overheads from latency by
the same late receives and trains.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pandas as pd

from ranksight.comm.loggp import OPERATIONS, fit_loggp
from ranksight.comm.network import NetworkParameters
from ranksight.comm.readers.pingpong import load
from ranksight.comm.tracer.building import Compiler, compiler
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import Experiment
from ranksight.core.linking import mpi_of_launcher, start_each_other
from ranksight.core.records import dataclass

SOURCE = Path(__file__).resolve().with_name("pingpong.c")
FLAGS = ("-O2", "-std=gnu11")
LARGEST = 1 << 22


@dataclass(frozen=True, slots=True)
class NetworkCalibration:
    """What was measured, and what follows."""

    timings: pd.DataFrame  # ``op``, ``bytes``, ``duration`` (s), a row a measurement; see :mod:`ranksight.comm.loggp`
    parameters: NetworkParameters
    level: Literal["intra", "inter"]
    """{"intra", "inter"}: whether the two ranks shared a node: the table of the platform file that the parameters
    belong to."""
    hosts: tuple[str, ...]  # where the ranks ran
    library: str  # what the MPI library says of itself


def calibrate_network(launcher: Sequence[str], seconds: float = 20.0, largest: int = LARGEST) -> NetworkCalibration:
    """Measure the network between two ranks and fit its parameters.

    Raises InputError when the launcher starts another number of ranks than two, or an argument is senseless; ToolError
    when compiler or launcher are missing or do not match (said before anything runs), or the program fails.

    Parameters
    ----------
    launcher : sequence of str
        The launcher with its options and no program: ``("mpirun", "-n", "2")``. Where it places the ranks decides
        what is measured: on one node, the memory they share; on two (``--map-by node``), the network.
    seconds : float
        Time to spend; a busy machine takes longer.
    largest : int
        Largest message in bytes.
    """
    if not launcher:
        raise InputError("no launcher is given", "write it after '--': -- mpirun -n 2")
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"{seconds} is not a time to spend", "give seconds, 5 or more for steady numbers")
    if not 8 <= largest <= 1 << 30:
        raise InputError(f"{largest} B is not a largest message to measure", "give 8 B to 1 GiB")
    using = compiler()
    check_launcher(using, launcher)
    with tempfile.TemporaryDirectory(prefix=".ranksight-network-", dir=_shared_folder()) as folder:
        program = Path(folder) / "pingpong"
        built = subprocess.run(
            [using.path, *FLAGS, "-o", str(program), str(SOURCE)], capture_output=True, text=True, errors="replace"
        )
        if built.returncode != 0:
            said = next((line for line in built.stderr.splitlines() if "error" in line), built.stderr.strip())
            raise ToolError(f"{using.path} does not compile the ping-pong: {said[:300]}", "check the MPI installation")
        output = _run([*launcher, str(program), repr(float(seconds)), str(int(largest))], 20 * seconds + 120)
    found = parse(output, " ".join(launcher))
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores + 2:
        return found
    note = f"the machine was busy (load {load:.1f} on {cores} cores): measure again when it is idle"
    return replace(found, parameters=replace(found.parameters, notes=(*found.parameters.notes, note)))


def from_timings(paths: Sequence[Path], level: Literal["intra", "inter"]) -> NetworkCalibration:
    """Fit the parameters to timings that exist.

    `paths`: CSV files (:mod:`ranksight.comm.readers.pingpong`), or experiments into which such were imported. `level`
    ({"intra", "inter"}): where they were measured. Raises InputError when a file cannot be read, or an experiment holds
    no timings; InsufficientError when there are too few sizes.
    """
    tables = [_stored(path) if path.is_dir() else load([path]) for path in paths]
    timings = pd.concat(tables, ignore_index=True)
    source = f"fitted to {', '.join(path.name for path in paths)}"
    return NetworkCalibration(timings, replace(fit_loggp(timings), source=source), level, (), "")


def _stored(folder: Path) -> pd.DataFrame:
    experiment = Experiment.read(folder)
    tables = [table for run in experiment.runs if (table := experiment.table(run, "timings")) is not None]
    if not tables:
        raise InputError(f"{folder} holds no timings of messages", "import some with: ranksight import pingpong")
    return pd.concat(tables, ignore_index=True)


def parse(output: str, command: str) -> NetworkCalibration:
    """Read what the ping-pong program printed; other lines are the launcher's.

    Raises InputError when the ranks were not two; ToolError when the output ends early.
    """
    facts: dict[str, list[str]] = {}
    rows: list[tuple[str, int, float]] = []
    for line in output.splitlines():
        if line.startswith("@#"):
            key, _, value = line[2:].partition(" ")
            facts.setdefault(key, []).append(value.strip())
        elif line.startswith("@"):
            fields = line[1:].split(",")
            try:
                op, size, duration = fields[0], int(fields[1]), float(fields[2])
            except (IndexError, ValueError):
                raise ToolError(f"'{command}' mixed up the ping-pong's output: {line[:80]!r}", "run it again") from None
            if op in OPERATIONS:
                rows.append((op, size, duration))
    ranks = facts.get("ranks", [])
    if ranks and ranks != ["2"]:
        many = f"{len(ranks)} programs of {ranks[0]} rank each" if len(ranks) > 1 else f"{ranks[0]} ranks"
        remedy = "launch two ranks: -- mpirun -n 2"
        if len(ranks) > 1:
            remedy = "the launcher and the MPI compiler belong to different MPIs: put one first in PATH"
        raise InputError(f"'{command}' started {many}, the ping-pong needs one program of 2", remedy)
    if "done" not in facts or not rows:
        raise ToolError(f"'{command}' ended before the ping-pong was done", "see what it said, and run it again")
    timings = pd.DataFrame(rows, columns=["op", "bytes", "duration"])
    hosts = tuple(facts.get("host", ()))
    level: Literal["intra", "inter"] = "intra" if len(set(hosts)) == 1 else "inter"
    library = " ".join(facts.get("mpi", []))
    parameters = replace(fit_loggp(timings), library=library, source=f"measured: {command}")
    return NetworkCalibration(timings, parameters, level, hosts, library)


def _run(command: Sequence[str], limit: float) -> str:
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{command[0]} cannot be run: {error.strerror or error}", "check the launcher") from error
    try:
        output, errors = process.communicate(timeout=limit)
    except BaseException as error:
        # The launcher's children must not outlive it; its own session holds them all. It is asked first: what a killed
        # launcher leaves in /tmp stops a later one that happens to get its process number.
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ToolError(f"'{' '.join(command)}' was not done after {limit:.0f} s", "check the network") from error
        raise
    # Ranks other than two end with a failure of their own, which parse() explains better.
    if process.returncode != 0 and "@#ranks" not in output:
        lines = [line for line in errors.splitlines() if line.strip(" -")]
        said = lines[0].strip() if lines else f"exit code {process.returncode}"
        raise ToolError(f"'{' '.join(command)}' failed: {said[:300]}", "check that this launcher runs any program")
    return output


def _shared_folder() -> Path | None:
    """A folder that the ranks see: the current one where it can be written, for /tmp is often a node's own."""
    here = Path.cwd()
    return here if os.access(here, os.W_OK) else None


def check_launcher(using: Compiler, launcher: Sequence[str]) -> None:
    """Raise where the launcher cannot start what the compiler makes.

    A program compiled for one MPI and launched by the launcher of another starts as many programs of one rank each, and
    nothing says so. Launchers that serve any MPI (srun, flux, jsrun, aprun) are let through. `using`: the compiler
    wrapper, as :func:`ranksight.comm.tracer.building.compiler` describes it. `launcher`: the launcher's words; the
    first is asked for its version. Raises ToolError when it is not found, or belongs to another MPI, or to another
    major version of Open MPI.
    """
    path = shutil.which(launcher[0])
    if path is None:
        raise ToolError(
            f"the launcher {launcher[0]} is not found", "load the site's MPI module, or: pip install 'ranksight[mpi]'"
        )
    family, release = mpi_of_launcher(path)
    if not family or not using.family:
        return
    if start_each_other(family, using.family) and not (
        family == "Open MPI" and release and using.release and release.split(".")[0] != using.release.split(".")[0]
    ):
        return
    raise ToolError(
        f"{using.path} compiles for {using.family} {using.release}, and {launcher[0]} belongs to {family} {release}",
        "put the bin folder of one MPI first in PATH, or name the compiler with RANKSIGHT_MPICC",
    )
