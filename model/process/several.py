"""Means over several coordinates: sums of up to four products of powers and logarithms, found term after term.

There are too many products (:mod:`ranksight.model.process.products`) to list their sums; the best sums of q terms are
grown from the best of q - 1. With P = 1 + G the
normal equations of a sum under a covariance (:mod:`ranksight.model.process.solve`), adding a term with products g, t
with the others and itself, and b with the values, raises the logarithm of the evidence by

    r^2 / (2 s) - ln(s) / 2,    s = 1 + t - g' P^-1 g,   r = b - g' P^-1 b0

(orthogonal least squares: Chen, Billings and Luo 1989, *International Journal of Control* 50, 1873), and by
``ln 2 Phi`` of each coefficient over its deviation, as none is negative. What is best by it is compared again with all
of them held at or above zero together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.process.compare import SMOOTHING, USUAL, Hypotheses, Odd, at_best, solved_best, under_all
from ranksight.model.process.prevalence import Prevalence
from ranksight.model.process.products import Products, products
from ranksight.model.process.solve import SHIFT, SPREAD, Data, Equations, columns, inverse, occurring, smoothed

TERMS = 4
"""Terms of a sum at most."""
GROWN = 6
"""Sums that are grown by one more term."""
SWAPPED = 2
"""Sums of each number of terms in which every term is exchanged for another."""
TRIED = 4 * GROWN
"""Sums of each number of terms that are compared with coefficients held at or above zero."""
MEANS = 16
"""Means of a series that are compared under all covariances."""
DOUBTED = 0.01
"""Odds, 1, from which on that the likeliest run is slow is compared with all means: it weighs nothing below."""


def compared_over_several(
    points: Array, data: Data, prevalence: Prevalence
) -> Iterator[tuple[Index, Data, Index, Array, Index, Hypotheses]]:
    """Some of the series (s,), their model made linear near the values
    (:func:`ranksight.model.process.compare.at_best`), terms by their numbers (s, t), values of these (s, t, n), means
    of them (s, h, :data:`TERMS`), -1 pads, and their hypotheses: all runs usual, or that one slow which is likeliest to
    be, where that is likely enough (:data:`DOUBTED`). Series whose values are near enough from the first on come first,
    then the others."""
    several = products(points, data)
    at, distant = several.at(points), data.apart
    kind, _, odds = prevalence.odd(data.u)
    members, every = _compared(data, at, several, prevalence, odds[0])
    for rows in filter(len, (np.flatnonzero(~distant), np.flatnonzero(distant))):
        part, terms, of_part = data.part(rows), several.part(rows), at[rows]
        means, hypotheses = members[rows], every.part(rows)
        if part.apart.any():
            part = at_best(part, of_part, means, hypotheses)
            means, hypotheses = _compared(part, of_part, terms, prevalence, odds[0])
        numbers = terms.numbers(np.broadcast_to(np.arange(of_part.shape[1]), of_part.shape[:2]))
        doubted, place = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=np.intp)
        slow_odds = np.zeros(len(rows))
        if len(kind) > 1:
            place, gain = _slowest(part, of_part, means, hypotheses)
            most = part.most[np.arange(len(rows)), place]
            slow_odds = prevalence.of_most(odds[:2], kind[:2], most[:, None])[:, 1]
            doubted = gain + slow_odds - odds[0] > np.log(DOUBTED)
        for some in filter(len, (np.flatnonzero(~doubted), np.flatnonzero(doubted))):
            selected, of_some, usual = part.part(some), means[some], hypotheses.part(some)
            if doubted[some].any():
                odd = np.full(len(some), 1), place[some]
                slowed, of_terms = smoothed(selected.odd(*odd), SMOOTHING), terms.part(some)
                slow = _compared(slowed, of_part[some], of_terms, prevalence, slow_odds[some], means.shape[1], odd)
                of_some, usual = np.concatenate([of_some, slow[0]], axis=1), Hypotheses.joined([usual, slow[1]])
            yield rows[some], selected, numbers[some], of_part[some], of_some, usual


def _compared(
    data: Data, at: Array, several: Products, prevalence: Prevalence, odds: Array, first: int = 0, odd: Odd = USUAL
) -> tuple[Index, Hypotheses]:
    """Means (s, h, :data:`TERMS`) over terms `at` (s, t, n), numbered from `first`, and their hypotheses; `odds` (s,)
    or of all: logarithm of how likely that run is which is taken for `odd`."""
    members, prior = grown(data, at, several, prevalence)
    prior = prior[..., None] + prevalence.under(several.of_free_power(members)) + odds[..., None, None]
    if odd is not USUAL:
        prior = np.where(prevalence.with_odd, prior, -np.inf)
    mean = np.broadcast_to(first + np.arange(members.shape[1]), members.shape[:2])
    return members, under_all(data, at, members, prior, prevalence, mean, odd)


def _slowest(data: Data, at: Array, members: Index, usual: Hypotheses) -> tuple[Index, Array]:
    """Which run of each series (s,) is likeliest to be slow by the best hypothesis, and what that gains (s,): the
    logarithm of the ratio of its densities as a slow and as a usual run, given all others, off whose law it is by
    ``(K^-1 r)_i / (K^-1)_ii`` with the variance ``1 / (K^-1)_ii``, r what the mean leaves (Rasmussen and Williams,
    *Gaussian Processes for Machine Learning*, 5.12)."""
    solution, best = solved_best(data, at, members, usual)
    inverted = inverse(data, best.scales)[0][:, 0]
    rest = solution.data.target - np.einsum("sq,sqn->sn", solution.coefficients, solution.columns)
    variance = 1 / np.einsum("snn->sn", inverted)
    off, wider = (inverted @ rest[..., None])[..., 0] * variance, variance + SPREAD[1] ** 2
    gain = 0.5 * (off**2 / variance - (off - SHIFT[1]) ** 2 / wider + np.log(variance / wider))
    gain = np.where(data.absent | (off < 0), -np.inf, gain)
    place = gain.argmax(axis=1)
    return place, gain[np.arange(len(place)), place]


def grown(data: Data, at: Array, several: Products, prevalence: Prevalence) -> tuple[Index, Array]:
    """The best means (s, h, :data:`TERMS`) of series over terms `at` (s, t, n), -1 pads, and the logarithm of their
    prior (s, h); minus infinity of what is none."""
    coarse = prevalence.coarse
    equations = Equations.of(data, columns(at, data)[0], coarse.scales)
    # Without the term that pads; whole matrices are multiplied here.
    share = equations.share[:, :-1]
    turned, right = (np.swapaxes(each[:, :-1], 1, 2).copy() for each in (equations.turned, equations.right))
    diagonal = 1.0 + np.einsum("sgtn,stn->sgt", turned, share)
    nothing = coarse.covariances + equations.of_nothing
    levels: list[Index] = []
    scores: list[Array] = []
    members = np.full((len(share), 1, 0), -1, dtype=np.intp)
    most = int((~data.absent).sum(axis=1).max(initial=1))

    def extended(members: Index) -> tuple[Index, Array]:
        """The best sums that sums (s, b, q) grow to, with their scores."""
        raised = _raised(members, share, turned, right, diagonal, nothing)
        # The prior of one more term, without what depends on all of them.
        tried = _best(raised + several.likely[:, None], members)
        score = special.logsumexp(equations.evidence(tried) + coarse.covariances, axis=2)
        return tried, score + several.prior(tried)

    for size in range(1, min(TERMS, most) + 1):
        tried, score = extended(members)
        if size > 1:
            # Two terms that are right together may each look wrong beside those found first.
            best = np.argsort(-score, axis=1)[:, :SWAPPED]
            again, other = extended(_without_one(np.take_along_axis(tried, best[..., None], axis=1)))
            tried, score = np.concatenate([tried, again], axis=1), np.concatenate([score, other], axis=1)
        score = np.where(_repeated(tried), -np.inf, score)
        best = np.argsort(-score, axis=1)[:, :GROWN]
        members = np.take_along_axis(tried, best[..., None], axis=1)
        levels.append(np.pad(tried, ((0, 0), (0, 0), (0, TERMS - size)), constant_values=-1))
        scores.append(score)
    every, score = np.concatenate(levels, axis=1), np.concatenate(scores, axis=1)
    best = np.argsort(-score, axis=1)[:, :MEANS]
    chosen = np.take_along_axis(every, best[..., None], axis=1)
    possible = np.isfinite(np.take_along_axis(score, best, axis=1))
    return chosen, np.where(possible, several.prior(chosen), -np.inf)


def _without_one(members: Index) -> Index:
    """Sums (s, b q, q - 1) that sums (s, b, q) are without each of their terms."""
    size = members.shape[2]
    rest = [np.delete(members, at, axis=2) for at in range(size)]
    return np.concatenate(rest, axis=1)


def _raised(members: Index, share: Array, turned: Array, right: Array, diagonal: Array, nothing: Array) -> Array:
    """Logarithm of the evidence (s, b, t) of sums `members` (s, b, q) with each term added, under the covariance with
    the largest, under which nothing has that of `nothing` (s, g); that a coefficient is not negative counts for each by
    itself."""
    series, bases, size = members.shape
    different, at = occurring(members)
    base = np.take_along_axis(share, different[..., None], axis=1)
    products = base[:, None] @ np.swapaxes(turned, 2, 3)  # (s, g, u, t)
    which = np.arange(series)[:, None], np.arange(nothing.shape[1])
    raised = np.empty((series, bases, share.shape[1]))
    for place in range(bases):
        product = products[(*(each[..., None] for each in which), at[:, None, place])]  # (s, g, q, t)
        normal = np.take_along_axis(product, members[:, None, None, place], axis=3) + np.eye(size)
        inverted, pull = np.linalg.inv(normal), np.take_along_axis(right, members[:, None, place], axis=2)
        mean = (inverted @ pull[..., None])[..., 0]
        before = 0.5 * (pull * mean).sum(axis=-1) - 0.5 * np.linalg.slogdet(normal)[1] + nothing
        turned_in = inverted @ product
        less = np.maximum(diagonal - np.einsum("sgqt,sgqt->sgt", product, turned_in), 1.0)
        pulled = right - (mean[..., None, :] @ product)[..., 0, :]
        score = before[..., None] - 0.5 * np.log(less) + 0.5 * np.maximum(pulled, 0.0) * pulled / less
        best = score.argmax(axis=1)[:, None]
        score, less, pulled = (np.take_along_axis(part, best, axis=1)[:, 0] for part in (score, less, pulled))
        score += _positive(pulled / np.sqrt(less)) + 0.5 * np.minimum(pulled, 0.0) * pulled / less
        of_others = np.take_along_axis(turned_in, best[:, :, None], axis=1)[:, 0]
        form = best[:, 0, :, None]
        centre = np.take_along_axis(mean, form, axis=1) - np.swapaxes(of_others, 1, 2) * (pulled / less)[..., None]
        square = np.take_along_axis(np.einsum("sgqq->sgq", inverted), form, axis=1)
        square += np.swapaxes(of_others**2, 1, 2) / less[..., None]
        score += _positive(centre / np.sqrt(square)).sum(axis=2)
        raised[:, place] = score
    return raised


def _positive(ahead: Array) -> Array:
    """Logarithm of twice the probability that a coefficient so many deviations above zero is not negative."""
    return np.asarray(np.log(2.0 * special.ndtr(np.clip(ahead, -30, 30))))


def _best(raised: Array, members: Index) -> Index:
    """The :data:`TRIED` sums (s, h, q + 1) of the largest values (s, b, t) of sums `members` (s, b, q) and one term."""
    series, _, terms = raised.shape
    raised = raised.copy()
    for place in range(members.shape[2]):
        np.put_along_axis(raised, members[:, :, place][..., None], -np.inf, axis=2)
    flat = raised.reshape(series, -1)
    # Several sums grow to the same one: each may come as often as it has terms.
    most = min(TRIED * (members.shape[2] + 1), flat.shape[1])
    best = np.argpartition(-flat, most - 1, axis=1)[:, :most]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(flat, best, axis=1), axis=1), axis=1)
    base, term = np.divmod(best, terms)
    every = np.sort(np.concatenate([np.take_along_axis(members, base[..., None], axis=1), term[..., None]], axis=2), 2)
    first = np.argsort(_repeated(every), axis=1, kind="stable")[:, :TRIED]
    return np.take_along_axis(every, first[..., None], axis=1)


def _repeated(members: Index) -> Mask:
    """Which sums (s, h) of terms in ascending order (s, h, q) stood before."""
    number = members @ (members.max(initial=0) + 1) ** np.arange(members.shape[2])
    order = np.argsort(number, axis=1, kind="stable")
    ordered = np.take_along_axis(number, order, axis=1)
    repeated = np.zeros(number.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated
