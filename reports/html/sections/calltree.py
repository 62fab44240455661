"""The call tree with predicted inclusive and exclusive times, where the measurements hold call paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ranksight.core.experiment import WHOLE
from ranksight.core.names import CALLS, call_path
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import value

LEAST = 0.5
"""Share of the kernels that are call paths, from which on there is a tree: a name may hold an arrow by chance."""
DEEPEST = 40  # regions of a path; what is called below is one region
OPEN = 0.1  # share of the program's time from which on a region's callees are shown at once

NARROWEST = 0.002  # share of the program's time from which on a region has a bar
LAYERS = 16  # of bars; the tree below has all
SEVERITIES = (0.01, 0.03, 0.1, 0.25)
"""Own shares of the program's time at which the colour of a bar changes."""

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
    return {
        "roots": found,
        "target": sweep.places()[-1],
        "count": _count(found),
        "bars": list(_bars(found, total)),
        "depth": min(_depth(found), LAYERS),
        "severities": SEVERITIES,
    }


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


def _bars(nodes: list[Node], total: float, left: float = 0.0, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Bars of regions with their callees below them, as wide as their inclusive share of the time."""
    for node in nodes:
        width = node["inclusive"] / total if total > 0 else 0.0
        own = node["exclusive"] / total if total > 0 else 0.0
        if width >= NARROWEST and depth < LAYERS:
            severity = sum(own >= least for least in SEVERITIES)
            yield {"node": node, "left": left, "width": width, "depth": depth, "own": own, "severity": severity}
            yield from _bars(node["children"], total, left, depth + 1)
        left += width


def _depth(nodes: list[Node]) -> int:
    return 1 + max((_depth(node["children"]) for node in nodes), default=0) if nodes else 0


def _count(nodes: list[Node]) -> int:
    return sum(1 + _count(node["children"]) for node in nodes)
