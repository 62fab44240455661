"""Pairs of terms: all of a dictionary are put to the test on series that nothing simpler explains.

There are tens of thousands of them. What every pair leaves follows from one Gram matrix a series; the few that leave
least are solved with all that physics asks of them.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.search.chosen import best_of, everywhere, solve
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import SOLVED, Screened, borne
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
    """The best pairs of terms of a dictionary, with and without a constant (term 0), on the series `rows`: solved over
    all series, impossible on others, and the pairs (rows, pairs, 2)."""
    part = problem.part(rows)
    terms = np.append(0, dictionary[np.argsort(problem.basis.order(dictionary), kind="stable")])
    # A program has one process grid, and the other term of a pair with one of its terms is natural.
    grid, usual = part.basis.dimensions(terms), {ONE, *NATURAL}
    natural = np.array(
        [all(tuple(f) in usual or f[2] < 0 for f in term) for term in part.basis.decode(terms).tolist()], dtype=bool
    )
    plain, naturals = grid == 0, np.outer(natural, natural)
    naturals &= np.equal.outer(grid, grid) | np.logical_or.outer(plain, plain)
    naturals |= np.outer(plain, plain)
    naturals[0] = False  # the constant is there or not in addition
    local = np.stack(np.nonzero(np.triu(naturals, 1)), axis=1)
    likely = _paired(part, terms[_likely(part, terms, local)])
    best = best_of(part, borne(part, likely), KEPT, smallest=2)
    size = (best >= 0).sum(axis=2)
    last = np.take_along_axis(best, np.maximum(size - 1, 0)[:, :, None], axis=2)
    before = np.take_along_axis(best, np.maximum(size - 2, 0)[:, :, None], axis=2)
    bases = np.maximum(np.concatenate([before, last], axis=2), 0)
    return everywhere(borne(part, _paired(part, bases)), rows, len(problem.weights)), bases


def _likely(problem: Problem, terms: Index, pairs: Index) -> Index:
    """Of the pairs (p, 2), first below second, of some terms the :data:`LIKELY` (s, l, 2) of each series that leave
    least, by their BIC, whether they are possible or not."""
    shape = problem.basis.shape(terms)
    most_pairs = min(LIKELY, len(pairs))
    best = np.empty((len(problem.weights), most_pairs), dtype=np.intp)
    step = max(1, SOLVED // len(terms) ** 2)
    block = max(1, CACHED // max(1, min(step, len(best)) * len(terms)))
    firsts = range(0, len(terms), block)
    slices = [slice(*np.searchsorted(pairs[:, 0], (first, first + block))) for first in firsts]
    place = [
        (pairs[some, 0] - first) * (len(terms) - first) + pairs[some, 1] - first
        for first, some in zip(firsts, slices, strict=True)
    ]
    for start in range(0, len(best), step):
        part = slice(start, start + step)
        weights, values, count = problem.weights[part], problem.values[part], problem.count[part, None, None]
        root = np.sqrt(weights)
        # Next to a constant what counts is the distance from the mean.
        total = np.maximum(weights.sum(axis=1), np.finfo(float).tiny)
        mean = weights @ shape.T / total[:, None]
        level = (weights * values).sum(axis=1) / total
        without = _Columns.of(root[:, None] * shape, root * values)
        with_constant = _Columns.of(root[:, None] * (shape - mean[:, :, None]), root * (values - level[:, None]))
        floor, dear = count * SMALLEST**2, np.maximum(count, 2) ** (1 / np.maximum(count, 1))
        least = np.empty((len(weights), len(pairs)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for first, some, where in zip(firsts, slices, place, strict=True):
                rows = slice(first, first + block)
                bare, next_to = without.left(rows), with_constant.left(rows)
                bare += floor
                next_to += floor
                next_to *= dear
                np.fmin(bare, next_to, out=bare)
                least[:, some] = bare.reshape(len(weights), -1).take(where, axis=1)
        least[np.isnan(least)] = np.inf
        best[part] = np.argpartition(least, most_pairs - 1, axis=1)[:, :most_pairs]
    return pairs[best]


@dataclass(frozen=True)
class _Columns:
    """Columns (s, t, n) of length one, NaN where they are no more than rounding; their products (s, t) with values, and
    the squares (s, 1, 1) of these."""

    unit: Array
    along: Array
    square: Array

    @classmethod
    def of(cls, columns: Array, values: Array) -> _Columns:
        """Of columns of any length, and values (s, n)."""
        squares = np.einsum("stn,stn->st", columns, columns)
        distinct = squares > COLLINEAR * squares.max(axis=1, keepdims=True, initial=0.0)
        unit = columns * np.where(distinct, 1 / np.sqrt(np.where(distinct, squares, 1.0)), np.nan)[:, :, None]
        return cls(unit, (unit @ values[:, :, None])[:, :, 0], (values**2).sum(axis=1)[:, None, None])

    def left(self, rows: slice) -> Array:
        """What pairs of some columns with them and all behind leave of the values (s, r, o), NaN where they are
        collinear: with c the cosine of their angle, ``y'y - (g_a^2 + g_b^2 - 2 c g_a g_b) / (1 - c^2)``."""
        others = slice(rows.start, None)
        cosine = self.unit[:, rows] @ self.unit[:, others].transpose(0, 2, 1)
        first, second = self.along[:, rows, None], self.along[:, None, others]
        explained = cosine * (-2 * first)
        explained += second
        explained *= second
        explained += first**2
        cosine *= cosine
        unexplained = np.subtract(1, cosine, out=cosine)
        unexplained[unexplained <= COLLINEAR] = np.nan
        explained /= unexplained
        return np.maximum(np.subtract(self.square, explained, out=explained), 0.0, out=explained)


def _paired(problem: Problem, pairs: Index) -> Screened:
    """Pairs of terms (s, p, 2) of each series, solved with a constant and without."""
    count, width = pairs.shape[:2]
    flat = np.concatenate([np.zeros((count, 1), dtype=np.intp), pairs.reshape(count, -1)], axis=1)
    shapes = [shape for n in range(width) for shape in ([0, 1 + 2 * n, 2 + 2 * n], [1 + 2 * n, 2 + 2 * n, -1])]
    return solve(problem, flat, np.array(shapes, dtype=np.intp), np.full(len(shapes), priors.FORMS["completed"]))
