"""Comparisons as people and machines read them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ranksight.analysis.comparison.change import CHANGED, GONE, NAMES, NEW, SAME, UNKNOWN, UNSURE
from ranksight.analysis.comparison.comparing import Comparison
from ranksight.analysis.comparison.explain import SMALL, Cause
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.names import short_names
from ranksight.core.units import counted, finite, format_factor, in_full, in_words, some_of, whole
from ranksight.reports.terminal import Block, Cell, Column, Table, Text

PROGRAM = "(whole program)"
PERHAPS = "perhaps"
"""Change of a kernel that exceeds its own noise, and not that of so many kernels."""
SHOWN = 20
ROOM = 40  # columns of a kernel's name in running text
RENAMED = 5
NAMED = 3  # kernels of one side that are named
COUNTED, EACH = 10, 4  # kernels whose counts are shown, and counts of each
PLAIN = ("visits", "messages", "bytes_sent", "bytes_received")  # counts that are few and matter
TINY = 1e-3  # part of a kernel's instructions below which another count is not shown
COLUMNS = ("kernel", "metric", "before", "after", "ratio", "lower", "upper", "verdict", "causes")


def percent(ratio: float) -> str:
    """A ratio as a change: ``+12 %``, or ``x 3.4`` from a doubling on."""
    if not math.isfinite(ratio):
        return "-"
    if ratio >= 2 or ratio <= 0.5:
        return f"x {format_factor(ratio)}"
    change = 100 * (ratio - 1)
    return "0 %" if abs(change) < 0.01 else f"{change:+.0f} %" if abs(change) >= 9.95 else f"{change:+.2g} %"


def _percent_or_nothing(ratio: float) -> str:
    """:func:`percent` of what changed, which may have been nothing or become so."""
    return percent(ratio) if 0 < ratio < math.inf else "to nothing" if ratio == 0 else "from nothing"


def between(low: float, high: float) -> str:
    """The ends of an interval of ratios in one unit: ``-8 % to +9 %``, or ``x 0.45 to x 1.2`` where one needs it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    if max(low, high) >= 2 or min(low, high) <= 0.5:
        return f"x {format_factor(low, 2)} to x {format_factor(high, 2)}"
    return f"{percent(low)} to {percent(high)}"


def because(causes: list[Cause]) -> str:
    """The causes worth naming: ``instructions +12 % (+10 %), ...``: how it changed, and its part of the time.

    Apart from the largest, only those that are more than noise.
    """
    named = [cause for cause in causes[:1] + [each for each in causes[1:] if each.sure] if abs(cause.part) >= SMALL]
    named = [cause for cause in named if cause.name != "time"]
    return ", ".join(f"{cause.name} {percent(cause.ratio)} (time {_points(cause.part)})" for cause in named[:3])


def _points(part: float) -> str:
    """A part of the time before in percent."""
    return f"{100 * part:+.0f} %" if abs(part) >= 0.1 else f"{100 * part:+.2g} %"


def blocks(comparison: Comparison, at: int, kernels: list[str] | None = None) -> list[Block]:
    """The comparison at one configuration."""
    where = in_words(dict(zip(comparison.parameters, comparison.points[at], strict=True)))
    how = "measured" if comparison.measured else "predicted"
    said: list[Block] = [
        Text(f"{comparison.before.name} -> {comparison.after.name} at {where}, {how}", hanging=0, style="bold")
    ]
    said += _values(comparison, comparison.timer, at, kernels) if comparison.timer else [_no_time(comparison)]
    said += _values(comparison, comparison.work, at, kernels) if comparison.work else []
    said += _counts(comparison, at, kernels)
    return said


def _no_time(comparison: Comparison) -> Text:
    """Why no times are compared, and what of the counts did not change."""
    clocks = [
        sorted({name for _, name in side.rows if metric(name).kind == "time" or name == "cycles"})
        for side in (comparison.before, comparison.after)
    ]
    sides = zip((comparison.before, comparison.after), clocks, strict=True)
    held = [f"{side.name} has {', '.join(names) or 'none'}" for side, names in sides]
    return Text(f"no time in common ({'; '.join(held)}): only counts are compared", 0, 2, "yellow")


