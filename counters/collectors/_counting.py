"""Building the library that limits a simulation to what lies between MPI_Init and MPI_Finalize."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

from ranksight.core.linking import linked_libraries

_MPI = re.compile(r"^\s*lib(?:mpi|mpich|mpi_\w+|mpicxx|mpifort|fmpich)[\w-]*\.so", re.MULTILINE)

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")


def uses_shared_mpi(program: str) -> bool:
    """Whether `program` is linked, itself or through its libraries, to a shared MPI library, or is an interpreter of
    Python, whose modules load one."""
    return _MPI.search(linked_libraries(program)) is not None or is_python(program)


def is_python(program: str) -> bool:
    """Whether `program` is an interpreter of Python, by the name of its file."""
    found = shutil.which(program)
    return found is not None and _PYTHON.fullmatch(Path(found).resolve().name) is not None


def build(folder: Path, *more: str) -> Path | None:
    """Compile the library into `folder`; None where it cannot be built, or not be preloaded for blanks in its path.

    Without it the whole process is simulated: the kernels' counts are the same, it takes two to three times as long.
    `folder`: searched for headers too. `*more`: names of further sources of this package that go into the same library.
    """
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    valgrind = shutil.which("valgrind")
    if compiler is None or valgrind is None or re.search(r"[\s:;]", str(folder.resolve())):
        return None
    include = Path(valgrind).resolve().parent.parent / "include"
    library = folder.resolve() / "between_init_and_finalize.so"
    with as_file(files("ranksight.counters.collectors")) as sources:
        given = [str(sources / name) for name in ("between_init_and_finalize.c", *more)]
        options = ["-O2", "-shared", "-fPIC", f"-I{include}", f"-I{folder.resolve()}"]
        command = [compiler, *options, *given, "-o", str(library), "-ldl"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return library if done.returncode == 0 else None
