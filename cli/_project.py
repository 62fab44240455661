"""The project file: ``ranksight.toml`` in a folder completes the verbs that are typed there without an argument.

A verb that is given what it works on (a command, an experiment, a model) takes nothing from the file but prices, which
are those of the machine. Otherwise the file gives it, with the options that the file has for the verb; an option on the
line replaces the file's.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli._parser import PROJECT_FILE
from ranksight.cli._values import WRITE, values
from ranksight.core.errors import InputError, UsageError, nearest
from ranksight.core.records import dataclass
from ranksight.core.units import in_full

if TYPE_CHECKING:
    from ranksight.cli._parser import Parser

FILE = PROJECT_FILE
REMEDY = "'ranksight init --force' writes a new one"
TEXTS = ("command", "experiment", "platform", "expectations", "baseline")
LISTS = ("collectors", "kernels", "history", "price")
TABLES = ("measure", "target", "jobs")
FLAGS = ("shared", "each-repetition")
JOBS = ("time", "ranks-per-node", "option", "at-once", "setup", *FLAGS)
"""Options of ``measure --emit``, without ``--job-``; :data:`FLAGS` are true or false."""
MEASURE = ("reps", "timeout", "workdir", "prepare", "application")
"""Options of ``measure`` that its table may hold; every other key is a parameter of the command."""


@dataclass(frozen=True)
class Project:
    """Settings of a project; see docs/project.md for the file."""

    command: str = ""  # template with ``{ranks}`` and other parameters; empty where measurements were imported
    experiment: str = ""  # folder of the measurements; the model is next to it, with ``.model.json``
    measure: Mapping[str, str] = field(default_factory=dict)  # values of the parameters, and options of ``measure``
    target: Mapping[str, str] = field(default_factory=dict)  # values of the parameters where predictions are wanted
    jobs: Mapping[str, str | bool | Sequence[str]] = field(default_factory=dict)
    """Options of ``measure --emit``, without ``--job-``."""
    collectors: Sequence[str] = ()  # what to measure with, and the kernels that predictions show; all when empty
    kernels: Sequence[str] = ()
    history: Sequence[str] = ("*.exp",)  # experiments to follow, as names or patterns such as ``nightly/*.exp``
    platform: str = ""  # machine, file of expectations, and earlier experiment to compare with; empty without
    expectations: str = ""
    baseline: str = ""
    price: Sequence[str] = ()  # of machine time and electricity, such as ``0.02 EUR/core-hour``

    @property
    def model(self) -> str:
        """The file that ``fit`` writes."""
        return f"{self.experiment}.model.json"

    def text(self) -> str:
        """The project as its file holds it."""
        lines = ["# Settings of 'ranksight' in this folder: 'ranksight measure', 'fit', 'predict' and others use them."]
        lines += [f"{name} = {json.dumps(found)}" for name in TEXTS if (found := getattr(self, name))]
        lines += [f"{name} = {json.dumps(list(found))}" for name in LISTS if (found := getattr(self, name))]
        for name in TABLES:
            if table := getattr(self, name):
                lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def load(path: Path) -> Project:
    """The project that a file describes.

    Raises InputError when it is not TOML, or holds an unknown key or a value of another kind.
    """
    from ranksight.core.toml import decode, read

    content = decode(read(path, REMEDY), str(path), REMEDY)
    known = (*TEXTS, *LISTS, *TABLES)
    for key in content:
        if key not in known:
            raise InputError(f"{path}: unknown key {key}", nearest(key, known))
    given: dict[str, Any] = {}
    for key in TEXTS:
        found = content.get(key, "")
        if not isinstance(found, str) or "\n" in found:
            raise InputError(f"{path}: {key} is not a line of text", f'write {key} = "..."')
        given[key] = found
    for key in LISTS:
        if key in content:
            given[key] = _texts(path, key, content[key])
    for key in TABLES:
        table = content.get(key, {})
        if not isinstance(table, dict):
            raise InputError(f"{path}: {key} is not a table", f"write [{key}] above its entries")
        given[key] = {name: _entry(path, f"{key}.{name}", value) for name, value in table.items()}
    for name in given["jobs"]:
        if name not in JOBS:
            raise InputError(f"{path}: unknown key jobs.{name}", nearest(name, JOBS))
    named = {"ranks", *MEASURE, *_parameters(path, "command", given["command"])}
    named |= _parameters(path, "measure.prepare", given["measure"].get("prepare", ""))
    for key in ("measure", "target"):
        for name, text in given[key].items():
            if key == "measure" and given["command"] and name not in named:
                raise InputError(f"{path}: measure.{name}: the command has no {{{name}}}", nearest(name, named))
            if key == "measure" and name in MEASURE:
                continue
            try:
                values(text)
            except ValueError as error:
                raise InputError(f"{path}: {key}.{name}: {error}", WRITE) from None
    return Project(**given)


def _parameters(path: Path, key: str, command: str) -> set[str]:
    """The parameters of a command line, none of an empty one; InputError where it is none."""
    if not command:
        return set()
    from ranksight.campaign.launching import Template

    try:
        return set(Template(tuple(shlex.split(command))).parameters)
    except ValueError as error:
        raise InputError(f"{path}: {key} is not a command: {error}", "write it as you type it in a shell") from None


def _texts(path: Path, key: str, found: object) -> tuple[str, ...]:
    """Texts of a list, or the one that stands in its place."""
    if isinstance(found, str):
        return (found,)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InputError(f"{path}: {key} is not a list of texts", f'write {key} = ["..."]')
    return tuple(found)


def _entry(path: Path, key: str, value: object) -> Any:
    """A value of a table as an option takes it: numbers and their lists as text, texts and flags as they are."""
    if key.partition(".")[2] in FLAGS and key.startswith("jobs."):
        if not isinstance(value, bool):
            raise InputError(f"{path}: {key} is neither true nor false", f"write {key.split('.')[1]} = true")
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return in_full(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        if all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in value):
            return ",".join(map(in_full, value))
        if key.startswith("jobs."):
            return _texts(path, key, value)
    raise InputError(f"{path}: {key} is not a number, a text or a list of them", f'write {key.split(".")[1]} = "1,2,4"')


def completed(verb: str, given: Sequence[str], parser: Parser, path: Path | None = None) -> list[str]:
    """The words of a verb with what the project file adds; as they are where there is none, or it is not for them."""
    words = list(given)
    file = Path(FILE) if path is None else path
    before, command = (words[: words.index("--")], True) if "--" in words else (words, False)
    named = command or parser.first(before) < len(before)
    if verb not in _ADDED or {"-h", "--help", "--list-collectors"} & set(words) or not file.is_file():
        return words
    if named and verb not in PRICED:
        return words
    taken = {word.partition("=")[0] for word in before}
    project = load(file)
    positional, options, last = ((), _price(project), ()) if named else _ADDED[verb](_usable(verb, project, file))
    added = list(positional)
    for name, value in options:
        if not taken & parser.names_of(name):
            # Joined, as a value may begin with a dash.
            added.append(f"{name}={value}" if value else name)
    return [*added, *words, *last]


def _usable(verb: str, project: Project, file: Path) -> Project:
    """The project, where it names what the verb works on; InputError otherwise."""
    for key in {"measure": ("command", "experiment"), "history": ()}.get(verb, ("experiment",)):
        if not getattr(project, key):
            raise InputError(f"{file}: {key} is missing, which 'ranksight {verb}' needs", f'write {key} = "..."')
    return project


PRICED = ("plan", "report", "serve")
"""Verbs that state costs."""
Added = tuple[Sequence[str], Sequence[tuple[str, str]], Sequence[str]]
"""Arguments, options with their values (flags have none), and words at the end of the line."""


def _measure(project: Project) -> Added:
    options = [("--output", project.experiment), *((f"--{name}", text) for name, text in project.measure.items())]
    options += [("--platform", project.platform)] * bool(project.platform)
    options += [("--collector", name) for name in project.collectors]
    for name, found in project.jobs.items():
        several = [""] * found if isinstance(found, bool) else [found] if isinstance(found, str) else found
        options += [(f"--job-{name}", text) for text in several]
    return (), options, ("--", *shlex.split(project.command))


def _check(project: Project) -> Added:
    expected = [project.expectations] if project.expectations else []
    return (*expected, project.experiment), [("--baseline", project.baseline)] * bool(project.baseline), ()


def _compare(project: Project) -> Added:
    if not project.baseline:
        raise UsageError(
            f"ranksight compare: {FILE} names no experiment to compare {project.experiment} with",
            f'write baseline = "before.exp" into it, or: ranksight compare BEFORE {project.experiment}',
        )
    return (project.baseline, project.experiment), [], ()


def _history(project: Project) -> Added:
    found = list(dict.fromkeys(path for named in project.history for path in sorted(glob(named)) or [named]))
    if len(found) < 2:
        raise UsageError(
            f"ranksight history: the experiments {', '.join(project.history)} of {FILE} are {len(found)}, "
            "a history needs two",
            'measure more, or write history = ["nightly/*.exp"] into it',
        )
    return found, [], ()


def experiment_here() -> Path | None:
    """The experiment that the project file of this folder names; None without the file."""
    name = load(Path(FILE)).experiment if Path(FILE).is_file() else ""
    return Path(name) if name else None


def _target(project: Project) -> list[tuple[str, str]]:
    return [(f"--{name}", text) for name, text in project.target.items()]


def _price(project: Project) -> list[tuple[str, str]]:
    return [("--price", text) for text in project.price]


def _largest(project: Project) -> list[tuple[str, str]]:
    return [(f"--{name}", in_full(max(values(text)))) for name, text in project.target.items()]


_ADDED: Mapping[str, Callable[[Project], Added]] = {
    "measure": _measure,
    "fit": lambda project: ((project.experiment,), [("--platform", project.platform)] if project.platform else [], ()),
    "predict": lambda project: (
        (project.model,),
        [*_target(project), *(("--kernel", name) for name in project.kernels)],
        (),
    ),
    "diagnose": lambda project: ((project.model,), _target(project), ()),
    "plan": lambda project: ((project.experiment,), [*_target(project), *_price(project)], ()),
    "report": lambda project: (
        (project.model,),
        [("--experiment", project.experiment), *_largest(project), *_price(project)],
        (),
    ),
    "serve": lambda project: (
        (project.model,),
        [("--experiment", project.experiment), *_largest(project), *_price(project)],
        (),
    ),
    "check": _check,
    "compare": _compare,
    "history": _history,
    "phases": lambda project: ((project.experiment,), [each for each in _target(project) if each[0] == "--ranks"], ()),
}
