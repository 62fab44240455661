"""Hypotheses over terms that each series chose for itself: solved, the best of them, several lists as one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.model import priors
from ranksight.model.search import leastsquares
from ranksight.model.search.composite import composite
from ranksight.model.search.physics import admissible, cancelling, unseen
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import Screened
from ranksight.model.series.noise import SMALLEST

SPARSE = 8
"""How many entries of a Gram matrix take as long as one inner product for itself."""


def solve(problem: Problem, choice: Index, members: Index, prior: Array) -> Screened:
    """Solve hypotheses over local terms from the normal equations of each series, in batches."""
    residual = np.full((len(choice), len(members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    sizes = (members >= 0).sum(axis=1)
    step = max(1, 4_000_000 // max(1, choice.shape[1] * problem.weights.shape[1]))
    for start in range(0, len(choice), step):
        part = slice(start, start + step)
        terms_of = choice[part]
        shape = problem.basis.shape(terms_of)
        weighted = shape * np.sqrt(problem.weights[part])[:, None, :]
        product = _products(weighted, int((sizes * (sizes + 1) // 2).sum()))
        right = (weighted @ (np.sqrt(problem.weights[part]) * problem.values[part])[:, :, None])[:, :, 0]
        total = (problem.weights[part] * problem.values[part] ** 2).sum(axis=1)
        largest = np.abs(weighted).max(axis=2)
        log_share = np.log(np.where(largest > 0, largest, 1.0))
        usable = problem.basis.usable(terms_of)
        growth = problem.basis.order(terms_of)
        ahead = np.moveaxis(problem.basis.ahead(terms_of), 2, 0)
        divided = composite(problem.basis, terms_of)
        batch = problem.part(part)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            if size > problem.weights.shape[1]:
                continue
            local = members[rows, :size]
            pairs = {(a, b): product(local[:, a], local[:, b]) for a in range(size) for b in range(a + 1)}
            solved = leastsquares.cholesky(pairs, [right[:, local[:, a]] for a in range(size)], total)
            # The fastest growing term last, as physics is checked on it.
            order = np.argsort(growth[:, local], axis=2, kind="stable")
            ids = np.take_along_axis(terms_of[:, local], order, axis=2)
            grown = unseen(batch, solved.coefficients, [ahead[:, :, local[:, a]] for a in range(size)])
            allowed, penalty = admissible(batch, np.take_along_axis(solved.coefficients, order, axis=2), ids, grown)
            allowed &= usable[:, local].all(axis=2) & np.isfinite(solved.residual)
            share = [log_share[:, local[:, a]] for a in range(size)]
            penalty = penalty + cancelling(solved.coefficients, share)
            determinant = solved.determinant - 2 * sum(share)
            known = prior[rows] + size / 2 * np.log(2 * np.pi) - penalty
            residual[part, rows] = solved.residual
            known = known + priors.FORMS["work per rank"] * divided[:, local].any(axis=2)
            offset[part, rows] = np.where(allowed, known - determinant / 2, -np.inf)
    return Screened(residual, offset, members, prior, choice)


def _products(columns: Array, wanted: int) -> Callable[[Index, Index], Array]:
    """What gives inner products (s, h) of columns (s, t, n) by their numbers (h,) and (h,).

    All at once from one Gram matrix or, where few are `wanted` of very many, each for itself.
    """
    if columns.shape[1] ** 2 <= SPARSE * wanted:
        gram = columns @ columns.transpose(0, 2, 1)
        return lambda first, second: np.asarray(gram[:, first, second])
    return lambda first, second: np.asarray(np.einsum("shn,shn->sh", columns[:, first], columns[:, second]))


def best_of(problem: Problem, screened: Screened, most: int, largest: int = 3, smallest: int = 1) -> Index:
    """Terms (s, kept, q) of the best hypotheses of so many terms, by their BIC."""
    count = problem.count[:, None]
    size = screened.sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = -count / 2 * np.log(screened.residual + count * SMALLEST**2)
    possible = np.isfinite(screened.offset) & ((size <= largest) & (size >= smallest))[None, :]
    criterion = np.where(possible, fit - size / 2 * np.log(np.maximum(count, 2)), -np.inf)
    some = np.sort(np.argpartition(-criterion, min(most, len(size)) - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(criterion, some, axis=1), axis=1, kind="stable")
    return screened.terms(np.take_along_axis(some, order, axis=1))


def together(lists: list[Screened]) -> Screened:
    """Hypotheses over several choices of terms as one."""
    width = max(part.members.shape[1] for part in lists)
    members, choices, offset = [], [], 0
    for part in lists:
        moved = np.where(part.members >= 0, part.members + offset, -1)
        members.append(np.pad(moved, ((0, 0), (0, width - moved.shape[1])), constant_values=-1))
        choices.append(part.choice)
        offset += part.choice.shape[1]
    return Screened(
        np.concatenate([part.residual for part in lists], axis=1),
        np.concatenate([part.offset for part in lists], axis=1),
        np.concatenate(members),
        np.concatenate([part.prior for part in lists]),
        np.concatenate(choices, axis=1),
    )


def everywhere(screened: Screened, rows: Index, count: int) -> Screened:
    """The same over all series; impossible where it was not solved."""
    residual = np.full((count, len(screened.members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    residual[rows], offset[rows] = screened.residual, screened.offset
    choice = np.zeros((count, screened.choice.shape[1]), dtype=np.intp)
    choice[rows] = screened.choice
    return Screened(residual, offset, screened.members, screened.prior, choice)
