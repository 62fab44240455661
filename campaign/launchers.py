"""Launchers: the variables that hold a process's rank, and the options that take a value.

Ours are described in ``launchers.toml``; third parties add theirs by the entry point group ``ranksight.launchers``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ranksight.core.records import dataclass
from ranksight.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Launcher:
    """One launcher."""

    variables: tuple[str, ...]  # environment variables that hold the rank of a process
    valued: frozenset[str]
    """Options that are followed by a value as a word of its own, so that the value is not taken for the program."""
    verbs: frozenset[str] = frozenset()
    """Words that follow the launcher and belong to it, such as ``run`` of ``flux run``."""


LAUNCHERS: Registry[Launcher] = Registry("launcher", group="ranksight.launchers")

_CONTENT = tomllib.loads(Path(__file__).with_name("launchers.toml").read_text(encoding="utf-8"))
STARTERS = {name: frozenset(options) for name, options in _CONTENT["starters"].items()}
"""Programs that set something and become the program that follows, and their options that take a value."""
for _each in _CONTENT["launchers"]:
    _valued = frozenset(option for group in _each["options"] for option in _CONTENT["options"][group])
    for _name in _each["names"]:
        LAUNCHERS.register(_name)(Launcher(tuple(_each["variables"]), _valued, frozenset(_each.get("verbs", ()))))


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
