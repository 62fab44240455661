"""MPI and compilers: which are here and whether they belong together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ranksight.counters.doctor.findings import Examination, Finding, Machine, say, version
from ranksight.counters.installing import how_to_install

_FLAVOURS = (
    ("Open MPI", ("Open MPI", "OpenRTE", "prterun", "PRRTE", "PRTE")),
    ("Intel MPI", ("Intel(R) MPI",)),
    ("MVAPICH", ("MVAPICH",)),
    ("Cray MPICH", ("cray", "CRAY MPICH")),
    ("MPICH", ("MPICH", "HYDRA")),
    ("Slurm", ("slurm",)),
)


def flavour(text: str) -> str:
    """Which MPI a tool's own words speak of; empty where they speak of none."""
    return next((name for name, words in _FLAVOURS if any(word in text for word in words)), "")


def _launcher(machine: Machine) -> Iterator[Finding]:
    found = [(name, say((name, "--version"))) for name in ("mpirun", "mpiexec", "srun") if shutil.which(name)]
    if not found:
        yield Finding(
            "MPI launcher",
            "missing",
            "neither mpirun nor mpiexec nor srun is found",
            "no program can be run on more than one rank",
            "load the site's MPI module, or: pip install 'ranksight[mpi]'",
        )
        return
    versions = [f"{name} of {flavour(text or '') or 'an unknown MPI'} {version(text or '')}" for name, text in found]
    yield Finding("MPI launcher", "ok", ", ".join(versions))
    if os.geteuid() == 0 and any(flavour(text or "") == "Open MPI" for _, text in found):
        wanted = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
        if not all(os.environ.get(name) for name in wanted):
            yield Finding(
                "MPI as root",
                "warning",
                "you are root, and Open MPI starts nothing for root unless a variable allows it",
                "every run would fail",
                "be another user, or: export " + " ".join(f"{name}=1" for name in wanted),
            )


def _compiler(machine: Machine) -> Iterator[Finding]:
    name = os.environ.get("RANKSIGHT_MPICC") or "mpicc"
    shown = say((name, "-show")) or say((name, "--showme"))
    if shown is None:
        yield Finding(
            "mpicc",
            "missing",
            f"{name} is not found",
            "the tracer of messages cannot be built",
            "load the site's MPI module (its compiler wrapper may have another name: RANKSIGHT_MPICC=cc), "
            "or: pip install 'ranksight[mpi]'",
        )
    else:
        words = shown.split()
        under = words[0] if words else ""
        text = say((under, "--version")) if under else None
        if text is None:
            means = "the tracer of messages cannot be built"
            found = f"{name} calls {under or 'nothing'}, which is not found"
            yield Finding("mpicc", "missing", found, means, how_to_install("gcc"))
        else:
            first = text.strip().splitlines()[0] if text.strip() else under
            yield Finding("mpicc", "ok", f"{name} calls {first[:100]}")
    launcher, wrapper = shutil.which("mpirun"), shutil.which(name)
    if launcher and wrapper and Path(launcher).parent != Path(wrapper).parent:
        yield Finding(
            "MPI of launcher and compiler",
            "warning",
            f"mpirun is in {Path(launcher).parent}, {name} in {Path(wrapper).parent}",
            "a program built by one MPI and started by another runs as many programs of one rank",
            "load one MPI module only, or put its folder first in PATH",
        )


EXAMINATIONS: tuple[Examination, ...] = (_launcher, _compiler)
