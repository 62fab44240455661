"""The search: how well every hypothesis explains every series, and the few that carry the weight.

Errors are relative to the value: ``y_i = f(x_i) (1 + e_i)``, e normal with variance v. With coefficients uniform over
shares of the whole (what each term contributes at the point where it contributes most) and v scaled inverse
chi-squared with d0 degrees of freedom around v0, the marginal likelihood of a hypothesis with k terms on n points is

    ln M = k/2 ln 2 pi - 1/2 ln |G| + ln Gamma(nu/2) - nu/2 ln((RSS + d0 v0)/2),   nu = n - k + d0

with G the normal matrix of the terms scaled to shares (standard conjugate analysis: Gelman et al., *Bayesian Data
Analysis*, 3rd ed., 14.2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.search import leastsquares
from ranksight.model.search.basis import Basis
from ranksight.model.search.physics import admissible, cancelling, unseen
from ranksight.model.search.problem import Problem
from ranksight.model.search.terms import Hypotheses
from ranksight.model.series.noise import SMALLEST

CANCELLED = 1e-7
"""Relative scatter that rounding of normal equations may feign."""
ROUNDED = 1e-9
"""Share of the largest value that is none."""
AS_MUCH = float(np.e)
"""Odds within which hypotheses carry as much."""
NEGLIGIBLE = 12.0
"""Logarithm of the odds against the best beyond which a hypothesis is not looked at again: of ten thousand such, all
together would not count."""
SOLVED = 50_000
"""Solutions worked on at a time: as many as stay in a processor's cache."""
SIMPLE = np.array([3.0, 4.0])
"""Denominators of simple fractions, and of their halves."""
LEFT = 1e-2
"""Share of the values' variation, root mean square, that a form on a process grid may leave."""
KEPT = 16
"""Hypotheses kept a series: those that carry the posterior weight."""


@dataclass(frozen=True)
class Screened:
    """Sums of squares of all hypotheses on all series, and what else enters their likelihood."""

    residual: Array  # (s, h): relative residual sum of squares
    offset: Array  # (s, h): prior, determinant and penalties; -inf where the hypothesis is impossible
    members: Index  # (h, q)
    """Terms of each hypothesis, of those chosen; -1 pads."""
    prior: Array  # (h,): logarithm of the weight of each hypothesis before the data
    choice: Index  # (s, d): for each series the terms of the basis that `members` speak of; one row where all share it
    common: bool = False  # whether they do

    @property
    def sizes(self) -> Index:
        """Number of terms (h,) of each hypothesis."""
        return np.asarray((self.members >= 0).sum(axis=1), dtype=np.intp)

    def terms(self, which: Index) -> Index:
        """Terms of the basis (s, c, q) in hypotheses (s, c)."""
        members = self.members[which]
        flat = members.reshape(len(members), -1)
        numbers = np.take_along_axis(self.choice, np.maximum(flat, 0), axis=1)
        return np.where(flat >= 0, numbers, -1).reshape(members.shape)

    def part(self, rows: Index) -> Screened:
        """The same on some series."""
        choice = self.choice if self.common else self.choice[rows]
        return replace(self, residual=self.residual[rows], offset=self.offset[rows], choice=choice)


@dataclass(frozen=True)
class Found:
    """The hypotheses kept for each series."""

    basis: Basis  # terms
    members: Index  # (s, c, q)
    """Terms of each hypothesis, the leading one first; -1 pads, and fills those that were impossible."""
    weight: Array  # (s, c): posterior weights, adding up to one (zero where nothing could be fitted)
    coefficients: Array  # (s, c, q)
    root: Array  # (s, c, q, q): see :class:`ranksight.model.search.leastsquares.Refined`
    variance: Array  # (s, c): relative variance of a value around the function
    freedom: Array  # (s, c): its degrees of freedom
    press: Array  # (s, c): mean squared relative leave-one-out error; sum of squared relative residuals
    residual: Array  # (s, c)

    @property
    def around(self) -> Array:
        """Relative variance (s,) of a value around the functions, averaged over the hypotheses by their weights."""
        return np.asarray((self.weight * np.where(self.weight > 0, self.variance, 0.0)).sum(axis=1))


