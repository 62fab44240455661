"""What is checked before the first run of a campaign, whatever collects: program, launcher, and that they fit.

Under the launcher of another MPI every process takes itself for the only one: it computes everything, exits with 0, and
the runs look like those of many ranks. In most cases the library that the program is linked with and the launcher's
version show this. Otherwise the program is started once on the fewest ranks above one, up to MPI's initialisation, and
reports the size of its world.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ranksight.campaign import supervising
from ranksight.campaign.launchers import is_starter, launcher_of
from ranksight.campaign.launching import Launch, is_program
from ranksight.core.errors import InputError, ToolError
from ranksight.core.linking import (
    family_of_library,
    is_abi,
    is_mpi_launcher,
    linked,
    mpi_library,
    mpi_of_launcher,
    start_each_other,
    without_mpi,
)
from ranksight.core.log import log

PATIENCE = 20.0
"""Seconds in which a program comes to initialise MPI; one that takes longer is not checked."""
_SOURCE = Path(__file__).with_name("world.c")


def check(launches: Iterable[Launch], folder: Path, start: bool, record: str) -> None:
    """Refuse commands whose runs would fail, or succeed and be wrong.

    Raises InputError when the program is missing or not executable, or uses another MPI than the launcher or none; when
    the launcher does not start because the home folder or the folder for temporary files is missing; ToolError when the
    program cannot initialise MPI, or sees another number of ranks than it was launched on.

    Parameters
    ----------
    launches : iterable of Launch
        What is going to be run.
    folder : Path
        Where a program that is started may leave files; on a file system that all ranks see.
    start : bool
        Whether to start the program when its libraries do not show which MPI it uses.
    record : str
        Name of the file that names the processes while they run.
    """
    seen: dict[tuple[str, str], Launch] = {}
    for launch in sorted(launches, key=lambda each: (each.ranks == 1, each.ranks)):
        seen.setdefault((launch.command[0], launch.program), launch)
    for launch in seen.values():
        _check_environment(launch.command[0])
        if not _is_plain(launch):
            continue  # in a container, or behind a wrapper: the program is not visible from here
        if not is_program(launch.program):
            raise InputError(
                f"{launch.program} is not a program that can be run",
                "check its path, and that it is built and executable",
            )
        if launch.launcher and launch.ranks > 1 and without_mpi(launch.program):
            raise InputError(
                f"{launch.program} is linked with no MPI library: each of {launch.ranks} processes would be a program "
                "of one rank",
                "measure the program that is built with MPI",
            )
        library = mpi_library(linked(launch.program) or {})
        if not library:
            continue
        family = "" if is_abi(library) else family_of_library(library)
        launcher = mpi_of_launcher(launch.command[0])[0] if launch.launcher else ""
        if not start_each_other(launcher, family):
            raise InputError(
                f"{launch.command[0]} belongs to {launcher}, but {launch.program} is linked with {library} ({family}): "
                "each process would be a program of one rank",
                "use the launcher of the program's MPI",
            )
        if start and launch.ranks > 1 and not is_abi(library):
            start = False  # once is enough
            _start(launch, folder, record, f"{family}, {library}" if family else library)


def _check_environment(launcher: str) -> None:
    """Refuse an environment in which the launcher of an MPI ends with a page of its own errors."""
    if not is_mpi_launcher(launcher):
        return
    # Open MPI asks for it even to print its version; MPICH does without.
    if not os.environ.get("HOME") and not mpi_of_launcher(launcher)[0]:
        raise InputError(f"HOME is not set, and {launcher} does not start without it", "export HOME=/a/folder")
    place = Path(os.environ.get("TMPDIR") or "/").absolute()
    existing = next(folder for folder in (place, *place.parents) if folder.exists())  # the rest is made by the launcher
    if existing != Path("/"):
        try:
            tempfile.TemporaryDirectory(dir=existing).cleanup()
        except OSError as error:
            raise InputError(
                f"TMPDIR is {place}, where {launcher} cannot write: {error.strerror or error}",
                "unset TMPDIR, or name a folder that can be written",
            ) from error


def _is_plain(launch: Launch) -> bool:
    """Whether the launcher itself starts the program, with nothing in between but what becomes the program."""
    first, *between = launch.command[: launch.program_at] or ("",)
    if first and not launcher_of(first) and not is_starter(first):
        return False
    return not any(is_program(word) for word in between if not word.startswith("-") and not is_starter(word))


def _start(launch: Launch, folder: Path, record: str, library: str) -> None:
    """Start the program and compare the size of its world with the number of ranks."""
    try:
        with tempfile.TemporaryDirectory(prefix=".pass-", dir=folder) as name:
            place = Path(name).resolve()
            preloaded = _build(place)
            if preloaded is None:
                return
            preload = ":".join(filter(None, (str(preloaded), os.environ.get("LD_PRELOAD", ""))))
            command = launch.wrap(("env", f"LD_PRELOAD={preload}", f"RANKSIGHT_WORLD={place}"))
            status, _ = supervising.run(command, place / "output.txt", dict(os.environ), place / record, PATIENCE)
            sizes = {int(file.read_text()) for file in place.glob("world.*[0-9]")}
            begun = any(place.glob("begun.*[0-9]"))
    except (OSError, ValueError):
        return  # the run itself shows what is wrong
    log("the program sees a world of %s ranks, %d were asked for", sorted(sizes), launch.ranks)
    if begun and not sizes and status:
        raise ToolError(
            f"'{' '.join(launch.command)}' ends with status {status} while it initialises MPI",
            f"use the launcher of the program's MPI ({library})",
        )
    if sizes and launch.ranks not in sizes:
        seen = " or ".join(map(str, sorted(sizes)))
        remedy = f"use the launcher of the program's MPI ({library})"
        if sizes != {1}:
            remedy = "write {ranks} where the launcher takes the number of ranks"
        raise ToolError(
            f"'{' '.join(launch.command)}' starts programs of {seen} rank{'s' * (sizes != {1})}, not of {launch.ranks}",
            remedy,
        )


def _build(place: Path) -> Path | None:
    """The library that is preloaded; None where it cannot be built, or not be preloaded for blanks in its path."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    if compiler is None or any(sign in str(place) for sign in " \t\n:;"):
        return None
    library = place / "world.so"
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return library if done.returncode == 0 else None
