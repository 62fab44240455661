"""The process of many series: every mean under every covariance, weighed by evidence and prevalence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.process.compare import SMOOTHING, Hypotheses, at_best, compared, largest
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import WILD, Prevalence, learned
from ranksight.model.process.products import numbered
from ranksight.model.process.several import compared_over_several
from ranksight.model.process.solve import ABSENT, APART, Data, Solved, columns, divisions, efolds, refined, smoothed
from ranksight.model.series.domains import Domains
from ranksight.model.series.reduction import Location

REFINED, BY_FACTORS, KEPT, LIGHTEST = 64, 16, 24, 1e-3
"""Hypotheses solved about their own function, how many of these of values that differ by factors, those kept at most,
and the smallest weight kept."""
BATCH = 16
"""Series worked on at once: as many as stay in a processor's cache."""

ROUNDS = 8
"""Times that a hypothesis is solved again, twice each, which has not settled at its own function."""

MET, NEGLIGIBLE = -10.0, -12.0
"""Logarithm of the weight a value from which on a hypothesis meets values, and over that of such a one from which on
another may weigh something."""

Kept = tuple[Index, Array, Index, Index, Array, Array]
"""What is kept of series: members, scales, kinds and places of odd runs, weights and coefficients."""


def data_of(points: Array, location: Location) -> Data:
    """Located values (s, n) at `points` (n, d) as the process sees them; all of them positive."""
    return smoothed(unsmoothed(points, location), SMOOTHING)


