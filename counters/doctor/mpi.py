"""MPI and compilers: which are here and whether they belong together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ranksight.counters.doctor.findings import Examination, Finding, Machine, finding, say, version
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
        yield finding("no_launcher")
        return
    versions = [f"{name} of {flavour(text or '') or 'an unknown MPI'} {version(text or '')}" for name, text in found]
    yield finding("launcher", versions=", ".join(versions))
    wanted = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    open_mpi = any(flavour(text or "") == "Open MPI" for _, text in found)
    if open_mpi and os.geteuid() == 0 and not all(map(os.environ.get, wanted)):
        yield finding("mpi_as_root", variables=" ".join(f"{name}=1" for name in wanted))


def _compiler(machine: Machine) -> Iterator[Finding]:
    name = os.environ.get("RANKSIGHT_MPICC") or "mpicc"
    shown = say((name, "-show")) or say((name, "--showme"))
    if shown is None:
        yield finding("no_mpicc", name=name)
    else:
        under = next(iter(shown.split()), "")
        text = say((under, "--version")) if under else None
        if text is None:
            yield finding("mpicc_without_compiler", name=name, under=under or "nothing", install=how_to_install("gcc"))
        else:
            yield finding("mpicc", name=name, compiler=next(iter(text.strip().splitlines()), under)[:100])
    launcher, wrapper = shutil.which("mpirun"), shutil.which(name)
    if launcher and wrapper and Path(launcher).parent != Path(wrapper).parent:
        yield finding("two_mpis", launcher=Path(launcher).parent, name=name, wrapper=Path(wrapper).parent)


EXAMINATIONS: tuple[Examination, ...] = (_launcher, _compiler)