def hints(comparison: Comparison) -> list[Block]:
    """Kernels that seem to have another name on the other side, with the options that take them for one."""
    if not comparison.renamed:
        return []
    shown = short_names((name for pair in comparison.renamed[:RENAMED] for name in pair), ROOM)
    old = [f"{shown[a]} and {shown[b]}" for a, b in comparison.renamed[:RENAMED]]
    rest = len(comparison.renamed) - len(old)
    more = f" and {rest} more pairs" if rest else ""
    options = " ".join("--rename " + shlex.quote(f"{a}={b}") for a, b in comparison.renamed[:RENAMED])
    return [Text(f"perhaps one kernel under two names: {', '.join(old)}{more}; if so, add {options}", 0, 2, "yellow")]


def origins(comparison: Comparison) -> list[Block]:
    """How the runs of the two differ, which comes before any verdict."""
    return [Text(f"note: {each}", 0, 2, "yellow") for each in comparison.differences]


def one_sided(comparison: Comparison) -> list[Block]:
    """What only one of the two has: metrics, and kernels by any metric."""
    text: list[Block] = []
    for side, (metrics, kernels) in zip((comparison.before, comparison.after), comparison.one_sided, strict=True):
        parts = [f"the metric{'s' if len(metrics) > 1 else ''} {', '.join(metrics)}"] if metrics else []
        if kernels:
            named = ", ".join(_names(kernels[:NAMED]).values())
            more = f" and {len(kernels) - NAMED} more" if len(kernels) > NAMED else ""
            parts.append(f"{counted(len(kernels), 'kernel')}: {named}{more}")
        if parts:
            text.append(Text(f"only {side.name} has {'; '.join(parts)}", 0, 2))
    return text


def _values(comparison: Comparison, measure: str, at: int, kernels: list[str] | None) -> list[Block]:
    """The kernels' values of one metric on both sides."""
    found, unit = comparison.changes, metric(measure)
    mine = [(kernel, row) for (kernel, name), row in found.rows.items() if name == measure]
    size = {kernel: np.nanmax([found.before[row, at], found.after[row, at], 0.0]) for kernel, row in mine}
    moved = {
        kernel: abs(np.nan_to_num(found.after[row, at]) - np.nan_to_num(found.before[row, at])) for kernel, row in mine
    }
    mine = [pair for pair in mine if (kernels is None or pair[0] in (*kernels, WHOLE)) and size[pair[0]] > 0]
    changed = {kernel: int(found.verdict[row, at]) in (CHANGED, NEW, GONE) for kernel, row in mine}
    # What changed comes first, by how much; then the rest, by its time.
    weight = {kernel: moved[kernel] if changed[kernel] else size[kernel] for kernel, _ in mine}
    order = sorted(mine, key=lambda pair: (pair[0] != WHOLE, not changed[pair[0]], -weight[pair[0]]))
    shown = order[:SHOWN]
    unmoved = [row for kernel, row in mine if kernel != WHOLE and int(found.verdict[row, at]) == SAME]
    unclear = {row for row in unmoved if found.lower[row, at] > 1 or found.upper[row, at] < 1}
    rows: list[list[str | Cell]] = []
    reasons: list[Block] = []
    names = _names(kernel for kernel, _ in shown)
    for kernel, row in shown:
        verdict = int(found.verdict[row, at])
        old, new = (
            unit.format(float(x)) if math.isfinite(x) else "-" for x in (found.before[row, at], found.after[row, at])
        )
        ratio, low, high = (float(x[row, at]) for x in (found.ratio, found.lower, found.upper))
        what = percent(ratio) if verdict == UNSURE else PERHAPS if row in unclear else NAMES[verdict]
        what = _percent_or_nothing(ratio) if verdict == CHANGED else what
        span = between(low, high) if 0 < ratio < math.inf else ""
        style = ("red" if ratio > 1 else "green") if verdict == CHANGED else ""
        note = Cell("insufficient" if verdict in (UNSURE, UNKNOWN) else "", "yellow")
        rows.append([_name(kernel), old, new, Cell(what, style), span, note])
        why = because(comparison.causes.get((kernel, at), [])) if measure == comparison.timer else ""
        if why:
            reasons.append(Text(f"{names[kernel]}: because {why}", 2))
    heads = ["before", "after", "change", f"{comparison.level:.0%} interval:word/2", ":word/1"]
    said: list[Block] = ["", Table([Column(measure, "name"), *heads], rows), *reasons]
    if len(order) > len(shown):
        said.append(f"... and {len(order) - len(shown)} more; --format csv prints all")
    if same := len(unmoved) - len(unclear):
        kernels_here = counted(len(mine) - any(k == WHOLE for k, _ in mine), "kernel")
        said.append(f"{same} of {kernels_here}: no difference beyond the noise")
    if unclear:
        said.append(f"{PERHAPS}: its interval, of one kernel by itself, leaves out 0; among so many some do by chance")
    return said


