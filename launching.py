"""Command templates and launchers: what is run, and where a tool is put in front of the program on every rank.

A template is a command line with parameters in braces, ``mpirun -n {ranks} ./heat --n {size}``. A collector that has to
stand before the program is put there by :meth:`Launch.wrap`; where the program begins is found from the launcher's
options, or stated by the word ``{wrap}`` in the template.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksight.errors import InputError

LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "srun", "jsrun", "aprun", "flux", "ibrun")
RANK_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "FLUX_TASK_RANK",
    "JSM_NAMESPACE_RANK",
    "ALPS_APP_PE",
)
"""Variables in which launchers tell a process its rank, in the order in which they are believed."""

WRAP = "{wrap}"
_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def is_launcher(name: str) -> bool:
    """Whether `name` is a launcher's, also one of several MPIs: ``mpirun.openmpi``, ``mpiexec.mpich``."""
    return name in LAUNCHERS or re.fullmatch(r"(mpirun|mpiexec)([.-]\w+)+", name) is not None


def rank_expression() -> str:
    """A POSIX shell expression that gives a process its rank, 0 where no launcher set one."""
    expression = "0"
    for name in reversed(RANK_VARIABLES):
        expression = f"${{{name}:-{expression}}}"
    return expression


@dataclass(frozen=True, slots=True)
class Launch:
    """One command, filled in.

    Attributes
    ----------
    command : tuple of str
        The words of the command without ``{wrap}``.
    program_at : int
        Index in `command` of the program's own executable.
    configuration : mapping of str to float
    ranks : int
    """

    command: tuple[str, ...]
    program_at: int
    configuration: Mapping[str, float]
    ranks: int

    @property
    def launcher(self) -> str:
        """Name of the launcher, empty when the program is run by itself."""
        name = Path(self.command[0]).name
        return name if self.program_at > 0 and is_launcher(name) else ""

    @property
    def program(self) -> str:
        """The program's executable as the command names it."""
        return self.command[self.program_at]

    def wrap(self, prefix: Sequence[str]) -> tuple[str, ...]:
        """The command with `prefix` in front of the program on every rank."""
        return (*self.command[: self.program_at], *prefix, *self.command[self.program_at :])


@dataclass(frozen=True, slots=True)
class Template:
    """A command with parameters in braces."""

    words: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the order in which they appear."""
        names = dict.fromkeys(name for word in self.words for name in _FIELD.findall(word))
        names.pop("wrap", None)
        return tuple(names)

    def fill(self, configuration: Mapping[str, float]) -> Launch:
        """Fill the parameters in.

        Raises
        ------
        InputError
            When a parameter of the template has no value, or no program can be found in the command.
        """

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name not in configuration:
                raise InputError(
                    f"the command needs {{{name}}} and has no value for it",
                    f"give --{name} VALUES, or write the value out",
                )
            number = float(configuration[name])
            return str(int(number)) if number.is_integer() else repr(number)

        if not self.words:
            raise InputError("no command is given", "write it after '--': -- mpirun -n {ranks} ./program")
        words = [word if word == WRAP else _FIELD.sub(value, word) for word in self.words]
        if WRAP in words:
            at = words.index(WRAP)
            words = [word for word in words if word != WRAP]
            if at >= len(words):
                raise InputError("nothing follows {wrap} in the command", "put {wrap} just before the program")
        else:
            at = program_index(words)
        ranks = configuration.get("ranks", 1)
        if ranks < 1 or not float(ranks).is_integer():
            raise InputError(f"{ranks} is no number of ranks", "ranks are whole numbers from 1")
        return Launch(tuple(words), at, dict(configuration), int(ranks))


def program_index(words: Sequence[str]) -> int:
    """Index of the program in a launcher's command line: the first word that is an executable and no option's value.

    Raises
    ------
    InputError
        When there is a launcher and no later word is an executable file.
    """
    name = Path(words[0]).name
    if not is_launcher(name):
        if shutil.which(words[0]) is None:
            raise InputError(f"{words[0]} is no program that can be run", "check its path, and that it is executable")
        return 0
    if shutil.which(words[0]) is None:
        hint = "load the site's MPI module, or: pip install 'ranksight[mpi]'"
        raise InputError(f"the launcher {words[0]} is not found", hint)
    for index in range(1, len(words)):
        word = words[index]
        if word.startswith("-") or words[index - 1] in ("-x", "--export", "-genv", "-env"):
            continue
        if name == "flux" and index == 1 and word in ("run", "mini"):
            continue
        if (os.sep in word and os.access(word, os.X_OK) and Path(word).is_file()) or (
            os.sep not in word and shutil.which(word) is not None
        ):
            return index
    missing = next((word for word in words[1:] if os.sep in word and not word.startswith("-")), "")
    if missing:
        raise InputError(
            f"{missing} is no program that can be run", "check its path, and that it is built and executable"
        )
    raise InputError(
        f"no program is found in '{' '.join(words)}'", "put {wrap} just before the program in the template"
    )
