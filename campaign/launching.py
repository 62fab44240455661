"""Command templates and launchers: the command line of a run, and where a tool goes in front of the program.

A template is a command line with parameters in braces, ``mpirun -n {ranks} ./heat --n {size}``. It may also hold the
sides of the process grid that ``MPI_Dims_create`` makes of the ranks, ``{grid3.x} {grid3.y} {grid3.z}`` and
``{grid2.x} {grid2.y}``, and products of all of these, ``{size*grid3.x}``.

:meth:`Launch.wrap` puts a collector's tool in front of the program. It finds the program from the launcher's options,
or at the word ``{wrap}`` in the template.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ranksight.campaign.launchers import LAUNCHERS, STARTERS, is_starter, launcher_of, rank_variables
from ranksight.core.dims import FIELD, dims_create
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

WRAP = "{wrap}"


def rank_expression() -> str:
    """A POSIX shell expression that gives a process its rank, 0 where no launcher set one."""
    expression = "0"
    for name in reversed(rank_variables()):
        expression = f"${{{name}:-{expression}}}"
    return expression


@dataclass(frozen=True, slots=True)
class Launch:
    """One command, filled in."""

    command: tuple[str, ...]  # the words of the command without ``{wrap}``
    program_at: int  # index in `command` of the program's own executable
    configuration: Mapping[str, float]
    ranks: int
    prepare: tuple[str, ...] = ()  # what is run once before the runs of the configuration; none where empty

    @property
    def launcher(self) -> str:
        """Name of the launcher, empty when the program is run by itself."""
        name = Path(self.command[0]).name
        return name if self.program_at > 0 and launcher_of(name) else ""

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
    at: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The command for numbers of ranks at which it differs."""
    prepare: tuple[str, ...] = ()  # what is run once before the runs of a configuration; none where empty
    elsewhere: bool = False
    """Whether the commands run in another folder than the current one: a program that is named relative to this one is
    then named in full."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of all commands in the order in which they appear."""
        words = (*self.words, *(word for other in self.at.values() for word in other), *self.prepare)
        terms = dict.fromkeys(t for word in words for found in FIELD.findall(word) for t in found.split("*"))
        terms.pop("wrap", None)
        return tuple(dict.fromkeys("ranks" if "." in term else term for term in terms))

    @property
    def computed(self) -> bool:
        """Whether the command has what is computed of parameters: sides of a process grid, or products."""
        return any("." in found or "*" in found for word in self.words for found in FIELD.findall(word))

    def fill(self, configuration: Mapping[str, float]) -> Launch:
        """Fill the parameters in.

        Raises InputError when a parameter of the template has no value, or no program can be found in the command.
        """

        def value(match: re.Match[str]) -> str:
            number = float(math.prod(_value(term, configuration) for term in match[1].split("*")))
            return str(int(number)) if number.is_integer() else repr(number)

        ranks = configuration.get("ranks", 1)
        if ranks < 1 or not float(ranks).is_integer():
            raise InputError(f"{ranks} is not a number of ranks", "ranks are whole numbers from 1")
        given = self.at.get(int(ranks), self.words)
        if not given:
            raise InputError("no command is given", "write it after '--': -- mpirun -n {ranks} ./program")
        words = [word if word == WRAP else FIELD.sub(value, word) for word in given]
        if WRAP in words:
            at = words.index(WRAP)
            words = [word for word in words if word != WRAP]
            if at >= len(words):
                raise InputError("nothing follows {wrap} in the command", "put {wrap} just before the program")
        else:
            at = program_index(words)
        prepare = [FIELD.sub(value, word) for word in self.prepare]
        for line, place in ((words, at), (prepare, 0)) if self.elsewhere else ():
            if line and os.sep in line[place] and is_program(line[place]):
                line[place] = os.path.abspath(line[place])
        return Launch(tuple(words), at, dict(configuration), int(ranks), tuple(prepare))


