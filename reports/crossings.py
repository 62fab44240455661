"""Where one kernel overtakes another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.reports.sweep import Sweep

HEAVY = 0.02
"""Share of the time from which a kernel's crossing is told."""


@dataclass(frozen=True)
class Crossing:
    """Two kernels that take the same time.

    Attributes
    ----------
    above, below : str
        Larger beyond the crossing, and larger before it.
    value, time : float
        Of the parameter, and seconds per rank.
    """

    above: str
    below: str
    value: float
    time: float


def ranked(sweep: Sweep) -> list[int]:
    """Positions of the kernels in the breakdown, by their larger share at the start or at the target."""
    times = np.nan_to_num(sweep.breakdown.by_kernel)
    total = np.maximum(times.sum(axis=0), np.finfo(float).tiny)
    share = np.maximum(times[:, 0] / total[0], times[:, -1] / total[-1])
    return [int(at) for at in np.argsort(-share, kind="stable") if share[at] > 0]


def crossings(sweep: Sweep, count: int = 12) -> list[Crossing]:
    """Crossings of the heaviest `count` kernels, in the order of the parameter.

    Between two values of the sweep the logarithms of times are taken to change evenly with that of the parameter.
    """
    times = sweep.breakdown.by_kernel
    total = np.nansum(times, axis=0)
    heavy = [at for at in ranked(sweep)[:count] if np.nanmax(times[at] / total) >= HEAVY]
    x = np.log(sweep.values) if (sweep.values > 0).all() else sweep.values
    found = []
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(times)
    for place, one in enumerate(heavy):
        for other in heavy[place + 1 :]:
            with np.errstate(invalid="ignore"):
                gap = logs[one] - logs[other]
            for k in np.flatnonzero((gap[:-1] * gap[1:] < 0) & np.isfinite(gap[:-1]) & np.isfinite(gap[1:])):
                part = gap[k] / (gap[k] - gap[k + 1])
                at = x[k] + part * (x[k + 1] - x[k])
                value = float(np.exp(at)) if x is not sweep.values else float(at)
                time = float(np.exp(logs[one, k] + part * (logs[one, k + 1] - logs[one, k])))
                above, below = (one, other) if gap[k + 1] > 0 else (other, one)
                kernels = sweep.breakdown.kernels
                found.append(Crossing(kernels[above], kernels[below], value, time))
    return sorted(found, key=lambda crossing: crossing.value)
