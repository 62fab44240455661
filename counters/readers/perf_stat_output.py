"""Output of ``perf stat``: text, ``-x``, ``-j``, with intervals (added up), per processor or thread (added up).

The whole program is the kernel. Events that were not counted are named, never zero; one that was counted for a part of
the time has been scaled by perf, as the provenance records. Output of all ranks in one file is parted by the tags that
launchers write (``mpirun --tag-output``, ``srun -l``).
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.counters.names import unit_scale
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._perf_stat_rows import (
    SEPARATORS,
    Row,
    fields_of,
    json_rows,
    separated_rows,
    text_rows,
    untagged,
)

_TEXT = re.compile(r"Performance counter stats for |^#\s+time\s+counts unit events", re.MULTILINE)
_JSON = re.compile(r'^(?:\[\d+,\d+\]<std\w+>: ?|\d+: )?\{[^{}\n]*"counter-value"\s*:', re.MULTILINE)
_INSTANCE = re.compile(r"^(uncore_\w+?|\w*imc\w*?|amd_umc|amd_df|arm_cmn)_\d+/")
_HYBRID = re.compile(r"^cpu_(?:core|atom)/([^/]+)/(\w*)$")
_CLOCKS = frozenset({"task-clock", "cpu-clock"})
_ALIASES = {"duration_time": "time", "task-clock": "cpu_time", "user_time": "user_time", "system_time": "system_time"}


class PerfStat:
    """Reads what perf stat prints; see the module's text."""

    text = "perf stat: text, -x and -j, intervals, tagged output of several ranks"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is output of perf stat, or a folder with one such file a rank."""
        if path.is_dir():
            return _assemble.is_run_folder(path, self.recognises)
        return _form(_assemble.head_text(head)) != "" or (path.is_file() and _form(_tail(path)) != "")

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a file, or a folder with one file a rank.

        Raises InputError, naming file and line: no report, a damaged row, a rank missing, nothing counted.
        """
        if path.is_dir():
            files = _assemble.run_folder(path)
            yield _assemble.merge_ranks({rank: _read(file, rank) for rank, file in files.items()}, path)
        else:
            yield _read(path, None)


READERS.register("perf-stat")(PerfStat())


def _tail(path: Path) -> str:
    """The end of a file: the report stands after all that the program printed."""
    if not _assemble.head_of(path, 1):
        return ""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 16384))
        return stream.read().decode("utf-8", "replace")


def _form(text: str) -> str:
    """``text``, ``json``, a separator, or empty where `text` shows nothing of perf stat."""
    if "\x00" in text:
        return ""
    if _TEXT.search(text):
        return "text"
    if _JSON.search(text):
        return "json"
    lines = [untagged(line)[1] for line in text.splitlines()]
    for separator in SEPARATORS:
        if any(separator in line and fields_of(line, separator) for line in lines):
            return separator
    return ""


def _read(path: Path, rank: int | None) -> Reading:
    lines, notes = _assemble.read_text(path)
    form = _form("\n".join(lines))
    said: dict[int | None, dict[str, str]] = {}
    if form == "text":
        rows = list(text_rows(path, lines, said))
    elif form == "json":
        rows = list(json_rows(path, lines, said))
    elif form:
        rows = list(separated_rows(path, lines, form))
    else:
        raise InputError(f"{path} holds no report of perf stat", "was the program killed before it ended?")
    if not any(row.value is not None for row in rows):
        missing = ", ".join(dict.fromkeys(row.event for row in rows)) or "no event"
        raise InputError(
            f"{path}: nothing was counted ({missing})", "'ranksight doctor' shows what this machine counts"
        )
    tagged = sorted({row.rank for row in rows if row.rank is not None})
    if rank is None and not tagged:
        rank = _assemble.rank_in(path)
    ranks: Sequence[int] = tagged or [rank if rank is not None else 0]
    said_notes: list[str] = [*notes]
    table, origin = _table(path, rows, ranks, bool(tagged), said_notes)
    wall = _footers(path, len(lines), said, table, ranks, bool(tagged), said_notes)
    alone: dict[str, float] | None = None if tagged else {}
    facts = next((facts for facts in said.values() if "what" in facts), {})
    return _assemble.build(
        path,
        [WHOLE] * len(ranks),
        ranks,
        _assemble.columns_of(table),
        origin=origin,
        aliases=_ALIASES,
        configuration=alone,
        notes=said_notes,
        command=_command(facts.get("what", "")),
        wall_time=wall,
    )


def _table(
    path: Path, rows: Sequence[Row], ranks: Sequence[int], tagged: bool, notes: list[str]
) -> tuple[list[dict[str, float]], dict[str, str]]:
    place = {rank: at for at, rank in enumerate(ranks)}
    table: list[dict[str, float]] = [{} for _ in ranks]
    seen: dict[tuple[int, str], int] = defaultdict(int)
    absent: dict[str, list[str]] = defaultdict(list)
    shares: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        at = place[row.rank] if tagged and row.rank is not None else 0
        if row.value is None:
            if row.event not in absent[row.status]:
                absent[row.status].append(row.event)
            continue
        unit = row.unit or ("msec" if row.event in _CLOCKS else "ns" if row.event.endswith("_time") else "")
        scale = unit_scale(unit)
        # of one unit's instances (memory channels, kinds of cores) the sum is the processor's
        event = _HYBRID.sub(r"\1\2", _INSTANCE.sub(r"\1/", row.event))
        name = event if scale is not None else f"{event} [{row.unit}]"
        table[at][name] = table[at].get(name, 0.0) + row.value * (1.0 if scale is None else scale)
        seen[at, name] += 1
        shares[name].append(row.share)
    for status, events in absent.items():
        notes.append(f"{status} here: {', '.join(events)}")
    if any(row.interval for row in rows):
        notes.append(f"intervals added up ({max(seen.values())} of them)")
    elif seen and max(seen.values()) > 1:
        notes.append(f"rows of {max(seen.values())} processors or threads added up")
    origin = {}
    for name, given in shares.items():
        mean = float(np.mean(given))
        if mean < 99.995:
            origin[_ALIASES.get(name, name)] = origin[name] = (
                f"measured ({name}), counted {mean:.4g} % of the time and scaled by perf"
            )
    return table, origin


def _footers(
    path: Path,
    end: int,
    said: dict[int | None, dict[str, str]],
    table: list[dict[str, float]],
    ranks: Sequence[int],
    tagged: bool,
    notes: list[str],
) -> float | None:
    """Elapsed and processor time from below the table; the longest elapsed time."""
    walls = []
    for rank, facts in said.items():
        if "what" in facts and not {"time elapsed", "user", "sys"} & set(facts):
            whose = f" of rank {rank}" if rank is not None else ""
            raise InputError(
                f"{path}:{end}: the report{whose} breaks off before its time elapsed",
                "the file is truncated: copy it again",
            )
        at = list(ranks).index(rank) if rank is not None and rank in ranks else 0
        seconds = {key: float(facts[key]) for key in ("time elapsed", "user", "sys") if _is_number(facts.get(key))}
        if "time elapsed" in seconds and (not tagged or rank is not None):
            walls.append(seconds["time elapsed"])
            table[at].setdefault("duration_time", seconds["time elapsed"])
        if {"user", "sys"} <= set(seconds):
            table[at].setdefault("task-clock", seconds["user"] + seconds["sys"])
        if "runs" in facts:
            notes.append(f"values are means of {facts['runs']} runs")
    return max(walls) if walls else None


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and 0 <= float(text) < _assemble.LARGEST
    except ValueError:
        return False


def _command(what: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(what))
    except ValueError:
        return tuple(what.split())
