"""Pairs of terms: all of a dictionary are put to the test on series that nothing simpler explains.

There are tens of thousands of them. What every pair leaves follows from one Gram matrix a series; the few that leave
least are solved with all that physics asks of them.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.model import priors
from ranksight.model.search.chosen import best_of, everywhere, solve
from ranksight.model.search.gridforms import borne, dimensions
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import SOLVED, Screened
from ranksight.model.search.terms import ONE, Factor
from ranksight.model.series.noise import SMALLEST

KEPT, LIKELY = 8, 128
"""Pairs kept of a series, and of all those that are solved."""
CACHED = 30_000
"""Pairs of columns weighed at a time: as many as stay in a processor's cache."""
COLLINEAR = 1e-10
"""Squared sine of the angle between columns, or part of their squares, below which they count as collinear."""
NATURAL: tuple[Factor, ...] = (
    *((n / d, 0.0, 0.0) for n, d in ((-1, 1), (-2, 3), (-1, 2), (-1, 3), (1, 2), (2, 3), (1, 1), (2, 1), (3, 1))),
    (0.0, 1.0, 0.0),
    (1.0, 1.0, 0.0),
)
"""Factors of shares of volumes and surfaces, of trees and of what is repeated."""


def best_pairs(problem: Problem, rows: Index, dictionary: Index) -> tuple[Screened, Index]:
    """The best pairs of terms of a dictionary, with and without a constant (term 0), on some series.

    Returns
    -------
    Screened
        Over all series; impossible on those not in `rows`.
    (rows, pairs, 2) intp
        The pairs.
    """
    mine = problem.part(rows)
    terms = np.append(0, dictionary[np.argsort(problem.basis.order(dictionary), kind="stable")])
    local = np.stack(np.triu_indices(len(terms) - 1, 1), axis=1) + 1
    # A program has one process grid, and the other term of a pair with one of its terms is natural.
    grid = dimensions(mine.basis, terms)[local]
    usual = {ONE, *NATURAL}
    natural = np.array(
        [all(tuple(f) in usual or f[2] < 0 for f in term) for term in mine.basis.decode(terms).tolist()], dtype=bool
    )
    one = (grid[:, 0] == grid[:, 1]) | (grid == 0).any(axis=1)
    local = local[(grid == 0).all(axis=1) | (natural[local].all(axis=1) & one)]
    likely = _paired(mine, terms[_likely(mine, terms, local)])
    best = best_of(mine, borne(mine, likely), KEPT, smallest=2)
    size = (best >= 0).sum(axis=2)
    last = np.take_along_axis(best, np.maximum(size - 1, 0)[:, :, None], axis=2)
    before = np.take_along_axis(best, np.maximum(size - 2, 0)[:, :, None], axis=2)
    bases = np.maximum(np.concatenate([before, last], axis=2), 0)
    return everywhere(borne(mine, _paired(mine, bases)), rows, len(problem.weights)), bases


def _likely(problem: Problem, terms: Index, pairs: Index) -> Index:
    """Of the pairs (p, 2), first below second, of some terms the :data:`LIKELY` (s, l, 2) of each series that leave
    least, by their BIC, whether they are possible or not."""
    shape = problem.basis.shape(terms)
    kept = min(LIKELY, len(pairs))
    found = np.empty((len(problem.weights), kept), dtype=np.intp)
    place = pairs[:, 0] * len(terms) + pairs[:, 1]
    step = max(1, SOLVED // len(terms) ** 2)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        weights, values, count = problem.weights[part], problem.values[part], problem.count[part, None, None]
        root = np.sqrt(weights)
        without = _left(root[:, None] * shape, root * values)
        # Next to a constant what counts is the distance from the mean.
        total = np.maximum(weights.sum(axis=1), np.finfo(float).tiny)
        mean = weights @ shape.T / total[:, None]
        level = (weights * values).sum(axis=1) / total
        with_constant = _left(root[:, None] * (shape - mean[:, :, None]), root * (values - level[:, None]))
        floor, dear = count * SMALLEST**2, np.maximum(count, 2) ** (1 / np.maximum(count, 1))
        without += floor
        with_constant += floor
        with_constant *= dear
        least = np.minimum(without, with_constant, out=without).reshape(len(weights), -1).take(place, axis=1)
        found[part] = np.argpartition(least, kept - 1, axis=1)[:, :kept]
    return pairs[found]


def _left(columns: Array, values: Array) -> Array:
    """What pairs of columns (s, t, n) leave of values (s, n), (s, t, t), right above the diagonal only: with columns of
    length one whose cosine is c, ``y'y - (g_a^2 + g_b^2 - 2 c g_a g_b) / (1 - c^2)``."""
    own = np.einsum("stn,stn->st", columns, columns)
    distinct = own > COLLINEAR * own.max(axis=1, keepdims=True, initial=0.0)
    unit = columns * np.where(distinct, 1 / np.sqrt(np.where(distinct, own, 1.0)), np.nan)[:, :, None]
    along = (unit @ values[:, :, None])[:, :, 0]
    square = (values**2).sum(axis=1)[:, None, None]
    count = along.shape[1]
    left = np.full((len(along), count, count), np.inf)
    step = max(1, CACHED // max(1, len(along) * count))
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, count, step):
            rows, after = slice(start, start + step), slice(start, count)
            cosine = unit[:, rows] @ unit[:, after].transpose(0, 2, 1)
            first, second = along[:, rows, None], along[:, None, after]
            taken = cosine * (-2 * first)
            taken += second
            taken *= second
            taken += first**2
            cosine *= cosine
            apart = np.subtract(1, cosine, out=cosine)
            apart[apart <= COLLINEAR] = np.nan
            taken /= apart
            rest = np.maximum(np.subtract(square, taken, out=taken), 0.0, out=taken)
            rest[~np.isfinite(rest)] = np.inf
            left[:, rows, after] = rest
    return left


def _paired(problem: Problem, pairs: Index) -> Screened:
    """Pairs of terms (s, p, 2) of each series, solved with a constant and without."""
    count, kept = pairs.shape[:2]
    flat = np.concatenate([np.zeros((count, 1), dtype=np.intp), pairs.reshape(count, -1)], axis=1)
    shapes = [shape for n in range(kept) for shape in ([0, 1 + 2 * n, 2 + 2 * n], [1 + 2 * n, 2 + 2 * n, -1])]
    return solve(problem, flat, np.array(shapes, dtype=np.intp), np.full(len(shapes), priors.FORMS["completed"]))
