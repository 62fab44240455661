"""How repetitions become one value when nobody said: by the law of their scatter.

The mid-range is the best location of uniform scatter, the mean of normal and the median of heavy-tailed scatter. How
probable each law is follows from the likelihoods of the samples' shapes, free of their location and scale (Uthoff 1970, *Journal of the American
Statistical Association* 65, 1597; 1973, *Annals of Statistics* 1, 170), multiplied over all configurations and series.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ranksight.model.reduction import reduce

Array = NDArray[np.float64]

LAWS = ("midrange", "mean", "median")


def shape_likelihoods(samples: Array) -> Array:
    """Log-likelihoods of sample shapes under uniform, normal and double exponential scatter.

    ``ln of integral of prod f((x_i - mu)/sigma) / sigma^(r+1) dmu dsigma``, up to a constant common to the laws.

    Parameters
    ----------
    samples : (c, r)
        Samples of the same size r >= 3, sorted along the second axis, none constant.

    Returns
    -------
    (c, 3)
    """
    r = samples.shape[1]
    width = samples[:, -1] - samples[:, 0]
    uniform = -np.log(r * (r - 1.0)) - (r - 1) * np.log(width)
    squares = ((samples - samples.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    normal = (
        gammaln((r - 1) / 2) - np.log(2.0) - (r - 1) / 2 * np.log(np.pi) - np.log(r) / 2 - (r - 1) / 2 * np.log(squares)
    )
    # sum |x_i - mu| is linear between samples with the slope 2 j - r, so its power -r integrates in closed form.
    z = (samples - samples[:, :1]) / width[:, None]
    total = np.abs(z[:, :, None] - z[:, None, :]).sum(axis=2)
    power = total ** (1.0 - r)
    integral = (power[:, 0] + power[:, -1]) / ((r - 1) * r)
    for j in range(1, r):
        slope = 2 * j - r
        if slope:
            integral += (power[:, j] - power[:, j - 1]) / ((1 - r) * slope)
        else:
            integral += (z[:, j] - z[:, j - 1]) / total[:, j] ** r
    double = gammaln(r) - r * np.log(2.0) + np.log(integral) - (r - 1) * np.log(width)
    return np.stack([uniform, normal, double], axis=1)


def law(values: Array) -> Array:
    """Probabilities (3,) of uniform, normal and double exponential scatter of repetitions (s, n, r), equal before the data."""
    flat = np.sort(values.reshape(-1, values.shape[-1]), axis=1)
    count = (~np.isnan(flat)).sum(axis=1)
    score = np.zeros(3)
    for r in np.unique(count[count >= 3]):
        some = flat[count == r][:, :r]
        some = some[(some[:, -1] - some[:, 0]) > 1e-12 * np.abs(some).max(axis=1)]
        if len(some):
            score += shape_likelihoods(some[:20_000]).sum(axis=0)
    chance = np.exp(score - score.max())
    return np.asarray(chance / chance.sum())


def locate(values: Array) -> tuple[Array, Array]:
    """Location (s, n) of repetitions (s, n, r): the laws' best locations, weighted by their probabilities; and the weights (3,)."""
    chance = law(values) if values.shape[2] > 2 else np.array([0.0, 1.0, 0.0])
    used = [(c, name) for c, name in zip(chance, LAWS, strict=True) if c > NEGLIGIBLE]
    total = sum(c for c, _ in used)
    return np.asarray(sum(c / total * reduce(values, name, axis=2) for c, name in used)), chance


NEGLIGIBLE = 0.01
