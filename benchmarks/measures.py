"""How answers are judged against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.answers import Answer
from benchmarks.tasks import Array, Task

GROSS = 50.0
"""Error in percent beyond which an answer misleads when nothing warns of it."""


@dataclass(frozen=True, slots=True)
class Points:
    """Answers of one method at every held-out point of many tasks, one row a point.

    Attributes
    ----------
    error : (p,)
        ``100 |predicted - measured| / measured``; infinite where there is no value.
    inside, flagged, last : (p,) bool
        Measured value inside the interval; abstained; farthest point of its task.
    task : (p,) int
        Place of the task.
    stretch : (p,)
        Distance of the measured from the predicted value in units of the interval's half on that side, in logarithms:
        1 at the interval's end.
    width : (p,)
        Logarithm of the ratio of the interval's ends; NaN where there is none.
    """

    error: Array
    inside: NDArray[np.bool_]
    flagged: NDArray[np.bool_]
    last: NDArray[np.bool_]
    task: NDArray[np.intp]
    stretch: Array
    width: Array

    def of(self, tasks: NDArray[np.bool_]) -> Points:
        """The points of some tasks (a mask over tasks)."""
        keep = tasks[self.task]
        return Points(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))

    @property
    def gross(self) -> NDArray[np.bool_]:
        """Errors above 50 % that nothing warned of: not flagged and outside the interval."""
        return (self.error > GROSS) & ~self.flagged & ~self.inside


def judge(tasks: Sequence[Task], answers: Sequence[Answer]) -> Points:
    """Hold answers against measured values."""
    columns: dict[str, list[Array]] = {name: [] for name in Points.__dataclass_fields__}
    for place, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
        measured, value = task.measured, answer.value
        with np.errstate(invalid="ignore", divide="ignore"):
            error = 100 * np.abs(value - measured) / np.abs(measured)
            error = np.where(value == measured, 0.0, error)
            inside = (answer.lower <= measured) & (measured <= answer.upper)
            end = np.where(measured > value, answer.upper, answer.lower)
            stretch = np.log(measured / value) / np.log(end / value)
            width = np.log(answer.upper / answer.lower)
        count = len(measured)
        columns["error"].append(np.where(np.isfinite(error), error, np.inf))
        columns["inside"].append(inside)
        columns["flagged"].append(answer.flagged)
        columns["last"].append(np.arange(count) == count - 1)
        columns["task"].append(np.full(count, place))
        columns["stretch"].append(np.where(np.isfinite(stretch), stretch, np.inf))
        columns["width"].append(width)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return Points(**joined)


def covered(points: Points) -> float:
    """Share of the points not flagged that lie inside their interval, every task counting the same."""
    answered = ~points.flagged
    if not answered.any():
        return float("nan")
    inside = np.bincount(points.task[answered], points.inside[answered])
    count = np.bincount(points.task[answered])
    return float((inside[count > 0] / count[count > 0]).mean())


def widening(points: Points, level: float = 0.9) -> float:
    """Factor on the (logarithmic) half-widths that would make `level` of the answered points lie inside."""
    stretch = points.stretch[~points.flagged]
    weight = 1 / np.bincount(points.task)[points.task[~points.flagged]]
    if not len(stretch):
        return float("nan")
    order = np.argsort(stretch)
    total = np.cumsum(weight[order]) / weight.sum()
    return float(stretch[order][min(int(np.searchsorted(total, level - 1e-9)), len(order) - 1)])


WORST, NONE = 20.0, 6.0
"""Largest score of a point, and width of no answer: both in e-folds."""


def interval_score(task: Task, answer: Answer) -> float:
    """Mean interval score of an answer at the held-out points of a task."""
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high, at = np.log(answer.lower), np.log(answer.upper), np.log(task.measured)
        width = np.minimum(high - low, NONE)
        outside = np.maximum(np.maximum(low - at, at - high), 0.0)
        score = np.minimum(width + WORST * outside, WORST)
    return float(np.where(np.isfinite(score), score, NONE).mean())
