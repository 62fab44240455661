"""The process of many series: every mean under every covariance, weighed by evidence and prevalence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.model.process.means import along_one
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import SCATTERED, Prevalence, learned
from ranksight.model.process.solve import Data, columns, evidence, refined, smoothed
from ranksight.model.search.terms import values
from ranksight.model.series.location import Location

SMOOTHING = np.array([(0.03, slope, 0.0, jobs) for slope in (0.1, 0.4) for jobs in (0.0, 0.01, 0.03, 0.1, 0.3)])
"""Covariances, in the order of their parts, under which values are smoothed to find where means are compared."""
REFINED, KEPT, LIGHTEST = 64, 24, 1e-3
"""Hypotheses solved about their own function, those kept at most, and the smallest weight kept."""
MEANS = 24
"""Means that are compared under all covariances."""
BATCH = 16
"""Series worked on at once: as many as stay in a processor's cache."""


def data_of(x: Array, location: Location) -> Data:
    """Located values (s, n) at `x` (n,) as the process sees them; all of them positive."""
    present = location.repeats > 0
    sizes = np.where(present, location.values, 1.0)
    logs = np.log(sizes)
    scatter = np.where(np.isnan(location.variance), 0.0, location.variance)
    noise = scatter[:, None] * (location.scale / sizes) ** 2 / np.where(present, location.repeats, 1.0)
    data = Data(np.log(x / x.min())[:, None], logs, np.where(present, noise, np.inf), logs)
    return smoothed(data, SMOOTHING)


