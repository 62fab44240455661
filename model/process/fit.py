"""The process of many series: every mean under every covariance, weighed by evidence and prevalence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.model.process.compare import SMOOTHING, compared
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import Prevalence, learned
from ranksight.model.process.solve import Data, columns, refined, smoothed
from ranksight.model.series.domains import Domains
from ranksight.model.series.location import Location

REFINED, KEPT, LIGHTEST = 64, 24, 1e-3
"""Hypotheses solved about their own function, those kept at most, and the smallest weight kept."""
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
    x: Array,
    location: Location,
    rows: Index,
    axis: int = 0,
    prevalence: Prevalence | None = None,
    domains: Domains | None = None,
) -> Process:
    """The process of located series, all of whose values are positive, along a coordinate with values `x` (n,).

    `rows` (s,): which of the fitted series they are. `axis`: of the coordinate. `prevalence`: of means and covariances,
    the table's when not given. `domains`: memory domains that `x` ranks share. Series of one experiment do not update
    the prevalence: they are too similar to count as many.
    """
    prevalence, members, at = (learned() if prevalence is None else prevalence).over(x, domains)
    data = data_of(x, location)
    batches = np.array_split(np.arange(len(rows)), max(1, -(-len(rows) // BATCH)))
    found = [_kept(data.part(batch), at, members, prevalence) for batch in batches]
    width = max(each[4].shape[1] for each in found)
    used, scales, kind, place, weight, coefficients = (
        np.concatenate([_padded(part, width) for part in each]) for each in zip(*found, strict=True)
    )
    scatter = np.where(np.isnan(location.variance), 0.0, location.variance)
    noise = np.where(np.isinf(data.noise), np.nan, data.noise)
    measured = (data.logs, noise, data.centre, scatter)
    weighed = (used, scales, kind, place, weight, coefficients)
    return Process(rows, axis, x, *measured, prevalence.terms, *weighed, np.zeros(len(rows)), domains)


def _padded(array: NDArray[Any], width: int) -> NDArray[Any]:
    """Arrays by series and hypothesis for so many hypotheses; those added weigh nothing."""
    extra = width - array.shape[1]
    return np.concatenate([array, np.repeat(array[:, -1:] * (array.ndim > 2), extra, axis=1)], axis=1)


def _kept(
    data: Data, at: Array, members: Index, prevalence: Prevalence
) -> tuple[Index, Array, Index, Index, Array, Array]:
    """Members (s, c, q), scales (s, c, 4), kinds and places of odd runs, weights, each (s, c), and coefficients (s, c,
    q) of the heaviest hypotheses."""
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
