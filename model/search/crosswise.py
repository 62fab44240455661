"""The search over several parameters: a few factors an axis, their products and sums, then what is still missing.

1. Along every line of points that differ in one parameter only, any function of the space is ``a + b f(x)`` with one f.
   The factors f of each axis are ranked by the residuals of these fits, summed over lines.
2. Products of the best factors of all axes, and sums of products after the set partitions of the axes, with and without
   a constant, are solved on all points from one Gram matrix a series.
3. To the best of them one product of the whole dictionary is added that explains most of what is left, so that terms
   with other factors (work n^3/p and communication log p) are found: orthogonal least squares (Chen, Billings and Luo
   1989, *International Journal of Control* 50, 1873).
4. Of two parameters pairs of natural terms are tried where all of this leaves more than rounding of exact values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.search import leastsquares
from ranksight.model.search.basis import Basis
from ranksight.model.search.chosen import best_of, everywhere, solve, together
from ranksight.model.search.composite import ghost_blocks, screen_composites
from ranksight.model.search.offer import Offer
from ranksight.model.search.pairs import NATURAL, best_pairs
from ranksight.model.search.problem import Problem, pose
from ranksight.model.search.screening import CANCELLED, Screened, borne
from ranksight.model.search.terms import ONE, SORTED, Factor
from ranksight.model.series.noise import Location

BEST = {1: 12, 2: 8, 3: 4, 4: 3}
"""Factors kept an axis, by the number of parameters."""
BASES = 3
"""Hypotheses that are completed."""
LINE: Factor = (1.0, 0.0, 0.0)
"""What grows with iterations, on their axis."""


@dataclass(frozen=True)
class Crossed(Offer):
    """A space over several parameters."""

    factors: tuple[Factor, ...]  # of each axis; products of them, one an axis or none, are the terms
    coarse: tuple[Factor, ...]  # those of `factors` of which completing terms are made
    parameters: int
    divisor: int | None = None  # axis of the ranks, which divide work; any may where that is not known
    line: int | None = None  # axis of iterations, along which all terms are constant or proportional
    grids: tuple[Factor, ...] = ()  # of process grids, which deterministic values may have along the ranks

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
        basis = Basis.products((ONE, *space.factors), points, self.divisor, kind == "requirement")
        basis = basis.counting(points, self.divisor)
        problem = pose(basis, points, location, positive, kind)
        if self.line is not None:
            # What every iteration takes grows on beyond those seen, however little that was.
            problem.rise[:, self.line] = np.inf
            return problem, screen(space, problem, points)
        known = list(screen_composites(basis, points, location, positive, kind))
        if problem.exact and self.parameters == 2 and self.divisor is not None and self.grids:
            blocks = ghost_blocks(space.factors, self.divisor, len(problem.weights))
            known.append(borne(problem, solve(problem, *blocks), listed=True))
        return problem, screen(space, problem, points, known)


def screen(space: Crossed, problem: Problem, points: Array, known: Sequence[Screened] = ()) -> Screened:
    """Solve the hypotheses that suit each series, in addition to those solved already, over the space's factors."""
    m = space.parameters
    radix = len(space.factors) + 1
    best = [_rank(space, problem, points, axis, radix) for axis in range(m)]
    # Local terms: all products of the chosen factors (0 is none), in the mixed radix of the numbers chosen.
    number = np.indices(tuple(b.shape[1] + 1 for b in best)).reshape(m, -1)
    choice = np.zeros((len(problem.weights), number.shape[1]), dtype=np.intp)
    for axis, each in enumerate(best):
        with_none = np.concatenate([np.zeros((len(each), 1), dtype=np.intp), each], axis=1)
        choice += with_none[:, number[axis]] * radix**axis
    members, prior = _structures(tuple(b.shape[1] for b in best))
    first = borne(problem, solve(problem, choice, members, prior))
    dictionary = _dictionary(space, problem, space.coarse)
    solved = [first, *known]
    bases = best_of(problem, first, BASES, largest=2)[:, :, :2]
    terms, more, more_prior = complete(problem, bases, dictionary)
    solved.append(borne(problem, solve(problem, terms, more, more_prior)))
    if m == 2 and problem.exact:
        # Next to a wrong term others than the right one look best: where all leave more than rounding, all pairs of
        # natural terms are tried, and the best of them completed.
        rest = np.min([part.residual.min(axis=1, initial=np.inf) for part in solved], axis=0)
        # Next to a term of a process grid another of it may be what looks constant at few numbers of ranks, and at
        # powers of two sides of a grid look like a share that is sorted.
        logs = (problem.basis.decode(np.maximum(bases[:, 0], 0)) == SORTED).all(axis=3)
        tried = (rest > problem.count * CANCELLED**2) | problem.basis.on_grid(bases[:, 0]).any(axis=1)
        tried |= logs.any(axis=(1, 2))
        if (rows := np.flatnonzero(tried)).size:
            solved += _pairs(space, problem, rows)
    return together(solved)


