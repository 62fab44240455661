"""The page of a comparison: before and after of the program and every kernel, with causes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ranksight.analysis.comparison.change import CHANGED, GONE, NAMES, NEW, UNSURE
from ranksight.analysis.comparison.comparing import Comparison
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.units import in_words
from ranksight.reports.comparisons import PROGRAM, because, between, percent
from ranksight.reports.html.figures import Figure, draw
from ranksight.reports.html.page import Part, put_together
from ranksight.reports.html.writing import cut, whole
from ranksight.reports.palette import LINES
from ranksight.reports.plots._axes import legend, micro

DRAWN = 15  # kernels of the figure
LONGEST = 34  # characters of a kernel's name in the figure


def render(comparison: Comparison, at: int) -> str:
    """The comparison at one configuration as one HTML document; times and counts of all configurations are in the CSV.

    `at`: position of the configuration.
    """
    rows = _rows(comparison, at)
    figure = _figure(comparison, at)
    before, after = comparison.before.name, comparison.after.name
    data = {
        "before": before,
        "after": after,
        "place": in_words(dict(zip(comparison.parameters, comparison.points[at], strict=True))),
        "how": "measured" if comparison.measured else "predicted",
        "answer": _answer(comparison, at),
        "notes": list(comparison.differences),
        "level": comparison.level,
        "figures": [figure] if figure is not None else [],
    }
    sections: list[tuple[Part, dict[str, Any]]] = [(Part("beforeafter", "Before and after"), data)]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    sections.append((Part("differences", "Kernels"), {"rows": rows, "metrics": metrics, "level": comparison.level}))
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    return put_together(f"{whole(before)} and {whole(after)} compared", sections, kernels)


def _answer(comparison: Comparison, at: int) -> str:
    """The program's change in a sentence, and how many kernels changed."""
    found = comparison.changes
    row = found.rows.get((WHOLE, comparison.timer))
    mine = [r for (kernel, name), r in found.rows.items() if name == comparison.timer and kernel != WHOLE]
    mine = [r for r in mine if np.nanmax([found.before[r, at], found.after[r, at], 0.0]) > 0]
    moved = sum(int(found.verdict[r, at]) in (CHANGED, NEW, GONE) for r in mine)
    kernels = f"{moved} of {len(mine)} kernels changed beyond the noise."
    if row is None or not comparison.timer:
        return "No time is known on both sides; counts are compared."
    verdict, ratio = int(found.verdict[row, at]), float(found.ratio[row, at])
    if verdict == UNSURE:
        return f"The data are insufficient for the program's time. {kernels}"
    if verdict != CHANGED:
        return f"The program takes as long as before, within the noise. {kernels}"
    word = "slower" if ratio > 1 else "faster"
    span = between(float(found.lower[row, at]), float(found.upper[row, at]))
    return f"The program is {word}: {percent(ratio)} ({span}). {kernels}"


def _rows(comparison: Comparison, at: int) -> list[dict[str, Any]]:
    """A row for each kernel and metric, what changed most of the time first."""
    found = comparison.changes
    said = []
    for (kernel, name), row in found.rows.items():
        before, after = float(found.before[row, at]), float(found.after[row, at])
        if not (math.isfinite(before) or math.isfinite(after)):
            continue
        verdict, ratio = int(found.verdict[row, at]), float(found.ratio[row, at])
        timed = name == comparison.timer
        moved = abs(np.nan_to_num(after) - np.nan_to_num(before))
        said.append(
            {
                "kernel": PROGRAM if kernel == WHOLE else kernel,
                "metric": name,
                "before": before if math.isfinite(before) else "",
                "after": after if math.isfinite(after) else "",
                "before_text": _text(name, before),
                "after_text": _text(name, after),
                "ratio": ratio if math.isfinite(ratio) else "",
                "change": percent(ratio) if ratio > 0 else "–",
                "interval": between(float(found.lower[row, at]), float(found.upper[row, at])) if ratio > 0 else "",
                "verdict": NAMES[verdict],
                "worse": verdict == CHANGED and ratio > 1,
                "better": verdict == CHANGED and ratio < 1,
                "why": because(comparison.causes.get((kernel, at), [])) if timed else "",
                "order": (not timed, kernel != WHOLE, verdict not in (CHANGED, NEW, GONE), -float(moved), name, kernel),
            }
        )
    return sorted(said, key=lambda row: row["order"])


def _text(name: str, number: float) -> str:
    return micro(metric(name).format(number)) if math.isfinite(number) else "–"


def _figure(comparison: Comparison, at: int) -> Figure | None:
    """Bars of the kernels that changed most of the time, before and after."""
    found = comparison.changes
    mine = [(kernel, row) for (kernel, name), row in found.rows.items() if name == comparison.timer and kernel != WHOLE]
    size = {row: float(np.nanmax([found.before[row, at], found.after[row, at], 0.0])) for _, row in mine}
    shown = sorted((pair for pair in mine if size[pair[1]] > 0), key=lambda pair: -size[pair[1]])[:DRAWN]
    if not shown:
        return None
    names = [whole(kernel) for kernel, _ in shown]
    places = np.arange(len(shown))

    def plot(ax: Any) -> None:
        handles: list[Any] = []
        for offset, values, colour in ((-0.2, found.before, LINES[5]), (0.2, found.after, LINES[0])):
            heights = [float(np.nan_to_num(values[row, at])) for _, row in shown]
            handles.append(ax.barh(places + offset, heights, height=0.38, color=colour))
        ax.set_yticks(places, [cut(name, LONGEST) for name in names])
        ax.invert_yaxis()
        ax.grid(axis="x")
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"{comparison.timer} per rank (s)")
        legend(ax, handles, [whole(comparison.before.name), whole(comparison.after.name)])

    alternative = f"Time of the {len(shown)} largest kernels before and after; the table below holds the numbers"
    return draw("before-after", plot, alternative, (10.0, 1.2 + 0.42 * len(shown)))
