"""Accuracy on measured series: frozen splits over the real data next to the repository."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import sources
from benchmarks.measures import GROSS, Points, covered, judge, widening
from benchmarks.methods.answers import Method
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Task, check_frozen
from ranksight.core.errors import RanksightError
from ranksight.model.uncertainty.forecast import WIDEST

TITLE = "Measured series"
WORST = 12
BOUNDS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Ratios of an interval's ends."""


def tasks_of(data: Path) -> tuple[list[Task], list[str]]:
    """Tasks of all sources, in order of their names, and why a source is left out."""
    tasks: list[Task] = []
    without: list[str] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(sources.__path__)):
        try:
            tasks += importlib.import_module(f"benchmarks.sources.{name}").load(data)
        except RanksightError as error:
            without.append(f"{name} is left out: {error}")
    return tasks, without


def run(settings: Settings) -> str:
    """Tables of errors, coverage and abstentions; raises Skipped where the data is absent."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    tasks, without = tasks_of(settings.data)
    changed = check_frozen(tasks, record=settings.freeze)
    if changed:
        raise Skipped("; ".join(changed))
    methods = settings.methods(strong_scaling=True)
    points = {method.name: judge(tasks, method.answer(tasks)) for method in methods}
    return "\n\n".join(
        [
            "Every series is trained on its first points and asked for the held-out ones; splits are frozen "
            f"(`frozen.json`): {len(tasks)} series, {sum(len(task.measured) for task in tasks)} held-out points. "
            "Errors are 100 |predicted - measured| / measured, in percent. The engine was made with these series in "
            "view: its faults on them were looked into, and the priors of its intervals' widths chosen on all sources "
            "together. How other values of the constants do, and which the other sources would choose, is listed under "
            "*Choice of constants*. The figures are those of a development set, not of a blind test.",
            *without,
            "### Error at the farthest held-out point\n\nMedian (maximum) over the series, abstentions included.",
            _farthest(tasks, methods, points),
            "### Error at all held-out points\n\nMean / median.",
            _everywhere(tasks, methods, points),
            *[
                f"### Intervals and abstentions of {method.name}\n\n" + _honesty(tasks, points[method.name])
                for method in methods
                if method.intervals
            ],
        ]
    )


def _splits(tasks: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(task.split for task in tasks))


def _mask(tasks: Sequence[Task], **wanted: str) -> np.ndarray:
    return np.array([all(getattr(task, name) == value for name, value in wanted.items()) for task in tasks])


def _farthest(tasks: Sequence[Task], methods: Sequence[Method], points: dict[str, Points]) -> str:
    rows = []
    for split in _splits(tasks):
        mask = _mask(tasks, split=split)
        row: list[object] = [split, int(mask.sum())]
        for method in methods:
            here = points[method.name].of(mask)
            error = here.error[here.last]
            row.append(f"{np.median(error):.1f} ({error.max():.0f})")
        rows.append(row)
    return markdown(["split", "series", *(method.name for method in methods)], rows)


def _everywhere(tasks: Sequence[Task], methods: Sequence[Method], points: dict[str, Points]) -> str:
    rows = []
    for split in _splits(tasks):
        mask = _mask(tasks, split=split)
        row: list[object] = [split, int(points[methods[0].name].of(mask).error.size)]
        for method in methods:
            error = points[method.name].of(mask).error
            row.append(f"{error.mean():.1f} / {np.median(error):.1f}")
        rows.append(row)
    return markdown(["split", "points", *(method.name for method in methods)], rows)


def _honesty(tasks: Sequence[Task], points: Points) -> str:
    rows: list[list[object]] = []

    def add(name: str, here: Points) -> None:
        answered = ~here.flagged
        error = here.error[answered]
        rows.append(
            [
                name,
                int(here.error.size),
                100 * float(here.flagged.mean()),
                float(np.median(error)) if error.size else float("nan"),
                100 * covered(here),
                int(here.gross.sum()),
            ]
        )

    for split in _splits(tasks):
        add(split, points.of(_mask(tasks, split=split)))
    add("**all series**", points)
    head = [
        "split",
        "points",
        "abstained %",
        "median error % where answered",
        "covered by 90 % interval %",
        "gross, unwarned",
    ]
    every = sorted({task.source for task in tasks})
    each = np.nanmean([covered(points.of(_mask(tasks, source=source))) for source in every])
    return (
        markdown(head, rows)
        + "\n\nEvery series counts the same in the coverage of a row; with every source that has answers counting the "
        f"same it is {100 * each:.0f} %. *Gross, unwarned* counts errors above 50 % that are neither abstained from "
        "nor inside the interval: it has to be 0."
        + "\n\n#### Bounds on the interval\n\nWhat would be abstained from, and what would go unwarned, if intervals "
        "were answers up to other ratios of their ends; the engine's is "
        f"{WIDEST:g}.\n\n"
        + _bounds(points)
        + "\n\n#### Leaving one source out\n\n*Widening* is the factor on the intervals (in logarithms) that gives "
        "90 % on the other sources, *covered then* what it gives on the source left out: a choice made without it.\n\n"
        + _one_out(tasks, points, every)
    )


def _bounds(points: Points) -> str:
    rows: list[list[object]] = []
    for bound in BOUNDS:
        answered = points.width <= np.log(bound)
        gross = answered & (points.error > GROSS) & ~points.inside
        rows.append([f"{bound:g}", 100 * float((~answered).mean()), int(gross.sum())])
    return markdown(["bound", "abstained %", "gross, unwarned"], rows)


def _one_out(tasks: Sequence[Task], points: Points, every: Sequence[str]) -> str:
    rows = []
    for source in every:
        here = _mask(tasks, source=source)
        mine, others = points.of(here), points.of(~here)
        factor = widening(others)
        answered = ~mine.flagged
        then = float((mine.stretch[answered] <= factor).mean()) if answered.any() else float("nan")
        rows.append(
            [
                source,
                float(np.median(mine.error[mine.last])),
                float(np.median(others.error[others.last])),
                100 * covered(mine),
                100 * covered(others),
                factor,
                100 * then,
            ]
        )
    head = [
        "source",
        "median error % at the farthest",
        "the same of the others",
        "covered %",
        "covered, others %",
        "widening",
        "covered then %",
    ]
    return markdown(head, rows)


def worst(settings: Settings, method: Method) -> str:
    """The series with the largest errors that nothing warned of, in full, for those who look for causes."""
    tasks, _ = tasks_of(settings.data)
    answers = method.answer(tasks)
    points = judge(tasks, answers)
    score = np.where(points.flagged, 0.0, np.where(points.inside, 0.0, points.error))
    lines, seen = [], set()
    for at in np.argsort(-score, kind="stable"):
        place = int(points.task[at])
        if score[at] <= 0 or len(seen) == WORST:
            break
        if place in seen:
            continue
        seen.add(place)
        task, answer = tasks[place], answers[place]
        lines.append(f"{task.split}: {task.name}: error {points.error[at]:.0f} %, formula {answer.formula}")
        for point, values in zip(task.points, task.values, strict=True):
            lines.append(f"    trained  {point} {values[~np.isnan(values)]}")
        for k, point in enumerate(task.targets):
            lines.append(
                f"    held out {point} measured {task.measured[k]:.4g} predicted {answer.value[k]:.4g} "
                f"[{answer.lower[k]:.4g}, {answer.upper[k]:.4g}] {answer.reasons[k]}"
            )
    return "\n".join(lines)
