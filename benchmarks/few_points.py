"""Measured series cut down to their first two or three points, asked up to twice or four times as far.

What users have who measured little: three counts, asked for at most twice the largest, and two, asked for at most four
times. Windows start at every point of a series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.tasks import Task

FARTHEST = {2: 4.0, 3: 2.0}
"""Farthest target by number of training points, in units of the largest value trained."""
STEP = 1.2
"""Least ratio of one value of a window to the one before."""


def windows(tasks: Sequence[Task], count: int) -> Iterator[Task]:
    """Tasks of `count` training points from series of one parameter; the farthest measured target alone is asked."""
    seen = set()
    for task in tasks:
        if len(task.parameters) != 1 or task.metric != "time":
            continue
        x = np.concatenate([task.points[:, 0], task.targets[:, 0]])
        y = np.full((len(x), task.values.shape[1]), np.nan)
        y[: len(task.values)], y[len(task.values) :, 0] = task.values, task.measured
        order = np.argsort(x)
        x, y = x[order], y[order]
        for start in range(len(x)):
            chosen = [start]
            while len(chosen) < count:
                more = np.flatnonzero(x >= STEP * x[chosen[-1]])
                if not len(more):
                    break
                chosen.append(int(more[0]))
            last = x[chosen[-1]]
            ahead = np.flatnonzero((x > STEP * last) & (x <= FARTHEST[count] * last))
            key = task.source, task.name, tuple(x[chosen])
            if len(chosen) < count or not len(ahead) or key in seen:
                continue
            seen.add(key)
            yield replace(
                task,
                split=f"{task.source}, {count} points",
                points=x[chosen, None],
                values=y[chosen],
                targets=x[ahead[-1:], None],
                measured=np.nanmean(y[ahead[-1:]], axis=1),
                hidden=np.empty(0),
                hidden_targets=None,
            )