def _counts(comparison: Comparison, at: int, kernels: list[str] | None) -> list[Block]:
    """Changes of counts, one line per kernel: those with the most time or instructions first, and the counts that are
    not tiny compared with the kernel's instructions."""
    found = comparison.changes
    held = {key: np.nan_to_num(np.fmax(found.before[row, at], found.after[row, at])) for key, row in found.rows.items()}
    changed: dict[str, list[tuple[float, str]]] = {}
    for (kernel, name), row in found.rows.items():
        if (
            metric(name).kind != "requirement"
            or int(found.verdict[row, at]) != CHANGED
            or (kernels is not None and kernel not in kernels)
            or (name not in PLAIN and held[kernel, name] < TINY * held.get((kernel, "instructions"), 0.0))
        ):
            continue
        ratio = float(found.ratio[row, at])
        if abs(ratio - 1) >= SMALL or not math.isfinite(ratio):
            step = abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf
            said_of = f"{name} {_percent_or_nothing(ratio)}"
            changed.setdefault(kernel, []).append((-math.inf if name == "instructions" else -step, said_of))
    if not changed:
        return [] if comparison.timer else ["no count of a kernel that both have changed by 1 %"]
    heavy = comparison.timer or "instructions"
    order = sorted(changed, key=lambda kernel: (kernel != WHOLE, -held.get((kernel, heavy), 0.0)))
    text: list[Block] = ["", Text("counts that changed by 1 % or more", style="bold")]
    names = _names(order[:COUNTED])
    for kernel in order[:COUNTED]:
        said = [how for _, how in sorted(changed[kernel], key=lambda each: each[0])]
        text.append(Text(f"{names[kernel]}: {some_of(said, EACH)}", 2, 2))
    rest = len(order) - COUNTED
    return [*text, *([f"  ... and {rest} more kernels; --format csv prints all"] if rest > 0 else [])]


def scales(comparison: Comparison) -> list[Block]:
    """At which number of ranks changes matter, and where the faster side changes."""
    if comparison.ranks is None:
        return []
    low, high = comparison.ranks
    text: list[Block] = [Text(f"from {in_full(low)} to {in_full(high)} ranks, predicted", style="bold")]
    crossed = [each.kernel for each in comparison.crossovers[:SHOWN]]
    names = _names([*crossed, *(onset.kernel for onset in comparison.onsets[:SHOWN])])
    for each in comparison.crossovers[:SHOWN]:
        span = f"{each.low:.3g} to {each.high:.3g}"
        who = names[each.kernel]
        text.append(Text(f"{who}: {each.faster_above} is faster above {each.at:.3g} ranks (90 %: {span})", 2, 2))
    for onset in comparison.onsets[:SHOWN]:
        start = "at all scales" if onset.at <= low * 1.01 else f"from {onset.at:.3g} ranks on"
        end = f"{onset.until:.3g}" if onset.until < high else ""
        if end:
            start = f"from {onset.at:.3g} to {end} ranks"
        beyond = f"; unknown at {in_full(high)}: insufficient data" if onset.unknown else ""
        how = "slower" if onset.part > 0 else "faster"
        part = f"{format_factor(abs(100 * onset.part), 2)} % of the program's time"
        key = (onset.kernel, comparison.timer)
        only = "" if key in comparison.after.rows else ", gone,"
        only = only if key in comparison.before.rows else ", new,"
        text.append(
            Text(f"{names[onset.kernel]}{only} matters {start}: {part} {how} at {end or in_full(high)}{beyond}", 2, 2)
        )
    if len(text) == 1:
        text.append(Text(f"{_none_matters(comparison)} at {in_full(high)} ranks", 2, 2))
    if comparison.unpredicted:
        are = "kernel is" if comparison.unpredicted == 1 else "kernels are"
        text.append(Text(f"{comparison.unpredicted} {are} not predicted at {in_full(high)}: insufficient data", 2, 2))
    return text


