"""The performance model normal form, with the procedure of its paper.

``f(p) = sum_k c_k p^(i_k) log2(p)^(j_k)`` with i in {0, 1/2, 1, 3/2, 2, 5/2, 3}, j in {0, 1, 2} and up to five terms
besides
the constant: hypotheses of n terms are tried exhaustively, the best by k-fold cross-validation with interleaved folds
is kept, and n grows until the adjusted coefficient of determination falls (Calotoiu, Hoefler, Poke and Wolf 2013, SC13,
sections 2 and 3). The choice is made by least squares of absolute errors, as there; the coefficients of what is
chosen and
their errors follow the engine's relative ones.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.core.metrics import Kind
from ranksight.core.records import dataclass
from ranksight.model.search import leastsquares
from ranksight.model.search.basis import Basis
from ranksight.model.search.crosswise import Crossed
from ranksight.model.search.offer import Offer
from ranksight.model.search.problem import Problem, pose
from ranksight.model.search.screening import Screened
from ranksight.model.search.terms import ONE, Factor
from ranksight.model.series.noise import Location
from ranksight.model.spaces import SPACES

EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
FINER = (0.25, 1 / 3, 2 / 3, 0.75)
LOGARITHMS = (0.0, 1.0, 2.0)
TERMS = 5
FOLDS = 2
BLOCK = 512
"""Hypotheses solved at once."""


@dataclass(frozen=True)
class Pmnf(Offer):
    """PMNF of one parameter, one hypothesis a series."""

    factors: tuple[Factor, ...]  # terms besides the constant
    terms: int = TERMS  # largest number of them in a hypothesis
    folds: int = FOLDS  # folds of the cross-validation; 0 leaves one point out at a time
    parameters: int = 1

    @property
    def load(self) -> int:
        """Numbers held a series."""
        return BLOCK * (self.terms + 1)

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Choose one hypothesis for each series by the paper's procedure."""
        basis = Basis.listed(np.array([[ONE], *([factor] for factor in self.factors)]), points)
        problem = pose(basis, points, location, positive, kind)
        plain = (problem.weights > 0).astype(np.float64)
        folds = _interleaved(points[:, 0], plain > 0, self.folds)
        usable = [n for n in range(1, len(self.factors) + 1) if basis.usable(np.array([n]))[0]]
        # n = 0, the constant, is scored as the others are.
        best = [_best(basis, problem, plain, folds, [(0,)])]
        for n in range(1, self.terms + 1):
            if n + 2 > points.shape[0]:
                break
            best.append(_best(basis, problem, plain, folds, [(0, *some) for some in itertools.combinations(usable, n)]))
        choice, size = _refine(len(plain), best)
        members = np.full((choice.shape[1], choice.shape[1]), -1, dtype=np.intp)
        for n in range(choice.shape[1]):
            members[n, : n + 1] = np.arange(n + 1)
        within = np.arange(1, len(members) + 1)[None, :] == size[:, None]
        used = members[size - 1] >= 0
        terms = np.where(used, np.take_along_axis(choice, np.maximum(members[size - 1], 0), axis=1), 0)
        design = np.where(used[:, :, None], basis.shape(terms), 0.0).transpose(0, 2, 1)[:, None]
        solved = leastsquares.refine(design, used[:, None], problem.weights, problem.values)
        residual = np.where(within, solved.residual, np.inf)
        offset = np.where(within, 0.0, -np.inf)
        return problem, Screened(residual, offset, members, np.zeros(len(members)), choice)


def _interleaved(x: Array, present: Mask, folds: int) -> Array:
    """Fold (s, n) of each point: neighbours along the parameter lie in different folds."""
    order = np.argsort(x, kind="stable")
    place = np.empty(present.shape, dtype=np.float64)
    place[:, order] = np.cumsum(present[:, order], axis=1) - 1
    return np.where(present, place % folds if folds else place, -1.0)


