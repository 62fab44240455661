"""Histories as people and machines read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksight.analysis.history.following import History, Step
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.units import counted, format_si, in_words
from ranksight.reports.comparisons import PROGRAM, percent
from ranksight.reports.terminal import BARS, Block, Cell, Table, Text

COLUMNS = ("experiment", "date", "kernel", "metric", "value", "error", "level", "change")
"""Columns of a value, after those of its configuration; ``change`` is the ratio of levels where a new one begins."""
SERIES = 40  # values that a terminal's curve shows at most
MOST = 3  # metrics that are named in a line of changes


def title(kernel: str) -> str:
    """A kernel's name; the program's in words."""
    return PROGRAM if kernel == WHOLE else kernel


def grouped(found: History) -> list[tuple[str, int, list[Step]]]:
    """Changes of each kernel that show first in the same experiment: kernel, experiment, its changes."""
    groups: dict[tuple[int, str], list[Step]] = {}
    for step in found.steps():
        groups.setdefault((step.at, step.kernel), []).append(step)
    weight = {key: _weight(found, key[1]) for key in groups}
    ordered = sorted(groups, key=lambda key: (-key[0], -weight[key], key[1]))
    return [(kernel, at, groups[at, kernel]) for at, kernel in ordered]


def _weight(found: History, kernel: str) -> float:
    """Share of a kernel in the program's time; that of the program is above all."""
    if kernel == WHOLE:
        return 2.0
    row = found.rows.get((kernel, found.timer or ""))
    return -1.0 if row is None else float(np.nan_to_num(found.shares()[row]).max())


def metrics_in_words(found: History, steps: Sequence[Step]) -> str:
    """What changed and by how much, the time first: ``time +20 % to +24 %, instructions +18 %``."""
    by: dict[str, list[float]] = {}
    for step in steps:
        by.setdefault(step.metric, []).append(step.ratio)
    order = sorted(by, key=lambda name: (name != found.timer, -max(abs(math.log(ratio)) for ratio in by[name])))
    said = []
    for name in order[:MOST]:
        low, high = percent(min(by[name])), percent(max(by[name]))
        said.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
    rest = len(order) - MOST
    return ", ".join(said) + (f" and {counted(rest, 'other metric')}" if rest > 0 else "")


def blocks(found: History, top: int) -> list[Block]:
    """The history for a terminal: its changes, the times at the largest configuration, the prediction."""
    count = len(found.entries)
    said: list[Block] = [
        Text(
            f"{counted(count, 'experiment')} from {found.entries[0].name} to {found.entries[-1].name}, "
            f"{counted(len(found.points), 'configuration')} in common"
        )
    ]
    groups = grouped(found)
    if groups:
        lines: list[list[str | Cell]] = []
        for kernel, at, steps in groups[:top]:
            length = max(step.length for step in steps)
            once = " (one experiment)" if length == 1 and at < count - 1 else ""
            lines.append([found.entries[at].name, title(kernel), metrics_in_words(found, steps) + once])
        heads = ["since:name", "kernel:name", "change:text"]
        said += ["", Text("Changes, the latest first", style="bold"), Table(heads, lines, 2)]
        if len(groups) > top:
            said.append(Text(f"and {counted(len(groups) - top, 'other')}; --top {len(groups)} prints all", 2))
    else:
        said += ["", f"No change beyond the noise, at a probability of {found.level:.0%}."]
    said += _curves(found, top)
    return said + _predicted(found)


def _curves(found: History, top: int) -> list[Block]:
    """The metrics that are shown, at the largest configuration, as bars from zero to the largest value."""
    return [block for name in found.drawn for block in _curves_of(found, name, top)]


def _curves_of(found: History, name: str, top: int) -> list[Block]:
    """A metric of the kernels that have most of it, those that changed first where it is no time."""
    rows = [row for row, key in enumerate(found.keys) if key[1] == name]
    changed = [name != found.timer and bool(found.begins[row, -1].any()) for row in range(len(found.keys))]
    with np.errstate(all="ignore"):
        size = {row: float(np.nan_to_num(found.value[row, -1]).max()) for row in rows}
    rows = sorted(rows, key=lambda row: (found.keys[row][0] != WHOLE, not changed[row], -size[row], found.keys[row][0]))
    lines: list[list[str | Cell]] = []
    for row in rows[: top + 1]:
        values = found.value[row, -1]
        known = values[np.isfinite(values)]
        if len(known):
            change = percent(float(known[-1] / known[0])) if known[0] > 0 else ""
            ends = [metric(name).format(float(end)) for end in (known[0], known[-1])]
            lines.append([title(found.keys[row][0]), *ends, change, bars(values[-SERIES:])])
    heads = ["kernel:name", "first", "last", "change", ":word/1"]
    where = found.place(len(found.points) - 1)
    return ["", Text(f"{name} at {where}", style="bold"), Table(heads, lines, 2)] if lines else []


