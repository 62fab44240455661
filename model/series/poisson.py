"""Counts of samples: what is expected of each configuration, and how far values made of samples scatter.

A value of n samples is known to 1 / sqrt(n) of itself, and the observed n is the only estimate of the expected n.
Weighting counts by themselves draws a function to those that came out low (Baker and Cousins 1984, *Nuclear Instruments
and Methods* 221, 437). They are weighted by their expected values instead: those of the power law of the parameters
that makes the counts most likely.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.model import priors
from ranksight.model.series.reduction import Location, reduce

NEVER = 7.0
"""Samples expected where none fell, from which a kernel was not there: one in a thousand by chance."""
SURE = 100.0
"""Degrees of freedom of what sampling scatters by, which is known."""
ALONE = 4.0
"""Degrees of freedom that the scatter between runs of all series counts for in each."""
HALF = 0.5
"""Samples that a series without any may have had: the mean of Jeffreys' law of a rate."""
STEPS = 30


def expected(points: Array, samples: Array, exposure: Array) -> Array:
    """Samples (s, n) expected by power laws: Poisson regression with ``ln f = b_0 + sum_j b_j ln x_j``.

    `points` (n, m): parameters at or below zero somewhere are taken as they are, not by their logarithms. `samples` (s,
    n). `exposure` (s, n): samples that a value of one has; zero where there is no value.
    """
    design = _design(points)
    design[:, 1:] /= np.maximum(1.0, np.abs(design[:, 1:]).max(axis=0, initial=0.0) / 20)
    exposed = exposure > 0
    start = np.maximum(np.where(exposed, samples, 0.0).sum(axis=1), HALF) / np.maximum(exposure.sum(axis=1), 1e-300)
    offset = np.log(np.where(exposed, exposure * start[:, None], 1.0))
    prior = np.diag([1e-9, *[1 / priors.POISSON_POWER**2] * (design.shape[1] - 1)])
    b = np.zeros((len(samples), design.shape[1]))
    y = np.where(exposed, samples, 0.0)
    # Of what has no sample at all, only that it had half of one.
    none = y.sum(axis=1, keepdims=True) == 0
    y = np.where(none, np.exp(offset) * exposed, y)
    for _ in range(STEPS):
        mean = np.where(exposed, np.exp(np.clip(offset + b @ design.T, -50, 50)), 0.0)
        slope = (y - mean) @ design - b @ prior
        curve = np.einsum("sn,ni,nj->sij", mean, design, design) + prior
        step = np.linalg.solve(curve + 1e-12 * np.eye(len(prior)), slope[..., None])[..., 0]
        b += np.clip(step, -2.0, 2.0)
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return np.where(exposed, np.exp(np.clip(offset + b @ design.T, -50, 50)), 0.0)


def located(points: Array, values: Array, worth: Array, how: str) -> Location:
    """Locations of values made of samples, and their scatter.

    The relative variance of a configuration's mean over r repetitions of n samples expected in all is ``1 / n + d^2 /
    r``; d, by which runs differ beyond their samples, is estimated from repetitions, of all series together where one
    series has few.

    `points` (n, m). `values`, `worth` (s, n, r): what a sample is worth in each value; NaN where there is none. `how`:
    a reduction, or ``auto``, the mean.
    """
    known = np.isfinite(values) & np.isfinite(worth)
    values, worth = np.where(known, values, np.nan), np.where(known, worth, np.nan)
    repeats = known.sum(axis=2).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        number, exposure = np.nansum(values / worth, axis=2), np.nansum(1 / worth, axis=2)
    seen = np.where(number > 0, exposure, 0.0)
    # Where none fell though many were expected, by what the others say, the kernel is not there.
    guess = expected(points, number, seen)
    law = ratio(guess, seen)
    absent = (exposure > 0) & (number == 0) & (_carried(points, law) * exposure > NEVER)
    exposure, repeats = np.where(absent, 0.0, exposure), np.where(absent, 0.0, repeats)
    total = number.sum(axis=1)
    mean = expected(points, number, exposure)
    exposed = exposure > 0
    size = ratio(mean, exposure, 1.0, where=exposed)
    one = np.nan_to_num(worth) / size[:, :, None]
    centre = reduce(values, "mean", axis=2)
    with np.errstate(invalid="ignore"):
        squares = np.nansum(((values - centre[:, :, None]) / size[:, :, None]) ** 2, axis=(1, 2))
    more = np.where(exposed & (repeats > 1), repeats - 1, 0.0)
    by_chance = (one.sum(axis=2) / np.maximum(repeats, 1) * more).sum(axis=1)
    freedom = more.sum(axis=1)
    beyond = _beyond(squares, by_chance, freedom)
    # How few are expected is not known better than to half a sample.
    least = np.where(exposed, np.maximum(mean, HALF) / np.where(exposed, mean, 1.0) ** 2, 0.0)
    variance = least + beyond[:, None] / np.maximum(repeats, 1)
    weight = ratio(1, variance, 0.0, where=exposed)
    count = np.maximum(exposed.sum(axis=1), 1)
    average = np.maximum(weight.sum(axis=1) / count, 1e-300)
    usual = np.maximum(repeats.sum(axis=1) / count, 1.0)
    samples = np.where(exposed, mean, 0.0).sum(axis=1) / count
    part = np.clip(average / np.maximum(samples, 1e-300), 0.0, 1.0)
    sure = 1 / (part**2 / SURE + (1 - part) ** 2 / (freedom + ALONE))
    if how != "auto":
        centre = reduce(values, how, axis=2)
    # Without any sample there was half of one, wherever it was.
    centre = np.where(total[:, None] > 0, centre, size)
    centre = np.where(exposed, centre, np.nan)
    return Location(centre, size, weight / average[:, None] * usual[:, None], usual / average, sure, samples)


def _design(points: Array) -> Array:
    """A constant and the logarithms of what varies, around their means, (n, 1 + v)."""
    columns = [np.log(x) if (x > 0).all() else x for x in points.T if np.ptp(x) > 0]
    return np.column_stack([np.ones(len(points)), *[(x - x.mean()) for x in columns]])


def _carried(points: Array, law: Array) -> Array:
    """The values (s, n) that power laws through those known have where there is none."""
    design = _design(points)
    use = np.isfinite(law)
    logs = np.log(np.where(use, law, 1.0))
    normal = np.einsum("sn,ni,nj->sij", use * 1.0, design, design) + 1e-9 * np.eye(design.shape[1])
    b = np.linalg.solve(normal, ((use * logs) @ design)[..., None])[..., 0]
    return np.asarray(np.where(use.any(axis=1, keepdims=True), np.exp(np.clip(b @ design.T, -500, 500)), 0.0))


def _beyond(squares: Array, by_chance: Array, freedom: Array) -> Array:
    """Relative variance (s,) between runs beyond that of samples: each series' own, drawn to that of all."""
    repeated = freedom > 0
    many = np.where(repeated, freedom, 1.0)
    each, least = np.where(repeated, squares / many, 0.0), np.where(repeated, by_chance / many, 1.0)
    # Series of many samples determine the variance beyond sampling more precisely.
    weight = np.where(repeated, freedom / np.maximum(least, 1e-12) ** 2, 0.0)
    every = weight.sum()
    common = max(float((weight * (each - least)).sum() / every), 0.0) if every > 0 else 0.0
    excess = np.maximum(each - least, 0.0)
    return np.asarray((freedom * excess + ALONE * common) / (freedom + ALONE))
