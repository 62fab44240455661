"""Noise: how much a value scatters when the same configuration runs again, pooled over configurations and series.

Outliers are single repetitions that no scatter of the others explains, as where something else ran at the same time.
One such repetition makes the scatter of its configuration meaningless, and that of its series with it. Of each
configuration the repetition x farthest from the median is compared with the r - 1 others by the moderated t statistic
of Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, section 4),

    t = (x - mean) / sqrt(v r / (r - 1)),    v = (d0 v0 + d s^2) / (d0 + d),

with s^2 the variance of the others, of d degrees of freedom, and d0, v0 the law of the variances of the series'
configurations: where each scatters in its own way d0 is small, and its own repetitions decide. The first law is that
of the variances without what is farthest, whose logarithms are those of selected values (:data:`CLOSEST`); the second,
which decides, has it back in all configurations but those where the first suspects an outlier. Where more than one
repetition in :data:`MOST` would be an outlier, the series scatters that way, and all are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind, metric
from ranksight.core.records import dataclass
from ranksight.model.series.poisson import located
from ranksight.model.series.reduction import LAWS, located_by_scatter, median, reduce
from ranksight.model.series.reduction import Location as Location  # what users of noise name

LEVEL = 1e-4
"""Level of the test, shared by the repetitions of a series. What is farthest leaves others that seem closer than they
are: one series of normal scatter in three hundred loses a repetition."""
MOST = 10
"""Repetitions of which one may be an outlier."""
SUSPECT = 1e-3
"""Level of the first test, of each configuration: a suspect that is none costs the second law a little information."""
LEAST = 3
"""Repetitions of a configuration needed to find which of them differs from the others."""
CLOSEST = np.array(
    [
        (-3.210, -1.692, -1.183, -0.947, -0.787, -0.690, -0.609, -0.554, -0.504, -0.468),
        (5.597, 1.913, 1.099, 0.735, 0.558, 0.440, 0.367, 0.313, 0.273, 0.241),
    ]
)
"""Mean and variance of the logarithm of the sample variance of r = 3 to 12 values of a normal law of variance 1 without
the one farthest from their median, of 400,000 draws; of more values as of 12."""
VARIANCES = 4
"""Variances needed to estimate a law."""
FREEST = 100.0
"""Most degrees of freedom of a law."""


def without_outliers(values: Array) -> Array:
    """Repetitions (s, n, r) with NaN where one is an outlier of its configuration."""
    known = ~np.isnan(values)
    count = known.sum(axis=2)
    if not (count >= LEAST).any():
        return values
    middle = np.where(count > 0, median(values, axis=2), 0.0)[..., None]
    size = np.where(middle != 0, np.abs(middle), 1.0)
    deviations = np.where(known & (count >= LEAST)[..., None], (values - middle) / size, np.nan)
    farthest = np.where(np.isnan(deviations), -1.0, np.abs(deviations)).argmax(axis=2)[..., None]
    x = np.take_along_axis(deviations, farthest, axis=2)[..., 0]
    others = deviations.copy()
    np.put_along_axis(others, farthest, np.nan, axis=2)
    mean, rest, freedom = _variance(others)
    _, every, more = _variance(deviations)
    tests = np.where(count >= LEAST, count, 0).sum(axis=1)
    level = LEVEL / np.maximum(tests, 1)
    outlying = np.ones(x.shape, dtype=bool)
    selected = CLOSEST[:, np.clip(count - LEAST, 0, CLOSEST.shape[1] - 1)]
    for highest in (np.full(len(x), SUSPECT), level):
        expected = np.where(outlying, selected, _logarithm_of_variance(more))
        d0, v0 = laws(np.where(outlying, rest, every), np.where(outlying, freedom, more), expected)
        freely = d0[:, None] + freedom
        pooled = (d0 * v0)[:, None] + freedom * rest
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (x - mean) / np.sqrt(pooled / freely * count / (count - 1))
            outlying = (d0 > 0)[:, None] & (2 * special.stdtr(freely, -np.abs(t)) < highest[:, None])
    outlying &= (outlying.sum(axis=1) * MOST <= tests)[:, None]
    cleaned = values.copy()
    cleaned[(*np.nonzero(outlying), farthest[outlying, 0])] = np.nan
    return cleaned


def _variance(deviations: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and its degrees of freedom (s, n) of repetitions; zero where there are too few."""
    known = ~np.isnan(deviations)
    count = known.sum(axis=2)
    mean = np.where(known, deviations, 0.0).sum(axis=2) / np.maximum(count, 1)
    squares = np.where(known, (deviations - mean[..., None]) ** 2, 0.0).sum(axis=2)
    freedom = np.maximum(count - 1, 0)
    return mean, squares / np.maximum(freedom, 1), freedom.astype(np.float64)