def _none_matters(comparison: Comparison) -> str:
    """That no change matters: of kernels only where the time compared is theirs too."""
    held = {*comparison.before.rows, *comparison.after.rows}
    if any(name == comparison.timer and kernel != WHOLE for kernel, name in held):
        return "no kernel's change is 2 % of the program's time and beyond the noise"
    return f"no kernel's {comparison.timer} is known; the program's change is not both 2 % and beyond the noise"


def rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row a configuration, kernel and metric."""
    found = comparison.changes
    listed = []
    for k, point in enumerate(comparison.points):
        where = dict(zip(comparison.parameters, map(whole, point), strict=True))
        for (kernel, name), row in found.rows.items():
            causes = comparison.causes.get((kernel, k), []) if name == comparison.timer else []
            listed.append(
                {
                    **where,
                    "kernel": kernel,
                    "metric": name,
                    "before": finite(found.before[row, k]),
                    "after": finite(found.after[row, k]),
                    "ratio": finite(found.ratio[row, k]),
                    "lower": finite(found.lower[row, k]),
                    "upper": finite(found.upper[row, k]),
                    "verdict": NAMES[int(found.verdict[row, k])],
                    "causes": [
                        {"name": each.name, "part": finite(each.part), "ratio": finite(each.ratio)} for each in causes
                    ],
                }
            )
    return listed


def _listed(grown: Sequence[tuple[str, str, int, float]]) -> list[dict[str, Any]]:
    return [
        {"kernel": None if kernel == WHOLE else kernel, "metric": name, "configuration": k, "percent": growth}
        for kernel, name, k, growth in grown
    ]


def to_dict(
    comparison: Comparison,
    slower: Sequence[tuple[str, str, int, float]],
    unknown: Sequence[tuple[str, str, int, float]] = (),
) -> dict[str, Any]:
    """The comparison as plain data; `slower` and `unknown`: what grew, or may have, by more than a threshold."""
    return {
        "schema_version": 1,
        "before": comparison.before.name,
        "after": comparison.after.name,
        "values": "measured" if comparison.measured else "predicted",
        "time": comparison.timer,
        "level": comparison.level,
        "differences": list(comparison.differences),
        "only": {
            side: {"metrics": metrics, "kernels": kernels}
            for side, (metrics, kernels) in zip(("before", "after"), comparison.one_sided, strict=True)
        },
        "changes": [
            {
                "configuration": {name: row.pop(name) for name in comparison.parameters},
                **{name: (None if row[name] == WHOLE and name == "kernel" else row[name]) for name in COLUMNS},
            }
            for row in rows(comparison)
        ],
        "crossovers": [
            {
                "kernel": None if each.kernel == WHOLE else each.kernel,
                "ranks": each.at,
                "interval": [each.low, each.high],
                "faster_above": each.faster_above,
            }
            for each in comparison.crossovers
        ],
        "matters": [
            {
                "kernel": each.kernel,
                "from_ranks": each.at,
                "to_ranks": each.until,
                "part_of_program": each.part,
                "unknown_beyond": each.unknown,
            }
            for each in comparison.onsets
        ],
        "perhaps_renamed": [{"before": old, "after": new} for old, new in comparison.renamed],
        "slower_than_threshold": _listed(slower),
        "unknown_at_threshold": _listed(unknown),
    }


def _names(kernels: Iterable[str]) -> dict[str, str]:
    """What is shown in running text for each of `kernels`."""
    whole = {kernel: _name(kernel) for kernel in kernels}
    shown = short_names(whole.values(), ROOM)
    return {kernel: shown[name] for kernel, name in whole.items()}


def _name(kernel: str) -> str:
    return PROGRAM if kernel == WHOLE else kernel
