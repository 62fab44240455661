"""Whether the MPI compiler and the launcher belong to the same MPI.

A program compiled for one MPI and launched by another's launcher starts as many programs of one rank each, and
nothing says so. Launchers that serve any MPI (srun, flux, jsrun, aprun) tell nothing and are let through.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

from ranksight.comm.tracer.building import Compiler
from ranksight.errors import ToolError

SIGNS = (
    ("Intel MPI", re.compile(r"Intel\(R\) MPI Library.*?Version\s+([\d.]+)", re.DOTALL)),
    ("Open MPI", re.compile(r"\(Open MPI\)\s+(\d+\.\d+)|(?:OpenRTE|PRRTE)\)?\s+([\d.]+)")),
    ("MPICH", re.compile(r"HYDRA build details:\s*Version:\s*(\d+\.\d+)", re.DOTALL)),
)
"""What a launcher's ``--version`` says of the MPI it belongs to."""
HYDRA = ("MPICH", "MVAPICH", "MVAPICH2", "Intel MPI", "MPI ABI")
"""Families whose programs MPICH's launcher starts as well."""


def check(using: Compiler, launcher: Sequence[str]) -> None:
    """Raise where the launcher cannot start what the compiler makes.

    Parameters
    ----------
    using : Compiler
        The compiler wrapper, as :func:`ranksight.comm.tracer.building.compiler` describes it.
    launcher : sequence of str
        The launcher's words; the first is asked for its version.

    Raises
    ------
    ToolError
        When it is not found, or belongs to another MPI, or to another major version of Open MPI.
    """
    family, release = identify(launcher[0])
    if not family or not using.family:
        return
    served = using.family == family or (family in HYDRA and using.family in HYDRA)
    if served and not (
        family == "Open MPI" and release and using.release and release.split(".")[0] != using.release.split(".")[0]
    ):
        return
    raise ToolError(
        f"{using.path} compiles for {using.family} {using.release}, and {launcher[0]} belongs to {family} {release}",
        "put the bin folder of one MPI first in PATH, or name the compiler with RANKSIGHT_MPICC",
    )


def identify(launcher: str) -> tuple[str, str]:
    """Family and version of the MPI a launcher belongs to; empty where it does not say."""
    path = shutil.which(launcher)
    if path is None:
        raise ToolError(
            f"the launcher {launcher} is not found", "load the site's MPI module, or: pip install 'ranksight[mpi]'"
        )
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", ""
    for family, sign in SIGNS:
        if match := sign.search(said.stdout + said.stderr):
            return family, next((group for group in match.groups() if group), "")
    return "", ""
