"""Noise: how much a value scatters when the same configuration runs again, pooled over configurations and series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind, metric
from ranksight.model.series import repetitions
from ranksight.model.series.location import Location as Location  # what users of noise name
from ranksight.model.series.outliers import laws, without_outliers
from ranksight.model.series.poisson import located
from ranksight.model.series.reduction import reduce

SMALLEST = 1e-9
"""Relative scatter below which values are taken as exact: a few hundred roundings of a double."""

LACKING = 1e-3
"""Level of the test that finds every form tried lacking."""

FLOORS = (1e-2, 1e-1, 1e-3, 1e-4, 1e-5)
"""Shares of a series' largest value that the sizes of its errors may not fall below; the first where none is known."""


def explained(location: Location) -> Array:
    """Sum of squares (s,) that scatter of repetitions explains, with three terms; infinite where nothing repeats.

    A form that leaves more is refused by the F test for lack of fit (Draper and Smith, *Applied Regression Analysis*,
    section 2.1), at the level :data:`LACKING`.
    """
    present = location.repeats > 0
    count = present.sum(axis=1)
    repeats = location.repeats.sum(axis=1) / np.maximum(count, 1)
    free = np.maximum(count - 3, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        most = special.fdtri(free, location.freedom, 1 - LACKING) * free * location.variance / repeats
    return np.where((location.freedom > 0) & np.isfinite(most), most, np.inf)


def join(parts: list[Location], orders: list[Index]) -> Location:
    """Put parts together; `orders` says which series each part holds."""
    back = np.argsort(np.concatenate(orders))
    names = Location.__dataclass_fields__
    return Location(*(np.concatenate([getattr(part, name) for part in parts])[back] for name in names))


def locate_groups(values: Array, worth: Array, points: Array, groups: Sequence[Index], how: str = "auto") -> Location:
    """:func:`locate` of all series, the rows of each group by themselves; a group is made of samples or is not."""
    parts = [locate(values[rows], how, worth[rows], points) for rows in groups]
    return join(parts, list(groups))


def behaviour(name: str, sampled: bool = False) -> Kind:
    """Kind of a metric as its values behave: counts that caches decide scatter and change in steps like any measured
    quantity, and counts that were sampled are deterministic within their sampling error."""
    described = metric(name)
    kind: Kind = described.kind if described.steady else "other"
    return "sampled" if sampled and kind == "requirement" else kind


def behaviours(names: Sequence[str], samples: Array) -> NDArray[np.object_]:
    """:func:`behaviour` of series (s,) of so many samples."""
    kinds = {name: (behaviour(name), behaviour(name, True)) for name in set(names)}
    return np.array(
        [kinds[name][few] for name, few in zip(names, np.isfinite(samples).tolist(), strict=True)], dtype=object
    )


def locate(values: Array, how: str = "auto", worth: Array | None = None, points: Array | None = None) -> Location:
    """Reduce repetitions (s, n, r) of series of one metric and estimate their relative scatter.

    The scatter of each series is moderated towards that of all series with the empirical-Bayes variance of Smyth
    (2004, *Statistical Applications in Genetics and Molecular Biology* 3, eq. 5 and section 6.2), since a series alone
    has few repetitions.

    Parameters
    ----------
    how : str
        A reduction (:data:`ranksight.model.series.reduction.NAMES`), or ``"auto"`` for the one that suits the scatter
        (:mod:`ranksight.model.series.repetitions`), of the repetitions that are no outliers
        (:mod:`ranksight.model.series.outliers`).
    worth : (s, n, r), optional
        What a sample is worth in each value, where values are made of samples: all of them, then. Their scatter is
        known (:mod:`ranksight.model.series.poisson`).
    points : (n, m), optional
        Configurations, by which samples are expected.
    """
    if how == "auto":
        values = without_outliers(values)
    if worth is not None and points is not None and np.isfinite(worth).any():
        return located(points, values, worth, how)
    repeats = (~np.isnan(values)).sum(axis=2).astype(np.float64)
    if how == "auto":
        middle, chance = repetitions.locate(values)
        inefficiency = sum(c * _inefficiency(repeats, law) for c, law in zip(chance, repetitions.LAWS, strict=True))
    else:
        middle, inefficiency = reduce(values, how, axis=2), _inefficiency(repeats, how)
    centre = reduce(values, "mean", axis=2)
    scale = _scale(np.where(repeats > 0, np.abs(middle), 0.0), repeats, values - centre[..., None])
    squares = np.nansum(((values - centre[..., None]) / scale[..., None]) ** 2, axis=2)
    freedom = np.where(repeats > 1, repeats - 1, 0.0).sum(axis=1)
    total = np.where(repeats > 1, squares, 0.0).sum(axis=1)
    known = freedom > 0
    variance = np.where(known, total / np.where(known, freedom, 1.0), np.nan)
    prior_freedom, prior_variance = moderate(variance, freedom)
    pooled = prior_freedom * prior_variance + freedom * np.where(known, variance, 0.0)
    moderated = np.where(known, pooled / np.where(known, prior_freedom + freedom, 1.0), np.nan)
    # Where nothing was repeated in this series but in others, theirs stand for it.
    if prior_freedom > 0:
        moderated = np.where(known, moderated, prior_variance)
    return Location(
        middle,
        scale,
        repeats / inefficiency,
        moderated,
        np.where(known | (prior_freedom > 0), freedom + prior_freedom, 0.0),
        np.full(len(values), np.inf),
    )


def _scale(size: Array, repeats: Array, deviations: Array) -> Array:
    """Sizes (s, n) that relative errors refer to: the values', and no less than a share of the series' largest.

    Small values scatter as much as large ones do, relative to themselves, or by what a clock resolves. The share is
    that of :data:`FLOORS` under which the scatter of repetitions (s, n, r) around their means is most likely, of one
    relative size throughout: the normal likelihood with that size integrated out.
    """
    largest = size.max(axis=1, keepdims=True, initial=0.0)
    more = np.where(repeats > 1, repeats - 1, 0.0)
    freedom = more.sum(axis=1)
    best, scale = np.full(len(size), -np.inf), np.ones_like(size)
    for floor in FLOORS:
        sizes = np.maximum(size, floor * largest)
        sizes = np.where((repeats > 0) & (sizes > 0), sizes, 1.0)
        total = np.nansum((deviations / sizes[..., None]) ** 2, axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            score = -(more * np.log(sizes)).sum(axis=1) - freedom / 2 * np.log(total)
        score = np.where((freedom > 0) & (total > SMALLEST**2), score, 0.0)
        better = score > best
        scale[better], best[better] = sizes[better], score[better]
    return scale


def _inefficiency(repeats: Array, how: str) -> Array:
    """Variance of a location estimate relative to the mean's, under the law that it suits or normal scatter."""
    if how == "median":
        return np.where(repeats > 2, np.pi / 2, 1.0)
    if how == "midrange":
        return np.where(repeats > 0, 6 * repeats / ((repeats + 1) * (repeats + 2)), 1.0)
    return np.ones_like(repeats)


def moderate(variance: Array, freedom: Array) -> tuple[float, float]:
    """Degrees of freedom and variance of the law behind sample variances (n,) that are not zero
    (:func:`ranksight.model.series.outliers.laws`)."""
    prior, centre = laws(np.where(variance > SMALLEST**2, variance, 0.0)[None], freedom[None])
    return float(prior[0]), float(centre[0])


SIGNIFICANT = 0.05
MOST_REPETITIONS = 1000
"""Repetitions that nobody runs: larger numbers are reported as this one."""


@dataclass(frozen=True)
class Quality:
    """What repetitions say about s series: is there a signal, and how many repetitions would show it.

    Scatter within configurations is compared with the differences between them (Calotoiu et al. 2013, section 2): a
    series whose configurations do not differ by more than their repetitions do says nothing about growth.
    """

    within: Array  # (s,): relative standard deviation of one repetition; NaN where nothing was repeated
    chance: Array  # (s,)
    """Probability of differences between configurations as large as these when there are none (F test)."""
    repetitions: Array  # (s,)
    """Repetitions of every configuration with which the standard error would be half of the difference between
    configurations; NaN where nothing was repeated or nothing differs."""

    @property
    def noisy(self) -> Mask:
        """Series whose noise is above their signal."""
        return np.asarray(~np.isnan(self.within) & ~(self.chance < SIGNIFICANT))


def judge(location: Location) -> Quality:
    """Judge located values."""
    scale, repeats, variance = location.scale, location.repeats, location.variance
    present = repeats > 0
    values = np.where(present, location.values, 0.0)
    count = present.sum(axis=1)
    relative = np.where(present, values / np.median(scale, axis=1, keepdims=True), 0.0)
    weight = np.where(present, repeats, 0.0)
    total = np.where(weight.sum(axis=1) > 0, weight.sum(axis=1), 1.0)
    mean = (weight * relative).sum(axis=1) / total
    square = (weight * (relative - mean[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    # Of the size of the values: scatter is proportional to them.
    size = (weight * relative**2).sum(axis=1) / total
    noise = variance * size
    repeated = ~np.isnan(variance) & (count > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = square / noise
        # What samples scatter by is known without repetitions.
        freedom = np.where(np.isfinite(location.samples), location.freedom, weight.sum(axis=1) - count)
        chance = special.fdtrc(count - 1, np.maximum(freedom, 1), ratio)
        mean_repeats = weight.sum(axis=1) / np.maximum(count, 1)
        between = np.sqrt(
            np.maximum(square - np.where(repeated, noise, 0.0), 0.0) / np.where(mean_repeats > 0, mean_repeats, 1.0)
        )
        needed = np.ceil(4 * noise / between**2)
    chance = np.where(repeated, np.where(noise > 0, chance, 0.0), np.nan)
    reps = np.where(repeated & (between > 0), np.clip(needed, 1, MOST_REPETITIONS), np.nan)
    return Quality(np.sqrt(variance), np.where((square == 0) & repeated, 1.0, chance), reps)
