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
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._gptl_summary import is_summary, summary

_FILE = re.compile(r"(?:\w+_)?timing\.(\d{1,7})$")
_THREAD = re.compile(r"^\s*Stats for thread (\d+):")
_ROW = re.compile(r'^(?P<star>\*?)(?P<indent>\s*)(?:"(?P<quoted>[^"]*)"\s+)?(?P<rest>\S.*)$')
_PARENTS = re.compile(r"^Multiple parent info .*thread (\d+)")
_PARENT = re.compile(
    r'^(?P<indent>\s*)(?P<count>\d+(?:\.\d*)?(?:[eE][+]?\d{1,2})?)(?P<gap>\s+)(?P<name>"[^"]*"|\S.*?)\s*$'
)
_EVENT = re.compile(r"(?:PAPI_)?[A-Z][A-Z0-9]*_[A-Z0-9_]+$")
_MARKS = ("Stats for thread ", "GPTL version info", "Underlying timing routine was", "GLOBAL STATISTICS")


class Gptl:
    """Reads GPTL's timing files; see the module's text."""

    text = "GPTL: timing.* of every rank, and summaries over ranks; timers"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is a timing file, or a folder of those of all ranks."""
        if path.is_dir():
            try:
                files = _members(path)
            except (InputError, OSError):
                return False
            return bool(files) and all(self.recognises(file, _assemble.head_of(file)) for file in files.values())
        text = _assemble.head_text(head)
        return "\x00" not in text and (any(mark in text for mark in _MARKS) or is_summary(text))

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a file, or a folder with one file a rank.

        Raises InputError, naming file and line: no timers, a damaged row, a timer given twice, a rank missing.
        """
        if path.is_dir():
            files = _members(path)
            if not files:
                raise InputError(f"{path} holds no timing.N", "name the folder that GPTL wrote its files to")
            yield _assemble.merge_ranks({rank: _read(file, rank) for rank, file in files.items()}, path)
            return
        lines, _ = _assemble.read_text(path)
        if any(_THREAD.match(line) for line in lines):
            found = _FILE.search(path.name)
            yield _read(path, int(found[1]) if found else _assemble.rank_in(path))
        else:
            yield summary(path, lines)


READERS.register("gptl")(Gptl())


def _members(folder: Path) -> dict[int, Path]:
    if not any(_FILE.match(entry.name) for entry in folder.iterdir()):
        return {}
    named = [(match, file) for file in _assemble.inside(folder) if (match := _FILE.match(file.name))]
    files = {int(match[1]): file for match, file in named}
    if len(files) != len(named):
        raise InputError(f"{folder} holds timing files of two runs", "give every run its own folder")
    return files


def _read(path: Path, rank: int | None) -> Reading:
    lines, notes = _assemble.read_text(path)
    kernels: list[str] = []
    threads: list[str] = []
    rows: list[dict[str, float]] = []
    said = list(notes)
    for thread, begin, end in _blocks(path, lines):
        for name, values in _exclusive(path, lines, thread, begin, end, said).items():
            kernels.append(name)
            threads.append(thread)
            rows.append(values)
    if not rows:
        raise InputError(f"{path} holds no timer", "was GPTLpr called, and the file written to its end?")
    return _assemble.build_threads(
        path,
        kernels,
        rank or 0,
        threads,
        _assemble.columns_of(rows),
        {"time": "max", "time_inclusive": "max"},
        origin={"time": "derived from wall time of the timer and of those it calls"},
        configuration={},
        notes=said,
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
            raise InputError(f"{path}:{len(lines)}: the table of thread {found[1]} breaks off", "the file is truncated")
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
            raise InputError(f"{path}:{at + 1} is not a row of GPTL's table", "the file is damaged")
        name = row["quoted"] if row["quoted"] is not None else " ".join(words[:named])
        depth = len(row["star"]) + len(row["indent"])
        while above and above[-1][0] >= depth:
            above.pop()
        values = _values(path, at, words[named:], heads)
        if name in whole:
            if not row["star"] and name not in several:
                raise InputError(f"{path}:{at + 1} gives the timer {name!r} a second time", "the file is damaged")
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
        raise InputError(f"{path}:{begin + 1} does not name GPTL's columns", "the file is damaged")
    names = {"Called": "visits", "Wall": "time", "Wallclock": "time", "On": "on", "Recurse": "recurse"}
    found = [names.get(word, word if _EVENT.match(word) and word != "UTR_Overhead" else "") for word in words]
    return [
        name if name in names.values() or not name or name.startswith("PAPI_") else f"PAPI_{name}" for name in found
    ]


def _values(path: Path, at: int, words: Sequence[str], heads: Sequence[str]) -> dict[str, float]:
    if len(words) < min(len(heads), heads.index("time") + 1):
        raise InputError(f"{path}:{at + 1} has {len(words)} of {len(heads)} values", "the file is truncated or damaged")
    values: dict[str, float] = {}
    for name, word in zip(heads, words, strict=False):
        if not name or name in ("on", "recurse"):
            continue
        values[name] = _assemble.number(path, at + 1, word)
    return values


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
