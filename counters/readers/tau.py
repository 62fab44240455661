"""TAU profiles: ``profile.NODE.CONTEXT.THREAD``, one folder a run, one ``MULTI__METRIC`` folder a metric.

Where the profile has call paths (``a => b``) they are the kernels; what a function spent outside of all recorded paths
(a root's own time, paths cut at TAU_CALLPATH_DEPTH) stays under the function's name, so that totals are TAU's.
Samples (``[SAMPLE]``, event-based sampling) divide the time of the timer that they were taken in among functions: what
they show is taken from the timer. Times are in microseconds, counters are counts.

Source: TAU user's guide and ``tau2/src/Profile/TauUtil``'s text format as written by TAU 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.mpi import LABEL, is_call
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._calltree import SEPARATOR
from ranksight.counters.readers._files import LARGEST, counter, damaged, head_of, head_text, inside, number, read_text

_FILE = re.compile(r"profile\.(\d{1,9})\.(\d{1,9})\.(\d{1,9})$")
_HEAD = re.compile(r"(\d{1,9}) templated_functions(?:_MULTI_(\S+))?\s*$")
_ROW = re.compile(r'"(?P<name>.*)" (?P<numbers>[^"]+?)(?: GROUP="(?P<group>.*)")?$')
"""A row without blanks at its end: to pass over them takes a pattern as many steps as they have pairs."""
_ATTRIBUTE = re.compile(r"<attribute><name>([^<]*)</name><value>([^<]*)</value></attribute>")
_TIME = re.compile(r"TIME|TIMERS$|CLOCK$|GET_TIME_OF_DAY|USER_CLOCK", re.IGNORECASE)
_ARROW = " => "
_OF_MPI = re.compile(r"(?:^|[|\s])MPI(?:$|[|\s])")
"""Among the groups of a function, which TAU separates by bars."""
_SAMPLING = re.compile(r"(?:^|=> )\[(?:SAMPLE|SUMMARY|CONTEXT|UNWIND|INTERMEDIATE)\] ")
_PLACE = re.compile(r"(?<!\s)\s+\[\{.*\}\]$")
_TOLD = ("Command Line", "CPU Type", "CPU MHz", "Executable", "Hostname", "TAU Version", "Starting Timestamp")


@dataclass(frozen=True, slots=True)
class _Profile:
    """One file: calls and exclusive values of every function or call path."""

    metric: str
    calls: dict[str, float]
    exclusive: dict[str, float]
    metadata: dict[str, str]
    events: int


class Tau:
    """Reads TAU's profiles; see the module's text."""

    text = "TAU: profile.* files and MULTI__ folders; call paths or functions, all metrics"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is a profile of TAU, or a folder of them."""
        if path.is_dir():
            try:
                first = next(_files(path), None)
            except InputError:
                return False
            return first is not None and self.recognises(first, head_of(first))
        return _HEAD.match(head_text(head).partition("\n")[0]) is not None

    def read(self, path: Path) -> Iterator[Reading]:
        """Read the profiles of one run.

        Raises InputError, naming file and line: damaged, a rank is missing, or metrics of different ranks.
        """
        files = list(_files(path)) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path} holds no profile.N.N.N", "name the folder that TAU wrote its profiles to")
        yield _reading(path, files)


READERS.register("tau")(Tau())


def _files(folder: Path) -> Iterator[Path]:
    """Profiles of a folder and of its MULTI__ folders."""
    folders = [entry for entry in sorted(folder.iterdir()) if entry.name.startswith("MULTI__")]
    for place in [folder, *(entry for entry in folders if entry.is_dir() and not entry.is_symlink())]:
        if any(_FILE.match(entry.name) for entry in place.iterdir()):
            yield from (file for file in inside(place) if _FILE.match(file.name))


def _reading(path: Path, files: list[Path]) -> Reading:
    cells = Cells()
    metadata: dict[str, str] = {}
    metrics: dict[str, set[tuple[int, str]]] = {}
    events = 0
    origin = {"visits": "measured (calls)"}
    for file in files:
        named = _FILE.search(file.name)
        rank, thread = (int(named[1]), f"{named[2]}.{named[3]}") if named else (0, "0.0")
        profile = _profile(file)
        if (rank, thread) in metrics.setdefault(profile.metric, set()):
            raise InputError(f"{file}: {profile.metric} of node {rank}, thread {thread} was read before")
        metrics[profile.metric].add((rank, thread))
        metadata = metadata or profile.metadata
        events = max(events, profile.events)
        said = f"measured ({profile.metric})"
        timed = _timed(profile.metric)
        name = "time" if timed and origin.get("time", said) == said else profile.metric
        if name == "time":
            origin["time"] = said
        for function, value in profile.exclusive.items():
            cells.add(function, {name: value * (1e-6 if timed else 1.0)}, rank, thread)
            if function in profile.calls:  # which the profile of every metric states
                cells.rows[function, rank, thread]["visits"] = profile.calls[function]
    everyone = set().union(*metrics.values())
    for metric, present in metrics.items():
        if present != everyone:
            rank, thread = min(everyone - present)
            raise InputError(f"{path}: {metric} of node {rank}, thread {thread} is missing", "give all profiles")
    return cells.reading(
        path,
        origin=origin,
        configuration=None if path.is_dir() else {},
        notes=[f"{events} user events of a profile are left out"] if events else (),
        command=tuple(metadata.get("Command Line", "").split()),
        environment={key: metadata[key] for key in _TOLD if key in metadata},
    )


