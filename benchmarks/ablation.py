"""What every stage of the extrapolation is worth: each switched off in turn, on all benchmarks of series.

A stage whose absence shows on none of them has no place in the engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import late_changes, laws, second_splits, synthetic_functions
from benchmarks.choices import interval_score
from benchmarks.few_points import windows
from benchmarks.measured_series import tasks_of
from benchmarks.measures import GROSS, judge
from benchmarks.methods.answers import Answer
from benchmarks.tasks import Task

TITLE = "Ablation"
SEED = 5
FACTORS = (4.0, 16.0, 64.0)
"""How far synthetic functions are asked for."""
COUNT = {1: 100, 2: 40}
"""Synthetic functions by number of parameters."""
CLASS = 20
"""Series of each class of late changes and each law of programs."""
MOST = 240
"""Windows of few points from one source."""

Array = NDArray[np.float64]
COLUMNS = ("farthest", "trivial", "90th", "below", "above", "width", "score", "abstained", "gross")


def groups(data: Path, quick: bool = False) -> dict[str, list[Task]]:
    """All series by what they are: measured, cut down to few points, other splits, made-up laws, functions."""
    share = 5 if quick else 1
    found: dict[str, list[Task]] = {}
    measured, _ = tasks_of(data)
    for task in measured:
        found.setdefault(task.source, []).append(task)
    generator = np.random.default_rng(SEED)
    for count in (3, 2):
        for source in list(dict.fromkeys(task.source for task in measured)):
            cut = list(windows([task for task in measured if task.source == source], count))
            if cut:
                chosen = generator.permutation(len(cut))[: MOST // share]
                found.setdefault(f"{count} points", []).extend(cut[at] for at in chosen)
    found["second splits"] = second_splits.load(data)
    found["late changes"] = late_changes.tasks_of(SEED, CLASS // share)
    found["laws of programs"] = laws.tasks_of(SEED, CLASS // share)
    for parameters, count in COUNT.items():
        for noise in (0.1, 0.2, 0.5):
            tasks, functions = synthetic_functions.tasks_of(SEED, count // share, parameters, noise)
            for factor in FACTORS:
                target = np.array([[factor * max(synthetic_functions.AXIS)] * parameters])
                found[f"{parameters} parameters, {noise:.0%} noise, {factor:g}x"] = [
                    Task(
                        f"{task.split} {factor:g}x",
                        task.name,
                        "synthetic",
                        task.parameters,
                        task.points,
                        task.values,
                        target,
                        function(target),
                    )
                    for task, function in zip(tasks, functions, strict=True)
                ]
    return found


def figures(tasks: Sequence[Task], answers: Sequence[Answer], trivial: Sequence[Sequence[Answer]]) -> list[float]:
    """The row of :data:`COLUMNS` of a group: errors in percent at the farthest point (median, the best trivial
    method's median, 90th percentile), shares in percent of measured values below and above the interval where one was
    answered, median ratio of its ends, mean interval score, abstained in percent, gross errors nothing warned of."""
    points = judge(tasks, answers)
    last = points.error[points.last]
    others = [judge(tasks, each) for each in trivial]
    answered = ~points.flagged
    measured = np.concatenate([task.measured for task in tasks])
    value = np.concatenate([answer.value for answer in answers])
    out = answered & ~points.inside
    count = max(int(answered.sum()), 1)
    return [
        float(np.median(last)),
        min((float(np.median(each.error[each.last])) for each in others), default=math.nan),
        float(np.quantile(last, 0.9)),
        100 * float((out & (measured < value)).sum()) / count,
        100 * float((out & ~(measured < value)).sum()) / count,
        float(np.exp(np.median(points.width[answered]))) if answered.any() else math.nan,
        float(np.mean([interval_score(task, answer) for task, answer in zip(tasks, answers, strict=True)])),
        100 * float(points.flagged.mean()),
        int(((points.error > GROSS) & points.flagged.__invert__() & ~points.inside).sum()),
    ]