def shares(problem: Problem, shape: Array) -> Array:
    """Logarithm (s, t) of the largest share that terms (t, n) of size one have in series: the scale of their
    coefficients."""
    share = np.zeros((len(problem.weights), len(shape)))
    for root, size in zip(np.sqrt(problem.weights).T, np.abs(shape).T, strict=True):
        np.maximum(share, root[:, None] * size, out=share)
    return np.log(np.where(share > 0, share, 1.0))


def screen(space: Hypotheses, problem: Problem) -> Screened:
    """Solve all hypotheses of a space on all series; the problem's basis lists the space's terms."""
    return screen_terms(problem, np.arange(len(space.terms)), space.members, space.prior)


def screen_terms(problem: Problem, terms: Index, members: Index, prior: Array) -> Screened:
    """Solve the same hypotheses on all series.

    `terms` (t,): of the problem's basis. `members` (h, q): which of `terms` each hypothesis has, the fastest growing
    last; -1 pads. `prior` (h,).
    """
    shape, usable_term = problem.basis.shape(terms), problem.basis.usable(terms)
    log_share = shares(problem, shape)
    residual = np.full((len(problem.weights), len(members)), np.inf)
    offset = np.full_like(residual, -np.inf)
    usable = np.where(members >= 0, usable_term[members], True).all(axis=1)
    sizes = (members >= 0).sum(axis=1)
    block = max(1, SOLVED // max(1, len(problem.weights)))
    for size in np.unique(sizes):
        every = np.flatnonzero((sizes == size) & usable)
        if size > shape.shape[1]:
            continue
        for start in range(0, len(every), block):
            rows = every[start : start + block]
            local = members[rows, :size]
            solution = leastsquares.solve(np.moveaxis(shape[local], 1, 2), problem.weights, problem.values)
            numbers_of = terms[local]
            ahead = np.moveaxis(problem.basis.ahead(numbers_of), (1, 2), (0, 1))[:, :, None, :]
            grown = unseen(problem, solution.coefficients, list(ahead))
            allowed, penalty = admissible(problem, solution.coefficients, numbers_of, grown)
            determinant = solution.determinant
            share = [log_share[:, local[:, a]] for a in range(size)]
            for part in share:
                determinant = determinant - 2 * part
            penalty = penalty + cancelling(solution.coefficients, share)
            known = prior[rows] + size / 2 * np.log(2 * np.pi) - penalty
            residual[:, rows] = solution.residual
            offset[:, rows] = np.where(allowed & np.isfinite(solution.residual), known - determinant / 2, -np.inf)
    return Screened(residual, offset, members, prior, terms[None], common=True)


def borne(problem: Problem, screened: Screened, listed: bool = False) -> Screened:
    """The same hypotheses with the odds of process grids, which the prior of those that are `listed` has, and without
    those on them that leave too much.

    The sides of process grids vary in so many ways with the ranks that some form of them follows what merely scatters.
    What a program does along them is decided: a form with such a term is possible only where it leaves :data:`LEFT`.
    """
    table = problem.basis.on_grid(screened.choice)
    if not table.any():
        return screened
    has = np.zeros((len(table), len(screened.members)), dtype=bool)
    odds = np.zeros(has.shape)
    rarity = problem.basis.grid_odds(screened.choice)
    for column in screened.members.T:
        has |= table[:, column] & (column >= 0)
        odds = np.where(column >= 0, np.minimum(odds, rarity[:, column]), odds)
    weights, values = problem.weights, problem.values
    total = weights.sum(axis=1, keepdims=True)
    mean = (weights * values).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
    varies = (weights * (values - mean) ** 2).sum(axis=1)
    most = LEFT**2 * varies + problem.count * CANCELLED**2
    loose = has & (screened.residual > most[:, None])
    return replace(screened, offset=np.where(loose, -np.inf, screened.offset + (0.0 if listed else odds)))


def evidence(screened: Screened, count: Index, v0: Array, d0: Array) -> Array:
    """Log marginal likelihoods (s, h) of all hypotheses, given the prior of the variance (s,)."""
    return screened.offset + likelihood(screened.residual, screened.sizes[None, :], count, v0, d0, CANCELLED)


def likelihood(residual: Array, size: Index, count: Index, v0: Array, d0: Array, exact: float) -> Array:
    """``ln Gamma(nu/2) - nu/2 ln((RSS + d0 v0)/2)`` of residual sums of squares (s, h)."""
    nu = np.maximum(count[:, None] - size + d0[:, None], 0.5)
    floor = (d0 * v0 + count * exact**2)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        if size.shape[0] == 1:
            # The gamma function is dear, and there are only few sizes.
            few, which = np.unique(size[0], return_inverse=True)
            gamma = special.gammaln(np.maximum(count[:, None] - few + d0[:, None], 0.5) / 2)[:, which]
        else:
            gamma = special.gammaln(nu / 2)
        return np.asarray(gamma - nu / 2 * np.log((residual + floor) / 2))


def keep(problem: Problem, screened: Screened, score: Array, v0: Array, d0: Array, most: int = KEPT) -> Found:
    """Solve the hypotheses of the highest score (s, h) again, to full precision, and weigh them."""
    # Several ways may have led to the same hypothesis; one of each is kept.
    most = min(most if screened.common else 2 * most, score.shape[1])
    top = np.argpartition(-score, most - 1, axis=1)[:, :most]
    score = np.take_along_axis(score, top, axis=1)
    basis = problem.basis
    members = np.where(np.isfinite(score)[..., None], screened.terms(top), -1)
    growth = np.where(members >= 0, basis.order(members), np.inf)
    members = np.take_along_axis(members, np.argsort(growth, axis=2, kind="stable"), axis=2)
    if not screened.common:
        score = np.where(_repeated(members, score), -np.inf, score)
    used = members >= 0
    design = np.moveaxis(np.where(used[..., None], basis.shape(members), 0.0), 2, 3)
    refined = _refined(problem, design, used, score)
    size = used.sum(axis=2)
    # Sums of squares of nearly exact fits cancel in the normal equations; these do not.
    rough = np.take_along_axis(screened.residual, top, axis=1)
    with np.errstate(invalid="ignore"):
        score = score + (
            likelihood(refined.residual, size, problem.count, v0, d0, SMALLEST)
            - likelihood(rough, size, problem.count, v0, d0, CANCELLED)
        )
    possible = np.isfinite(score)
    # Positive at every measured point, too, and nothing where nothing was measured: one rank sends no messages.
    fitted = np.einsum("scnk,sck->scn", design, refined.coefficients)
    least = np.where(problem.values > 0, 0.0, -ROUNDED)[:, None, :]
    below = ((problem.weights > 0)[:, None, :] & (fitted <= least)).any(axis=2)
    possible &= ~(problem.positive[:, None] & below & (np.abs(problem.values).max(axis=1) > 0)[:, None])
    best = np.where(possible, score, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    weight = np.exp(np.where(possible, score - np.where(np.isfinite(best), best, 0.0), -np.inf))
    total = weight.sum(axis=1, keepdims=True)
    weight = weight / np.where(total > 0, total, 1.0)
    freedom = np.maximum(problem.count[:, None] - size + d0[:, None], 1.0)
    variance = (refined.residual + (d0 * v0)[:, None]) / freedom
    scale = np.where(used, basis.norm(members), 1.0) / problem.unit[:, None, None]
    order = np.argsort(-_precedence(problem, members, weight), axis=1, kind="stable")

    def sort(array: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(array, order.reshape(order.shape + (1,) * (array.ndim - 2)), axis=1)

    weight = sort(weight)
    return Found(
        basis,
        np.where(weight[..., None] > 0, sort(members), -1),
        weight,
        sort(refined.coefficients / scale),
        sort(refined.root / scale[..., :, None]),
        sort(np.where(np.isfinite(variance), variance, np.inf)),
        sort(freedom),
        sort(refined.press),
        sort(refined.residual),
    )


def _refined(problem: Problem, design: Array, used: Mask, score: Array) -> leastsquares.Refined:
    """Hypotheses (s, c) solved to full precision; those of negligible score are left out (their residuals
    are infinite)."""
    best = score.max(axis=1, keepdims=True, initial=-np.inf)
    rows, places = np.nonzero(np.isfinite(score) & (score > best - NEGLIGIBLE))
    done = leastsquares.refine(
        design[rows, places][:, None], used[rows, places][:, None], problem.weights[rows], problem.values[rows]
    )
    arrays = {}
    for name, fill in (("coefficients", 0.0), ("root", 0.0), ("residual", np.inf), ("press", np.inf)):
        part = getattr(done, name)[:, 0]
        whole = np.full((*score.shape, *part.shape[1:]), fill)
        whole[rows, places] = part
        arrays[name] = whole
    return leastsquares.Refined(**arrays)


def _repeated(members: Index, score: Array) -> Mask:
    """Hypotheses (s, c) whose terms are those of one of higher score, or of equal score before it."""
    ordered = np.sort(members, axis=2)
    equal = (ordered[:, :, None] == ordered[:, None, :]).all(axis=3)
    place = np.arange(members.shape[1])
    before = (score[:, None, :] > score[:, :, None]) | (
        (score[:, None, :] == score[:, :, None]) & (place[None, None, :] < place[None, :, None])
    )
    return np.asarray((equal & before).any(axis=2))


def _precedence(problem: Problem, members: Index, weight: Array) -> Array:
    """Order of the hypotheses kept: the leading one is the heaviest within the neighbourhood of most weight.

    The neighbourhood of a hypothesis are those whose fastest growing term has the same exponents within a quarter:
    single hypotheses next to each other split their weight, and the heaviest alone may lie apart from most of it.
    Where they carry as much, simple fractions come before others, and the constant before all.
    """
    size = np.maximum((members >= 0).sum(axis=2), 1)
    last = np.take_along_axis(members, (size - 1)[..., None], axis=2)[..., 0]
    exponent = problem.basis.decode(last.reshape(-1))[:, :, 0].reshape(*last.shape, -1)
    near = (np.abs(exponent[:, :, None, :] - exponent[:, None, :, :]) <= 0.25 + 1e-9).all(axis=3)
    around = (near * weight[:, None, :]).sum(axis=2)
    centre = np.where(weight > 0, around, -1.0).argmax(axis=1)
    within = np.take_along_axis(near, centre[:, None, None], axis=1)[:, 0]
    used = members >= 0
    plain, varies = _kinds(problem.basis, members)
    simple = (plain | ~used).all(axis=2)
    constant = ~(varies & used).any(axis=2) & used.any(axis=2)
    as_much = weight * AS_MUCH >= weight.max(axis=1, keepdims=True, initial=0.0)
    first = 2.0 * (within & (weight > 0)) + 4.0 * (constant & as_much & (weight > 0))
    return np.asarray(weight * np.where(simple, AS_MUCH, 1.0) + AS_MUCH * first)


def _kinds(basis: Basis, members: Index) -> tuple[Mask, Mask]:
    """Which terms (...) have simple fractions as exponents, and which are not the constant; -1 counts as any."""
    every = np.maximum(members, 0)
    largest = int(every.max(initial=0))
    # Looked up where terms are few; the terms of several parameters are too many to list.
    listed, place = (np.arange(largest + 1), every) if largest < every.size else np.unique(every, return_inverse=True)
    exponents = basis.decode(listed)
    parts = exponents[..., None] * SIMPLE
    plain: Mask = np.asarray((np.abs(parts - np.round(parts)) < 1e-9).any(axis=-1).all(axis=(1, 2)))
    varies: Mask = np.asarray(exponents.any(axis=(1, 2)))
    place = place.reshape(members.shape)
    return plain[place], varies[place]
