"""Launchers: the variables that hold a process's rank, and the options that take a value.

A launcher is a small description; third parties add theirs by the entry point group ``ranksight.launchers``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranksight.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Launcher:
    """One launcher.

    Attributes
    ----------
    variables : tuple of str
        Environment variables that hold the rank of a process.
    valued : frozenset of str
        Options that are followed by a value as a word of its own, so that the value is not taken for the program.
    verbs : frozenset of str
        Words that follow the launcher and belong to it, such as ``run`` of ``flux run``.
    """

    variables: tuple[str, ...]
    valued: frozenset[str]
    verbs: frozenset[str] = frozenset()


LAUNCHERS: Registry[Launcher] = Registry("launcher", group="ranksight.launchers")

STARTERS = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n", "--class", "--classdata"}),
    "numactl": frozenset({"-m", "-N", "-C", "-i", "-p", "-P", "-w"}),
    "taskset": frozenset(),
    "setarch": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
}
"""Programs that set something and become the program that follows, and their options that take a value."""

_COMMON = frozenset({"-n", "-np", "--n", "--np", "-c", "-N", "-H", "--host", "-host", "--hostfile", "-hostfile", "-x"})
_OPEN_MPI = _COMMON | {
    "--map-by", "--rank-by", "--bind-to", "--mca", "-mca", "--prtemca", "--pmixmca", "--npernode", "--ppr", "--wdir",
    "-wdir", "--output", "--timeout", "--tune", "--prefix", "--rankfile", "-machinefile", "--machinefile", "--app",
}  # fmt: skip
_HYDRA = _COMMON | {
    "-f", "-ppn", "-perhost", "-env", "-genv", "-genvlist", "-envlist", "-bind-to", "-map-by", "-machinefile",
    "-configfile", "-iface", "-launcher", "-wdir", "-rmk", "-outfile-pattern", "-errfile-pattern", "-usize",
}  # fmt: skip
_SRUN = frozenset({
    "-n", "--ntasks", "-N", "--nodes", "-c", "--cpus-per-task", "-p", "--partition", "-A", "--account", "-t", "--time",
    "-J", "--job-name", "-w", "--nodelist", "-x", "--exclude", "-o", "--output", "-e", "--error", "-i", "--input",
    "-m", "--distribution", "-D", "--chdir", "-q", "--qos", "-C", "--constraint", "-d", "--dependency", "--export",
    "--mem", "--mem-per-cpu", "--ntasks-per-node", "--ntasks-per-core", "--ntasks-per-socket", "--cpu-bind",
    "--mem-bind", "--hint", "--mpi", "--gres", "--gpus", "--jobid", "-r", "--relative", "--reservation", "-W", "--wait",
})  # fmt: skip
_JSRUN = frozenset({
    "-n", "--nrs", "-p", "--np", "-a", "--tasks_per_rs", "-c", "--cpu_per_rs", "-g", "--gpu_per_rs", "-r",
    "--rs_per_host", "-b", "--bind", "-d", "--launch_distribution", "-l", "--latency_priority", "-m",
    "--memory_per_rs", "-E", "--env", "-F", "--env_eval", "-D", "--env_no_propagate", "-o", "--stdio_stdout", "-k",
    "--stdio_stderr", "-t", "--stdio_input", "-e", "--stdio_mode", "-M", "--smpiargs", "-h", "--chdir", "-U",
    "--erf_input", "-P", "--pre_post_exec", "-X", "--exit_on_error",
})  # fmt: skip
_FLUX = frozenset({
    "-n", "--ntasks", "-N", "--nodes", "-c", "--cores-per-task", "-g", "--gpus-per-task", "-t", "--time-limit", "-q",
    "--queue", "-B", "--bank", "-o", "--setopt", "-S", "--setattr", "--env", "--input", "--output", "--error",
    "--requires", "--tasks-per-node", "--tasks-per-core", "--cwd", "--job-name", "--urgency",
})  # fmt: skip
_APRUN = frozenset({
    "-n", "-N", "-d", "-S", "-j", "-r", "-cc", "-cp", "-L", "-m", "-p", "-e", "-E", "-A", "-B", "-ss", "-sn", "-sl",
})  # fmt: skip
_OMPI_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def _add(name: str, launcher: Launcher) -> None:
    LAUNCHERS.register(name)(launcher)


for _name in ("mpirun", "mpiexec", "orterun", "prterun"):
    _add(_name, Launcher((*_OMPI_VARIABLES, "PMI_RANK"), _OPEN_MPI | _HYDRA))
_add("mpiexec.hydra", Launcher(("PMI_RANK", "MV2_COMM_WORLD_RANK"), _HYDRA))
_add("srun", Launcher(("SLURM_PROCID",), _SRUN))
_add("jsrun", Launcher(("JSM_NAMESPACE_RANK", "PMIX_RANK"), _JSRUN))
_add("flux", Launcher(("FLUX_TASK_RANK",), _FLUX, frozenset({"run", "mini", "submit", "alloc", "batch"})))
_add("aprun", Launcher(("ALPS_APP_PE",), _APRUN))
_add("ibrun", Launcher((*_OMPI_VARIABLES, "PMI_RANK"), _COMMON))


def launcher_of(word: str) -> str:
    """Name of the launcher that a command's first word is, empty where it is none.

    The launchers of several MPIs side by side count: ``mpirun.openmpi``, ``mpiexec-mpich-mp``.
    """
    name = word.rpartition("/")[2]
    if name in LAUNCHERS:
        return name
    several = re.fullmatch(r"(mpirun|mpiexec)([.-]\w+)+", name)
    return several[1] if several else ""


def is_starter(word: str) -> bool:
    """Whether a word of a command is one of :data:`STARTERS`."""
    return word.rpartition("/")[2] in STARTERS


def rank_variables() -> tuple[str, ...]:
    """Environment variables in which launchers put the rank of a process, the most reliable first.

    A launcher's own come before PMI's and the batch system's, as ``mpirun`` inside a Slurm job sees both.
    """
    late = ("SLURM_PROCID", "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK", "ALPS_APP_PE")
    early = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
    every = [name for launcher in LAUNCHERS for name in LAUNCHERS[launcher].variables]
    return tuple(dict.fromkeys((*early, *(name for name in every if name not in late), *late)))
