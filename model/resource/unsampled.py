"""Times of kernels that were counted but that no sample fell on.

A kernel that is short at the configurations measured may be what takes longest at scale: its instructions say so, its
samples cannot. Its time is then its instructions at the program's pace, theta times as long; theta is taken as gamma
distributed among kernels with mean 1, and none of the E samples that fall at the program's pace leave

    theta ~ Gamma(a, a + E),   a = 1 / spread^2

(samples are Poisson counts). How far that carries is :data:`SPREAD`, the standard deviation of log(theta).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import polygamma

from ranksight.core.experiment import WHOLE
from ranksight.model.resource.resource import LEVELS
from ranksight.model.resource.sampling import Sampled
from ranksight.model.series.reduction import reduce

USUAL = 0.8
"""Standard deviation of the logarithm of kernels' cycles per instruction over the program's."""
SHAPE = 1 / USUAL**2
"""Of the gamma distribution of kernels' cycles per instruction over the program's."""
SPREAD = float(np.sqrt(polygamma(1, SHAPE)))
"""Standard deviation of the logarithm of such a kernel's time."""


def with_unsampled(sampled: Sampled) -> Sampled:
    """Give a time to every kernel whose instructions and loads were counted and that has none.

    Nothing is added where nothing was sampled: a time that is missing there was not asked for.
    """
    series = sampled.series
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    counted = [kernel for kernel, name in rows if name == "instructions" and kernel != WHOLE]
    timed = [kernel for kernel in counted if (kernel, "time") in rows]
    silent = [
        kernel
        for kernel in counted
        if (kernel, "time") not in rows and any((kernel, level) in rows for level in LEVELS)
    ]
    if not sampled.samples or not timed or not silent or any(name == "cycles" for _, name in rows):
        return sampled
    values = reduce(series.values, "median", axis=2)
    times = np.nan_to_num(values[[rows[kernel, "time"] for kernel in timed]])
    instructions = np.nan_to_num(values[[rows[kernel, "instructions"] for kernel in timed]])
    taken = (times.sum(axis=0) > 0) & (instructions.sum(axis=0) > 0)
    if not taken.any():
        return sampled
    none = np.zeros(len(series.points))
    samples = np.sum([sampled.samples.get(kernel, none) for kernel in timed], axis=0)
    pace = times[:, taken].sum() / instructions[:, taken].sum()
    each = np.where(taken, samples / np.where(taken, instructions.sum(axis=0), 1.0), 0.0)
    own = values[[rows[kernel, "instructions"] for kernel in silent]]
    theta = SHAPE / (SHAPE + np.nan_to_num(own) @ each)
    found = np.full((len(silent), *series.values.shape[1:]), np.nan)
    found[:, :, 0] = theta[:, None] * pace * own
    grown = replace(
        series,
        values=np.concatenate([series.values, found]),
        kernels=(*series.kernels, *silent),
        metrics=(*series.metrics, *["time"] * len(silent)),
        worth=None if series.worth is None else np.concatenate([series.worth, np.full(found.shape, np.nan)]),
    )
    return replace(sampled, series=grown, samples={**sampled.samples, **dict.fromkeys(silent, none)})
