"""Rows of ``perf stat`` in its three forms: text, fields parted by a character (``-x``), JSON (``-j``).

Source: perf-stat(1), "CSV FORMAT" and "JSON FORMAT"; linux ``tools/perf/util/stat-display.c``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.numerals import GROUPING, settled_mark
from ranksight.core.records import dataclass
from ranksight.counters.readers._files import counter, damaged, grouped, number

SEPARATORS = (",", ";", "\t", "|", ":", "^", "!")
CLOCKS = frozenset({"task-clock", "cpu-clock"})
_STATUS = {"<not supported>": "not supported", "<not counted>": "not counted"}
_TAG = re.compile(r"^(?:\[\d+,(?P<mpi>\d{1,9})\]<std\w+>: ?|(?P<slurm>\d{1,7}): (?=\s|\{|<|\d|#))")
_DIGITS = rf"(?:\d{{1,3}}(?: \d{{3}}){{1,7}}(?:[.,]\d+)?|\d[\d.,{GROUPING}]*)"
_NUMBER = rf"(?:<not supported>|<not counted>|{_DIGITS}|-\d[\d.,]*|-?nan(?=[ \t]))"
_TEXT = re.compile(
    rf"^(?:(?P<where>\S.*?)[ \t])??(?P<value>{_NUMBER})[ \t]"
    r"(?:(?P<unit>msec|Joules|[KMGT]?i?B|MB|ns|%|C|seconds)[ \t])?"
    r"(?P<event>[^\s#\d][^#]*?)[ \t]?(?:#.*)?$"
)
_BLANKS = re.compile(r"[ \t]{2,}")
"""What becomes one tab: a search for more would take a time that grows with the square of their number. Single blanks
group digits."""
_PERCENT = re.compile(r"\(\s*(?P<spread>\+-\s*)?(?P<share>[\d.,]+)%\s*\)")
_INTERVAL = re.compile(r"^\s+(?P<at>\d+[.,]\d{6,9})(?P<rest>\s.*)$")
_ELAPSED = re.compile(
    rf"^\s*(?P<value>{_DIGITS}|[^\s\d]\S{{0,40}})(?:\s*\+-\s*[\d.,]+)?\s+(?:seconds|sec)\s+"
    r"(?P<what>time elapsed|user|sys)\b"
)
_STARTS = re.compile(r"Performance counter stats for (?P<what>.*):\s*$")
_RUNS = re.compile(r"\((\d{1,9}) runs\)$")
_PLACE = re.compile(r"(?:[SDLCN]\d+|CPU\d+)(?:-\w{1,20}){0,4}$|.{1,200}-\d{1,12}$")
_LONGEST = 4096
FEWEST = 4
"""Separators of a row of the ``-x`` form: of value, unit, event, time counted and its share."""
_SECONDS = re.compile(r"\d{1,12}[.,]\d{6,9}")
_VALUE = re.compile(r"\d{1,25}(?:[.,]\d{1,20})?(?:[eE][+-]?\d{1,3})?")
_SHARE = re.compile(r"\d{1,6}[.,]\d{1,6}")
_PARTED = re.compile(
    r"(?<!\d)\d{1,25}(?:,\d{1,20})?,[^,]{0,20},(?=[^,a-zA-Z]{0,200}[a-zA-Z])[^,]{2,200},\d{1,20},\d{1,3},\d\d(?:,|$)"
)
"""A row of the ``-x,`` form, its event with a letter, whose share of the time a decimal comma has parted."""
_JSON_COMMA = re.compile(r"(:\s*-?\d+),(\d+\s*[,}])")
"""A number of JSON with a decimal comma, which is nothing else there: after the comma a name would follow."""
_OLD_UNIT = re.compile(r"^(?P<event>.*?) \((?P<unit>msec|Joules|MB)\)$")


@dataclass(frozen=True, slots=True)
class Row:
    """One line about one event, its numbers as the file has them; `status` is empty where it was counted."""

    line: int
    rank: int | None
    event: str
    text: str  # the value
    status: str
    unit: str
    share: str | float  # percentage of the time that it was counted; in JSON a number
    interval: bool

    @property
    def clock(self) -> bool:
        """Whether it counts time, in milliseconds where no unit says otherwise."""
        return self.event in CLOCKS


def decimal_of(path: Path, rows: Sequence[Row], further: Iterable[str]) -> str:
    """What separates the decimals of all numbers of a report; `further`: those that stand in no row.

    Events without a unit are counts: a mark in them groups thousands. Raises InputError, naming two readings of a
    number, where nothing in the report says which mark is which.
    """
    counted = [row for row in rows if not row.status]
    texts = [text for row in counted for text in (row.text, row.share) if isinstance(text, str)]
    whole = [row.text for row in counted if not row.unit and not row.clock]
    return settled_mark([*texts, *further], str(path), whole, "run perf stat with LC_ALL=C")


def value_of(path: Path, row: Row, decimal: str) -> float:
    """The value of a row that was counted; that of a counter which wrapped as :func:`counter` gives it."""
    read = grouped if row.clock or row.unit in ("ns", "msec", "seconds") else counter
    return read(f"{path}:{row.line}", row.text, row.event, decimal)


def share_of(path: Path, row: Row, decimal: str) -> float:
    """Percentage of the time in which the event of a row was counted."""
    where, name = f"{path}:{row.line}", f"the share of {row.event}"
    return grouped(where, row.share, name, decimal) if isinstance(row.share, str) else number(where, row.share, name)


def untagged(line: str) -> tuple[int | None, str]:
    """The rank that the launcher wrote before a line (``--tag-output``, ``srun -l``), and the line."""
    tag = _TAG.match(line)
    if tag is None:
        return None, line
    return int(tag["mpi"] or tag["slurm"]), line[tag.end() :]


def text_rows(
    path: Path, lines: Sequence[str], said: dict[int | None, dict[str, str]], others: list[int]
) -> Iterator[Row]:
    """Rows of the text form; elapsed times, the command and the number of repetitions go to `said`, by rank, and the
    numbers of lines within a report that are no rows of it to `others`."""
    inside: set[int | None] = set()
    for at, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.rstrip())
        facts = said.setdefault(rank, {})
        started = _STARTS.search(line)
        if started:
            if "what" in facts:
                raise InputError(f"{path}:{at}: a second report of perf stat begins", "give every run its own file")
            inside.add(rank)
            what = started["what"].rstrip()
            if runs := _RUNS.search(what):
                what, facts["runs"] = what[: runs.start()].rstrip(), runs[1]
            facts["what"] = what.strip("'")
            continue
        interval = _INTERVAL.match(line)
        elapsed = _ELAPSED.match(line)
        if elapsed:
            facts[elapsed["what"]] = elapsed["value"]
            continue
        if interval is None and rank not in inside:
            if inside and rank is None and line.strip() and not any("time elapsed" in known for known in said.values()):
                others.append(at)
            continue
        said_of_row = interval["rest"] if interval else line
        shares = [found["share"] for found in _PERCENT.finditer(said_of_row) if not found["spread"]]
        row = _TEXT.match(_BLANKS.sub("\t", _PERCENT.sub("", said_of_row[:_LONGEST]).strip()))
        if row is None or (row["where"] and not _PLACE.match(row["where"].split()[0])):
            if line.strip() and not line.lstrip().startswith("#") and "time elapsed" not in facts:
                others.append(at)
            continue
        event, unit = row["event"].strip(), row["unit"] or ""
        old = _OLD_UNIT.match(event)
        if old:
            event, unit = old["event"], old["unit"]
        yield _row(at, rank, event, row["value"], unit, shares[-1] if shares else "100", interval is not None)


def separated_rows(path: Path, lines: Sequence[str], separator: str, others: list[int]) -> Iterator[Row]:
    """Rows of the ``-x`` form; the numbers of lines with as many fields that are no rows go to `others`."""
    for at, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.rstrip())
        row = fields_of(line, separator)
        if row is None:
            if line.strip() and not line.startswith("#") and _begins(line, separator):
                raise damaged(f"{path}:{at} is not a complete row of perf stat")
            if line.count(separator) >= FEWEST and not line.startswith("#"):
                others.append(at)
            continue
        yield _row(at, rank, row["event"], row["value"], row["unit"], row["share"], bool(row["interval"]))


def parted_by_decimals(lines: Iterable[str]) -> bool:
    """Whether rows of the ``-x,`` form have decimal commas, so that nobody can say where a field ends."""
    return any(_PARTED.search(line) for line in lines if len(line) <= _LONGEST)


def fields_of(line: str, separator: str) -> dict[str, str] | None:
    """Fields of a row of the ``-x`` form; None where `line` is no such row.

    In order: time of the interval, place (processor, thread ... and their number), value, unit, event, spread over
    repetitions, time counted, share of the time; the first two and the spread may be absent. An event between slashes
    may hold the separator.
    """
    if len(line) > _LONGEST:
        return None
    parts = [part.strip() for part in line.strip().split(separator)]
    interval = len(parts) > 1 and _SECONDS.fullmatch(parts[0]) is not None
    at = 1 if interval else 0
    first = at
    while at < len(parts) and at - first <= 2 and not _is_value(parts, at):
        at += 1
    if not _is_value(parts, at) or (at > first and not _PLACE.match(parts[first].strip())):
        return None
    value, unit, event = parts[at : at + 3]
    at += 3
    while event.count("/") % 2 and at < len(parts):
        event += separator + parts[at]
        at += 1
    if at < len(parts) and parts[at].endswith("%"):
        at += 1
    if len(parts) < at + 2 or not parts[at].isdecimal() or not _SHARE.fullmatch(parts[at + 1]):
        return None
    return {
        "interval": parts[0] if interval else "",
        "value": value,
        "unit": unit,
        "event": event,
        "share": parts[at + 1],
    }


def _is_value(parts: Sequence[str], at: int) -> bool:
    """Whether a value, a unit and an event stand at `at`."""
    if len(parts) < at + 3:
        return False
    value, unit, event = parts[at : at + 3]
    named = any(letter.isalpha() for letter in event[:_LONGEST])
    return (value in _STATUS or _VALUE.fullmatch(value) is not None) and len(unit) < 20 and named


def _begins(line: str, separator: str) -> bool:
    fields = line.split(separator)
    return len(fields) > 2 and fields[0].strip() in _STATUS


def json_rows(path: Path, lines: Sequence[str], said: dict[int | None, dict[str, str]]) -> Iterator[Row]:
    """Rows of the ``-j`` form, one object a line."""
    for at, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.strip())
        if not line.startswith("{"):
            continue
        try:
            content = json.loads(_JSON_COMMA.sub(r"\1.\2", line))
        except (ValueError, RecursionError) as error:
            if '"counter-value"' not in line and '"event"' not in line:
                continue  # the program's own output
            what = f"{path}:{at} is not valid JSON: {error}"
            raise InputError(what, "the file is truncated or damaged") from error
        if not isinstance(content, dict) or "counter-value" not in content:
            continue
        said.setdefault(rank, {})
        event = content.get("event")
        if not isinstance(event, str) or not event:
            raise damaged(f"{path}:{at} names no event")
        yield _row(
            at,
            rank,
            event,
            str(content["counter-value"]),
            str(content.get("unit", "")),
            content.get("pcnt-running", 100.0),
            "interval" in content,
        )


def _row(line: int, rank: int | None, event: str, text: str, unit: str, share: str | float, interval: bool) -> Row:
    return Row(line, rank, event.strip(), text.strip(), _STATUS.get(text.strip(), ""), unit.strip(), share, interval)
