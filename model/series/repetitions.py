"""How repetitions become one value when nobody said: by the law of their scatter.

The mid-range is the best location of uniform scatter, the mean of normal and the median of heavy-tailed scatter. How
probable each law is follows from the likelihoods of each series' repetitions, free of the locations of its
configurations and
of their common relative scale (as in Uthoff 1970, *Journal of the American Statistical Association* 65, 1597, and 1973,
*Annals of Statistics* 1, 170, for one sample), multiplied over series.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.model.series.reduction import reduce

LAWS = ("midrange", "mean", "median")
SCALES = np.exp(np.linspace(-3, 3, 49))
"""Scales, in units of the pooled standard deviation, over which likelihoods are integrated evenly in their
logarithm."""
SAMPLE = 100
"""Series that are asked; more would not change the answer."""
BATCH = 2_000_000
"""Numbers of likelihoods in memory at once."""
NEGLIGIBLE = 0.01


def likelihoods(samples: Array, scale: Array) -> Array:
    """Log-likelihoods (3, c, g) of samples under uniform, normal and double exponential scatter, integrated over their
    location.

    `samples` (c, r): sorted along the second axis. `scale` (g,): half-width, standard deviation and mean deviation of
    the laws.
    """
    r = samples.shape[1]
    x = samples - samples[:, :1]
    width = x[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        uniform = np.log(np.maximum(2 * scale - width, 0.0)) - r * np.log(2 * scale)
        squares = ((x - x.mean(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True)
        normal = -squares / (2 * scale**2) - (r - 1) * np.log(scale * np.sqrt(2 * np.pi)) - np.log(r) / 2
        # The sum of |x_i - mu| is linear between samples with the slope 2 j - r.
        total = np.abs(x[:, :, None] - x[:, None, :]).sum(axis=2)
        least = total.min(axis=1, keepdims=True)
        fall = np.exp(-(total - least)[:, :, None] / scale)
        area = (fall[:, 0] + fall[:, -1]) * scale / r
        for j in range(1, r):
            slope = 2 * j - r
            if slope:
                area = area + np.abs(fall[:, j] - fall[:, j - 1]) * scale / abs(slope)
            else:
                area = area + (x[:, j] - x[:, j - 1])[:, None] * fall[:, j]
        double = np.log(area) - least / scale - r * np.log(2 * scale)
    return np.stack([uniform, normal, double])


def law(values: Array) -> Array:
    """Probabilities (3,) of uniform, normal and double exponential scatter of repetitions (s, n, r), equal before the
    data."""
    step = max(1, len(values) // SAMPLE)
    size = np.abs(reduce(values, "mean", axis=2))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.sort(np.where(size > 0, values / size, np.nan)[::step], axis=2)
    n, most = relative.shape[1:]
    each = max(1, BATCH // max(1, n * most * len(SCALES)))
    score = np.zeros(3)
    for start in range(0, len(relative), each):
        score += _score(relative[start : start + each])
    chance = np.exp(score - score.max())
    return np.asarray(chance / chance.sum())


def _score(relative: Array) -> Array:
    """Log-likelihoods (3,) of the laws, of some series of sorted repetitions (s, n, r), NaN last."""
    count = (~np.isnan(relative)).sum(axis=2)
    use = count >= 3
    filled = np.nan_to_num(relative)
    centred = np.where(np.isnan(relative), 0.0, filled - (filled.sum(axis=2) / np.maximum(count, 1))[..., None])
    freedom = np.where(use, count - 1, 0).sum(axis=1)
    spread = np.sqrt(np.where(use, (centred**2).sum(axis=2), 0.0).sum(axis=1) / np.maximum(freedom, 1))
    use &= (spread > 1e-12)[:, None]
    total = np.zeros((len(relative), 3, len(SCALES)))
    for r in np.unique(count[use]):
        series, at = np.nonzero(use & (count == r))
        score = likelihoods(relative[series, at, :r] / spread[series, None], SCALES)
        some, first = np.unique(series, return_index=True)
        total[some] += np.add.reduceat(score, first, axis=1).transpose(1, 0, 2)
    return np.asarray(special.logsumexp(total[use.any(axis=1)], axis=2).sum(axis=0))


def locate(values: Array) -> tuple[Array, Array]:
    """Location (s, n) of repetitions (s, n, r): the laws' best locations by their probabilities; and these (3,)."""
    chance = law(values) if values.shape[2] > 2 else np.array([0.0, 1.0, 0.0])
    used = [(c, name) for c, name in zip(chance, LAWS, strict=True) if c > NEGLIGIBLE]
    total = sum(c for c, _ in used)
    return np.asarray(sum(c / total * reduce(values, name, axis=2) for c, name in used)), chance
