"""GPTL's timing files: ``timing.000000`` of a rank, or the summary over all ranks (GPTL's own and CESM/E3SM's).

A rank's file shows timers indented under their callers, with wall time including what they call; exclusive time is
formed here. A timer with several callers (``*``) is listed once: what it took is subtracted from each caller by its
share of the calls, as the file's "Multiple parent info" gives them. Summaries do not show who calls whom: only
inclusive times are known from them, largest over ranks and mean.

Source: GPTL documentation (examples 1 to 7) and ``src/gptl.c``, ``src/pr_summary.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.meaning import MAXIMUM, MEAN
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._assemble import Cells, build, columns_of
from ranksight.counters.readers._files import Format, Ranked, damaged, inside, number, read_text

_FILE = re.compile(r"(?<!\w)(?:\w+_)?timing\.(\d{1,7})$")
_THREAD = re.compile(r"^\s*Stats for thread (\d+):")
_ROW = re.compile(r'^(?P<star>\*?)(?P<indent>\s*)(?:"(?P<quoted>[^"]*)"\s+)?(?P<rest>\S.*)$')
_PARENTS = re.compile(r"^Multiple parent info .*thread (\d+)")
_PARENT = re.compile(
    r'^(?P<indent>\s*)(?P<count>\d+(?:\.\d*)?(?:[eE][+]?\d{1,2})?)(?P<gap>\s+)(?P<name>"[^"]*"|\S(?:.*\S)?)\s*$'
)
_EVENT = re.compile(r"(?:PAPI_)?[A-Z][A-Z0-9]*_[A-Z0-9_]+$")
_TASKS = re.compile(r"Total ranks in communicator\s*=\s*(\d+)|\(\s*(\d+)\s+MPI TASKS\s*\)")
_HEADING = re.compile(
    r"^name\s+(?:(?P<own>ncalls\s+nranks\s+mean_time\s+std_dev)|(?:on\s+)?processes\s+threads\s+count\s+walltotal)"
    r"\s+wallmax\s*\("
)
_TIMER = re.compile(
    r'^(?P<name>"[^"]*"|\S+)\s+(?P<values>(?:[-y]\s+)?[\d.eE+]+(?:\s+[\d.eE+-]+){2,3}\s+[\d.eE+-]+)'
    r"\s*\(\s*(?P<rank>\d+)(?:\s+\d+)?\s*\)\s+[\d.eE+-]+\s*\(.*\)\s*.*$"
)
_MARKS = ("Stats for thread ", "GPTL version info", "Underlying timing routine was", "GLOBAL STATISTICS")


def _is_one(path: Path, head: str) -> bool:
    return any(mark in head for mark in _MARKS) or any(map(_HEADING.match, head.splitlines()))


def _members(folder: Path) -> Ranked:
    if not any(_FILE.match(entry.name) for entry in folder.iterdir()):
        raise InputError(f"{folder} holds no timing.N", "name the folder that GPTL wrote its files to")
    named = [(match, file) for file in inside(folder) if (match := _FILE.match(file.name))]
    files = {int(match[1]): file for match, file in named}
    if len(files) != len(named):
        raise InputError(f"{folder} holds timing files of two runs", "give every run its own folder")
    return files, ()


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, notes = read_text(path)
    if not any(map(_THREAD.match, lines)):
        yield _summary(path, lines)
        return
    cells = Cells()
    said = list(notes)
    named = _FILE.search(path.name)
    for thread, begin, end in _blocks(path, lines):
        for name, values in _exclusive(path, lines, thread, begin, end, said).items():
            cells.add(name, values, int(named[1]) if named else rank, thread)
    if not cells.rows:
        raise InputError(f"{path} holds no timer", "was GPTLpr called, and the file written to its end?")
    yield cells.reading(
        path,
        how={"time": "max", "time_inclusive": "max"},
        origin={"time": "derived from wall time of the timer and of those it calls"},
        configuration={},
        notes=said,
    )


READERS.register("gptl")(
    Format("GPTL: timing.* of every rank, and summaries over ranks; timers", _is_one, _read, _members)
)


def _blocks(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Thread, and first and last line (exclusive) of its table, of every thread."""
    seen: set[str] = set()
    for at, line in enumerate(lines):
        found = _THREAD.match(line)
        if not found:
            continue
        if found[1] in seen:
            raise InputError(f"{path}:{at + 1}: thread {found[1]} a second time", "give every run its own file")
        seen.add(found[1])
        end = at + 2
        while end < len(lines) and lines[end].strip() and not lines[end].startswith(("Overhead sum", "Total calls")):
            end += 1
        if end >= len(lines):
            raise damaged(f"{path}:{len(lines)}: the table of thread {found[1]} breaks off")
        yield found[1], at + 1, end


