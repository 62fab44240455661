"""Compile the bundled MPI programs with the MPI compiler of the machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ranksight.core.errors import InputError, ToolError

FLAGS = ("-O2", "-g")
"""Optimised as users' programs are, with line information for profilers."""

_REMEDY = "install one with: pip install 'ranksight[mpi]', or load the site's MPI (module load openmpi)"
_TIMEOUT = 300.0


def names() -> tuple[str, ...]:
    """Names of the bundled programs, sorted."""
    return tuple(sorted(item.name[:-2] for item in files("ranksight.examples").iterdir() if item.name.endswith(".c")))


def source(name: str = "heat") -> Path:
    """The C source of a bundled program, which includes what else it has.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Raises
    ------
    InputError
        When no bundled program has that name, or the package is not on a file system (in a zip archive).
    """
    if name not in names():
        raise InputError(f"no bundled program is named {name!r}", f"there are: {', '.join(names())}")
    path = Path(str(files("ranksight.examples").joinpath(f"{name}.c")))
    if not path.is_file():
        raise InputError(f"{path} is not a file on disk", "install the package unpacked, with pip")
    return path


def build(
    name: str = "heat",
    directory: str | os.PathLike[str] = ".",
    mpicc: str = "mpicc",
    flags: Sequence[str] = FLAGS,
) -> Path:
    """Compile a bundled program into a directory; the file appears there whole or not at all.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    directory : path
        Where the program goes; made if absent. A program of the same name there is replaced.
    mpicc : str
        MPI compiler wrapper, a name on the path or a path.
    flags : sequence of str
        Compiler options ahead of the source.

    Returns
    -------
    Path
        The program, absolute.

    Raises
    ------
    InputError
        Unknown program, or the directory cannot be written.
    ToolError
        The compiler is missing, fails (with the first lines of its errors) or hangs.
    """
    compiler = shutil.which(mpicc)
    if compiler is None:
        raise ToolError(f"no MPI compiler named {mpicc!r} is on the path", _REMEDY)
    code = source(name)
    folder = Path(directory).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            part = Path(scratch) / name
            _compile([compiler, *flags, str(code), "-o", str(part), "-lm"], name)
            return part.replace(folder / name)
    except OSError as error:
        raise InputError(f"cannot build in {folder}: {error.strerror}", "name a folder that can be written") from error


def _compile(command: Sequence[str], name: str) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{command[0]} did not finish {name}.c within {_TIMEOUT:.0f} s", _REMEDY) from None
    except OSError as error:
        raise ToolError(f"cannot run {command[0]}: {error.strerror}", _REMEDY) from error
    if done.returncode != 0:
        raise ToolError(f"{command[0]} cannot compile {name}.c: {first_errors(done.stderr)}", _REMEDY)


def first_errors(text: str, lines: int = 3) -> str:
    """The first lines of a compiler's output that name an error, or its first lines where none does."""
    given = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in given if re.search(r"\berror\b|undefined|cannot find|not found", line, re.IGNORECASE)]
    return " | ".join((found or given)[:lines]) or "it said nothing"
