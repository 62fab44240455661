"""Whether the MPI compiler and the launcher belong to the same MPI.

A program compiled for one MPI and launched by another's launcher starts as many programs of one rank each, and
nothing says so. Launchers that serve any MPI (srun, flux, jsrun, aprun) tell nothing and are let through.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ranksight.comm.tracer.building import Compiler
from ranksight.core.errors import ToolError
from ranksight.core.linking import mpi_of_launcher, start_each_other


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
