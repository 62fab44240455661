"""Messages and times of an MPI program, from the tracer that is preloaded into every rank."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.comm.tracer.building import INSTALL, Compiler, build, compiler, sample
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import MESSAGE_COLUMNS
from ranksight.core.linking import is_abi, linked, mpi_library, mpi_of_launcher, start_each_other
from ranksight.core.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

_ABI = "MPI ABI"
_NAMES = ("mpicc", "mpicc.openmpi", "mpicc.mpich")


class Pmpi:
    """PMPI wrappers, preloaded; see :mod:`ranksight.comm.tracer`.

    Counts and bytes repeat exactly for a program whose messages do; times do not. The whole program's ``compute_time``
    is wall time between MPI calls, ``compute_cpu_time`` the processor time of the same stretches: with more ranks than
    cores only the second says what the rank computes. The processor clock is read where at least a hundred times the
    cost of reading it has passed since the last reading (``RANKSIGHT_CPU_TIME=exact``: at every call; ``off``: never).

    A kernel is the function of the program to which the MPI call returns. A function whose very last act is the call is
    left for good by an optimising compiler, and appears as its caller.
    """

    text = "messages, bytes, peers, time in MPI and between MPI calls, memory (preloaded PMPI tracer)"
    deterministic = False

    def __init__(self, events: int = 0) -> None:
        self.events = events
        self.default = events == 0
        if events:
            self.text = f"event trace: the first {events:,} calls and transfers of each thread; also all of pmpi"

    def available(self) -> Availability:
        """Whether there is a compiler wrapper of MPI and a launcher."""
        name = os.environ.get("RANKSIGHT_MPICC") or "mpicc"
        if shutil.which(name) is None:
            return Availability(False, f"no {name} is found, the tracer is built with it", INSTALL)
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run, with the tracer preloaded on every rank by ``env``."""
        using = _compiler(launch)
        library = build(using, folder)
        preload = ":".join(word for word in (str(library), os.environ.get("LD_PRELOAD", "")) if word)
        prefix: tuple[str, ...] = ("env", f"LD_PRELOAD={preload}", f"RANKSIGHT_TRACE_DIR={folder.resolve()}")
        if self.events:
            prefix = (*prefix, f"RANKSIGHT_TRACE_EVENTS={self.events}")
        return [Step(launch.wrap(prefix))]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Tables of the run; ToolError where ranks are missing, as a run without them is not stored."""
        from ranksight.comm.readers.pmpi_traces import reading_of
        from ranksight.comm.tracer.gathering import named, read_folder, trace_files

        if not launch.launcher and launch.ranks == 1 and not trace_files(folder):
            why = "the program, started without a launcher, did not initialise MPI: nothing was sent"
            return Reading(configuration=dict(launch.configuration), messages=_nothing(), notes=(why,))
        traces, lost = read_folder(folder, launch.ranks)
        if aborted := [trace for trace in traces if trace.ended == "abort"]:
            of = " of the processes that the program started" if aborted[0].world else ""
            ranks = named([each.head["rank"] for each in aborted if each.world == aborted[0].world])
            raise ToolError(
                f"{ranks}{of} called MPI_Abort, whatever the exit code: the run is not whole",
                "see what the program wrote",
            )
        if lost:
            raise ToolError(
                f"the tracer's files are not complete: {'; '.join(lost[:3])}", "was a rank killed, or the disk full?"
            )
        launched = sum(not trace.world for trace in traces)
        if launched != launch.ranks:
            raise InputError(
                f"the program ran on {launched} ranks, the configuration says {launch.ranks}",
                "write {ranks} where the launcher takes the number of ranks",
            )
        return replace(reading_of(traces, launch.configuration), raw=() if self.events else trace_files(folder))


def _nothing() -> pd.DataFrame:
    """The messages of a program that sends none."""
    import pandas as pd

    texts = ("kernel", "operation")
    return pd.DataFrame({name: pd.Series(dtype="str" if name in texts else "int64") for name in MESSAGE_COLUMNS})


def _compiler(launch: Launch) -> Compiler:
    """The compiler wrapper of the program's MPI: the launcher's or, where there is none, one on PATH that fits.

    Raises ToolError when none fits; what is said is of the first.
    """
    using = compiler(_matching_mpicc(launch))
    check_launcher(using, launch)
    try:
        check_program(using, sample(using), launch.program)
        return using
    except ToolError:
        if launch.launcher or os.environ.get("RANKSIGHT_MPICC"):
            raise
        for path in _others(using.path):
            with suppress(ToolError):
                other = compiler(path)
                check_program(other, sample(other), launch.program)
                return other
        raise


def _others(path: str) -> list[str]:
    """All compiler wrappers on PATH, under the names that distributions give them, but for `path`."""
    folders = [folder for folder in os.get_exec_path() if folder]
    found = (shutil.which(name, path=folder) for folder in folders for name in _NAMES)
    return [each for each in dict.fromkeys(found) if each is not None and each != path]


def _matching_mpicc(launch: Launch) -> str | None:
    """The compiler wrapper in the launcher's folder, if there is one: ``mpicc.mpich`` for ``mpiexec.mpich``; for a
    program of the standard ABI ``mpicc_abi``, in that folder or on PATH."""
    if os.environ.get("RANKSIGHT_MPICC"):
        return None
    standard = is_abi(mpi_library(linked(launch.program) or {}))
    name, near = "mpicc_abi" if standard else "mpicc", None
    found = shutil.which(launch.command[0]) if launch.launcher.startswith("mpi") else None
    if found is not None:
        suffix = Path(found).name.partition(".")[2]
        near = Path(found).with_name(name if suffix in ("", "hydra") else f"{name}.{suffix}")
    if near is not None and os.access(near, os.X_OK):
        return str(near)
    return shutil.which(name) if standard else None


def check_launcher(using: Compiler, launch: Launch) -> None:
    """Refuse a launcher of another MPI than the compiler wrapper's: every rank would take itself for the only one.

    Raises ToolError.
    """
    if not launch.launcher or using.family == _ABI:
        return  # a library of the standard ABI may be anybody's
    family = mpi_of_launcher(launch.command[0])[0]
    if not start_each_other(family, using.family):
        raise ToolError(
            f"{launch.command[0]} belongs to {family}, {using.path} to {using.family} {using.release}".rstrip(),
            "put one MPI first on PATH, or name its compiler wrapper with RANKSIGHT_MPICC",
        )


def check_program(using: Compiler, made: Path, program: str) -> None:
    """Refuse a program with another MPI library than `made`, which the compiler wrapper made, or with none.

    Raises ToolError.
    """
    path = shutil.which(program)
    theirs = linked(program)
    if path is None or theirs is None:
        return
    if not theirs:
        raise ToolError(
            f"{path} is linked statically, nothing can be preloaded into it", "link it with the shared MPI library"
        )
    mine, other = mpi_library(linked(str(made)) or {}), mpi_library(theirs)
    if not mine or not other or (is_abi(mine) and is_abi(other)):
        return  # of the standard ABI one library serves as well as another
    if is_abi(mine) or is_abi(other) or not os.path.samefile(mine, other):
        raise ToolError(
            f"{path} is linked with {other}, but {using.path} ({using.family or 'MPI'} {using.release}) "
            f"builds for {mine}",
            "put the program's own MPI first on PATH, or name its compiler wrapper with RANKSIGHT_MPICC",
        )


COLLECTORS.register("pmpi")(Pmpi())
COLLECTORS.register("pmpi-events")(Pmpi(events=1_000_000))
