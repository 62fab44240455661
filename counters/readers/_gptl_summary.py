"""GPTL's summaries over ranks: one line a timer, statistics of inclusive wall time.

Source: GPTL ``src/pr_summary.c``; the variant of CESM and E3SM (``GLOBAL STATISTICS``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.reading import Reading
from ranksight.counters.readers import _assemble

_TASKS = re.compile(r"Total ranks in communicator\s*=\s*(\d+)|\(\s*(\d+)\s+MPI TASKS\s*\)")
_OWN = re.compile(r"^name\s+ncalls\s+nranks\s+mean_time\s+std_dev\s+wallmax\s*\(")
_CESM = re.compile(r"^name\s+(?:on\s+)?processes\s+threads\s+count\s+walltotal\s+wallmax\s*\(")
_ROW = re.compile(
    r'^(?P<name>"[^"]*"|\S+)\s+(?P<values>(?:[-y]\s+)?[\d.eE+]+(?:\s+[\d.eE+-]+){2,3}\s+[\d.eE+-]+)'
    r"\s*\(\s*(?P<rank>\d+)(?:\s+\d+)?\s*\)\s+[\d.eE+-]+\s*\(.*\)\s*.*$"
)


def is_summary(text: str) -> bool:
    """Whether `text` has the heading of a summary."""
    return any(_OWN.match(line) or _CESM.match(line) for line in text.splitlines())


def summary(path: Path, lines: Sequence[str]) -> Reading:
    """Read a summary: inclusive time, largest and mean over ranks.

    Raises InputError, naming file and line: no heading, a damaged row, a timer given twice, no timer.
    """
    ranks: float | None = None
    own = False
    begin = -1
    rows: dict[str, dict[str, float]] = {}
    for at, line in enumerate(lines):
        tasks = _TASKS.search(line)
        if tasks:
            ranks = float(tasks[1] or tasks[2])
        elif begin < 0:
            if _OWN.match(line) or _CESM.match(line):
                begin, own = at, _OWN.match(line) is not None
        elif not line.strip():
            if rows:
                break
        else:
            row = _ROW.match(line)
            if row is None or at == len(lines) - 1:
                raise InputError(
                    f"{path}:{at + 1} is not a complete row of GPTL's summary", "the file is truncated or damaged"
                )
            name = row["name"].strip('"')
            if name in rows:
                raise InputError(f"{path}:{at + 1} gives the timer {name!r} a second time", "give one run a file")
            rows[name] = _values(path, at, row["values"].split(), own)
    if not rows:
        raise InputError(f"{path} holds no timer of GPTL", "was it written to its end?")
    return _assemble.build(
        path,
        list(rows),
        [ALL_RANKS] * len(rows),
        _assemble.columns_of(rows.values()),
        origin={"time_inclusive": "measured (wallmax)", "time_inclusive_mean": "derived from walltotal, processes"},
        configuration={} if ranks is None else {"ranks": ranks},
        notes=("a summary does not show who calls whom: times include what timers call, largest over ranks",),
    )


def _values(path: Path, at: int, words: list[str], own: bool) -> dict[str, float]:
    if words[0] in ("-", "y"):
        words = words[1:]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 5 or not all(0 <= value < _assemble.LARGEST for value in numbers):
        raise InputError(f"{path}:{at + 1} holds a value that is not a time or count", "the file is damaged")
    if own:
        calls, active, mean, _, largest = numbers
        visits = calls / max(active, 1.0)
    else:
        active, _, calls, total, largest = numbers
        mean, visits = total / max(active, 1.0), calls / max(active, 1.0)
    return {"visits": visits, "time_inclusive": largest, "time_inclusive_mean": mean}
