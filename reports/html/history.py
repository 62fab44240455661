"""The page of a history: what changed, the program's time over the experiments, and every kernel with its curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from ranksight.analysis.history.following import History
from ranksight.core.arrays import Array, Index
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.units import format_si, in_words
from ranksight.reports.comparisons import percent
from ranksight.reports.equation_terms import spread_over
from ranksight.reports.histories import grouped, metrics_in_words, title
from ranksight.reports.html.figures import Figure, draw
from ranksight.reports.html.page import Part, put_together
from ranksight.reports.html.writing import cut, whole
from ranksight.reports.palette import BAND, IDEAL, LINES, PREDICTED
from ranksight.reports.plots._axes import micro

CURVES = 6  # configurations that are drawn, evenly chosen
NAMED = 12  # experiments that are named below an axis
LONGEST = 14  # characters of a name below an axis
FEW = 2  # configurations that are named in a cell
WIDE, HIGH = 132, 26  # of a kernel's curve, in pixels


def render(found: History) -> str:
    """The history as one HTML document."""
    names = [entry.name for entry in found.entries]
    sections: list[tuple[Part, dict[str, Any]]] = [(Part("changes", "Changes"), _changes(found))]
    figures = _figures(found)
    if figures:
        sections.append((Part("course", "Course"), {"figures": figures, "count": len(found.points)}))
    sections.append((Part("series", "Kernels"), _series(found)))
    kernels = list(dict.fromkeys(title(kernel) for kernel, _ in found.keys))
    return put_together(f"History from {whole(names[0])} to {whole(names[-1])}", sections, kernels)


def _changes(found: History) -> dict[str, Any]:
    rows = [
        {
            "since": found.entries[at].name,
            "order": at,
            "date": found.entries[at].date[:10],
            "kernel": title(kernel),
            "what": metrics_in_words(found, steps),
            "worst": max(step.ratio for step in steps),
            "length": max(step.length for step in steps),
            "where": _places(found, {step.point for step in steps}),
        }
        for kernel, at, steps in grouped(found)
    ]
    return {
        "first": found.entries[0],
        "last": found.entries[-1],
        "count": len(found.entries),
        "places": len(found.points),
        "level": found.level,
        "rows": rows,
    }


def _places(found: History, points: set[int]) -> str:
    """Configurations in words."""
    if len(points) == len(found.points) > 1:
        return f"all {len(points)} configurations"
    if len(points) > FEW:
        return f"{len(points)} of {len(found.points)} configurations"
    return "; ".join(found.place(point) for point in sorted(points))


def _figures(found: History) -> list[Figure]:
    """The metrics that are shown, of the program or the kernel that changed, and the predicted time."""
    rows = (_row(found, name) for name in found.drawn)
    made = [_measured(found, row) for row in rows if row is not None]
    if found.target is not None and found.target.ok.any():
        made.append(_predicted(found))
    return made


def _row(found: History, name: str) -> int | None:
    """The program's series of a metric; of a count that the program has not, that of the kernel that changed most."""
    row = found.rows.get((WHOLE, name))
    if row is None and name != found.timer:
        steps = sorted((step for step in found.steps() if step.metric == name), key=lambda step: -abs(step.ratio - 1))
        row = found.rows[steps[0].kernel, name] if steps else None
    return row if row is not None and np.isfinite(found.value[row]).any() else None


def _measured(found: History, row: int) -> Figure:
    count = len(found.points)
    kernel, name = found.keys[row]
    unit = f" ({metric(name).unit})" if metric(name).unit else ""
    shown = spread_over(count, CURVES)
    at = np.arange(len(found.entries))

    def plot(ax: Any) -> None:
        for number, point in enumerate(shown):
            colour = LINES[number % len(LINES)]
            values, level = found.value[row, point], found.level_of[row, point]
            ax.plot(at, values, "o", color=colour, markersize=4)
            ax.step(at, level, where="mid", color=colour, linewidth=1.4, label=found.place(point))
            begins = np.flatnonzero(found.begins[row, point])
            ax.plot(begins, level[begins], "D", color=IDEAL, markersize=8, fillstyle="none")
        _axes(ax, found, f"{name} per rank{unit}")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)

    def text(number: float) -> str:
        return micro(metric(name).format(number)) if number == number else "–"

    hover = [(found.place(point), [text(float(x)) for x in found.value[row, point]]) for point in shown]
    return draw(
        "history-time" if name == found.timer else "history-count",
        plot,
        f"{'Time' if name == found.timer else name} of {'the program' if kernel == WHOLE else kernel} over {len(at)} "
        f"experiments at {len(shown)} configurations; diamonds are changes",
        values=at.astype(float).tolist(),
        rows=hover,
        heads=[whole(entry.name) for entry in found.entries],
    )


