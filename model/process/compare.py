"""Hypotheses of series compared: means, covariances, and runs that may be odd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.process.prevalence import Prevalence
from ranksight.model.process.solve import Data, Solved, columns, evidence, refined, smoothed

MEANS = 24
"""Means of a series that are compared under all covariances: those best under few."""
ODD = 32
"""Means that are compared with odd runs: so many of the best, and of those that are best where runs scatter most."""
SMOOTHING = np.array([(0.03, slope, 0.0, jobs) for slope in (0.1, 0.4) for jobs in (0.0, 0.01, 0.03, 0.1, 0.3)])
"""Covariances, in the order of their parts, under which values are smoothed to find where means are compared."""

REACH = 1.0
"""Difference of ln y between a mean and a value from which on means are not compared there."""

Odd = tuple[Index, Index]
USUAL: Odd = (np.zeros((), dtype=np.intp), np.zeros((), dtype=np.intp))


@dataclass(frozen=True)
class Hypotheses:
    """Some hypotheses of each of s series."""

    score: Array  # (s, k): logarithm of evidence times prevalence
    prior: Array  # (s, k): logarithm of the prevalence
    mean: Index  # (s, k): place of the mean
    kind: Index  # (s, k): what one run is (:data:`ranksight.model.process.solve.KINDS`)
    place: Index  # (s, k): which run that is
    scales: Array  # (s, k, 4): of the covariance

    def part(self, rows: Index) -> Hypotheses:
        """Those of some series."""
        return Hypotheses(*(getattr(self, each.name)[rows] for each in fields(self)))

    def take(self, chosen: Index) -> Hypotheses:
        """Those at places `chosen` (s, k') of each series."""
        scales = np.take_along_axis(self.scales, chosen[..., None], axis=1)
        score, prior = (np.take_along_axis(part, chosen, axis=1) for part in (self.score, self.prior))
        mean, kind, place = (np.take_along_axis(part, chosen, axis=1) for part in (self.mean, self.kind, self.place))
        return Hypotheses(score, prior, mean, kind, place, scales)

    @classmethod
    def joined(cls, parts: Sequence[Hypotheses]) -> Hypotheses:
        """Several lists of hypotheses of each series as one."""
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in names))

    @classmethod
    def over(cls, score: Array, prior: Array, mean: Index, kind: Index, place: Index, scales: Array) -> Hypotheses:
        """The hypotheses of a grid: `score` (s, ...), the others broadcast to it; `scales` (..., 4) without series."""
        shape = len(score), math.prod(score.shape[1:])
        prior = np.broadcast_to(prior, score.shape).reshape(shape)
        mean, kind, place = (np.broadcast_to(part, score.shape).reshape(shape) for part in (mean, kind, place))
        of_form = np.broadcast_to(scales, (*score.shape, scales.shape[-1])).reshape(*shape, scales.shape[-1])
        return cls(score.reshape(shape), prior, mean, kind, place, of_form)


def compared(data: Data, at: Array, members: Index, prevalence: Prevalence) -> Hypotheses:
    """Every mean of `members` (h, q) over terms `at` (t, n) under few covariances; those that are best, or best where
    runs scatter most, with every run as odd as it may be; and the best where no run is odd under all covariances."""
    coarse, count = prevalence.coarse, len(data.logs)
    scores = evidence(data, at, members, coarse.scales) + coarse.joint
    total = special.logsumexp(scores, axis=2)
    kind, place, odds = prevalence.odd(data.u)
    best = largest(total, MEANS)
    usual = under_all(data, at, members[best], odds[0] + prevalence.joint[best], prevalence, best)
    scatter = coarse.with_odd
    if len(kind) == 1 or not scatter.any():
        return usual
    most = np.where(scatter, coarse.scales[:, -1], 0.0).argmax()
    some = np.concatenate([largest(total, ODD), largest(scores[..., most], ODD)], axis=1)
    some.sort(axis=1)
    repeated = np.concatenate([np.zeros((count, 1), dtype=bool), some[:, 1:] == some[:, :-1]], axis=1)
    first = _first(~repeated)
    some, repeated = np.take_along_axis(some, first, axis=1), np.take_along_axis(repeated, first, axis=1)
    odds = prevalence.of_most(odds, kind, data.most[:, place])[:, 1:]
    kind, place = kind[1:], place[1:]
    series = np.repeat(np.arange(count), len(kind))
    varied = data.part(series).odd(np.tile(kind, count), np.tile(place, count))
    prior = np.where(repeated[..., None], -np.inf, coarse.joint[some][..., scatter])[:, None] + odds[:, :, None, None]
    scales = coarse.scales[scatter]
    odd = evidence(smoothed(varied, SMOOTHING), at, members[some][series], scales).reshape(prior.shape) + prior
    parts = (
        usual,
        Hypotheses.over(odd, prior, some[:, None, :, None], kind[:, None, None], place[:, None, None], scales),
    )
    return Hypotheses.joined(parts)


