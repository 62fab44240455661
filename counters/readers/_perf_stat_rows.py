"""Rows of ``perf stat`` in its three forms: text, fields parted by a character (``-x``), JSON (``-j``).

Source: perf-stat(1), "CSV FORMAT" and "JSON FORMAT"; linux ``tools/perf/util/stat-display.c``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.counters.readers._files import damaged, grouped

SEPARATORS = (",", ";", "\t", "|", ":", "^", "!")
_STATUS = {"<not supported>": "not supported", "<not counted>": "not counted"}
_TAG = re.compile(r"^(?:\[\d+,(?P<mpi>\d{1,9})\]<std\w+>: ?|(?P<slurm>\d{1,7}): (?=\s|\{|<|\d|#))")
_NUMBER = r"(?:<not supported>|<not counted>|\d[\d.,'’\u00a0\u202f\u2009]*)"
_TEXT = re.compile(
    rf"^(?:(?P<where>\S.*?)\s+)??(?P<value>{_NUMBER})\s+(?:(?P<unit>msec|Joules|[KMGT]?i?B|MB|ns|%|C|seconds)\s+)?"
    r"(?P<event>[^\s#][^#]*?)\s*(?:#.*)?$"
)
_BLANKS = re.compile(r"\s{2,}")
"""What no row is searched with: the time would grow with the square of their number. Single ones group digits."""
_PERCENT = re.compile(r"\(\s*(?P<spread>\+-\s*)?(?P<share>[\d.]+)%\s*\)")
_INTERVAL = re.compile(r"^\s+(?P<at>\d+[.,]\d{6,9})(?P<rest>\s.*)$")
_ELAPSED = re.compile(
    r"^\s*(?P<value>[\d.,]+)(?:\s*\+-\s*[\d.,]+)?\s+(?:seconds|sec)\s+(?P<what>time elapsed|user|sys)\b"
)
_STARTS = re.compile(r"Performance counter stats for (?P<what>.*):\s*$")
_RUNS = re.compile(r"\((\d{1,9}) runs\)$")
_PLACE = re.compile(r"(?:[SDLCN]\d+|CPU\d+)(?:-\w{1,20}){0,4}$|.{1,200}-\d{1,12}$")
_LONGEST = 4096
_SECONDS = re.compile(r"\d{1,12}\.\d{6,9}")
_VALUE = re.compile(r"\d{1,25}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?")
_SHARE = re.compile(r"\d{1,6}\.\d{1,6}")
_OLD_UNIT = re.compile(r"^(?P<event>.*?) \((?P<unit>msec|Joules|MB)\)$")


@dataclass(frozen=True, slots=True)
class Row:
    """One line about one event; `value` is None where it was not counted, `share` the percentage of the time it was."""

    rank: int | None
    event: str
    value: float | None
    status: str
    unit: str
    share: float
    interval: bool


def untagged(line: str) -> tuple[int | None, str]:
    """The rank that the launcher wrote before a line (``--tag-output``, ``srun -l``), and the line."""
    tag = _TAG.match(line)
    if tag is None:
        return None, line
    return int(tag["mpi"] or tag["slurm"]), line[tag.end() :]


def text_rows(path: Path, lines: Sequence[str], said: dict[int | None, dict[str, str]]) -> Iterator[Row]:
    """Rows of the text form; elapsed times, the command and the number of repetitions go to `said`, by rank."""
    inside: set[int | None] = set()
    for number, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.rstrip())
        facts = said.setdefault(rank, {})
        started = _STARTS.search(line)
        if started:
            if "what" in facts:
                raise InputError(f"{path}:{number}: a second report of perf stat begins", "give every run its own file")
            inside.add(rank)
            what = started["what"].rstrip()
            if runs := _RUNS.search(what):
                what, facts["runs"] = what[: runs.start()].rstrip(), runs[1]
            facts["what"] = what.strip("'")
            continue
        interval = _INTERVAL.match(line)
        elapsed = _ELAPSED.match(line)
        if elapsed:
            facts[elapsed["what"]] = elapsed["value"].replace(",", ".")
            continue
        if interval is None and rank not in inside:
            continue
        said_of_row = interval["rest"] if interval else line
        shares = [found["share"] for found in _PERCENT.finditer(said_of_row) if not found["spread"]]
        row = _TEXT.match(_BLANKS.sub(" ", _PERCENT.sub("", said_of_row[:_LONGEST])).strip())
        if row is None or (row["where"] and not _PLACE.match(row["where"].split()[0])):
            continue
        event, unit = row["event"].strip(), row["unit"] or ""
        old = _OLD_UNIT.match(event)
        if old:
            event, unit = old["event"], old["unit"]
        yield _row(path, number, rank, event, row["value"], unit, shares[-1] if shares else "100", interval is not None)


def separated_rows(path: Path, lines: Sequence[str], separator: str) -> Iterator[Row]:
    """Rows of the ``-x`` form."""
    for number, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.rstrip())
        row = fields_of(line, separator)
        if row is None:
            if line.strip() and not line.startswith("#") and _begins(line, separator):
                raise damaged(f"{path}:{number} is not a complete row of perf stat")
            continue
        yield _row(path, number, rank, row["event"], row["value"], row["unit"], row["share"], bool(row["interval"]))


def fields_of(line: str, separator: str) -> dict[str, str] | None:
    """Fields of a row of the ``-x`` form; None where `line` is no such row.

    In order: time of the interval, place (processor, thread ... and their number), value, unit, event, spread over
    repetitions, time counted, share of the time; the first two and the spread may be absent. An event between slashes
    may hold the separator.
    """
    if len(line) > _LONGEST:
        return None
    parts = line.strip().split(separator)
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
    return (value.strip() in _STATUS or _VALUE.fullmatch(value.strip()) is not None) and len(unit) < 20 and named


def _begins(line: str, separator: str) -> bool:
    fields = line.split(separator)
    return len(fields) > 2 and fields[0].strip() in _STATUS


def json_rows(path: Path, lines: Sequence[str], said: dict[int | None, dict[str, str]]) -> Iterator[Row]:
    """Rows of the ``-j`` form, one object a line."""
    for number, raw in enumerate(lines, start=1):
        rank, line = untagged(raw.strip())
        if not line.startswith("{"):
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            if '"counter-value"' not in line and '"event"' not in line:
                continue  # the program's own output
            what = f"{path}:{number} is not valid JSON: {error}"
            raise InputError(what, "the file is truncated or damaged") from error
        if not isinstance(content, dict) or "counter-value" not in content:
            continue
        said.setdefault(rank, {})
        event = content.get("event")
        if not isinstance(event, str) or not event:
            raise damaged(f"{path}:{number} names no event")
        yield _row(
            path,
            number,
            rank,
            event,
            str(content["counter-value"]),
            str(content.get("unit", "")),
            str(content.get("pcnt-running", 100)),
            "interval" in content,
        )


def _row(
    path: Path, number: int, rank: int | None, event: str, text: str, unit: str, share: str, interval: bool
) -> Row:
    status = _STATUS.get(text.strip(), "")
    where = f"{path}:{number}"
    value = None if status else grouped(where, text, event)
    try:
        running = float(share)
    except ValueError:
        raise damaged(f"{where}: {share!r} of {event} is not a percentage") from None
    return Row(rank, event.strip(), value, status, unit.strip(), running, interval)
