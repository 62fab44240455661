"""The call tree with predicted inclusive and exclusive times, where the measurements hold call paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ranksight.core.experiment import WHOLE
from ranksight.core.names import CALLS, call_path
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import value

LEAST = 0.5
"""Share of the kernels that are call paths, from which on there is a tree: a name may hold an arrow by chance."""
DEEPEST = 40  # regions of a path; what is called below is one region
OPEN = 0.1  # share of the program's time from which on a region's callees are shown at once

Node = dict[str, Any]


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None without call paths or times."""
    sweep = context.sweep
    if not sweep.timed:
        return None
    broken = sweep.breakdown
    times = dict(zip(broken.kernels, broken.by_kernel[:, -1].tolist(), strict=True))
    found = tree((name, times.get(name, float("nan"))) for name in context.kernels if name != WHOLE)
    if not found:
        return None
    total = sum(node["inclusive"] for node in found)
    _finish(found, total)
    return {"roots": found, "target": sweep.places()[-1], "count": _count(found)}


def tree(times: Iterable[tuple[str, float]]) -> list[Node]:
    """The roots of the tree of kernels with their exclusive times; none where less than half are call paths.

    A region that was not measured itself, as a caller of others, has no kernel and takes no time of its own.
    """
    paths = [(call_path(name), name, time) for name, time in times]
    if not paths or sum(len(path) > 1 for path, _, _ in paths) < LEAST * len(paths):
        return []
    root: Node = {"children": {}}
    for path, name, time in paths:
        place = root
        for part in (*path[: DEEPEST - 1], *([CALLS.join(path[DEEPEST - 1 :])] if len(path) >= DEEPEST else [])):
            place = place["children"].setdefault(
                part, {"part": part, "kernel": None, "exclusive": 0.0, "known": True, "children": {}}
            )
        place["kernel"] = name
        place["known"] = time == time
        place["exclusive"] = time if time == time else 0.0
    return _summed(root["children"])


def _summed(children: Mapping[str, Node]) -> list[Node]:
    """Nodes with their inclusive times, the largest first."""
    for node in children.values():
        node["children"] = _summed(node["children"])
        node["inclusive"] = node["exclusive"] + sum(child["inclusive"] for child in node["children"])
        node["known"] = node["known"] and all(child["known"] for child in node["children"])
    return sorted(children.values(), key=lambda node: (-node["inclusive"], node["part"]))


def _finish(nodes: list[Node], total: float) -> None:
    """Give every node its share and texts."""
    for node in nodes:
        node["share"] = node["inclusive"] / total if total > 0 else 0.0
        node["open"] = node["share"] >= OPEN
        node["inclusive_text"] = value(node["inclusive"], "time")
        node["exclusive_text"] = value(node["exclusive"], "time")
        _finish(node["children"], total)


def _count(nodes: list[Node]) -> int:
    return sum(1 + _count(node["children"]) for node in nodes)