def _best(
    basis: Basis, problem: Problem, plain: Array, folds: Array, tried: list[tuple[int, ...]]
) -> tuple[Index, Array]:
    """The hypothesis (s, k) of least cross-validation error, and its adjusted R2."""
    members = np.array(tried, dtype=np.intp)
    series, size = len(plain), members.shape[1]
    score = np.full((series, len(members)), np.inf)
    for start in range(0, len(members), BLOCK):
        design = np.moveaxis(basis.shape(members[start : start + BLOCK]), 1, 2)
        error = np.zeros((series, len(design)))
        for fold in range(int(folds.max(initial=-1)) + 1):
            left_out = (folds == fold) & (plain > 0)
            solved = leastsquares.solve(design, np.where(left_out, 0.0, plain), problem.values)
            predicted = np.einsum("shk,hnk->shn", solved.coefficients, design)
            lost = np.where(left_out[:, None, :], (problem.values[:, None, :] - predicted) ** 2, 0.0).sum(axis=2)
            # A fold that leaves fewer points than unknowns cannot be solved: the hypothesis is out.
            error += np.where(np.isfinite(solved.residual) & np.isfinite(lost), lost, np.inf)
        score[:, start : start + BLOCK] = error
    chosen = members[score.argmin(axis=1)]
    design = np.moveaxis(basis.shape(chosen), 1, 2)[:, None]
    full = leastsquares.refine(design, np.ones((series, 1, size), dtype=bool), plain, problem.values)
    count = problem.count
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (plain * problem.values).sum(axis=1) / count
        total = (plain * (problem.values - mean[:, None]) ** 2).sum(axis=1)
        adjusted = 1 - (full.residual[:, 0] / (count - size)) / (total / (count - 1))
    known = np.isfinite(score.min(axis=1)) & np.isfinite(adjusted)
    return chosen, np.where(known, adjusted if size > 1 else 0.0, 0.0 if size == 1 else -np.inf)


def _refine(series: int, best: list[tuple[Index, Array]]) -> tuple[Index, Index]:
    """Terms (s, k) and number of terms (s,): the number grows until the adjusted R2 falls."""
    width = max(chosen.shape[1] for chosen, _ in best)
    choice = np.zeros((series, width), dtype=np.intp)
    size = np.ones(series, dtype=np.intp)
    open_ = np.ones(series, dtype=bool)
    last = np.zeros(series)
    for chosen, adjusted in best[1:]:
        better = open_ & (adjusted > last)
        choice[better, : chosen.shape[1]] = chosen[better]
        size[better] = chosen.shape[1]
        last = np.where(better, adjusted, last)
        open_ = better
    return choice, size


def _space(parameters: int, exponents: tuple[float, ...], folds: int) -> Offer:
    factors = tuple((i, j, 0.0) for i in sorted(exponents) for j in LOGARITHMS if i or j)
    if parameters == 1:
        # Exhaustive trial of five of the finer terms would be two hundred thousand hypotheses.
        return Pmnf(factors, terms=TERMS if len(factors) <= 20 else 3, folds=folds)
    if parameters > 4:
        raise InputError(f"{parameters} parameters are too many", "fit at most 4 at once and hold the others")
    coarse = tuple((i, j, 0.0) for i, j in ((0.0, 1.0), (0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 0.0)))
    return Crossed(factors, coarse, parameters)


@SPACES.register("pmnf")
@lru_cache(maxsize=8)
def pmnf(parameters: int) -> Offer:
    """PMNF with the defaults of its paper; with several parameters products and sums of its factors."""
    return _space(parameters, EXPONENTS, FOLDS)


@SPACES.register("pmnf-fine")
@lru_cache(maxsize=8)
def pmnf_fine(parameters: int) -> Offer:
    """PMNF of up to three terms with the paper's finer exponents as well, chosen by leaving one point out."""
    return _space(parameters, EXPONENTS + FINER, 0)
