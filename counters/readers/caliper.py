"""Caliper profiles: .cali streams (by caliper-reader) and JSON, split tables or records; exclusive per call path.

Where the profile keeps ranks apart (``mpi.rank``) values are of each rank; where Caliper reduced it over ranks, of the
mean rank, as rank -1. Inclusive values become exclusive by subtracting the callees'.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.meaning import MEAN, SUM
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.core.units import counted
from ranksight.counters.names import unit_scale
from ranksight.counters.readers import _caliper_names, _calltree
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._calltree import CallPaths
from ranksight.counters.readers._files import (
    Format,
    checked_ranks,
    damaged,
    head_of,
    head_text,
    number,
    read_json,
    read_text,
)

_RANKS = ("mpi.rank", "mpirank", "rank")
_THREADS = ("omp.thread.id", "pthread.id", "thread", "cali.thread.id")
_SECOND_VERSION = frozenset({"cali.channel", "cali.caliper.version", "spot.channel", "attribute.unit"})
_ID = re.compile(r",id=(\d{1,18})(?=,|$)")
_PARENT = re.compile(r",parent=(\d{1,18})(?=,|$)")
_ESCAPED = re.compile(r"\\.")
_PROPERTIES = re.compile(r",data=\d{1,9}(?:,|$)")
_REFERENCES = re.compile(r",ref=([\d=]+)")
_KIND = re.compile(r"__rec=(\w+)(?=,|$)")
_BUILT_IN = 16
"""Nodes below this are Caliper's own (types, and the attributes of attributes)."""
_CALLPATH = "source.function#callpath.address"
"""Column of call paths taken from the stack; finer than annotated regions (``path``)."""
UNNAMED = "(unnamed)"
_WORLD = ("mpi.world.size", "jobsize")
_RECORD = re.compile(
    r'^\s*\[\s*\{[^{}\[\]]{0,2000}"(?:path|[\w.]+#[\w.#]+|time|time \(exc\)|Time \(E\)|mpi\.rank)"\s*:'
)
_SPLIT = re.compile(r'^\s*\{\s*"(?:data"\s*:\s*\[\s*[\[\]]|columns"\s*:\s*\[.{0,3000}"column_metadata")', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """What any form of file gives."""

    records: Sequence[Mapping[str, Any]]  # values by attribute; the number of the call path under ``path``
    calls: CallPaths
    units: Mapping[str, str]  # of attributes that hold numbers, empty where the file does not say
    globals: Mapping[str, str]  # what is known of the run
    inclusive: Collection[str] = ()  # attributes that hold their callees, whatever their names say


def _is_one(path: Path, head: str) -> bool:
    return head.startswith("__rec=") or any(form.match(head) for form in (_RECORD, _SPLIT))


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    stream = head_text(head_of(path, 64)).startswith("__rec=") or path.suffix == ".cali"
    yield reading(path, _stream(path) if stream else _json(path))


READERS.register("caliper")(
    Format("Caliper: .cali (extra: caliper) and JSON; call paths, all metrics", _is_one, _read, None)
)


def _stream(path: Path) -> Source:
    try:
        import caliperreader
    except ImportError as error:
        raise ToolError(
            "caliper-reader, which reads .cali files, is not installed", "pip install 'ranksight[caliper]'"
        ) from error
    lines, _ = read_text(path)
    reader = caliperreader.CaliperReader()
    count = 0

    nodes = _Nodes(sum(map(len, lines)))

    def numbered() -> Iterator[str]:
        nonlocal count
        for line in lines:
            count += 1
            if line.strip():
                nodes.check(line.strip())
                yield line

    try:
        reader.read(numbered())
        attributes = {name: reader.attribute(name) for name in reader.attributes()}
        units = {name: str(unit) for name, item in attributes.items() if (unit := item.get("attribute.unit"))}
    except Exception as error:  # caliper-reader lets KeyError, ValueError, StopIteration and its own through
        raise damaged(f"{path}:{count} cannot be read: {type(error).__name__} {error}"[:300]) from error
    # since version 2 the global values are the last record; a file of version 1 ends with a line break at least
    first_version = _SECOND_VERSION.isdisjoint(attributes) and not lines[-1].strip()
    if not reader.globals and not first_version:
        raise damaged(f"{path}:{count} breaks off")
    calls = CallPaths(str(path))
    records = [_with_path(record, calls) for record in reader.records]
    return Source(records, calls, units, {str(k): as_text(v) for k, v in reader.globals.items()})


class _Nodes:
    """Checks records before caliper-reader follows their nodes to the root.

    `size`: characters of the file.
    """

    def __init__(self, size: int) -> None:
        self._lines: dict[str, str] = {}
        self._depths: dict[str, int] = {}
        self._left = max(size, limits.CALIPER_NODES)

    def check(self, line: str) -> None:
        """Refuse a node that stands below itself, is given anew or too deep, and records of more nodes than fit;
        ValueError."""
        plain = _ESCAPED.sub("", line)
        kind = _KIND.match(line)
        if kind is None or ",__rec=" in plain:
            raise ValueError("a record does not begin with its kind, or has two")
        if kind[1] != "node":
            named = "=".join(_REFERENCES.findall(plain)).split("=")
            self._left -= sum(self._depths.get(number, 0) for number in named)
            if self._left < 0:
                raise ValueError("its records name more nodes, with all above them, than a profile of its size")
            return
        numbers, parents = _ID.findall(plain), _PARENT.findall(plain)
        if plain.count(",id=") != len(numbers) or plain.count(",parent=") != len(parents):
            raise ValueError("the number or the parent of a node is not a number")
        if len(numbers) != 1 or len(parents) > 1 or parents == numbers:
            raise ValueError("a node is its own parent, or does not have one number and one parent")
        if ",attr=10," in plain and not _PROPERTIES.search(plain):
            raise ValueError("the properties of an attribute are no number")
        (number,) = numbers
        if self._lines.setdefault(number, line) != line:
            raise ValueError(f"node {number} is given a second time")
        if parents and parents[0] not in self._lines and int(parents[0]) > _BUILT_IN:
            raise ValueError(f"the parent of node {number} is not known yet")
        self._depths[number] = depth = 1 + self._depths.get(parents[0], 0) if parents else 1
        if depth > limits.DEPTH:
            raise ValueError(f"node {number} is more than {limits.DEPTH} calls deep")


def _json(path: Path) -> Source:
    content = read_json(path)
    calls = CallPaths(str(path))
    if isinstance(content, list) and all(isinstance(record, dict) for record in content):
        return Source([_with_path(record, calls, "/") for record in content], calls, {}, {})
    if not isinstance(content, dict) or not all(
        isinstance(content.get(key), list) for key in ("data", "columns", "nodes")
    ):
        raise damaged(f"{path} is not a Caliper profile: data, columns or nodes is missing")
    columns, nodes = [str(name) for name in content["columns"]], content["nodes"]
    details = content.get("column_metadata") or [{}] * len(columns)
    if not isinstance(details, list) or not all(isinstance(detail, dict) for detail in details):
        raise damaged(f"{path}: column_metadata is not a list of objects")
    if len(details) != len(columns):
        raise InputError(f"{path}: {len(details)} entries of column_metadata for {len(columns)} columns")
    paths = _paths(path, nodes, calls)
    references = [not detail.get("is_value", name != "path") for name, detail in zip(columns, details, strict=True)]
    records: list[dict[str, Any]] = []
    for at, row in enumerate(content["data"]):
        if not isinstance(row, list) or len(row) != len(columns):
            raise damaged(f"{path}: row {at} of data has not {len(columns)} values")
        record: dict[str, Any] = {}
        for name, value, reference in zip(columns, row, references, strict=True):
            if value is None:
                continue
            if reference and isinstance(value, int):
                if not 0 <= value < len(paths):
                    raise damaged(f"{path}: row {at} of data names node {value} of {len(paths)}")
                record[name] = paths[value] if name in ("path", _CALLPATH) else (str(nodes[value].get("label", "")),)
            else:
                record[name] = _called(value, calls) if name in ("path", _CALLPATH) else value
        if _CALLPATH in columns:
            record["path"] = record.pop(_CALLPATH, CallPaths.ROOT)
        records.append(record)
    units = {
        name: str(unit)
        for name, detail in zip(columns, details, strict=True)
        if (unit := detail.get("attribute.unit") or detail.get("unit"))
    }
    known = {"data", "columns", "nodes", "column_metadata"}
    return Source(records, calls, units, {key: as_text(value) for key, value in content.items() if key not in known})


def _paths(path: Path, nodes: Sequence[Any], calls: CallPaths) -> list[int]:
    """Number of the call path of every node; a parent stands before its children."""
    paths: list[int] = []
    for at, node in enumerate(nodes):
        parent = node.get("parent") if isinstance(node, dict) else -1
        if parent is not None and (not isinstance(parent, int) or not 0 <= parent < at):
            raise damaged(f"{path}: node {at} has no proper parent")
        caller = CallPaths.ROOT if parent is None else paths[parent]
        paths.append(calls.number(caller, str(node.get("label", "")) or UNNAMED))
    return paths


def _with_path(record: Mapping[str, Any], calls: CallPaths, separator: str = "") -> dict[str, Any]:
    """A record with the number of its call path."""
    return {**record, "path": _called(record.get("path", ()), calls, separator)}


def _called(path: Any, calls: CallPaths, separator: str = "") -> int:
    """The number of a call path: a list of functions or, where there is a separator, a text of them."""
    if isinstance(path, str) and separator:
        path = tuple(part for part in path.split(separator) if part)
    number = CallPaths.ROOT
    for part in path if isinstance(path, (list, tuple)) else (path,):
        number = calls.number(number, str(part) or UNNAMED)
    return number


def as_text(value: object) -> str:
    """A global value as text, lists with commas."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def reading(path: Path, source: Source) -> Reading:
    """The reading of one profile. Raises InputError when it holds no total of a metric, or lacks ranks."""
    world = next((n for key in _WORLD if (n := _integer(source.globals.get(key))) is not None and n > 0), None)
    names = dict.fromkeys(
        name
        for record in source.records
        for name, value in record.items()
        if not isinstance(value, (tuple, list)) and _caliper_names.is_metric(name, source.units)
    )
    columns = {name: _caliper_names.column(name, source.units.get(name)) for name in names}
    columns |= {name: replace(columns[name], inclusive=True) for name in names if name in source.inclusive}
    ranked = any(key in record for record in source.records for key in _RANKS)
    reduced = not ranked and (world or 1) > 1
    best = _caliper_names.chosen(columns.values(), reduced)
    if not best:
        raise InputError(f"{path} holds no total of a metric", "aggregate time or counters in Caliper's configuration")
    extremes = [c for c in columns.values() if c.across in ("min", "max") and c.adds and c.quantity in best]
    records = [record for record in source.records if any(c.name in record for c in best.values())]
    wanted = [*best.values(), *extremes]
    rows, absent = _rows(path, records, source.calls, wanted, ALL_RANKS if reduced else 0)
    values, origin, notes = _exclusive(rows, best)
    notes += absent
    for item in extremes:
        values[item.name] = rows.columns[item.name] * (1.0 if item.scale is None else item.scale)
    left = [c.name for c in columns.values() if c not in best.values() and c not in extremes]
    listed = {name for record in source.records for name, value in record.items() if isinstance(value, (tuple, list))}
    if unread := sorted(name for name in listed - set(names) if _caliper_names.is_metric(name, source.units)):
        notes.append(f"left out, for their values are no numbers: {', '.join(unread)}")
    if left:
        notes.append(f"left out, for others say the same or they do not add: {', '.join(left)}")
    if reduced:
        notes.append(f"Caliper reduced the profile over its {world} ranks: values are of the mean rank")
    over = {name: SUM if item.across == "sum" else MEAN for name, item in best.items()} if reduced else {}
    if "time" in over:
        over["time_inclusive"] = over["time"]
    bare = _bare(rows, values.get("time"))
    size = _ranks(path, rows, world) if ranked else world
    return build(
        path,
        [bare if kernel == WHOLE else kernel for kernel in rows.kernels],
        rows.ranks,
        values,
        threads=rows.threads,
        how={name: "max" for name in values if name.startswith("time") or "#" in name},
        origin=origin,
        configuration={} if size is None else {"ranks": float(size)},
        meanings=over,
        notes=notes,
        environment=dict(source.globals),
        command=_command(source.globals.get("cmdline", "")),
    )


def _bare(rows: _calltree.Tree, time: Array | None) -> str:
    """What a record without a path is: the whole program where it holds the time of all regions or there are none,
    otherwise what was outside of all regions, as Caliper counts it."""
    bare = np.array([kernel == WHOLE for kernel in rows.kernels])
    if bare.all() or time is None:
        return WHOLE
    outside, inside = np.nansum(time[bare]), np.nansum(time[~bare])
    return WHOLE if outside >= inside * (1 - 1e-6) else _calltree.OUTSIDE


def _exclusive(
    rows: _calltree.Tree, best: Mapping[str, _caliper_names.Column]
) -> tuple[dict[str, Array], dict[str, str], list[str]]:
    """Values of each quantity without callees, in SI units, where each comes from, and what was assumed."""
    notes: list[str] = []
    values: dict[str, Array] = {}
    origin: dict[str, str] = {}
    for quantity, item in best.items():
        total, scale = rows.columns[item.name], item.scale
        if scale is None:
            scale = _guessed_scale(item.name, total, notes)
        total = total * scale
        inclusive = item.inclusive
        if inclusive is None:
            inclusive = _calltree.looks_inclusive(total, rows.parents)
            notes.append(
                f"{item.name} does not say whether callees count: taken {'with' if inclusive else 'without'} them"
            )
        if not inclusive:
            values[quantity], origin[quantity] = total, f"measured ({item.name})"
            continue
        origin[quantity] = f"derived from {item.name} of the call path and of its callees"
        values[quantity], wrong = _calltree.exclusive(total, rows.parents)
        if wrong:
            notes.append(f"{item.name} of callees exceeds the caller's in {wrong} places: 0 there")
        if quantity == "time":
            values["time_inclusive"] = total
    return values, origin, notes


def _ranks(path: Path, rows: _calltree.Tree, world: int | None) -> int:
    """How many ranks the program had, whose `world` the profile may hold.

    Raises InputError when some of several ranks are missing.
    """
    present = checked_ranks(rows.ranks, str(path))
    if world is None:
        return len(set(rows.ranks))
    if len(present) > 1 and len(present) != world:
        raise InputError(f"{path} holds {len(present)} of {world} ranks", "give the complete profile")
    return world


def _rows(
    path: Path,
    records: Sequence[Mapping[str, Any]],
    calls: CallPaths,
    columns: Sequence[_caliper_names.Column],
    default: int,
) -> tuple[_calltree.Tree, list[str]]:
    """The records as a tree, and notes on values that are nan."""
    paths, ranks, threads = [], [], []
    values = {item.name: np.full(len(records), np.nan) for item in columns}
    missing: Counter[str] = Counter()
    for at, record in enumerate(records):
        paths.append(record.get("path", CallPaths.ROOT))
        rank = next((record[key] for key in _RANKS if key in record), default)
        own = _integer(rank)
        if own is None or (own < 0 and own != default):
            raise damaged(f"{path}: record {at} has the rank {rank!r}")
        ranks.append(own)
        threads.append(str(next((record[key] for key in _THREADS if key in record), "")))
        for item in columns:
            if str(given := record.get(item.name, "")) == "nan":
                missing[item.name] += 1
            elif item.name in record:
                values[item.name][at] = number(f"{path}: record {at}", given, item.name)
    notes = [f"{name} is nan in {counted(count, 'record')} and is left out there" for name, count in missing.items()]
    return _calltree.tree(calls, paths, ranks, threads, values), notes


def _integer(value: object) -> int | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**31 else None


def _guessed_scale(name: str, values: Array, notes: list[str]) -> float:
    """Unit of times in a file that gives none.

    Caliper 1 counts whole microseconds; Caliper 2 writes seconds with six decimals.
    """
    known = values[~np.isnan(values)]
    if known.size and (known == np.floor(known)).all() and known.max() > 0:
        notes.append(f"{name} has no unit and is whole: taken as microseconds")
        return float(unit_scale("usec") or 1e-6)
    return 1.0


def _command(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.strip("[]").split(",") if (word := part.strip()))
