"""The search over several parameters: a few factors an axis, their products and sums, then what is still missing.

1. Along every line of points that differ in one parameter only, any function of the space is ``a + b f(x)`` with the same
   f. The factors f of each axis are ranked by the residuals of these fits, summed over lines.
2. Products of the best factors of all axes, and sums of products after the set partitions of the axes, with and without
   a constant, are solved on all points from one Gram matrix a series.
3. To the best of them one product of the whole dictionary is added that explains most of what is left, so that terms
   with other factors (work n^3/p and communication log p) are found: orthogonal least squares (Chen, Billings and Luo
   1989, *International Journal of Control* 50, 1873).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ranksight.metrics import Kind
from ranksight.model import leastsquares
from ranksight.model.basis import Products
from ranksight.model.noise import SMALLEST, Location
from ranksight.model.offer import Offer
from ranksight.model.search import Problem, Screened, admissible, pose
from ranksight.model.terms import ONE, Factor

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

BEST = {1: 12, 2: 8, 3: 4, 4: 3}
"""Factors kept an axis, by the number of parameters."""
BASES, ADDED = 3, 6
"""Hypotheses that are completed, and terms of one axis, and of several, that are tried for each."""


@dataclass(frozen=True)
class Crossed(Offer):
    """A space over several parameters.

    Attributes
    ----------
    factors : tuple of Factor
        Of each axis; products of them, one an axis or none, are the terms.
    coarse : tuple of Factor
        Those of `factors` of which completing terms are made.
    parameters : int
    """

    factors: tuple[Factor, ...]
    coarse: tuple[Factor, ...]
    parameters: int

    @property
    def load(self) -> int:
        """Numbers held a series while its hypotheses are solved."""
        return 5 * len(_structures((min(BEST[self.parameters], len(self.factors)),) * self.parameters)[0])

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve the hypotheses that suit each series."""
        problem = pose(Products.of((ONE, *self.factors), points), location, positive, kind)
        return problem, screen(self, problem, points)


def screen(space: Crossed, problem: Problem, points: Array) -> Screened:
    """Solve the hypotheses that suit each series; the basis is of the space's factors."""
    m = space.parameters
    radix = len(space.factors) + 1
    best = [_rank(space, problem, points, axis, radix) for axis in range(m)]
    # Local terms: all products of the chosen factors (0 is none), in the mixed radix of the numbers chosen.
    number = np.indices(tuple(b.shape[1] + 1 for b in best)).reshape(m, -1)
    choice = np.zeros((len(problem.weights), number.shape[1]), dtype=np.intp)
    for axis, mine in enumerate(best):
        with_none = np.concatenate([np.zeros((len(mine), 1), dtype=np.intp), mine], axis=1)
        choice += with_none[:, number[axis]] * radix**axis
    members, prior = _structures(tuple(b.shape[1] for b in best))
    first = _solve(problem, choice, members, prior)
    choice, more, more_prior = _complete(space, problem, first, radix)
    second = _solve(problem, choice, more, more_prior)
    width = max(members.shape[1], more.shape[1])

    def pad(array: Index) -> Index:
        return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=-1)

    return Screened(
        np.concatenate([first.residual, second.residual], axis=1),
        np.concatenate([first.offset, second.offset], axis=1),
        np.concatenate([pad(members), pad(more)]),
        np.concatenate([prior, more_prior]),
        choice,
    )


def lines(points: Array, axis: int) -> Iterator[Index]:
    """Groups of at least three points that differ in one parameter only."""
    others = np.delete(points, axis, axis=1)
    _, group = np.unique(others, axis=0, return_inverse=True)
    group = group.reshape(-1)
    for line in range(group.max(initial=-1) + 1):
        rows = np.flatnonzero(group == line)
        if len(np.unique(points[rows, axis])) >= 3:
            yield rows


