"""Ensembles of profiles that Thicket writes (``Thicket.to_json``), and single ones of Hatchet (``GraphFrame.to_json``).

A file holds one call graph, whose nodes all profiles share, a row of metrics for each node and profile (and rank, where
the profiles keep ranks apart), and what is known of each profile's run. A profile becomes a run; its columns are
Caliper's, or have the names that Hatchet gives them.

Source: ``thicket/thicket.py`` of llnl-thicket 2026.1 and ``hatchet/graphframe.py`` of llnl-hatchet 2026.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers import caliper
from ranksight.counters.readers._calltree import CallPaths
from ranksight.counters.readers._files import Format, damaged, read_json

_START = re.compile(r'^\s*\{\s*"graph"\s*:\s*\[\s*\{\s*"\d+"\s*:\s*\{\s*"data"\s*:')
_LISTS = ("graph", "dataframe", "inclusive_metrics", "exclusive_metrics")


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    """The profiles of a file, one reading each."""
    content = read_json(path)
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in _LISTS):
        raise InputError(f"{path} is not of Thicket: {', '.join(_LISTS)} are expected", "write it with to_json")
    calls = CallPaths(str(path))
    paths = _paths(path, content["graph"], calls)
    inclusive, exclusive = (frozenset(map(str, content[f"{kind}_metrics"])) for kind in ("inclusive", "exclusive"))
    key = str(content.get("profile_idx_name", "profile"))
    profiles: dict[str, list[Mapping[str, Any]]] = {}
    for at, row in enumerate(content["dataframe"]):
        if not isinstance(row, dict) or str(row.get("node")) not in paths:
            raise damaged(f"{path}: row {at} of the dataframe names no node of the graph")
        kept = {name: value for name, value in row.items() if value is not None and not isinstance(value, list)}
        profiles.setdefault(str(row.get(key, "")), []).append({**kept, "path": paths[str(row["node"])]})
    known = _metadata(path, content.get("metadata", []), key)
    if not profiles:
        raise InputError(f"{path} holds no profile", "write it with ensemble=True")
    for name, records in profiles.items():
        source = caliper.Source(
            records, calls, dict.fromkeys(sorted(inclusive | exclusive), ""), known.get(name, {}), inclusive
        )
        yield caliper.reading(path, source)


def _paths(path: Path, graph: list[Any], calls: CallPaths) -> dict[str, int]:
    """Number of the call path of every node, by the node's own number; a node with several callers is the first's."""
    paths: dict[str, int] = {}
    for nodes in graph:
        try:
            called = {str(child) for node in nodes.values() for child in node["children"]}
            waiting = [(at, CallPaths.ROOT) for at in reversed(nodes) if at not in called]
            while waiting:
                at, caller = waiting.pop()
                if at not in paths:
                    paths[at] = calls.number(caller, str(nodes[at]["data"]["name"]) or caliper.UNNAMED)
                    waiting += [(str(child), paths[at]) for child in reversed(nodes[at]["children"])]
        except (AttributeError, KeyError, TypeError) as error:
            raise damaged(f"{path}: a node of the graph is not complete: {error}") from error
    return paths


def _metadata(path: Path, rows: Any, key: str) -> dict[str, dict[str, str]]:
    """What is known of each profile's run."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise damaged(f"{path}: metadata is not a list of objects")
    return {
        str(row.get(key, "")): {name: caliper.as_text(value) for name, value in row.items() if value is not None}
        for row in rows
    }


READERS.register("thicket")(
    Format(
        "Thicket and Hatchet: JSON of Thicket.to_json, one run a profile, and of GraphFrame.to_json",
        lambda path, head: _START.match(head) is not None,
        _read,
        None,
    )
)