def _value(term: str, configuration: Mapping[str, float]) -> float:
    """A parameter, or a side of the process grid such as ``grid3.x``: ``MPI_Dims_create``'s, the longest first."""
    name, _, side = term.partition(".")
    wanted = "ranks" if side else name
    if wanted not in configuration:
        raise InputError(
            f"the command needs {{{wanted}}} and has no value for it", f"give --{wanted} VALUES, or write the value out"
        )
    value = float(configuration[wanted])
    return float(dims_create(int(value), int(name[-1]))["xyz".index(side)]) if side else value


def program_index(words: Sequence[str]) -> int:
    """Index of the program in a command line: the first word that is an executable and no option's value.

    The launcher is not the program, nor are those that only start it, ``env NAME=VALUE`` and others
    (:data:`ranksight.campaign.launchers.STARTERS`). Raises InputError when there is a launcher and no later word is an
    executable file, or what looks like a launcher is not known.
    """
    known = launcher_of(words[0])
    if shutil.which(words[0]) is None:
        if known:
            hint = "load the site's MPI module, or: pip install 'ranksight[mpi]'"
            raise InputError(f"the launcher {words[0]} is not found", hint)
        whole = len(words) == 1 and len(words[0].split()) > 1
        remedy = "write the command without quotes around it" if whole else "check its path, and that it is executable"
        raise InputError(f"{words[0]} is not a program that can be run", remedy)
    if not known and is_starter(words[0]):
        at = _next_program(words, 1, STARTERS[Path(words[0]).name])
        if at is not None and launcher_of(words[at]):
            raise InputError(
                f"{words[0]} stands before the launcher {words[at]}",
                f"begin with the launcher, and put {words[0]} before the program: mpirun -n {{ranks}} {words[0]} ...",
            )
        return _behind_starters(words, at or 0)
    if not known:
        started = next((word for word in words[1:] if os.sep in word and is_program(word)), None)
        if started is not None:
            raise InputError(
                f"{words[0]} starts {started} and is not a launcher that is known ({', '.join(LAUNCHERS)})",
                "put {wrap} just before the program, so that tools run there on every rank",
            )
        return 0
    launcher = LAUNCHERS[known]
    found = _next_program(words, 2 if words[1:2] and words[1] in launcher.verbs else 1, launcher.valued)
    if found is not None:
        return _behind_starters(words, found)
    missing = next((word for word in words[1:] if os.sep in word and not word.startswith("-")), "")
    if missing:
        raise InputError(
            f"{missing} is not a program that can be run", "check its path, and that it is built and executable"
        )
    raise InputError(
        f"no program is found in '{' '.join(words)}'", "put {wrap} just before the program in the template"
    )


def _next_program(words: Sequence[str], begin: int, valued: frozenset[str]) -> int | None:
    """Index of the first program from `begin` on that is no option's value."""
    for index in range(begin, len(words)):
        if not words[index].startswith("-") and words[index - 1] not in valued and is_program(words[index]):
            return index
    return None


def _behind_starters(words: Sequence[str], index: int) -> int:
    """Index of the program that the one at `index` becomes; `index` where it becomes no other."""
    while is_starter(words[index]):
        found = _next_program(words, index + 1, STARTERS[Path(words[index]).name])
        if found is None:
            return index
        index = found
    return index


def in_shell(words: Sequence[str]) -> str:
    """Words of a template as a line for a shell; parameters in braces need no quotes."""
    bare = (FIELD.sub("x", word) for word in words)
    return " ".join(
        word if shlex.quote(plain) == plain else shlex.quote(word) for word, plain in zip(words, bare, strict=True)
    )


def is_program(word: str) -> bool:
    """Whether a word of a command is a file, or a name on PATH, that can be run."""
    if os.sep in word:
        return os.access(word, os.X_OK) and Path(word).is_file()
    return shutil.which(word) is not None
