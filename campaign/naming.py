"""What the user says of files that are imported: names of parameters and metrics, and where their values are found."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.meaning import Meaning
from ranksight.core.numerals import parse_number, settled_mark
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.units import in_full

if TYPE_CHECKING:
    import pandas as pd

JOB = ("JobName", "SubmitLine", "WorkDir")
"""What a batch system records of a job that may hold the values of parameters, as paths of files do."""

_DIGITS, _DECIMAL = r"\d+", r"\d+(?:[.,]\d+)?"
_NUMBER = re.compile(_DECIMAL)
_FRACTION = re.compile(r"[.,]").search
_GROUP = re.compile(r"\((?:[^()]*[\\\[+*?{|]|[^)]*$)")


def is_pattern(where: str) -> bool:
    """Whether text is a regular expression with a group for a number, and no name such as ``size (MB)``."""
    return _GROUP.search(where) is not None


@dataclass(frozen=True, slots=True)
class Naming:
    """What the user says about parameters and metrics."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    """Name of a parameter to where its value is found: a regular expression with one group, searched in the path, or
    the name under which the file itself states it."""
    constants: Mapping[str, float] = field(default_factory=dict)  # parameters with one value for all that is imported
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Name of a metric in the experiment to its name in the files; what is not named keeps its name."""
    periods: Mapping[str, float] = field(default_factory=dict)
    """What a sample of a metric of the experiment is worth, in SI units, where the files do not say
    (:mod:`ranksight.core.sampled`)."""
    total: str | None = None  # the kernel that is the whole program
    values: Mapping[str, Meaning] = field(default_factory=dict)
    """Name of a metric in the experiment to what its values are over ranks; that of all others under ``""``."""

    def __post_init__(self) -> None:
        for name, period in self.periods.items():
            if not period > 0:
                raise InputError(f"a sample of {name} is worth {period:g}", "give a number above zero")
        for name, where in self.parameters.items():
            if is_pattern(where):
                try:
                    groups = re.compile(where).groups
                except re.error as error:
                    raise InputError(f"parameter {name}: {where!r} is not a regular expression: {error}") from error
                if groups != 1:
                    raise InputError(
                        f"parameter {name}: {where!r} has {groups} groups", r"write one, around the number: 'Rank(\d+)'"
                    )
        both = sorted(set(self.parameters) & set(self.constants))
        if both:
            raise InputError(f"parameter {both[0]} is both found and set", "give --parameter or --set, not both")

    def configuration(self, reading: Reading, path: Path) -> dict[str, float]:
        """The configuration of a reading: its own, with what the user says added and put in place of it.

        Raises InputError when a parameter is not found, or is not a number.
        """
        found = dict(reading.configuration)
        for name, where in self.parameters.items():
            if is_pattern(where):
                # A folder that is one run ends as it does in the path of a file within: n(\d+)/ matches both.
                texts = (path.as_posix() + "/" * path.is_dir(), *(reading.environment.get(key, "") for key in JOB))
                hits = next(filter(None, (re.findall(where, text) for text in texts)), None)
                if not hits:
                    raise InputError(f"{path}: {where!r} of parameter {name} does not match its path")
                found[name] = _value(name, hits[-1], path)
            elif where in reading.configuration:
                found.pop(where, None)
                found[name] = reading.configuration[where]
            elif where in reading.environment:
                found[name] = _value(name, reading.environment[where], path)
            else:
                known = ", ".join([*reading.configuration, *reading.environment]) or "nothing"
                raise InputError(
                    f"{path} does not state {where!r} (it states {known})",
                    rf"give --set {name}=VALUE, or --parameter {name}='regular expression with (\d+)'",
                )
        found.update(self.constants)
        self._contradictions(reading, found, path)
        return found

    def _contradictions(self, reading: Reading, stated: Mapping[str, float], path: Path) -> None:
        """Raise InputError where the user states another value than the file records."""
        for name in set(self.parameters) | set(self.constants):
            recorded = reading.configuration.get(name)
            if recorded is None or self.parameters.get(name) in reading.configuration or name in reading.assumed:
                continue
            if stated[name] != recorded:
                how = "--set" if name in self.constants else "--parameter"
                raise InputError(
                    f"{path} records {name} = {in_full(recorded)}, and {how} states {in_full(stated[name])}",
                    f"leave {how} {name} away, or correct it",
                )
        if "ranks" in stated and "ranks" not in reading.assumed and reading.counters is not None:
            largest = reading.counters["rank"].max()
            if largest >= stated["ranks"] and stated["ranks"] != reading.configuration.get("ranks"):
                raise InputError(
                    f"{path} holds rank {largest}, of a run that is stated to have {in_full(stated['ranks'])} ranks",
                    "ranks count from 0: correct the number of ranks",
                )

    def counters(self, table: pd.DataFrame, path: Path) -> pd.DataFrame:
        """The table with the metrics, and the kernel that is the whole program, renamed.

        Raises InputError when the new name of a metric is taken, or there is no such kernel.
        """
        if self.total is not None:
            whole = table["kernel"] == self.total
            if not whole.any():
                raise InputError(
                    f"{path}: no kernel is named {self.total!r}", "--total names the kernel that is the whole program"
                )
            table = table.assign(kernel=table["kernel"].astype("str").where(~whole, WHOLE))
        renames = {old: new for new, old in self.metrics.items() if old != new and old in table.columns}
        for old, new in renames.items():
            if new in table.columns and new not in renames:
                raise InputError(
                    f"{path} holds a metric {new!r} already", f"rename that one too, or {old!r} to another name"
                )
        return table.rename(columns=renames) if renames else table