def largest(scores: Array, count: int) -> Index:
    """Places (s, count) of the largest of `scores` (s, h)."""
    count = min(count, scores.shape[1])
    return np.argpartition(-scores, count - 1, axis=1)[:, :count]


def under_all(
    data: Data, at: Array, members: Index, prior: Array, prevalence: Prevalence, mean: Index, odd: Odd = USUAL
) -> Hypotheses:
    """Means `members` (s, h, q), called `mean` (s, h), over terms `at` (t, n) under all covariances; `prior` (s, h, g).
    `odd`: kind and place, each (s,), of the run of `data` that is taken for odd."""
    possible = np.isfinite(prior)
    # Most covariances are those of all means; others, of some alone.
    every = (possible | ~possible.any(axis=2, keepdims=True)).all(axis=(0, 1))
    some = np.asarray(possible[..., ~every].any(axis=2))
    parts = [_under(data, at, members, prior[..., every], prevalence.scales[every], mean, odd)]
    if some.any():
        first = _first(some)
        members, mean = np.take_along_axis(members, first[..., None], axis=1), np.take_along_axis(mean, first, axis=1)
        prior = np.take_along_axis(prior[..., ~every], first[..., None], axis=1)
        parts.append(_under(data, at, members, prior, prevalence.scales[~every], mean, odd))
    return Hypotheses.joined(parts)


def _first(some: Mask) -> Index:
    """Places (s, k) that have those of `some` (s, h) first, as many as the series with most of them has."""
    return np.argsort(~some, axis=1, kind="stable")[:, : some.sum(axis=1).max()]


def _under(data: Data, at: Array, members: Index, prior: Array, scales: Array, mean: Index, odd: Odd) -> Hypotheses:
    """The same under covariances with `scales` (g, 4) alone."""
    kind, place = (each[:, None, None] if each.ndim else each for each in odd)
    score = evidence(data, at, members, scales) + prior
    return Hypotheses.over(score, prior, mean[..., None], kind, place, scales)


def solved_best(data: Data, at: Array, members: Index, hypotheses: Hypotheses) -> tuple[Solved, Hypotheses]:
    """The best hypothesis of each series, over terms `at` and means `members` as in :func:`under_all`, or those (h, q)
    of all, solved about its own function."""
    best = hypotheses.take(hypotheses.score.argmax(axis=1)[:, None])
    place = best.mean[:, 0]
    terms = members[place] if members.ndim == 2 else members[np.arange(len(place)), place]
    odd = data.odd(best.kind[:, 0], best.place[:, 0])
    chosen = at[np.maximum(terms, 0)] if at.ndim == 2 else at[np.arange(len(place))[:, None], np.maximum(terms, 0)]
    share, _ = columns(np.where(terms[..., None] < 0, 0.0, chosen), odd)
    return refined(odd, share, best.scales[:, 0]), best


def at_best(data: Data, at: Array, members: Index, hypotheses: Hypotheses) -> Data:
    """The series where means are compared at the best one, if smoothed values are far from the measured ones.

    Smoothing knows of no steep bend, and of none in which coordinates act together: compared there, means that meet the
    values lose to scatter that explains how far they are from it. A mean that is itself far from values is no place to
    compare others at.
    """
    best = solved_best(data, at, members, hypotheses)[0].data.centre
    near = ((np.abs(best - data.logs) <= REACH) | data.absent).all(axis=1)
    moved = (data.apart & near)[:, None] & ~data.absent
    return replace(data, centre=np.where(moved, best, data.centre))
