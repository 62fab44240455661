"""PAPI's high-level output: ``papi_hl_output/rank_000000.json``, one file a rank; regions, exclusive.

Each instance of a region is listed with the region it ran in, so that what nested regions took is subtracted; older
files list sums with ``region_count`` and no nesting. ``cycles`` there is real time in ticks of the time stamp counter
(PAPI_get_real_cyc), not cycles of the core.

Source: PAPI 7 ``src/high-level/papi_hl.c`` and ``scripts/papi_hl_output_writer.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._calltree import CallPaths, exclusive, tree
from ranksight.counters.readers._files import Format, counter, damaged, number, read_json

_MARK = re.compile(r'^\s*\{\s*"(?:papi_version|cpu in mhz|cpu_info|event_definitions)"\s*:')
_KNOWN = {"cycles": "reference_cycles", "real_time_nsec": "time", "region_count": "visits"}
_NANOSECONDS = frozenset({"real_time_nsec", "perf::TASK-CLOCK"})
_ABOUT = ("papi_version", "cpu_info", "max_cpu_rate_mhz")
_NOT_EVENTS = frozenset({"name", "parent_region_id"})


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    content = read_json(path)
    instant = _instantaneous(content)
    calls = CallPaths(str(path))
    paths: list[int] = []
    threads: list[str] = []
    rows: list[dict[str, float]] = []
    for thread, regions in _threads(path, content).items():
        numbers = _paths(path, regions, calls)
        for region, entries in regions.items():
            paths.append(numbers[region])
            threads.append(thread)
            rows.append(_values(path, entries, instant))
    if not rows:
        raise InputError(f"{path} holds no region", "are PAPI_hl_region_begin and _end called?")
    found = tree(calls, paths, [rank or 0] * len(rows), threads, columns_of(rows))
    own = dict(found.columns)
    notes = [f"instantaneous values do not add and are left out: {', '.join(sorted(instant))}"] if instant else []
    for event in own.keys() - {"region_count"}:
        own[event], below = exclusive(own[event], found.parents)
        if below:
            notes.append(f"{event}: {counted(below, 'region')} with less than the regions within: taken as 0")
    yield build(
        path,
        found.kernels,
        found.ranks,
        own,
        threads=found.threads,
        how={"real_time_nsec": "max", "cycles": "max"},
        aliases=_KNOWN,
        configuration={},
        notes=sorted(notes),
        environment={key: str(content[key]) for key in _ABOUT if key in content},
    )


def _threads(path: Path, content: Any) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Thread -> number of the region -> its entries (with ``name`` and ``parent_region_id``)."""
    threads = content.get("threads") if isinstance(content, dict) else None
    if isinstance(threads, dict):
        pairs = [(str(name), value) for name, value in threads.items()]
    elif isinstance(threads, list):
        pairs = [(str(value.get("id", at)), value) for at, value in enumerate(threads) if isinstance(value, dict)]
    else:
        raise InputError(f"{path} has no threads", "is it output of PAPI's high-level interface?")
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, value in pairs:
        regions = value.get("regions") if isinstance(value, dict) else None
        if isinstance(regions, list):
            regions = {key: each for region in regions if isinstance(region, dict) for key, each in region.items()}
        if not isinstance(regions, dict):
            raise damaged(f"{path}: thread {name} has no regions")
        if not all(isinstance(region, dict) for region in regions.values()):
            raise damaged(f"{path}: a region of thread {name} holds no values")
        found[name] = {str(at): {"name": str(at), "parent_region_id": -1, **each} for at, each in regions.items()}
    return found


def _instantaneous(content: Any) -> set[str]:
    definitions = content.get("event_definitions") if isinstance(content, dict) else None
    if not isinstance(definitions, dict):
        return set()
    return {str(name) for name, how in definitions.items() if isinstance(how, dict) and how.get("type") == "instant"}


def _paths(path: Path, regions: Mapping[str, Mapping[str, Any]], calls: CallPaths) -> dict[str, int]:
    """The number of the call path of each region."""
    parents = {each: str(region["parent_region_id"]) for each, region in regions.items()}
    numbers: dict[str, int] = {}
    for each in regions:
        around = [each]
        while (outer := parents[around[-1]]) in regions and outer not in numbers:
            around.append(outer)
            if len(around) > limits.DEPTH:
                raise damaged(f"{path}: regions are nested more than {limits.DEPTH} deep")
        for inner in reversed(around):
            numbers[inner] = calls.number(numbers.get(parents[inner], CallPaths.ROOT), str(regions[inner]["name"]))
    return numbers


def _values(path: Path, region: Mapping[str, Any], instant: set[str]) -> dict[str, float]:
    values = {"region_count": 1.0}
    for event, given in region.items():
        if event not in _NOT_EVENTS and event not in instant:
            text = given.get("region_value", given.get("total")) if isinstance(given, dict) else given
            read = number if event in _NANOSECONDS else counter
            value = read(str(path), text, f"{event} of {region['name']!r}")
            values[event] = value * (1e-9 if event in _NANOSECONDS else 1.0)
    return values


READER = Format(
    "PAPI high-level output: rank_*.json; regions, a rank a file",
    lambda path, head: _MARK.match(head) is not None,
    _read,
)
READERS.register("papi")(READER)