def names_of(specifications: Sequence[str]) -> dict[str, str]:
    """Read ``NAME`` and ``NAME=SOURCE`` into name to source. Raises InputError when a name is empty or given twice."""
    found: dict[str, str] = {}
    for text in specifications:
        name, mark, source = text.partition("=")
        name, source = name.strip(), source.strip() if mark else name.strip()
        if not name or not source:
            raise InputError(f"{text!r} names nothing", "write NAME or NAME=SOURCE")
        if name in found:
            raise InputError(f"{name!r} is given twice")
        found[name] = source
    return found


def numbers_of(paths: Sequence[Path]) -> dict[str, str]:
    """Patterns of the numbers by which `paths` differ, by the letters before them, as ``--parameter`` takes them.

    Nothing where the paths differ in more than numbers, or by one number that counts on: it numbers repetitions.
    """
    texts = [path.as_posix() for path in paths]
    if len(texts) < 2 or len({_NUMBER.sub("0", text) for text in texts}) > 1:
        return {}
    differ = {}
    for place, column in enumerate(zip(*map(_NUMBER.findall, texts), strict=True)):
        if len(values := set(column)) > 1:
            start = [*_NUMBER.finditer(texts[0])][place].start()
            before = re.match(r"[^\W\d]*", texts[0][:start][::-1])
            differ[place] = (before[0][::-1] if before else "", values)
    counting = {place for place, (_, values) in differ.items() if _counts_on(values)}
    if len(differ) == 1 and counting:
        return {}
    shown = [differ[place] for place in differ if place not in counting] or list(differ.values())
    return {name: f"{name}({_DECIMAL if any(map(_FRACTION, values)) else _DIGITS})" for name, values in shown if name}


def _counts_on(values: set[str]) -> bool:
    if not all(map(str.isdecimal, values)):
        return False
    numbers = sorted(map(int, values))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _value(name: str, text: str, path: Path) -> float:
    decimal = settled_mark([text], f"{path}: parameter {name}", remedy="--set gives it a value")
    try:
        value = parse_number(text, decimal)
    except InputError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{path}: {text!r} for parameter {name} is not a number")
    return value
