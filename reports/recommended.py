"""The rank count to use: the largest whose predicted parallel efficiency is still worth its core-hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.ideal import Ideal
from ranksight.reports.sweep import Sweep

THRESHOLD = 0.7
"""Least parallel efficiency where none is named; sites commonly ask for 0.7 to 0.8 of allocations."""
HOUR = 3600.0


@dataclass(frozen=True)
class Recommended:
    """The largest rank count of a sweep with enough efficiency.

    Attributes
    ----------
    ranks : float
    threshold, efficiency : float
        The least efficiency asked for and that predicted there, 0 to 1.
    seconds, core_hours : float
        Of one run there.
    target_hours : float
        Core-hours of one run at the sweep's target; NaN where the data do not support its time.
    last : bool
        Whether it is the largest rank count that the data support: more might still be worth it.
    """

    ranks: float
    threshold: float
    efficiency: float
    seconds: float
    core_hours: float
    target_hours: float
    last: bool


def recommended(sweep: Sweep, against: Ideal | None, threshold: float = THRESHOLD) -> Recommended | None:
    """The recommendation; None along another parameter than ranks, or where no supported rank count is so efficient.

    Ranks count as cores, one each. Rank counts are those of the sweep, measured ones among them.
    """
    if against is None or not sweep.timed:
        return None
    efficiency, seconds = against.efficiency(sweep), sweep.total.value[0]
    known = (sweep.total.status[0] == OK) & np.isfinite(seconds) & np.isfinite(efficiency)
    fine = np.flatnonzero(known & (efficiency >= threshold))
    if not len(fine):
        return None
    at = int(fine[-1])
    hours = sweep.values * seconds / HOUR
    return Recommended(
        float(sweep.values[at]),
        threshold,
        float(efficiency[at]),
        float(seconds[at]),
        float(hours[at]),
        float(hours[-1]) if known[-1] else float("nan"),
        at == int(np.flatnonzero(known)[-1]),
    )