def _exclusive(
    path: Path, lines: Sequence[str], thread: str, begin: int, end: int, said: list[str]
) -> dict[str, dict[str, float]]:
    """Timer -> exclusive values of one thread."""
    heads = _heads(path, lines, begin)
    whole: dict[str, dict[str, float]] = {}
    callers: dict[str, dict[str, float]] = {}
    above: list[tuple[int, str]] = []
    several: set[str] = set()
    for at in range(begin + 1, end):
        row = _ROW.match(lines[at].rstrip())
        words = row["rest"].split() if row else []
        # a timer's name may hold blanks; the columns are counted from the right
        named = 0 if row and row["quoted"] is not None else max(1, len(words) - len(heads))
        if row is None or len(words) <= named:
            raise damaged(f"{path}:{at + 1} is not a row of GPTL's table")
        name = row["quoted"] if row["quoted"] is not None else " ".join(words[:named])
        depth = len(row["star"]) + len(row["indent"])
        while above and above[-1][0] >= depth:
            above.pop()
        values = _values(path, at, words[named:], heads)
        if name in whole:
            if not row["star"] and name not in several:
                raise damaged(f"{path}:{at + 1} gives the timer {name!r} a second time")
            above.append((depth, name))
            continue  # GPTL's full tree repeats the same totals under every caller
        if row["star"]:
            several.add(name)
        whole[name] = values
        callers[name] = {above[-1][1]: values.get("visits", 1.0)} if above else {}
        above.append((depth, name))
    callers |= {name: counts for name, counts in _several(lines, thread, end).items() if name in whole}
    own = {name: dict(values) for name, values in whole.items()}
    below = 0
    for name, counts in callers.items():
        total = sum(counts.values())
        for caller, count in counts.items():
            if caller in own and caller != name and total > 0:
                for metric, value in whole[name].items():
                    if metric != "visits":
                        own[caller][metric] = own[caller].get(metric, 0.0) - value * count / total
    result = {}
    for name, values in own.items():
        wall = whole[name].get("time", 0.0)
        below += sum(1 for metric, value in values.items() if value < -1e-2 * max(whole[name].get(metric, 0.0), wall))
        result[name] = {metric: max(value, 0.0) for metric, value in values.items()} | {"time_inclusive": wall}
    if below:
        said.append(f"timers of thread {thread} took more inside than as a whole in {below} places: 0 there")
    return result


def _heads(path: Path, lines: Sequence[str], begin: int) -> list[str]:
    """Names of the columns after the timer's name: ``on``, ``visits``, ``time``, events, empty for what is not kept."""
    words = lines[begin].replace("UTR Overhead", "UTR_Overhead").replace("OH (cycles)", "OH").split()
    if "Called" not in words or not any(word in words for word in ("Wall", "Wallclock")):
        raise damaged(f"{path}:{begin + 1} does not name GPTL's columns")
    names = {"Called": "visits", "Wall": "time", "Wallclock": "time", "On": "on", "Recurse": "recurse"}
    found = [names.get(word, word if _EVENT.match(word) and word != "UTR_Overhead" else "") for word in words]
    return [
        name if name in names.values() or not name or name.startswith("PAPI_") else f"PAPI_{name}" for name in found
    ]


def _values(path: Path, at: int, words: Sequence[str], heads: Sequence[str]) -> dict[str, float]:
    if len(words) < min(len(heads), heads.index("time") + 1):
        raise damaged(f"{path}:{at + 1} has {len(words)} of {len(heads)} values")
    kept = [(name, word) for name, word in zip(heads, words, strict=False) if name not in ("", "on", "recurse")]
    return {name: number(f"{path}:{at + 1}", word, name) for name, word in kept}


def _several(lines: Sequence[str], thread: str, start: int) -> dict[str, dict[str, float]]:
    """Timer -> caller -> calls, from "Multiple parent info" of a thread."""
    found: dict[str, dict[str, float]] = {}
    inside = False
    group: list[tuple[int, float, str]] = []
    for line in [*lines[start:], ""]:
        begins = _PARENTS.match(line)
        if begins or _THREAD.match(line) or line.startswith("Same stats sorted"):
            inside = begins is not None and begins[1] == thread
            group = []
            continue
        row = _PARENT.match(line) if inside else None
        if row is not None:
            group.append((len(row["gap"]), float(row["count"]), row["name"].strip('"')))
        else:
            # the last of a group is the child, indented more than its callers
            if len(group) > 1 and group[-1][0] > group[0][0]:
                found[group[-1][2]] = {name: count for _, count, name in group[:-1]}
            group = []
    return found


def _summary(path: Path, lines: Sequence[str]) -> Reading:
    """A summary over ranks, one line a timer: inclusive time, largest and mean over ranks."""
    ranks: float | None = None
    heading = None
    rows: dict[str, dict[str, float]] = {}
    for at, line in enumerate(lines, 1):
        if tasks := _TASKS.search(line):
            ranks = float(tasks[1] or tasks[2])
        elif heading is None:
            heading = _HEADING.match(line)
        elif not line.strip():
            if rows:
                break
        else:
            row = _TIMER.match(line)
            if row is None or at == len(lines):
                raise damaged(f"{path}:{at} is not a complete row of GPTL's summary")
            name = row["name"].strip('"')
            if name in rows:
                raise InputError(f"{path}:{at} gives the timer {name!r} a second time", "give one run a file")
            numbers = [number(f"{path}:{at}", word, name) for word in row["values"].split() if word not in ("-", "y")]
            if len(numbers) != 5:
                raise damaged(f"{path}:{at} has {len(numbers)} values of 5")
            if heading["own"]:
                calls, active, mean, _, largest = numbers
            else:
                active, _, calls, total, largest = numbers
                mean = total / max(active, 1.0)
            visits = calls / max(active, 1.0)
            rows[name] = {"visits": visits, "time_inclusive": largest, "time_inclusive_mean": mean}
    if not rows:
        raise InputError(f"{path} holds no timer of GPTL", "was it written to its end?")
    return build(
        path,
        list(rows),
        [ALL_RANKS] * len(rows),
        columns_of(rows.values()),
        origin={"time_inclusive": "measured (wallmax)", "time_inclusive_mean": "derived from walltotal, processes"},
        configuration={} if ranks is None else {"ranks": ranks},
        meaning=MEAN,
        meanings={"time_inclusive": MAXIMUM},
        notes=("a summary does not show who calls whom: times include what timers call, largest over ranks",),
    )
