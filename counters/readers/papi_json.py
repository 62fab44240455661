"""PAPI's high-level output: ``papi_hl_output/rank_000000.json``, one file a rank; regions, exclusive.

Each instance of a region is listed with the region it ran in, so that what nested regions took is subtracted; older
files list sums with ``region_count`` and no nesting. ``cycles`` there is real time in ticks of the time stamp counter
(PAPI_get_real_cyc), not cycles of the core.

Source: PAPI 7 ``src/high-level/papi_hl.c`` and ``scripts/papi_hl_output_writer.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._calltree import CallPaths

_MARK = re.compile(r'^\s*\{\s*"(?:papi_version|cpu in mhz|cpu_info|event_definitions)"\s*:')
_KNOWN = {"cycles": "reference_cycles", "real_time_nsec": "time", "region_count": "visits"}
_NANOSECONDS = frozenset({"real_time_nsec", "perf::TASK-CLOCK"})
_NOT_EVENTS = frozenset({"name", "parent_region_id"})


def _is_one(path: Path, head: bytes) -> bool:
    """Whether `path` is such a file."""
    text = _assemble.head_text(head)
    return _MARK.match(text) is not None


def _read(path: Path, rank: int | None) -> Reading:
    """One file, of a rank where it is one.

    Raises InputError, naming file (and line, where it is not valid JSON): damaged, or no region.
    """
    lines, said = _assemble.read_text(path)
    try:
        content = json.loads("\n".join(lines))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno} is not valid JSON: {error.msg}", "the file is truncated or damaged"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path} is not valid JSON that can be read: {error}", "the file is damaged") from error
    threads = _threads(path, content)
    instant = _instantaneous(content)
    kernels: list[str] = []
    names: list[str] = []
    rows: list[dict[str, float]] = []
    for thread, regions in threads.items():
        for kernel, values in _exclusive(path, regions, instant).items():
            kernels.append(kernel)
            names.append(thread)
            rows.append(values)
    if not rows:
        raise InputError(f"{path} holds no region", "are PAPI_hl_region_begin and _end called?")
    notes = list(said)
    if instant:
        notes.append(f"instantaneous values do not add and are left out: {', '.join(sorted(instant))}")
    environment = {key: str(content[key]) for key in ("papi_version", "cpu_info", "max_cpu_rate_mhz") if key in content}
    return _assemble.build_threads(
        path,
        kernels,
        rank or 0,
        names,
        _assemble.columns_of(rows),
        {"real_time_nsec": "max", "cycles": "max"},
        aliases=_KNOWN,
        configuration={},
        notes=notes,
        environment=environment,
    )


def _threads(path: Path, content: Any) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    """Thread -> its regions: number of the region, of the one around it, and its entries (with ``name``)."""
    threads = content.get("threads") if isinstance(content, dict) else None
    if isinstance(threads, dict):
        pairs = [(str(name), value) for name, value in threads.items()]
    elif isinstance(threads, list):
        pairs = [(str(value.get("id", at)), value) for at, value in enumerate(threads) if isinstance(value, dict)]
    else:
        raise InputError(f"{path} has no threads", "is it output of PAPI's high-level interface?")
    found: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for name, value in pairs:
        regions = value.get("regions") if isinstance(value, dict) else None
        if isinstance(regions, dict):
            entries = list(regions.items())
        elif isinstance(regions, list):
            entries = [pair for region in regions if isinstance(region, dict) for pair in region.items()]
        else:
            raise InputError(f"{path}: thread {name} has no regions", "the file is damaged")
        if not all(isinstance(region, dict) for _, region in entries):
            raise InputError(f"{path}: a region of thread {name} holds no values", "the file is damaged")
        found[name] = [
            (str(number), str(region.get("parent_region_id", "-1")), {"name": str(number), **region})
            for number, region in entries
        ]
    return found


def _instantaneous(content: Mapping[str, Any]) -> set[str]:
    definitions = content.get("event_definitions")
    if not isinstance(definitions, dict):
        return set()
    return {str(name) for name, how in definitions.items() if isinstance(how, dict) and how.get("type") == "instant"}


def _exclusive(
    path: Path, regions: list[tuple[str, str, Mapping[str, Any]]], instant: set[str]
) -> dict[str, dict[str, float]]:
    """Call path of regions -> exclusive values, instances added."""
    names = {number: str(region["name"]) for number, _, region in regions}
    parents = {number: parent for number, parent, _ in regions}
    own = {number: _values(path, region, instant) for number, _, region in regions}
    inner: dict[str, dict[str, float]] = {}
    for number, parent in parents.items():
        if parent in own:
            inside = inner.setdefault(parent, {})
            for event, value in own[number].items():
                inside[event] = inside.get(event, 0.0) + value
    calls = CallPaths(str(path))
    numbers: dict[str, int] = {}
    for number in own:
        around = [number]
        while (outer := parents[around[-1]]) in names and outer not in numbers:
            around.append(outer)
            if len(around) > limits.DEPTH:
                raise InputError(f"{path}: regions are nested more than {limits.DEPTH} deep", "the file is damaged")
        for each in reversed(around):
            numbers[each] = calls.number(numbers.get(parents[each], CallPaths.ROOT), names[each])
    kernels, places = calls.kernels()
    result: dict[str, dict[str, float]] = {}
    for number, values in own.items():
        row = result.setdefault(kernels[places[numbers[number]]], {})
        for event, value in values.items():
            less = 0.0 if event == "region_count" else inner.get(number, {}).get(event, 0.0)
            row[event] = row.get(event, 0.0) + max(value - less, 0.0)
    return result


def _values(path: Path, region: Mapping[str, Any], instant: set[str]) -> dict[str, float]:
    values = {"region_count": 1.0}
    for event, given in region.items():
        if event in _NOT_EVENTS or event in instant:
            continue
        text = given.get("region_value", given.get("total")) if isinstance(given, dict) else given
        try:
            value = float(text if text is not None else "")
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{path}: {event} of {region['name']!r} is {str(text)!r:.60}, no number") from None
        if not 0 <= value < _assemble.LARGEST:
            raise InputError(f"{path}: {event} of {region['name']!r} is {value:g}, which no counter holds")
        values[event] = value * (1e-9 if event in _NANOSECONDS else 1.0)
    return values


READER = _assemble.FilePerRank("PAPI high-level output: rank_*.json; regions, a rank a file", _is_one, _read)
READERS.register("papi")(READER)