def fit_process(
    x: Array, location: Location, rows: Index, axis: int = 0, prevalence: Prevalence | None = None
) -> Process:
    """The process of located series, all of whose values are positive, along a coordinate with values `x` (n,).

    `rows` (s,): which of the fitted series they are. `axis`: of the coordinate. `prevalence`: of means and covariances,
    the table's when not given. Series of one experiment do not update it: they are too similar to count as many.
    """
    prevalence = learned() if prevalence is None else prevalence
    terms, every = along_one()
    members = every[prevalence.occurring]
    data = data_of(x, location)
    at = values(terms, x[:, None])
    batches = np.array_split(np.arange(len(rows)), max(1, -(-len(rows) // BATCH)))
    found = [_kept(data.part(batch), at, members, prevalence) for batch in batches]
    width = max(each[4].shape[1] for each in found)
    used, scales, kind, place, weight, coefficients = (
        np.concatenate([_padded(part, width) for part in each]) for each in zip(*found, strict=True)
    )
    scatter = np.where(np.isnan(location.variance), 0.0, location.variance)
    noise = np.where(np.isinf(data.noise), np.nan, data.noise)
    unknown = np.zeros(len(rows))
    return Process(
        rows, axis, x, data.logs, noise, data.centre, scatter, terms, used, scales, kind, place, weight, coefficients, unknown
    )


def _padded(array: NDArray[Any], width: int) -> NDArray[Any]:
    """Arrays by series and hypothesis for so many hypotheses; those added weigh nothing."""
    extra = width - array.shape[1]
    return np.concatenate([array, np.repeat(array[:, -1:] * (array.ndim > 2), extra, axis=1)], axis=1)


@dataclass(frozen=True)
class Hypotheses:
    """Hypotheses of s series: which mean, which covariance, which run is odd and how, each (s, k)."""

    score: Array  # logarithm of evidence times prevalence
    mean: Index  # (s, k)
    scales: Array  # (s, k, 4)
    prior: Array  # logarithm of the prevalence
    kind: Index
    place: Index

    def take(self, chosen: Index) -> Hypotheses:
        """Some of them (s, k')."""
        flat = {name: np.take_along_axis(getattr(self, name), chosen, axis=1) for name in NAMES}
        return Hypotheses(scales=np.take_along_axis(self.scales, chosen[..., None], axis=1), **flat)


NAMES = ("score", "mean", "prior", "kind", "place")


def compared(data: Data, at: Array, members: Index, prevalence: Prevalence) -> Hypotheses:
    """Every mean under few covariances, with every run as odd as it may be; the best of them under all."""
    coarse = prevalence.coarse
    count = len(data.logs)
    kind, place, odds = prevalence.odd(data.u)
    many = len(kind)
    rows = np.repeat(np.arange(count), many)
    varied = data.part(rows).odd(np.tile(kind, count), np.tile(place, count))
    prior = odds[:, None, None] + coarse.joint
    prior = np.where((kind[:, None, None] > 0) & (coarse.scales[:, -1] < SCATTERED), -np.inf, prior)
    rough = evidence(smoothed(varied, SMOOTHING), at, members, coarse.scales).reshape(count, *prior.shape) + prior
    total = special.logsumexp(np.moveaxis(rough, 2, 1).reshape(count, len(members), -1), axis=2)
    best = np.argpartition(-total, min(MEANS, len(members)) - 1, axis=1)[:, :MEANS]
    fine_prior = odds[0] + prevalence.joint[best]
    fine = evidence(data, at, members[best], prevalence.scales) + fine_prior
    parts = []
    usual = np.broadcast_arrays(best[..., None], np.arange(len(prevalence.scales)))
    parts.append((fine, *usual, fine_prior, np.zeros_like(usual[0]), np.zeros_like(usual[0]), prevalence.scales))
    grid = np.broadcast_arrays(np.arange(len(members))[:, None], np.arange(len(coarse.scales)), kind[1:, None, None], place[1:, None, None])
    grid = [np.broadcast_to(each, (count, *each.shape)) for each in grid]
    parts.append((rough[:, 1:], *grid[:2], np.broadcast_to(prior[1:], grid[0].shape), *grid[2:], coarse.scales))
    flat = [[np.broadcast_to(each, part[0].shape).reshape(count, -1) for each in part[:-1]] for part in parts]
    scales = np.concatenate([part[-1][each[2]] for part, each in zip(parts, flat)], axis=1)
    score, mean, _, prior_of, kinds, places = (np.concatenate(each, axis=1) for each in zip(*flat))
    return Hypotheses(score, mean, scales, prior_of, kinds, places)


def _kept(data: Data, at: Array, members: Index, prevalence: Prevalence):
    """Members (s, c, q), scales (s, c, 4), weights (s, c) and coefficients (s, c, q) of the heaviest hypotheses."""
    every = compared(data, at, members, prevalence)
    some = every.take(np.argpartition(-every.score, min(REFINED, every.score.shape[1]) - 1, axis=1)[:, :REFINED])
    shape = some.score.shape
    used = members[some.mean]
    flat = data.part(np.repeat(np.arange(len(used)), shape[1])).odd(some.kind.reshape(-1), some.place.reshape(-1))
    terms = used.reshape(-1, used.shape[-1])
    share, _ = columns(np.where(terms[..., None] < 0, 0.0, at[np.maximum(terms, 0)]), flat)
    solved = refined(flat, share, some.scales.reshape(len(terms), -1))
    log_weight = solved.evidence.reshape(shape) + some.prior
    log_weight = np.where(np.isfinite(some.score) & np.isfinite(log_weight), log_weight, -np.inf)
    weight = np.exp(log_weight - special.logsumexp(log_weight, axis=1, keepdims=True))
    best = np.argsort(-weight, axis=1)[:, :KEPT]
    weight = np.take_along_axis(weight, best, axis=1)
    weight = np.where(weight >= np.minimum(LIGHTEST, weight[:, :1]), weight, 0.0)
    best, weight = (each[:, : max(1, int((weight > 0).sum(axis=1).max()))] for each in (best, weight))
    coefficients = solved.coefficients.reshape(*shape, -1)
    kept = some.take(best)
    return (
        np.take_along_axis(used, best[..., None], axis=1),
        kept.scales,
        kept.kind,
        kept.place,
        weight / weight.sum(axis=1, keepdims=True),
        np.take_along_axis(coefficients, best[..., None], axis=1),
    )
