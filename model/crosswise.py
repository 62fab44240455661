"""The search over several parameters: a few factors an axis, their products and sums, then what is still missing.

1. Along every line of points that differ in one parameter only, any function of the space is ``a + b f(x)`` with one f.
   The factors f of each axis are ranked by the residuals of these fits, summed over lines.
2. Products of the best factors of all axes, and sums of products after the set partitions of the axes, with and without
   a constant, are solved on all points from one Gram matrix a series.
3. To the best of them one product of the whole dictionary is added that explains most of what is left, so that terms
   with other factors (work n^3/p and communication log p) are found: orthogonal least squares (Chen, Billings and Luo
   1989, *International Journal of Control* 50, 1873).
4. Of two parameters, where all of this leaves more than scatter explains, all pairs of natural terms are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ranksight.metrics import Kind
from ranksight.model import leastsquares
from ranksight.model.basis import Products
from ranksight.model.completing import COMPLETED, complete
from ranksight.model.composite import DIVIDED, composite, screen_composites
from ranksight.model.gridforms import borne, dimensions, on_grid
from ranksight.model.noise import SMALLEST, Location, explained
from ranksight.model.offer import Offer
from ranksight.model.physics import admissible, cancelling, unseen
from ranksight.model.problem import Problem, pose
from ranksight.model.search import CANCELLED, Screened, screen_terms
from ranksight.model.terms import ONE, Factor

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

BEST = {1: 12, 2: 8, 3: 4, 4: 3}
"""Factors kept an axis, by the number of parameters."""
BASES, PAIRS = 3, 8
"""Hypotheses that are completed, pairs of natural terms kept."""
LINE: Factor = (1.0, 0.0, 0.0)
"""What grows with iterations, on their axis."""
NATURAL: tuple[Factor, ...] = (
    *((n / d, 0.0, 0.0) for n, d in ((-1, 1), (-2, 3), (-1, 2), (-1, 3), (1, 2), (2, 3), (1, 1), (2, 1), (3, 1))),
    (0.0, 1.0, 0.0),
    (1.0, 1.0, 0.0),
)
"""Factors of shares of volumes and surfaces, of trees and of what is repeated."""


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
    divisor : int or None
        Axis of the ranks, which divide work; any may where that is not known.
    line : int or None
        Axis of iterations, along which all terms are constant or proportional.
    grids : tuple of Factor
        Of process grids, which deterministic values may have along the ranks.
    """

    factors: tuple[Factor, ...]
    coarse: tuple[Factor, ...]
    parameters: int
    divisor: int | None = None
    line: int | None = None
    grids: tuple[Factor, ...] = ()

    def offered(self, axis: int, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        """Those of `factors` that an axis may have."""
        return tuple(f for f in factors if axis != self.line or f == LINE)

    @property
    def load(self) -> int:
        """Numbers held a series while its hypotheses are solved."""
        return 5 * len(_structures((min(BEST[self.parameters], len(self.factors)),) * self.parameters)[0])

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve the hypotheses that suit each series."""
        space = replace(self, factors=(*self.factors, *self.grids))
        basis = Products.of((ONE, *space.factors), points, self.divisor, kind == "requirement")
        problem = pose(basis, points, location, positive, kind)
        if self.line is not None:
            # What every iteration takes grows on beyond those seen, however little that was.
            problem.change[:, self.line] = np.inf
            return problem, screen(space, problem, points)
        divided = list(screen_composites(basis, points, location, positive, kind))
        return problem, screen(space, problem, points, divided, explained(location))


def screen(
    space: Crossed,
    problem: Problem,
    points: Array,
    known: Sequence[Screened] = (),
    scatter: Array | None = None,
) -> Screened:
    """Solve the hypotheses that suit each series, beside those solved already; the basis is of the space's factors.

    `scatter` (s,) is what a right form leaves (:func:`ranksight.model.noise.explained`); exact values have none.
    """
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
    first = borne(problem, _solve(problem, choice, members, prior))
    dictionary = _dictionary(space, problem, space.coarse)
    found = [first, *known]
    bases = _best(problem, first, BASES, largest=2)[:, :, :2]
    terms, more, more_prior = complete(problem, bases, dictionary)
    found.append(borne(problem, _solve(problem, terms, more, more_prior)))
    if m == 2:
        # The right form leaves what scatter explains, but next to a wrong term others than the right one look best:
        # where all leave more, all pairs of natural terms are tried, and the best of them completed.
        rest = np.min([part.residual.min(axis=1, initial=np.inf) for part in found], axis=0)
        least = problem.count * CANCELLED**2
        rows = np.flatnonzero(rest > (least if problem.exact or scatter is None else np.maximum(scatter, least)))
        if len(rows):
            found += _pairs(space, problem, rows)
    return together(found)


def together(found: list[Screened]) -> Screened:
    """Hypotheses over several choices of terms as one."""
    width = max(part.members.shape[1] for part in found)
    members, choices, offset = [], [], 0
    for part in found:
        assert part.choice is not None
        moved = np.where(part.members >= 0, part.members + offset, -1)
        members.append(np.pad(moved, ((0, 0), (0, width - moved.shape[1])), constant_values=-1))
        choices.append(part.choice)
        offset += part.choice.shape[1]
    return Screened(
        np.concatenate([part.residual for part in found], axis=1),
        np.concatenate([part.offset for part in found], axis=1),
        np.concatenate(members),
        np.concatenate([part.prior for part in found]),
        np.concatenate(choices, axis=1),
    )


def _pairs(space: Crossed, problem: Problem, rows: Index) -> list[Screened]:
    """Pairs of natural terms, the best of them completed, on some series; impossible on the others."""
    dictionary = _dictionary(space, problem, tuple(f for f in (*NATURAL, *space.grids) if f in space.factors))
    again, bases = best_pairs(problem, rows, dictionary)
    mine = problem.part(rows)
    completed = borne(mine, _solve(mine, *complete(mine, bases[:, :BASES], dictionary)))
    return [again, _everywhere(completed, rows, len(problem.weights))]


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
    # A program has one process grid, and what stands beside its terms is natural.
    grid = dimensions(mine.basis, terms)[local]
    usual = {ONE, *NATURAL}
    natural = np.array(
        [all(tuple(f) in usual or f[2] < 0 for f in term) for term in mine.basis.decode(terms).tolist()], dtype=bool
    )
    one = (grid[:, 0] == grid[:, 1]) | (grid == 0).any(axis=1)
    local = local[(grid == 0).all(axis=1) | (natural[local].all(axis=1) & one)]
    with_constant = np.concatenate([np.zeros((len(local), 1), dtype=np.intp), local], axis=1)
    members = np.concatenate([with_constant, np.pad(local, ((0, 0), (0, 1)), constant_values=-1)])
    prior = np.tile(COMPLETED + DIVIDED * composite(mine.basis, terms)[local].any(axis=1), 2)
    best = _best(mine, borne(mine, screen_terms(mine, terms, members, prior)), PAIRS, smallest=2)
    size = (best >= 0).sum(axis=2)
    last = np.take_along_axis(best, np.maximum(size - 1, 0)[:, :, None], axis=2)
    before = np.take_along_axis(best, np.maximum(size - 2, 0)[:, :, None], axis=2)
    bases = np.maximum(np.concatenate([before, last], axis=2), 0)
    kept = bases.shape[1]
    flat = np.concatenate([np.zeros((len(rows), 1), dtype=np.intp), bases.reshape(len(rows), -1)], axis=1)
    shapes = [shape for n in range(kept) for shape in ([0, 1 + 2 * n, 2 + 2 * n], [1 + 2 * n, 2 + 2 * n, -1])]
    again = borne(mine, _solve(mine, flat, np.array(shapes, dtype=np.intp), np.full(len(shapes), COMPLETED)))
    return _everywhere(again, rows, len(problem.weights)), bases


def _everywhere(screened: Screened, rows: Index, count: int) -> Screened:
    """The same over all series; impossible where it was not solved."""
    residual = np.full((count, len(screened.members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    residual[rows], offset[rows] = screened.residual, screened.offset
    assert screened.choice is not None
    choice = np.zeros((count, screened.choice.shape[1]), dtype=np.intp)
    choice[rows] = screened.choice
    return Screened(residual, offset, screened.members, screened.prior, choice)


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
    if axis == space.line:
        return np.full((len(problem.weights), 1), 1 + space.factors.index(LINE), dtype=np.intp)
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
    # What is on process grids stands beside the others: there is so much of it that it would leave none of them.
    sided = on_grid(problem.basis, rows) & usable
    return np.concatenate(
        [
            1 + part[np.argsort(score[:, part], axis=1, kind="stable")[:, :most]]
            for part in (np.flatnonzero(~sided), np.flatnonzero(sided))
        ],
        axis=1,
    )


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


ALONE, NESTED = -1.0, -2.0
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
        ahead = np.moveaxis(problem.basis.ahead(mine), 2, 0)
        divided = composite(problem.basis, mine)
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
            grown = unseen(here, solved.coefficients, [ahead[:, :, local[:, a]] for a in range(size)])
            allowed, penalty = admissible(here, np.take_along_axis(solved.coefficients, order, axis=2), ids, grown)
            allowed &= usable[:, local].all(axis=2) & np.isfinite(solved.residual)
            share = [log_share[:, local[:, a]] for a in range(size)]
            penalty = penalty + cancelling(solved.coefficients, share)
            determinant = solved.determinant - 2 * sum(share)
            known = prior[rows] + size / 2 * np.log(2 * np.pi) - penalty
            residual[part, rows] = solved.residual
            known = known + DIVIDED * divided[:, local].any(axis=2)
            offset[part, rows] = np.where(allowed, known - determinant / 2, -np.inf)
    return Screened(residual, offset, members, prior, choice)


def _dictionary(space: Crossed, problem: Problem, factors: tuple[Factor, ...]) -> Index:
    """All products (d,) of some factors that have a value at every point."""
    radix = len(space.factors) + 1
    some = [
        np.array([0, *(1 + space.factors.index(factor) for factor in space.offered(axis, factors))])
        for axis in range(space.parameters)
    ]
    number = np.indices(tuple(map(len, some))).reshape(space.parameters, -1)
    terms = np.sum([some[axis][number[axis]] * radix**axis for axis in range(space.parameters)], axis=0)[1:]
    return np.asarray(terms[problem.basis.usable(terms)], dtype=np.intp)


def _best(problem: Problem, screened: Screened, kept: int, largest: int = 3, smallest: int = 1) -> Index:
    """Terms (s, kept, q) of the best hypotheses of so many terms, by their BIC."""
    count = problem.count[:, None]
    size = screened.sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = -count / 2 * np.log(screened.residual + count * SMALLEST**2)
    possible = np.isfinite(screened.offset) & ((size <= largest) & (size >= smallest))[None, :]
    criterion = np.where(possible, fit - size / 2 * np.log(np.maximum(count, 2)), -np.inf)
    some = np.sort(np.argpartition(-criterion, min(kept, len(size)) - 1, axis=1)[:, :kept], axis=1)
    order = np.argsort(-np.take_along_axis(criterion, some, axis=1), axis=1, kind="stable")
    return screened.terms(np.take_along_axis(some, order, axis=1))
