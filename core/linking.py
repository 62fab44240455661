"""The shared libraries that a program loads, and the MPI among them."""

from __future__ import annotations

import mmap
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_MPI_LIBRARY = re.compile(r"libmpi(ch|_abi)?\.so")
_LAUNCHERS = (
    ("Intel MPI", re.compile(r"Intel\(R\) MPI(?: Library.*?Version\s+([\d.]+))?", re.DOTALL)),
    ("Open MPI", re.compile(r"(?:\(Open MPI\)|Open ?RTE\)?)(?:\s+(\d+\.\d+))?|PRRTE|\bprte")),
    ("MVAPICH", re.compile("MVAPICH")),
    ("MPICH", re.compile(r"(?:HYDRA|MPICH)(?: build details:\s*Version:\s*(\d+\.\d+))?")),
)
"""What a launcher's ``--version`` says of the MPI it belongs to; PRRTE has versions of its own."""
_LIBRARIES = (
    (b"Open MPI v", "Open MPI"),
    (b"Intel(R) MPI Library", "Intel MPI"),
    (b"MVAPICH", "MVAPICH"),
    (b"MPICH Version", "MPICH"),
)
"""What ``MPI_Get_library_version`` of each begins with, as the file holds it."""
_LEADS_TO_MPI = re.compile(rb"mpi_init|\0(?:dlopen|posix_spawnp?|exec[lv]p?e?)\0", re.IGNORECASE)
"""Names of calls by which a program uses MPI without being linked with it: a library of its own, one that is loaded
while it runs, another program."""
_INTERPRETER = re.compile(r"lib(?:python|pypy|julia|R\b|jli|perl|ruby|lua|tcl|octave|guile)")
"""Libraries of languages whose modules may load MPI."""
_HYDRA = frozenset({"MPICH", "Intel MPI", "MVAPICH", "MVAPICH2", "MPI ABI"})


def linked_libraries(program: str) -> str:
    """What ``ldd`` says of `program`, its libraries' libraries too; empty for a static one."""
    path, ldd = shutil.which(program), shutil.which("ldd")
    if path is None or ldd is None:
        return ""
    try:
        done = subprocess.run([ldd, path], capture_output=True, text=True, errors="replace", check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def linked(program: str) -> dict[str, str] | None:
    """Shared libraries that `program` loads, name to file: empty where it is linked statically, None where it cannot be
    looked at, as a script: what that starts is seen only when it runs."""
    path, ldd = shutil.which(program), shutil.which("ldd")
    if path is None or ldd is None or not _is_elf(Path(path)):
        return None
    lines = (line.split() for line in linked_libraries(path).splitlines())
    return {words[0]: words[2] for words in lines if len(words) > 2 and words[1] == "=>"}


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def mpi_library(libraries: Mapping[str, str]) -> str:
    """File of the MPI library among `libraries`, empty where there is none."""
    return next((file for name, file in libraries.items() if _MPI_LIBRARY.match(name) and file[0] == "/"), "")


def without_mpi(program: str) -> bool:
    """Whether `program` certainly uses no MPI: neither it nor its libraries are linked with one, and it neither loads
    one, nor starts another program, nor interprets a language. A static program or a script may be anything."""
    libraries, path = linked(program), shutil.which(program)
    if not libraries or path is None or mpi_library(libraries) or any(map(_INTERPRETER.match, libraries)):
        return False
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _LEADS_TO_MPI.search(content) is None
    except (OSError, ValueError):
        return False


def is_abi(library: str) -> bool:
    """Whether a library is of the standard ABI (MPI 5), which any MPI may serve."""
    return Path(library).name.startswith("libmpi_abi.")


def family_of_library(library: str) -> str:
    """The MPI that a library's file says it is: ``Open MPI``, ``MPICH``, ...; empty where it says nothing."""
    try:
        with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return next((name for sign, name in _LIBRARIES if content.find(sign) >= 0), "")
    except (OSError, ValueError):  # an empty file cannot be mapped
        return ""


def is_mpi_launcher(command: str) -> bool:
    """Whether a command is named as the launchers that come with an MPI are; ``srun`` and its like are not."""
    return Path(command).name.startswith(("mpi", "orte", "prte"))


def mpi_of_launcher(command: str) -> tuple[str, str]:
    """Family and version of the MPI that a launcher belongs to, as its ``--version`` says; empty where it does not.

    Launchers of batch systems, as ``srun``, start programs of any MPI: they have none.
    """
    if not is_mpi_launcher(command):
        return "", ""
    try:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", ""
    said = done.stdout + done.stderr
    found = ((family, match) for family, sign in _LAUNCHERS if (match := sign.search(said)))
    return next(((family, (match.groups() or [""])[0] or "") for family, match in found), ("", ""))


def start_each_other(launcher: str, library: str) -> bool:
    """Whether a launcher of one family starts programs of another; not known, with an empty name, is yes.

    MPICH and those derived from it share one process manager and one binary interface.
    """
    return not launcher or not library or launcher == library or {launcher, library} <= _HYDRA
