"""Forms on process grids, where the values bear them.

The sides of a process grid vary in so many ways with the ranks that some form of them follows what merely scatters.
What a program does along them is decided, not by chance: a form that has such a term is possible only where it leaves
a hundredth of what the values vary by.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import CANCELLED, Screened

LEFT = 1e-2
"""Share of the values' variation, root mean square, that a form on a process grid may leave."""


def borne(problem: Problem, screened: Screened) -> Screened:
    """The same hypotheses without those on process grids that leave too much."""
    table = problem.basis.on_grid(screened.choice)
    if not table.any():
        return screened
    has = np.zeros((len(table), len(screened.members)), dtype=bool)
    for column in screened.members.T:
        has |= table[:, column] & (column >= 0)
    weights, values = problem.weights, problem.values
    total = weights.sum(axis=1, keepdims=True)
    mean = (weights * values).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
    varies = (weights * (values - mean) ** 2).sum(axis=1)
    most = LEFT**2 * varies + problem.count * CANCELLED**2
    loose = has & (screened.residual > most[:, None])
    return replace(screened, offset=np.where(loose, -np.inf, screened.offset))