def unsmoothed(points: Array, location: Location) -> Data:
    """:func:`data_of` about the values themselves."""
    present = location.repeats > 0
    sizes = np.where(present, location.values, 1.0)
    logs = np.log(sizes)
    scatter = np.where(np.isnan(location.variance), 0.0, location.variance)
    noise = scatter[:, None] * (location.scale / sizes) ** 2 / np.where(present, location.repeats, 1.0)
    most = 1 + priors.INDEPENDENT * (location.repeats // 2)
    return Data(efolds(points, points), logs, np.where(present, noise, np.inf), logs, most)


def fit_process(
    points: Array,
    location: Location,
    rows: Index,
    domains: Domains | None = None,
    prevalence: Prevalence | None = None,
) -> Process:
    """The process of located series, all of whose values are positive, over coordinates with values `points` (n, d).

    `rows` (s,): which of the fitted series they are. `domains`: memory domains that ranks, the one coordinate, share.
    `prevalence`: a table in place of the one that is shipped. Series of one experiment do not update it: they are too
    similar to count as many.
    """
    prevalence, data, x = prevalence or learned(), data_of(points, location), divisions(points, points)
    if points.shape[1] == 1:
        tables = [(some, *prevalence.over(x[:, 0], domains, x[~data.absent[some[0]], 0])) for some in _by_values(data)]
        pieces = [
            part
            for some, table, members, at in tables
            for batch in _batches(some)
            for part in _over_one(data, batch, at, members, table)
        ]
        terms = tables[0][1].terms
    else:
        pieces = [part for some in _batches(np.arange(len(rows))) for part in _over_several(x, data, some, prevalence)]
    order = np.argsort(np.concatenate([batch for batch, _, _ in pieces]))
    data, parts = Data.joined([part for _, part, _ in pieces]).part(order), [result for _, _, result in pieces]
    width = max(part[4].shape[1] for part in parts)
    used, scales, kind, place, weight, coefficients = (
        np.concatenate([_padded(array, width) for array in part])[order] for part in zip(*parts, strict=True)
    )
    occurring, used = _occurring(used)
    terms = terms[occurring] if points.shape[1] == 1 else numbered(occurring, x)
    scatter = np.where(np.isnan(location.variance), 0.0, location.variance)
    noise = np.where(np.isinf(data.noise), np.nan, data.noise)
    measured = (data.logs, noise, data.centre, scatter)
    weighed = (used, scales, kind, place, weight, coefficients)
    exact, turn = np.zeros(len(rows)), np.tile(prevalence.turn, (len(rows), 1))
    return Process(rows, np.arange(points.shape[1]), points, *measured, terms, *weighed, exact, turn, domains)


def evidence_of(points: Array, location: Location) -> Array:
    """Logarithm of the evidence (s,) of what was measured of located series over several coordinates with values
    `points` (n, d), summed over means and covariances by their prevalence."""
    data, total = data_of(points, location), np.full(len(location.values), -np.inf)
    x = divisions(points, points)
    for batch in _batches(np.arange(len(total))):
        for some, *_, every in compared_over_several(x, data.part(batch), learned()):
            total[batch[some]] = special.logsumexp(every.score, axis=1)
    return np.asarray(total + 0.5 * np.log(ABSENT) * data.absent.sum(axis=1))


def _batches(rows: Index) -> list[Index]:
    """Series that are worked on at once."""
    return np.array_split(rows, max(1, -(-len(rows) // BATCH)))


def _by_values(data: Data) -> Iterator[Index]:
    """Series that were measured at the same values."""
    _, kind = np.unique(data.absent, axis=0, return_inverse=True)
    for each in range(kind.max(initial=-1) + 1):
        yield np.flatnonzero(kind.ravel() == each)


def _over_one(
    data: Data, rows: Index, at: Array, members: Index, table: Prevalence
) -> Iterator[tuple[Index, Data, Kept]]:
    """Some of the series over one coordinate, their model made linear near the values, and what is kept of them: those
    whose values are near enough from the first on, and the others."""
    data = data.part(rows)
    every, distant = compared(data, at, members, table), data.apart
    near, far = np.flatnonzero(~distant), np.flatnonzero(distant)
    if len(near):
        yield rows[near], data.part(near), _kept(data.part(near), at, members, every.part(near))
    if len(far):
        moved = at_best(data.part(far), at, members, every.part(far))
        yield rows[far], moved, _kept(moved, at, members, compared(moved, at, members, table))


def _over_several(points: Array, data: Data, rows: Index, prevalence: Prevalence) -> Iterator[tuple[Index, Data, Kept]]:
    """The same of series over several coordinates; members by the numbers of the terms."""
    for some, part, numbers, at, members, every in compared_over_several(points, data.part(rows), prevalence):
        used, scales, kind, place, weight, coefficients = _kept(part, at, members, every)
        flat = np.take_along_axis(numbers, np.maximum(used, 0).reshape(len(used), -1), axis=1).reshape(used.shape)
        yield rows[some], part, (np.where(used < 0, -1, flat), scales, kind, place, weight, coefficients)


def _occurring(members: Index) -> tuple[Index, Index]:
    """The terms that occur, and means as members of these."""
    occurring = np.unique(members[members >= 0])
    return occurring, np.where(members >= 0, np.searchsorted(occurring, members), -1)


def _padded(array: NDArray[Any], width: int) -> NDArray[Any]:
    """Arrays by series and hypothesis for so many hypotheses; those added weigh nothing."""
    extra = width - array.shape[1]
    return np.concatenate([array, np.repeat(array[:, -1:] * (array.ndim > 2), extra, axis=1)], axis=1)


def _is_settled(solved: Solved) -> Mask:
    """Which hypotheses (f,) have the function that their model was made linear at."""
    ratio = np.einsum("fq,fqn->fn", solved.coefficients, solved.columns)
    return np.asarray(((np.abs(ratio - 1) <= APART) | solved.data.absent).all(axis=1))


def _settled(flat: Data, share: Array, scales: Array, prior: Array) -> tuple[Array, Array]:
    """Logarithms of the weights (s, c) and coefficients (s c, q) of hypotheses one a row, of `prior` (s, c), solved
    about their own functions as often as it takes; those that are far lighter than one that meets the values, once."""
    solved = refined(flat, share, scales)
    evidence, coefficients = solved.evidence, solved.coefficients
    weight, settled = evidence.reshape(prior.shape) + prior, _is_settled(solved).reshape(prior.shape)
    best = np.where(settled, weight, -np.inf).max(axis=1, keepdims=True)
    met = best > MET * (~flat.absent).sum(axis=1).reshape(prior.shape)
    rows = np.flatnonzero(~settled & np.isfinite(weight) & (~met | (weight > best + NEGLIGIBLE)))
    for _ in range(ROUNDS):
        if not len(rows):
            break
        solved = refined(flat.part(rows), share[rows], scales[rows], coefficients[rows])
        evidence[rows], coefficients[rows] = solved.evidence, solved.coefficients
        rows = rows[~_is_settled(solved) & np.isfinite(solved.evidence)]
    return evidence.reshape(prior.shape) + prior, coefficients


def _kept(data: Data, at: Array, members: Index, every: Hypotheses) -> Kept:
    """Of terms `at` (t, n) or (s, t, n): members (s, c, q), scales (s, c, 4), kinds and places of odd runs, weights,
    each (s, c), and coefficients (s, c, q) of the heaviest hypotheses; `members` (h, q) of all means, or (s, h, q) of
    those of each series."""
    # Where values lie far from all means little is linear: those by factors are solved whatever they look like before.
    wild = every.scales.max(axis=2) >= WILD
    ways = (~wild, REFINED - BY_FACTORS), (wild, BY_FACTORS)
    some = every.take(
        np.concatenate([largest(np.where(which, every.score, -np.inf), count) for which, count in ways], axis=1)
    )
    shape = some.score.shape
    used = members[some.mean] if members.ndim == 2 else np.take_along_axis(members, some.mean[..., None], axis=1)
    series = np.repeat(np.arange(len(used)), shape[1])
    flat = data.part(series).odd(some.kind.reshape(-1), some.place.reshape(-1))
    terms = used.reshape(-1, used.shape[-1])
    chosen_at = at[np.maximum(terms, 0)] if at.ndim == 2 else at[series[:, None], np.maximum(terms, 0)]
    share, _ = columns(np.where(terms[..., None] < 0, 0.0, chosen_at), flat)
    log_weight, coefficients = _settled(flat, share, some.scales.reshape(len(terms), -1), some.prior)
    log_weight = np.where(np.isfinite(some.score) & np.isfinite(log_weight), log_weight, -np.inf)
    weight = np.exp(log_weight - special.logsumexp(log_weight, axis=1, keepdims=True))
    best = np.argsort(-weight, axis=1)[:, :KEPT]
    weight = np.take_along_axis(weight, best, axis=1)
    weight = np.where(weight >= np.minimum(LIGHTEST, weight[:, :1]), weight, 0.0)
    best, weight = (each[:, : max(1, int((weight > 0).sum(axis=1).max()))] for each in (best, weight))
    coefficients = coefficients.reshape(*shape, -1)
    heaviest = some.take(best)
    return (
        np.take_along_axis(used, best[..., None], axis=1),
        heaviest.scales,
        heaviest.kind,
        heaviest.place,
        weight / weight.sum(axis=1, keepdims=True),
        np.take_along_axis(coefficients, best[..., None], axis=1),
    )