def _logarithm_of_variance(freedom: Array) -> Array:
    """Mean and variance (2, ...) of the logarithm of sample variances of normal values of variance 1, of `freedom`
    (...) degrees of freedom, taken for 2 where there are none."""
    half = np.where(freedom > 0, freedom, 2.0) / 2
    return np.stack([special.digamma(half) - np.log(half), special.polygamma(1, half)])


def laws(variance: Array, freedom: Array, expected: Array | None = None) -> tuple[Array, Array]:
    """Degrees of freedom and variance (s,) of the scaled inverse chi-squared laws behind rows of sample variances.

    The empirical-Bayes estimate of Smyth (2004, *Statistical Applications in Genetics and Molecular Biology* 3, section
    6.2). `variance` and `freedom` (s, n) are used where both are positive. Zero where fewer than :data:`VARIANCES`
    of them are there to learn from; :data:`FREEST` degrees of freedom at most. `expected` (2, s, n): mean and variance
    of the logarithms under a variance of 1, where the values were selected.
    """
    use = (freedom > 0) & (variance > 0) & np.isfinite(variance)
    count = use.sum(axis=1)
    many = np.maximum(count, 1)
    average, scatter = _logarithm_of_variance(np.where(use, freedom, 0.0)) if expected is None else expected
    logs = np.where(use, np.log(np.where(use, variance, 1.0)) - average, 0.0)
    mean = logs.sum(axis=1) / many
    squares = (np.where(use, logs - mean[:, None], 0.0) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    spread = squares - np.where(use, scatter, 0.0).sum(axis=1) / many
    least = float(special.polygamma(1, FREEST / 2))
    equal = spread <= least
    prior = np.full(len(spread), FREEST)
    prior[~equal] = 2 * _inverse_trigamma(spread[~equal])
    centre = np.exp(mean + np.where(equal, 0.0, special.digamma(prior / 2) - np.log(prior / 2)))
    enough = count >= VARIANCES
    return np.where(enough, prior, 0.0), np.where(enough, centre, 0.0)


def _inverse_trigamma(value: Array) -> Array:
    """Solve ``trigamma(x) = value`` by Newton's method (Smyth 2004, appendix)."""
    x = np.asarray(0.5 + 1.0 / value)
    left = np.arange(len(x))
    for _ in range(30):
        tri = special.polygamma(1, x[left])
        step = tri * (1 - tri / value[left]) / special.polygamma(2, x[left])
        x[left] += step
        left = left[np.abs(step) >= 1e-8 * x[left]]
        if not len(left):
            break
    return x


SMALLEST = 1e-9
"""Relative scatter below which values are taken as exact: a few hundred roundings of a double."""

FLOORS = (1e-2, 1e-1, 1e-3, 1e-4, 1e-5)
"""Shares of a series' largest value that the sizes of its errors may not fall below; the first where none is known."""


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
        (:mod:`ranksight.model.series.reduction`), of the repetitions that are no outliers
        (:mod:`ranksight.model.series.noise`).
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
        middle, chance = located_by_scatter(values)
        inefficiency = sum(c * _inefficiency(repeats, law) for c, law in zip(chance, LAWS, strict=True))
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
    (:func:`ranksight.model.series.noise.laws`)."""
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
    # Scatter is proportional to the values: of what is above zero the logarithms have one scatter throughout.
    positive = np.all(~present | (values > 0), axis=1, keepdims=True)
    relative = np.where(present & ~positive, values / np.median(scale, axis=1, keepdims=True), 0.0)
    relative = np.where(present & positive, np.log(np.where(values > 0, values, 1.0)), relative)
    weight = np.where(present, repeats, 0.0)
    total = np.where(weight.sum(axis=1) > 0, weight.sum(axis=1), 1.0)
    mean = (weight * relative).sum(axis=1) / total
    square = (weight * (relative - mean[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    sizes = np.where(positive, scale / np.where(present & positive, values, 1.0), relative)
    size = (weight * sizes**2).sum(axis=1) / total
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