def _pairs(space: Crossed, problem: Problem, rows: Index) -> list[Screened]:
    """Pairs of natural terms, the best of them completed, on some series; impossible on the others."""
    factors = tuple(f for f in (*NATURAL, *space.grids) if f in space.factors)
    dictionary, some = _dictionary(space, problem, factors), problem.part(rows)
    again, bases = best_pairs(problem, rows, dictionary)
    completed = borne(some, solve(some, *complete(some, bases[:, :BASES], dictionary)))
    return [again, everywhere(completed, rows, len(problem.weights))]


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
        # The factors cannot be distinguished yet; the coarse ones represent all.
        coarse = [1 + space.factors.index(factor) for factor in space.coarse if usable[space.factors.index(factor)]]
        return np.broadcast_to(np.array(coarse, dtype=np.intp), (len(score), len(coarse)))
    # Factors on process grids are kept separately: there are so many that they would displace all others.
    sided = problem.basis.on_grid(rows) & usable
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
    structures: dict[tuple[int, ...], float] = {(0,): 0.0}

    def add(terms: list[int], prior: float) -> None:
        key = tuple(sorted(set(terms)))
        structures[key] = max(prior, structures.get(key, -np.inf))

    def term(factors: tuple[int, ...], axes: tuple[int, ...]) -> int:
        return int(np.ravel_multi_index(tuple(f if a in axes else 0 for a, f in enumerate(factors)), shape))

    everything = tuple(range(m))
    for factors in itertools.product(*(range(size + 1) for size in sizes)):
        if any(factors):
            number = int(np.ravel_multi_index(factors, shape))
            add([number], priors.FORMS["alone"])
            add([0, number], 0.0)
        if not all(factors):
            continue
        for blocks in partitions(everything):
            if len(blocks) > 1:
                parts = [term(factors, block) for block in blocks]
                add([0, *parts], 0.0)
                add(parts, priors.FORMS["alone"])
        whole = term(factors, everything)
        for count in range(1, m):
            for some in itertools.combinations(everything, count):
                add([term(factors, some), whole], priors.FORMS["nested"])
                add([0, term(factors, some), whole], priors.FORMS["nested"])
        if m == 2:
            add([0, term(factors, (0,)), term(factors, (1,)), whole], priors.FORMS["nested"])
    width = max(map(len, structures))
    members = np.full((len(structures), width), -1, dtype=np.intp)
    for row, key in enumerate(structures):
        members[row, : len(key)] = key
    return members, np.array(list(structures.values()))


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


ADDED = 6
"""Terms of one axis and of several that are tried for each base."""


def complete(problem: Problem, bases: Index, dictionary: Index) -> tuple[Index, Index, Array]:
    """Terms that explain most of what bases (s, b, 2) leave: a choice of terms, hypotheses over it, their priors."""
    single = np.count_nonzero(problem.basis.factors_of(dictionary), axis=-1) == 1
    root = np.sqrt(problem.weights)
    table = problem.basis.shape(dictionary)
    norm = problem.weights @ (table**2).T
    added = []
    for base in range(bases.shape[1]):
        terms = bases[:, base]
        design = np.where((terms >= 0)[..., None], problem.basis.shape(terms), 0.0) * root[:, None, :]
        q = _orthonormal(design)
        target = root * problem.values
        rest = target - np.einsum("skn,sk->sn", q, np.einsum("skn,sn->sk", q, target))
        along = (root * rest) @ table.T
        remaining = norm.copy()
        for k in range(q.shape[1]):
            remaining -= ((q[:, k] * root) @ table.T) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            possible = (remaining > 1e-9 * norm) & ((along > 0) | ~problem.parts[:, None])
            gain = np.where(possible, along**2 / remaining, -1.0)
        added.append(np.concatenate([_largest(gain, dictionary, few) for few in (single, ~single)], axis=1))
    simple = min(ADDED, int(single.sum()))
    constant = np.zeros((len(root), 1), dtype=np.intp)
    choice = np.concatenate([constant, np.maximum(bases, 0).reshape(len(root), -1), *added], axis=1)
    rows: list[list[int]] = []
    prior: list[float] = []
    at = 1 + 2 * bases.shape[1]
    for base in range(bases.shape[1]):
        left, right = 1 + 2 * base, 2 + 2 * base
        for extra in range(added[base].shape[1]):
            # The term added last stands last. A base may hold the constant itself, so all shapes are tried.
            rows += [[left, right, at + extra], [0, left, right, at + extra], [left, at + extra], [right, at + extra]]
            prior += [priors.FORMS["completed"] if extra < simple else priors.FORMS["completed by a product"]] * 4
        at += added[base].shape[1]
    members = np.full((len(rows), 4), -1, dtype=np.intp)
    for row, terms_of in enumerate(rows):
        members[row, : len(terms_of)] = terms_of
    return choice, members, np.array(prior)


def _largest(gain: Array, dictionary: Index, among: Mask) -> Index:
    """The terms (s, a) of largest gain (s, d) among some of the dictionary."""
    gain, terms = gain[:, among], dictionary[among]
    most = min(ADDED, gain.shape[1])
    if most == 0:
        return np.empty((len(gain), 0), dtype=np.intp)
    return np.asarray(terms[np.argpartition(-gain, most - 1, axis=1)[:, :most]])


def _orthonormal(design: Array) -> Array:
    """Orthonormal rows (s, k, n) spanning the rows of designs (s, k, n) of at most two rows; zero where there is
    none."""
    done: list[Array] = []
    for k in range(design.shape[1]):
        row = design[:, k]
        for other in done:
            row = row - other * (row * other).sum(axis=1, keepdims=True)
        size = np.sqrt((row**2).sum(axis=1, keepdims=True))
        full = np.sqrt((design[:, k] ** 2).sum(axis=1, keepdims=True))
        done.append(np.where(size > 1e-7 * np.maximum(full, 1e-300), row / np.where(size > 0, size, 1.0), 0.0))
    return np.stack(done, axis=1)
