"""One run: what was executed, how, and what became of it; its file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.files import json_text, read_json
from ranksight.core.meaning import UNSTATED, Meaning
from ranksight.core.records import dataclass

SCHEMA_VERSION = 1
"""Of an experiment's files."""
FILE = "run.json"
LARGEST = sys.float_info.max
INCLUSIVE = "inclusive, "
"""How the provenance of a metric begins whose values of one kernel contain those of others."""
TOTAL = "whole program"
"""What the environment of a run calls the timer that is the whole program."""
HOSTS = "hosts"
"""Table of a run that says on which node each rank was: ``rank``, ``host``."""
JOBS = ("PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")
"""Variables of jobs whose nodes are not known from the environment."""

TAKEN = frozenset((
    "algorithm", "budget", "configuration", "distribution", "evidence", "force", "format", "help", "instructions",
    "kernel", "level", "lower", "messages", "method", "metric", "network", "on", "placement", "places", "plot",
    "price", "quiet", "reason", "reps", "runs", "share", "status", "table", "terms", "time", "top", "topology",
    "trend", "units", "upper", "value", "verbose", "verdict",
))  # fmt: skip
"""Names of options of the verbs that are asked with parameters as options, and of columns of their answers."""


def named(parameters: Iterable[str]) -> tuple[str, ...]:
    """The names of an experiment's parameters; raises InputError where one appears twice or is :data:`TAKEN`."""
    names = tuple(parameters)
    if len(set(names)) != len(names):
        raise InputError(f"parameters {', '.join(names)} name one twice")
    if taken := next((name for name in names if name in TAKEN), ""):
        raise InputError(
            f"the parameter {taken} has the name of an option or a column of predictions",
            f"give it another, as by --parameter run_{taken}={taken} of a table",
        )
    return names


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of the application, or one file of measurements that another tool made.

    Attributes
    ----------
    configuration : mapping of str to float
        Value of every parameter of the experiment.
    repetition : int
        Counts from 0 within one configuration and collector.
    collector : str
        What measured it: a collector's or a reader's name.
    id : str
        Folder name; derived from the three above when left empty.
    command, launcher, environment, wall_time, started, state, exit_status
        How it was run; wall time in seconds, `started` in ISO 8601.
    provenance : mapping of str to str
        For each metric where the number comes from: ``measured``, ``simulated``, ``sampled, n = 1200``,
        ``derived from ...``.
    meanings : mapping of str to Meaning
        For each metric what its values are over ranks and of the machine, where the source states it.
    notes : tuple of str
        What a reader of the numbers must know.
    source : tuple of str
        Files the numbers were read from.

    Examples
    --------
    >>> rs.Run({"ranks": 8, "size": 24}, repetition=1, collector="perf").id
    'ranks8-size24-perf-r1'
    """

    configuration: Mapping[str, float]
    repetition: int = 0
    collector: str = "unknown"
    id: str = ""
    command: tuple[str, ...] = ()
    launcher: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    wall_time: float | None = None
    started: str = ""
    state: str = "complete"
    exit_status: int | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.configuration.items():
            if not isinstance(value, (int, float)) or not abs(value) <= LARGEST:
                raise InputError(f"parameter {name} has the value {str(value)[:40]}", "parameters are finite numbers")
        ranks = self.configuration.get("ranks", 1)
        if not (1 <= ranks <= limits.RANKS and float(ranks).is_integer()):
            raise InputError(
                f"a run of {ranks:g} ranks was measured", f"ranks are whole numbers from 1 to {limits.RANKS}"
            )
        if self.wall_time is not None and not 0 <= self.wall_time < limits.VALUE:
            raise InputError(f"a run that takes {str(self.wall_time)[:40]} s was measured", "no clock says this")
        if not self.id:
            values = "-".join(f"{name}{_number(value)}" for name, value in sorted(self.configuration.items()))
            object.__setattr__(self, "id", _safe(f"{values}-{self.collector}-r{self.repetition}"))
        elif self.id != _safe(self.id):
            raise InputError(f"run id {self.id!r} is not a folder name", "use letters, digits, '.', '_', '+' and '-'")

    @classmethod
    def read(cls, folder: Path) -> Run:
        """The run that `folder` holds, by the name that the folder has.

        Raises InputError when its file is missing, damaged, or of another version.
        """
        file = folder / FILE
        content = read_json(file)
        if content.pop("schema_version", None) != SCHEMA_VERSION:
            raise InputError(
                f"{file}: schema_version is missing or unknown", "the file is damaged or was written by another version"
            )
        damaged = "the file is damaged or not ours"
        unknown = sorted(set(content) - set(_KINDS))
        if unknown or not isinstance(content.get("configuration"), dict):
            what = f"unknown entry {unknown[0]}" if unknown else "configuration is missing"
            raise InputError(f"{file}: {what}", damaged)
        for name, value in content.items():
            if not _KINDS[name](value):
                raise InputError(f"{file}: {name} is {str(value)[:40]!r}", damaged)
        given: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in content.items()}
        try:
            given["meanings"] = {name: Meaning.read(code) for name, code in content.get("meanings", {}).items()}
            run = cls(**given)
        except InputError as error:
            raise InputError(f"{file}: {error.what}", damaged) from error
        return run if run.id == folder.name else replace(run, id=folder.name)

    def write(self, folder: Path) -> None:
        """Write the run's file into `folder`, which is nobody else's yet and is synced as a whole."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        content["meanings"] = {name: meaning.code() for name, meaning in self.meanings.items()}
        if not content["meanings"]:
            del content["meanings"]  # as files had none before
        (folder / FILE).write_text(json_text({"schema_version": SCHEMA_VERSION, **content}), encoding="utf-8")

    def point(self, parameters: Iterable[str]) -> tuple[float, ...]:
        """The values of these parameters, in their order."""
        return tuple(float(self.configuration[name]) for name in parameters)

    def sampled(self, metric: str) -> bool:
        """Whether the values of `metric` are made of samples: what none fell on has no value, though it is not 0."""
        text = self.provenance.get(metric, "")
        return text.startswith("sampled") or "(sampled" in text

    def inclusive(self, metric: str) -> bool:
        """Whether the values of `metric` of a kernel contain those of others, so that no sum of them means anything."""
        return self.provenance.get(metric, "").startswith(INCLUSIVE)

    def meaning(self, metric: str) -> Meaning:
        """What the values of `metric` are over ranks and of the machine."""
        return self.meanings.get(metric, UNSTATED)

    @property
    def crowded(self) -> bool:
        """Whether there were more ranks than cores, as far as that is known.

        ``cores`` in the environment are those of the node that started the run. For a Slurm job they are valid only if
        the job had that node alone, and for jobs of other batch systems never.
        """
        if any(name in self.environment for name in JOBS):
            return False
        cores, ranks = self.environment.get("cores", ""), self.configuration.get("ranks", 1)
        nodes = self.environment.get("SLURM_JOB_NODELIST", "[" if "SLURM_JOB_ID" in self.environment else "")
        return cores.isdecimal() and len(cores) < 10 and 0 < int(cores) < ranks and not set(nodes) & set("[,")

    @property
    def sharing(self) -> float:
        """Ranks that share a core; 1 unless they are known to be :attr:`crowded`."""
        return float(self.configuration["ranks"]) / int(self.environment["cores"]) if self.crowded else 1.0

    @property
    def key(self) -> tuple[tuple[tuple[str, float], ...], int]:
        """What joins the passes of one measurement: configuration and repetition."""
        return tuple(sorted((name, float(value)) for name, value in self.configuration.items())), self.repetition


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip(".")[:200] or "run"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "configuration": lambda value: isinstance(value, dict),
    "repetition": _is_whole,
    "wall_time": lambda value: value is None or isinstance(value, float) or _is_whole(value),
    "exit_status": lambda value: value is None or _is_whole(value),
    **dict.fromkeys(("collector", "id", "launcher", "started", "state"), _is_text),
    **dict.fromkeys(("command", "notes", "source"), _is_texts),
    **dict.fromkeys(("environment", "provenance", "meanings"), _is_named),
}
"""What the file may hold under each name."""