def _profile(file: Path) -> _Profile:
    lines, _ = read_text(file)
    head = _HEAD.match(lines[0])
    if head is None:
        raise damaged(f"{file}:1 is not the head of a TAU profile")
    count = int(head[1])
    about = lines[1] if len(lines) > 1 else ""
    if not about.startswith("# Name Calls Subrs Excl Incl"):
        raise damaged(f"{file}:2 does not name the columns of a TAU profile")
    metadata = dict(_ATTRIBUTE.findall(about))
    metric = head[2] or metadata.get("Metric Name", "TIME")
    value = number if _timed(metric) else _count
    if len(lines) < count + 3:
        raise damaged(f"{file}:{len(lines)} breaks off: {count} functions are announced")
    calls: dict[str, float] = {}
    exclusive: dict[str, float] = {}
    for at, line in enumerate(lines[2 : count + 2], 3):
        row = _ROW.match(line.rstrip())
        values = row["numbers"].split() if row else []
        if row is None or len(values) < 4:
            raise damaged(f"{file}:{at} is not a row of a TAU profile")
        visits, own = (read(f"{file}:{at}", values[place], row["name"]) for place, read in ((0, number), (2, value)))
        parts = [part.strip() for part in row["name"].split(_ARROW)]
        if _OF_MPI.search(row["group"] or "") and not is_call(parts[-1]):
            parts[-1] += LABEL
        name = _ARROW.join(parts)
        if name in exclusive:
            raise damaged(f"{file}:{at} gives {name!r} a second time")
        calls[name], exclusive[name] = visits, own
    rest = next((line for line in lines[count + 2 :] if line.endswith("userevents")), "0").split()[0]
    events = int(rest) if rest.isdecimal() and len(rest) < 19 else 0
    return _Profile(metric, *_by_path(calls, exclusive), metadata, events)


def _timed(metric: str) -> bool:
    return _TIME.search(metric) is not None and not metric.startswith("PAPI_")


def _count(where: str, text: str, name: str) -> float:
    """A count, which is infinite where the counter wrapped: no difference to another hides that."""
    value = counter(where, text, name)
    return value if abs(value) < LARGEST else math.inf


def _by_path(calls: dict[str, float], exclusive: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Call paths, and of every function what its paths do not hold."""
    paths = [name for name in exclusive if _ARROW in name and not _SAMPLING.search(name)]
    rest_calls = {name: calls[name] for name in exclusive if _ARROW not in name and not _SAMPLING.search(name)}
    rest_own = {name: exclusive[name] for name in rest_calls}
    within = _sampled(exclusive)
    for name in paths:
        leaf = name.rsplit(_ARROW, 1)[1]
        if leaf in rest_own:
            rest_own[leaf] -= exclusive[name]
            rest_calls[leaf] -= calls[name]
    kept = [n for n, own in rest_own.items() if rest_calls[n] > 0 or own > 1e-6 * exclusive[n] or not paths]
    names = {name: name.replace(_ARROW, SEPARATOR) for name in paths}
    visits = {**{name: max(rest_calls[name], 0.0) for name in kept}, **{names[name]: calls[name] for name in paths}}
    own = {**{name: max(rest_own[name], 0.0) for name in kept}, **{names[name]: exclusive[name] for name in paths}}
    for (timer, function), value in within.items():
        place = timer.replace(_ARROW, SEPARATOR)
        if place in own:
            value = min(value, own[place])  # samples of the last interval may reach beyond the timer's end
            own[place] -= value
            key = f"{place}{SEPARATOR}{function}"
            own[key] = own.get(key, 0.0) + value
    return visits, own


def _sampled(exclusive: dict[str, float]) -> dict[tuple[str, str], float]:
    """What samples show: the timer's path and the function hit -> value."""
    found: dict[tuple[str, str], float] = {}
    for name, value in exclusive.items():
        timer, context, rest = name.partition(f"{_ARROW}[CONTEXT] ")
        leaf = rest.rsplit(_ARROW, 1)[-1]
        if context and leaf.startswith("[SAMPLE] "):
            function = _PLACE.sub("", leaf.removeprefix("[SAMPLE] ").strip())
            found[timer, function] = found.get((timer, function), 0.0) + value
    return found