def _rank(space: Crossed, problem: Problem, points: Array, axis: int, radix: int) -> Index:
    """The best factors of an axis for each series (s, b), numbered from one."""
    most = BEST[space.parameters]
    rows = (1 + np.arange(len(space.factors))) * radix**axis
    shape, usable = problem.basis.shape(rows), problem.basis.usable(rows)
    score = np.zeros((len(problem.weights), len(rows)))
    some = False
    for line in lines(points, axis):
        weights, values = problem.weights[:, line], problem.values[:, line]
        design = np.stack([np.ones((len(rows), len(line))), shape[:, line]], axis=2)
        count = (weights > 0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            constant = (weights * values**2).sum(axis=1) - (weights * values).sum(axis=1) ** 2 / weights.sum(axis=1)
        solved = leastsquares.solve(design, weights, values)
        residual = np.where(np.isfinite(solved.residual), solved.residual, constant[:, None])
        score += np.where((count >= 3)[:, None] & np.isfinite(residual), residual, 0.0)
        some = True
    score = np.where(usable, score, np.inf)
    if not some:
        # Nothing tells the factors apart yet; the coarse ones stand for all.
        coarse = [1 + space.factors.index(factor) for factor in space.coarse if usable[space.factors.index(factor)]]
        return np.broadcast_to(np.array(coarse, dtype=np.intp), (len(score), len(coarse)))
    kept = min(most, score.shape[1])
    return np.asarray(1 + np.argsort(score, axis=1, kind="stable")[:, :kept], dtype=np.intp)


@lru_cache(maxsize=32)
def _structures(sizes: tuple[int, ...]) -> tuple[Index, Array]:
    """Hypotheses over local terms: products and sums after the set partitions of the axes, and nested products.

    Local term ``number`` is the C-order index of (f_1, ..., f_m), f_j = 0 for none.
    """
    shape = tuple(size + 1 for size in sizes)
    m = len(sizes)
    found: dict[tuple[int, ...], float] = {(0,): 0.0}

    def add(terms: list[int], prior: float) -> None:
        key = tuple(sorted(set(terms)))
        found[key] = max(prior, found.get(key, -np.inf))

    def term(factors: tuple[int, ...], axes: tuple[int, ...]) -> int:
        return int(np.ravel_multi_index(tuple(f if a in axes else 0 for a, f in enumerate(factors)), shape))

    everything = tuple(range(m))
    for factors in itertools.product(*(range(size + 1) for size in sizes)):
        if any(factors):
            number = int(np.ravel_multi_index(factors, shape))
            add([number], ALONE)
            add([0, number], 0.0)
        if not all(factors):
            continue
        for blocks in partitions(everything):
            if len(blocks) > 1:
                parts = [term(factors, block) for block in blocks]
                add([0, *parts], 0.0)
                add(parts, ALONE)
        whole = term(factors, everything)
        for count in range(1, m):
            for some in itertools.combinations(everything, count):
                add([term(factors, some), whole], NESTED)
                add([0, term(factors, some), whole], NESTED)
        if m == 2:
            add([0, term(factors, (0,)), term(factors, (1,)), whole], NESTED)
    width = max(map(len, found))
    members = np.full((len(found), width), -1, dtype=np.intp)
    for row, key in enumerate(found):
        members[row, : len(key)] = key
    return members, np.array(list(found.values()))


ALONE, NESTED, COMPLETED, PRODUCT = -1.0, -2.0, -3.0, -5.0
"""Logarithms of the weight of a form before the data, relative to a constant with one product."""


def partitions(axes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Set partitions of the axes: ``(0, 1) -> ((0, 1),), ((0,), (1,))``."""
    if not axes:
        yield ()
        return
    head, rest = axes[0], axes[1:]
    for count in range(len(rest) + 1):
        for with_head in itertools.combinations(rest, count):
            left = tuple(a for a in rest if a not in with_head)
            for blocks in partitions(left):
                yield ((head, *with_head), *blocks)


def _solve(problem: Problem, choice: Index, members: Index, prior: Array) -> Screened:
    """Solve hypotheses over local terms from one Gram matrix a series, in batches that fit the cache."""
    residual = np.full((len(choice), len(members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    sizes = (members >= 0).sum(axis=1)
    step = max(1, 4_000_000 // max(1, choice.shape[1] * problem.weights.shape[1]))
    for start in range(0, len(choice), step):
        part = slice(start, start + step)
        mine = choice[part]
        shape = problem.basis.shape(mine)
        weighted = shape * np.sqrt(problem.weights[part])[:, None, :]
        gram = weighted @ weighted.transpose(0, 2, 1)
        right = (weighted @ (np.sqrt(problem.weights[part]) * problem.values[part])[:, :, None])[:, :, 0]
        total = (problem.weights[part] * problem.values[part] ** 2).sum(axis=1)
        largest = np.abs(weighted).max(axis=2)
        log_share = np.log(np.where(largest > 0, largest, 1.0))
        usable = problem.basis.usable(mine)
        growth = problem.basis.order(mine)
        here = problem.part(part)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            if size > problem.weights.shape[1]:
                continue
            local = members[rows, :size]
            pairs = {(a, b): gram[:, local[:, a], local[:, b]] for a in range(size) for b in range(a + 1)}
            solved = leastsquares.cholesky(pairs, [right[:, local[:, a]] for a in range(size)], total)
            # The fastest growing term last, as physics is checked on it.
            order = np.argsort(growth[:, local], axis=2, kind="stable")
            ids = np.take_along_axis(mine[:, local], order, axis=2)
            allowed, penalty = admissible(here, np.take_along_axis(solved.coefficients, order, axis=2), ids)
            allowed &= usable[:, local].all(axis=2) & np.isfinite(solved.residual)
            determinant = solved.determinant - 2 * log_share[:, local].sum(axis=2)
            known = prior[rows] + size / 2 * np.log(2 * np.pi) - penalty
            residual[part, rows] = solved.residual
            offset[part, rows] = np.where(allowed, known - determinant / 2, -np.inf)
    return Screened(residual, offset, members, prior, choice)


def _complete(space: Crossed, problem: Problem, first: Screened, radix: int) -> tuple[Index, Index, Array]:
    """Terms that explain most of what the best hypotheses leave: the enlarged choice, hypotheses with them, their priors."""
    m = space.parameters
    coarse = np.array([0, *(1 + space.factors.index(factor) for factor in space.coarse)])
    number = np.indices((len(coarse),) * m).reshape(m, -1)
    dictionary = sum(coarse[number[axis]] * radix**axis for axis in range(m))[1:]
    dictionary = dictionary[problem.basis.usable(dictionary)]
    single = (problem.basis.axes(dictionary) == 1).astype(bool)
    count = problem.count[:, None]
    small = first.sizes <= 2
    with np.errstate(divide="ignore"):
        criterion = -count / 2 * np.log(first.residual + count * SMALLEST**2) - first.sizes / 2 * np.log(
            np.maximum(count, 2)
        )
    criterion = np.where(np.isfinite(first.offset) & small[None, :], criterion, -np.inf)
    bases = np.argsort(-criterion, axis=1, kind="stable")[:, :BASES]
    members = first.terms(bases)[:, :, :2]
    root = np.sqrt(problem.weights)
    table = problem.basis.shape(dictionary)
    norm = problem.weights @ (table**2).T
    added = []
    for base in range(bases.shape[1]):
        used = members[:, base] >= 0
        design = np.where(used[..., None], problem.basis.shape(members[:, base]), 0.0) * root[:, None, :]
        q = _orthonormal(design)
        target = root * problem.values
        rest = target - np.einsum("skn,sk->sn", q, np.einsum("skn,sn->sk", q, target))
        along = (root * rest) @ table.T
        beside = norm.copy()
        for k in range(q.shape[1]):
            beside -= ((q[:, k] * root) @ table.T) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where((beside > 1e-9 * norm) & ((along > 0) | ~problem.parts[:, None]), along**2 / beside, -1.0)
        added.append(np.concatenate([_largest(gain, dictionary, few) for few in (single, ~single)], axis=1))
    simple = min(ADDED, int(single.sum()))
    zero = first.choice.shape[1] if first.choice is not None else 0
    old = first.choice if first.choice is not None else np.empty((len(root), 0), dtype=np.intp)
    base_terms = np.where(members >= 0, members, 0).reshape(len(root), -1)
    choice = np.concatenate([old, base_terms, *added], axis=1)
    rows: list[list[int]] = []
    prior: list[float] = []
    at = zero + base_terms.shape[1]
    for base in range(bases.shape[1]):
        left, right = zero + 2 * base, zero + 2 * base + 1
        for extra in range(added[base].shape[1]):
            # A base of one term has the constant as its second local term, so both shapes are tried.
            rows += [[left, right, at + extra], [0, left, right, at + extra], [left, at + extra], [right, at + extra]]
            prior += [COMPLETED if extra < simple else PRODUCT] * 4
        at += added[base].shape[1]
    more = np.full((len(rows), 4), -1, dtype=np.intp)
    for row, terms in enumerate(rows):
        more[row, : len(terms)] = terms
    return choice, more, np.array(prior)


def _largest(gain: Array, dictionary: Index, among: Mask) -> Index:
    """The terms (s, a) of largest gain (s, d) among some of the dictionary."""
    gain, terms = gain[:, among], dictionary[among]
    kept = min(ADDED, gain.shape[1])
    if kept == 0:
        return np.empty((len(gain), 0), dtype=np.intp)
    return np.asarray(terms[np.argpartition(-gain, kept - 1, axis=1)[:, :kept]])


def _orthonormal(design: Array) -> Array:
    """Orthonormal rows (s, k, n) spanning the rows of designs (s, k, n) of at most two rows; zero where there is none."""
    done: list[Array] = []
    for k in range(design.shape[1]):
        row = design[:, k]
        for other in done:
            row = row - other * (row * other).sum(axis=1, keepdims=True)
        size = np.sqrt((row**2).sum(axis=1, keepdims=True))
        full = np.sqrt((design[:, k] ** 2).sum(axis=1, keepdims=True))
        done.append(np.where(size > 1e-7 * np.maximum(full, 1e-300), row / np.where(size > 0, size, 1.0), 0.0))
    return np.stack(done, axis=1)
