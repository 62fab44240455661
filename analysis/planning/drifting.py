"""What a run beyond the measured range will teach about drift.

A fit learns how far a series drifts, tau per e-fold, by leaving its largest configuration out and looking how well the
others foretell it (:mod:`ranksight.model.uncertainty.drift`). With s^2 the variance of that forecast, l the distance in
e-folds and e the error found, the law of tau before the data becomes

    p(tau | e) ~ p(tau) (s^2 + tau^2 l^2)^(-1/2) exp(-e^2 / (2 (s^2 + tau^2 l^2))).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.core.metrics import metric
from ranksight.model.uncertainty.drift import GRID, LEAST_POINTS, before

Array = NDArray[np.float64]

HALVINGS = 60


def laws(metrics: tuple[str, ...]) -> Array:
    """Law of tau (s, g) of each series before the data."""
    kinds = {name: before(metric(name).kind) for name in set(metrics)}
    return np.array([kinds[name] for name in metrics]).reshape(-1, len(GRID))


def tilted(law: Array, mean: Array) -> Array:
    """The laws (s, m, g) nearest to `law` (s, g) whose means are `mean` (s, m): ``p(tau) exp(-k tau)``.

    Nearest in the sense of Kullback and Leibler; all that a fit keeps of the law of a series is its mean.
    """
    low, high = np.full(mean.shape, -200.0), np.full(mean.shape, 2000.0)
    found = np.broadcast_to(law[:, None], (*mean.shape, law.shape[1]))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        exponent = -middle[..., None] * GRID
        found = law[:, None] * np.exp(exponent - exponent.max(axis=-1, keepdims=True))
        found = found / found.sum(axis=-1, keepdims=True)
        above = found @ GRID > mean
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(found)


def drawn(law: Array, even: Array) -> Array:
    """Values of tau (s, w, m) at the quantiles `even` (s, w, m) of laws (s, m, g)."""
    total = np.cumsum(law, axis=-1)[:, None]
    place = (even[..., None] > total[..., :-1]).sum(axis=-1)
    return np.asarray(GRID[place])


def learned(law: Array, variance: Array, error: Array, distance: Array) -> Array:
    """Mean of tau (s, w, k) that a fit takes from an error of forecast.

    Parameters
    ----------
    law : (s, g)
        Before the data.
    variance : (s, w, k)
        Of the forecast without drift.
    error : (s, w, k)
    distance : (s, k)
        e-folds beyond the largest configuration before.
    """
    total = np.zeros(error.shape)
    weight = np.zeros(error.shape)
    square = (distance**2)[:, None]
    for at, tau in enumerate(GRID):
        spread = variance + tau**2 * square
        density = law[:, at, None, None] * np.exp(-(error**2) / (2 * spread)) / np.sqrt(spread)
        weight += density
        total += tau * density
    return np.asarray(np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), GRID[-1]))


def learnable(values: int, parameters: int) -> bool:
    """Whether so many values of a parameter let a fit learn from the one beyond them."""
    return values >= (LEAST_POINTS if parameters == 1 else LEAST_POINTS - 1)