def bars(values: np.ndarray) -> str:
    """Values as bars from zero to the largest; a blank where there is none."""
    with np.errstate(all="ignore"):
        most = np.nanmax(np.where(np.isfinite(values), values, np.nan)) if np.isfinite(values).any() else 1.0
    steps = np.nan_to_num(values / (most or 1.0) * (len(BARS) - 1)).round().astype(int).clip(0, len(BARS) - 1)
    return "".join(BARS[step] if known else " " for step, known in zip(steps, np.isfinite(values), strict=True))


def _predicted(found: History) -> list[Block]:
    target = found.target
    if target is None:
        return []
    where = in_words(target.point)
    lines: list[list[str | Cell]] = []
    for at, entry in enumerate(found.entries):
        if not target.ok[at]:
            lines.append([entry.name, "", "", Cell(f"insufficient: {target.reason[at]}", "yellow")])
            continue
        ends = " .. ".join(format_si(float(end[at]), "s") for end in (target.lower, target.upper))
        mark = "change" if target.begins[at] else ""
        lines.append([entry.name, format_si(float(target.value[at]), "s"), ends, Cell(mark, "yellow")])
    heads = ["experiment:name", "time", "90% interval:word", ":text"]
    return ["", Text(f"Predicted time of the program at {where}", style="bold"), Table(heads, lines, 2)]


def slower_lines(found: History, slower: Sequence[Step], threshold: float, headed: bool) -> list[Block]:
    """What passed the threshold."""
    said: list[Block] = ["", f"grew by more than {threshold:g} %: {len(slower)}"] if headed else []
    for step in slower:
        where = found.place(step.point)
        since = found.entries[step.at].name
        what = "" if step.metric == found.timer else f"{step.metric} "
        said.append(Text(f"{title(step.kernel)}: {what}{percent(step.ratio)} at {where} since {since}", 2, 2, "red"))
    return said


def rows(found: History) -> list[dict[str, Any]]:
    """A row of :data:`COLUMNS`, after the parameters, for each known value."""
    said = []
    for row, point, at in np.argwhere(np.isfinite(found.value)).tolist():
        kernel, name = found.keys[row]
        level = float(found.level_of[row, point, at])
        said.append(
            {
                **dict(zip(found.parameters, found.points[point].tolist(), strict=True)),
                "experiment": found.entries[at].name,
                "date": found.entries[at].date,
                "kernel": title(kernel),
                "metric": name,
                "value": float(found.value[row, point, at]),
                "error": float(found.error[row, point, at]),
                "level": level if math.isfinite(level) else None,
                "change": None,
            }
        )
    places = {(r["kernel"], r["metric"], *(r[p] for p in found.parameters), r["experiment"]): r for r in said}
    for step in found.steps():
        where = (title(step.kernel), step.metric, *found.points[step.point].tolist(), found.entries[step.at].name)
        places[where]["change"] = step.ratio
    return said


def to_dict(found: History, slower: Sequence[Step]) -> dict[str, Any]:
    """Plain data: ``schema_version``, ``experiments``, ``changes``, ``slower``, ``predictions`` and ``values``."""
    target = found.target
    return {
        "schema_version": 1,
        "level": found.level,
        "experiments": [{"name": entry.name, "date": entry.date} for entry in found.entries],
        "changes": [_step(found, step) for step in found.steps()],
        "slower": [_step(found, step) for step in slower],
        "predictions": []
        if target is None
        else [
            {
                "experiment": entry.name,
                "configuration": dict(target.point),
                "value": float(target.value[at]) if target.ok[at] else None,
                "lower": float(target.lower[at]) if target.ok[at] else None,
                "upper": float(target.upper[at]) if target.ok[at] else None,
                "reason": target.reason[at],
                "change": bool(target.begins[at]),
            }
            for at, entry in enumerate(found.entries)
        ],
        "values": rows(found),
    }


def _step(found: History, step: Step) -> dict[str, Any]:
    return {
        "experiment": found.entries[step.at].name,
        "kernel": title(step.kernel),
        "metric": step.metric,
        "configuration": dict(zip(found.parameters, found.points[step.point].tolist(), strict=True)),
        "before": step.before,
        "after": step.after,
        "ratio": step.ratio,
        "experiments_after": step.length,
        "latest": step.last,
    }
