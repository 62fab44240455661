"""Logs of jobs, plain text: the time stands where a pattern says, ``Elapsed: {time}``, and parameters may, too.

A pattern is text with one ``{name}`` in the place of the value; blanks in it match any number of blanks. A unit behind
it belongs to it: ``Elapsed: {time} ms``. Without one the value may have its own: ``12.5``, ``300 ms``, ``1m2.5s``,
``1:02:03``. Every line that matches ends a run; its parameters are those found last before it, or, before the first
run, anywhere in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.numerals import parse_number, settled_mark
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._durations import DURATION, NUMBER, TIMES, UNIT, plain_number, seconds
from ranksight.counters.readers._files import damaged, rank_in, read_text

TIME = "time"
_PLACE = re.compile(r"\{(?P<name>\w{1,60})\}")
_LINE = 4096
"""Characters of a line that are searched."""


@dataclass(frozen=True)
class Pattern:
    """Where the value of `name` stands in a line.

    Raises InputError when the text has no place, or several.
    """

    name: str
    text: str

    def __post_init__(self) -> None:
        places = _PLACE.findall(self.text)
        if len(places) != 1 or not self.text.replace(f"{{{places[0]}}}", "").strip():
            raise InputError(
                f"pattern {self.text!r} of {self.name} does not say where its value stands",
                f"write the text around it, and {{{self.name}}} in its place: 'Elapsed: {{{self.name}}}'",
            )

    @property
    def unit(self) -> str:
        """The unit of time that stands behind the place; empty where there is none."""
        behind = _PLACE.split(self.text)[-1]
        found = re.match(rf"\s?({UNIT})", behind, re.IGNORECASE) if self.name == TIME else None
        return found[1].casefold() if found else ""

    def compiled(self) -> re.Pattern[str]:
        """The pattern as a regular expression, whose group is the value; its time is linear in a line's length."""
        before, _, behind = _PLACE.split(self.text)
        value = rf"(?i:{DURATION})" if self.name == TIME and not self.unit else rf"[-+]?{NUMBER}"
        return re.compile(rf"{_literal(before)}[ \t]{{0,40}}({value}){_literal(behind)}")


def _literal(text: str) -> str:
    """What matches a text, with any blanks between its words."""
    words = re.split(r"(\s+)", text)
    return "".join(r"[ \t]{1,40}" if word.isspace() else re.escape(word) for word in words if word)


@dataclass(frozen=True)
class Log:
    """Where the logs have the time, and parameters by name."""

    time: Pattern
    parameters: Mapping[str, Pattern]


def read_log(path: Path, log: Log) -> Iterator[Reading]:
    """One reading a line of the log that states the time.

    Raises InputError when no line does, a parameter is found nowhere, a value is not a number, or nothing says whether
    a comma separates decimals.
    """
    lines, notes = read_text(path)
    patterns = {TIME: log.time.compiled(), **{name: each.compiled() for name, each in log.parameters.items()}}
    matches = [
        (at, name, match[1].rstrip(".,"))
        for at, line in enumerate(lines, 1)
        for name, pattern in patterns.items()
        if (match := pattern.search(line[:_LINE])) is not None
    ]
    times = [(at, text) for at, name, text in matches if name == TIME]
    if not times:
        raise InputError(
            f"{path}: no line matches {log.time.text!r}", "the run failed before it, or the log says it in other words"
        )
    texts = [plain_number(text) if name == TIME else text for _, name, text in matches]
    decimal = settled_mark(texts, str(path))
    state = {name: text for _, name, text in reversed(matches) if name != TIME}  # the first of each
    if missing := [name for name in log.parameters if name not in state]:
        raise InputError(
            f"{path}: no line matches {log.parameters[missing[0]].text!r}", f"give --set {missing[0]}=VALUE"
        )
    remarks = list(notes)
    if len(times) > 1:
        which = some_of([at for at, _ in times], 5)
        remarks.append(f"{path.name}: {len(times)} lines state the time (line {which}): each became a run")
    for at, name, text in matches:
        if name != TIME:
            state[name] = text
            continue
        values = {TIME: _seconds(path, at, text, log.time.unit, decimal)}
        yield build(
            path,
            [WHOLE],
            [ALL_RANKS if rank_in(path) is None else rank_in(path) or 0],
            columns_of([values]),
            origin=f"measured ({log.time.text})",
            configuration={name: _number(path, text, name, decimal) for name, text in state.items()},
            notes=remarks,
            wall_time=values[TIME],
        )
        remarks = []


def _seconds(path: Path, at: int, text: str, unit: str, decimal: str) -> float:
    try:
        return seconds(text, decimal) * (TIMES[unit] if unit else 1.0)
    except InputError:
        raise damaged(f"{path}:{at}: {text!r} is not a time") from None


def _number(path: Path, text: str, name: str, decimal: str) -> float:
    try:
        return parse_number(text, decimal)
    except InputError:
        raise InputError(f"{path}: {text!r} of {name} is not a number") from None
