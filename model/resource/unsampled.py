"""Times of kernels that were counted but that hardly a sample fell on.

A kernel that is short at the configurations measured may be what takes longest at scale: its instructions say so, its
samples cannot, and a function of fewer than :data:`~ranksight.core.sampled.HANDFUL` samples would be one of chance. Its
time is then its instructions at the program's time per instruction, theta times as long; theta is taken as gamma
distributed among kernels with mean 1, and n samples where E were expected leave

    theta ~ Gamma(a + n, a + E),   a = 1 / spread^2

(samples are Poisson counts). How far that carries is :func:`unsampled_spread`, the standard deviation of log(theta).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.sampled import HANDFUL
from ranksight.model import priors
from ranksight.model.resource.equation import LEVELS
from ranksight.model.resource.sampled_times import Sampled
from ranksight.model.series.reduction import reduce

SHAPE = 1 / priors.CPI_SPREAD[1] ** 2
"""Of the gamma distribution of kernels' cycles per instruction over the program's."""


@cache
def unsampled_spread() -> float:
    """Standard deviation of the logarithm of such a kernel's time; a prediction has no need of it."""
    return float(np.sqrt(special.polygamma(1, SHAPE)))


def with_unsampled(sampled: Sampled) -> Sampled:
    """Give a time from its counts to every kernel whose instructions and loads were counted and that hardly has one.

    Nothing is added where nothing was sampled: a time that is missing there was not asked for.
    """
    series = sampled.series
    rows = series.rows
    counted = [kernel for kernel, name in rows if name == "instructions" and kernel != WHOLE]
    timed = [kernel for kernel in counted if (kernel, "time") in rows]
    none = np.zeros(len(series.points))
    number = {kernel: sampled.samples.get(kernel, none) for kernel in counted}
    silent = [
        kernel
        for kernel in counted
        if ((kernel, "time") not in rows or (kernel in sampled.samples and number[kernel].sum() < HANDFUL))
        and any((kernel, level) in rows for level in LEVELS)
    ]
    if not sampled.samples or len(set(timed) - set(silent)) == 0 or not silent:
        return sampled
    if any(name == "cycles" for _, name in rows):
        return sampled
    values = reduce(series.values, "median", axis=2)
    times = np.nan_to_num(values[[rows[kernel, "time"] for kernel in timed]])
    instructions = np.nan_to_num(values[[rows[kernel, "instructions"] for kernel in timed]])
    usable = (times.sum(axis=0) > 0) & (instructions.sum(axis=0) > 0)
    if not usable.any():
        return sampled
    samples = np.sum([number[kernel] for kernel in timed], axis=0)
    pace = times[:, usable].sum() / instructions[:, usable].sum()
    each = ratio(samples, instructions.sum(axis=0), 0.0, where=usable)
    counts = values[[rows[kernel, "instructions"] for kernel in silent]]
    fell = np.array([number[kernel].sum() for kernel in silent])
    theta = (SHAPE + fell) / (SHAPE + np.nan_to_num(counts) @ each)
    times_of = np.full((len(silent), *series.values.shape[1:]), np.nan)
    times_of[:, :, 0] = theta[:, None] * pace * counts
    few = [rows[kernel, "time"] for kernel in silent if (kernel, "time") in rows]
    measured = series.select(np.setdiff1d(np.arange(len(series)), few))
    grown = replace(
        measured,
        values=np.concatenate([measured.values, times_of]),
        kernels=(*measured.kernels, *silent),
        metrics=(*measured.metrics, *["time"] * len(silent)),
        worth=np.concatenate([measured.worth, np.full(times_of.shape, np.nan)]),
    )
    return replace(sampled, series=grown, samples={**sampled.samples, **dict.fromkeys(silent, none)})
