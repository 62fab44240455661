"""Output of ``perf stat``: text, ``-x``, ``-j``, with intervals (added up), per processor or thread (added up).

The whole program is the kernel. Events that were not counted are named, never zero; one that was counted for a part of
the time has been scaled by perf, as the provenance records. Output of all ranks in one file is parted by the tags that
launchers write (``mpirun --tag-output``, ``srun -l``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.meaning import EACH, MAXIMUM, OF_NODE, ONE, SUM, UNSTATED, Meaning
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted, some_of
from ranksight.counters.names import unit_scale
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._files import Format, damaged, grouped, head_of, of_launcher, read_text, words
from ranksight.counters.readers._perf_stat_rows import (
    SEPARATORS,
    Row,
    decimal_of,
    fields_of,
    json_rows,
    parted_by_decimals,
    separated_rows,
    share_of,
    text_rows,
    untagged,
    value_of,
)

_TEXT = re.compile(
    r"Performance counter stats for |^#[ \t]+time[ \t]+(?:[a-zA-Z]+[ \t]+){0,3}counts[ \t]+unit[ \t]+events",
    re.MULTILINE,
)
_JSON = re.compile(r'^(?:\[\d+,\d+\]<std\w+>: ?|\d+: )?\{[^{}\n]*"counter-value"\s*:', re.MULTILINE)
_INSTANCE = re.compile(r"^(uncore_\w+?|\w*imc\w*?|amd_umc|amd_df|arm_cmn)_\d+/")
_HYBRID = re.compile(r"^cpu_(?:core|atom)/([^/]+)/(\w*)$")
LEAST_SHARE = 20.0
"""Percentage of the time below which a multiplexed event is left out: perf multiplies it by more than five."""
_PARTED = "decimal commas"
_FOOTERS = ("time elapsed", "user", "sys")
_ALIASES = {"duration_time": "time", "task-clock": "cpu_time", "user_time": "user_time", "system_time": "system_time"}


def _is_one(path: Path, head: str) -> bool:
    """Whether the head, or the end of the file, shows a report: it stands after all that the program printed."""
    if _form(head) or not head_of(path, 1):
        return _form(head) != ""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 16384))
        return _form(stream.read().decode("utf-8", "replace")) != ""


def _form(text: str) -> str:
    """``text``, ``json``, a separator, or empty where `text` shows nothing of perf stat."""
    if _TEXT.search(text):
        return "text"
    if _JSON.search(text):
        return "json"
    lines = [untagged(line)[1] for line in text.splitlines()]
    for separator in SEPARATORS:
        if any(separator in line and fields_of(line, separator) for line in lines):
            return separator
    return _PARTED if parted_by_decimals(lines) else ""


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, notes = read_text(path)
    form = _form("\n".join(lines))
    said: dict[int | None, dict[str, str]] = {}
    others: list[int] = []
    if form == "text":
        rows = list(text_rows(path, lines, said, others))
    elif form == "json":
        rows = list(json_rows(path, lines, said))
    elif form == _PARTED:
        raise InputError(
            f"{path}: fields are separated by commas, and numbers have decimal commas",
            "run perf stat with LC_ALL=C, or -x ';'",
        )
    elif form:
        rows = list(separated_rows(path, lines, form, others))
    else:
        raise InputError(f"{path} holds no report of perf stat", "was the program killed before it ended?")
    if all(row.status for row in rows):
        missing = ", ".join(dict.fromkeys(row.event for row in rows)) or "no event"
        raise InputError(
            f"{path}: nothing was counted ({missing})", "'ranksight doctor' shows what this machine counts"
        )
    tagged = sorted({row.rank for row in rows if row.rank is not None})
    table: dict[int, dict[str, float]] = {each: {} for each in tagged or [rank or 0]}
    said_notes = list(notes)
    if others:
        said_notes.append(f"{counted(len(others), 'line')} among those of perf stat left out (line {some_of(others)})")
    seconds = [facts[name] for facts in said.values() for name in _FOOTERS if name in facts]
    decimal = decimal_of(path, rows, seconds)
    origin = _add(path, rows, decimal, table, said_notes)
    wall = _add_footers(path, len(lines), said, decimal, table, bool(tagged), said_notes)
    if not any(table.values()):
        raise InputError(f"{path}: no event can be used", "; ".join(said_notes))
    facts = next((facts for facts in said.values() if "what" in facts), {})
    over = EACH if tagged else ONE if rank is not None else _meaning(facts.get("what", ""))
    yield build(
        path,
        [WHOLE] * len(table),
        list(table),
        columns_of(table.values()),
        origin=origin,
        aliases=_ALIASES,
        configuration=None if tagged else {},
        notes=said_notes,
        command=words(facts.get("what", "")),
        meaning=over,
        meanings={"time": MAXIMUM} if over.reduced else {},
        wall_time=wall,
    )


READERS.register("perf-stat")(
    Format("perf stat: text, -x and -j, intervals, tagged output of several ranks", _is_one, _read)
)


def _meaning(what: str) -> Meaning:
    """What the counts of one report are: sums of what a launcher started, or of all that a node did (``-a``)."""
    if what in ("system wide", "CPU(s)") or what.startswith("CPU(s) "):
        return OF_NODE
    return SUM if of_launcher(words(what)) else UNSTATED  # a script may start ranks: CPUs utilized shows it


def _add(
    path: Path, rows: Sequence[Row], decimal: str, table: dict[int, dict[str, float]], notes: list[str]
) -> dict[str, str]:
    """Add the rows to what each rank counted; where each event comes from, where that needs saying."""
    seen: dict[tuple[int, str], int] = defaultdict(int)
    absent: dict[str, Counter[str]] = defaultdict(Counter)
    shares: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        rank = row.rank if row.rank in table else next(iter(table))
        if row.status:
            absent[row.status][row.event] += 1
            continue
        unit = row.unit or ("msec" if row.clock else "ns" if row.event.endswith("_time") else "")
        scale = unit_scale(unit)
        # of one unit's instances (memory channels, kinds of cores) the sum is the processor's
        event = _HYBRID.sub(r"\1\2", _INSTANCE.sub(r"\1/", row.event))
        name = event if scale is not None else f"{event} [{row.unit}]"
        table[rank][name] = table[rank].get(name, 0.0) + value_of(path, row, decimal) * (scale or 1.0)
        seen[rank, name] += 1
        shares[name].append(share_of(path, row, decimal))
    held = Counter(row.event for row in rows if not row.status)
    for status, events in absent.items():
        if never := [event for event in events if not held[event]]:
            notes.append(f"{status} here: {', '.join(never)}")
        notes += [
            f"{event} was {status} in {count} of {count + held[event]} rows: the others are added up"
            for event, count in events.items()
            if held[event]
        ]
    most = max(seen.values(), default=0)
    if any(row.interval for row in rows):
        notes.append(f"intervals added up ({most} of them)")
    elif most > 1:
        notes.append(f"rows of {most} processors or threads added up")
    origin = {}
    for name, given in shares.items():
        mean = float(np.mean(given))
        if mean < LEAST_SHARE:
            notes.append(f"{name} was counted {mean:.3g} % of the time and is left out: count fewer events at once")
            for values in table.values():
                values.pop(name, None)
        elif mean < 99.995:
            how = f"measured ({name}), counted {mean:.4g} % of the time and scaled by perf"
            origin[_ALIASES.get(name, name)] = origin[name] = how
    return origin


def _add_footers(
    path: Path,
    end: int,
    said: dict[int | None, dict[str, str]],
    decimal: str,
    table: dict[int, dict[str, float]],
    tagged: bool,
    notes: list[str],
) -> float | None:
    """Add elapsed and processor time from below each table; the longest elapsed time."""
    walls = []
    for rank, facts in said.items():
        if "what" in facts and not set(_FOOTERS) & set(facts):
            whose = f" of rank {rank}" if rank is not None else ""
            raise damaged(f"{path}:{end}: the report{whose} breaks off before its time elapsed")
        values = table[rank if rank in table else next(iter(table))]
        seconds = {key: grouped(f"{path}:{end}", facts[key], key, decimal) for key in _FOOTERS if key in facts}
        if "time elapsed" in seconds and (not tagged or rank is not None):
            walls.append(seconds["time elapsed"])
            values.setdefault("duration_time", seconds["time elapsed"])
        if {"user", "sys"} <= set(seconds):
            values.setdefault("task-clock", seconds["user"] + seconds["sys"])
        if "runs" in facts:
            notes.append(f"values are means of {facts['runs']} runs")
    return max(walls, default=None)