def _predicted(found: History) -> Figure:
    target = found.target
    assert target is not None
    at = np.arange(len(found.entries))
    value, lower, upper = (np.where(target.ok, x, np.nan) for x in (target.value, target.lower, target.upper))

    def plot(ax: Any) -> None:
        ax.errorbar(at, value, [value - lower, upper - value], fmt="none", ecolor=BAND, elinewidth=4)
        ax.plot(at, value, "o", color=PREDICTED, markersize=5)
        begins = np.flatnonzero(target.begins)
        ax.plot(begins, value[begins], "D", color=IDEAL, markersize=9, fillstyle="none")
        _axes(ax, found, "predicted time (s)")

    texts = [micro(format_si(float(x), "s")) if x == x else "–" for x in value]
    where = in_words(target.point)
    return draw(
        "history-predicted",
        plot,
        f"Time of the program that each experiment predicts at {where}, with 90 % intervals",
        values=at.astype(float).tolist(),
        rows=[(where, texts)],
        heads=[whole(entry.name) for entry in found.entries],
    )


def _axes(ax: Any, found: History, label: str) -> None:
    """Names of experiments below, from zero on the left."""
    count = len(found.entries)
    places = spread_over(count, NAMED)
    names = [cut(whole(found.entries[at].name), LONGEST) for at in places]
    ax.set_xticks(places, names, rotation=30, ha="right")
    ax.set_xlim(-0.5, count - 0.5)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(label)


def _series(found: History) -> dict[str, Any]:
    """A row for each kernel and metric at the largest configuration, the time first."""
    point = len(found.points) - 1
    shares = found.shares()[:, point]
    rows: list[dict[str, Any]] = []
    for row, (kernel, name) in enumerate(found.keys):
        values = found.value[row, point]
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            continue
        first, last = float(values[known[0]]), float(values[known[-1]])
        ratio = last / first if first > 0 else float("nan")
        begins = np.flatnonzero(found.begins[row, point])
        rows.append(
            {
                "kernel": title(kernel),
                "metric": name,
                "value": last,
                "text": micro(metric(name).format(last)),
                "ratio": ratio if ratio == ratio else "",
                "change": percent(ratio),
                "changes": len(begins),
                "since": found.entries[int(begins[-1])].name if len(begins) else "",
                "curve": curve(values, begins),
                "order": (name != found.timer, kernel != WHOLE, -float(np.nan_to_num(shares[row])), name, kernel),
            }
        )
    rows.sort(key=lambda each: each["order"])
    return {"rows": rows, "place": found.place(point), "metrics": list(dict.fromkeys(each["metric"] for each in rows))}


def curve(values: Array, begins: Index) -> Markup:
    """A small SVG of values (n,) from zero to the largest, with a dot where a level begins."""
    known = np.flatnonzero(np.isfinite(values))
    most = float(values[known].max()) or 1.0
    step = (WIDE - 8) / max(len(values) - 1, 1)

    def place(at: int) -> str:
        return f"{4 + at * step:.1f} {HIGH - 4 - float(values[at]) / most * (HIGH - 8):.1f}"

    path = "M" + "L".join(place(at) for at in known.tolist())
    dots = "".join(
        '<circle class="mark" cx="{}" cy="{}" r="3"/>'.format(*place(at).split())
        for at in begins.tolist()
        if np.isfinite(values[at])
    )
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" aria-hidden="true">'
        f'<path d="{path}"/>{dots}</svg>'
    )
