"""Forms on process grids, where the values bear them.

The sides of a process grid vary in so many ways with the ranks that some form of them follows what merely scatters.
What a program does along them is decided, not by chance: a form that has such a term is possible only where it leaves
a hundredth of what the values vary by.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Index, Mask
from ranksight.model.search.basis import Basis
from ranksight.model.search.gridterms import GRID_TERMS
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import CANCELLED, Screened

LEFT = 1e-2
"""Share of the values' variation, root mean square, that a form on a process grid may leave."""


def dimensions(basis: Basis, terms: Index) -> Index:
    """Dimensions of the process grid that terms (...) of a basis are of; 0 for none."""
    listed, place = np.unique(np.maximum(terms, 0), return_inverse=True)
    number = np.maximum(-basis.decode(listed)[:, :, 2], 0).max(axis=1).astype(np.intp)
    each_dimension = np.array([0, *(each.dimensions for each in GRID_TERMS)], dtype=np.intp)[number]
    return np.asarray(each_dimension[place.reshape(terms.shape)])


def on_grid(basis: Basis, terms: Index) -> Mask:
    """Which terms (...) of a basis are of a process grid."""
    return dimensions(basis, terms) > 0


def borne(problem: Problem, screened: Screened) -> Screened:
    """The same hypotheses without those on process grids that leave too much."""
    table = on_grid(problem.basis, screened.choice)
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
