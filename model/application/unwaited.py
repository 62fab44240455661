"""Time in communication that is no waiting for ranks that still compute.

A rank that has less to compute waits longer in its next call of MPI, so that a profile by rank has the imbalance twice:
in the kernel that is uneven and, as its opposite, in communication. The program takes

    T = max over ranks of sum_k T_k + R,    k the kernels that compute,

and R, what the rank that computes longest spends in communication, is a function of the parameters. So a barrier that
all but waits for one rank costs next to nothing, and what it waits for is the imbalance of the kernel that this rank is
slow in. Where calls wait for different ranks in turn, R has what no single rank computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.leftout import MPI
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import Forecast

LATE = 1.05
"""The longest time that a rank took, all kernels together, over the mean, from which on ranks do not end together."""


@dataclass(frozen=True)
class Unwaited(Stored):
    """Time in communication that is no waiting."""

    fitted: Fitted  # one row

    def at(self, points: Array) -> Forecast:
        """Seconds at `points` (k, m), one row."""
        return self.fitted.predict(points)

    def _fits(self) -> bool:
        return len(self.fitted) == 1


def unwaited(computing: Array, communicating: Array) -> float:
    """Seconds R of a run in which ranks spent `computing` (P,) and `communicating` (P,).

    Where ranks do not end together the longest of all decides: what it takes beyond the longest computation.
    """
    total, slowest = computing + communicating, int(computing.argmax())
    if total.max() > LATE * total.mean():
        return float(total.max() - computing[slowest])
    return float(communicating[slowest])


def fit_unwaited(
    parameters: Sequence[str], seconds: Mapping[tuple[float, ...], Sequence[float]], **settings: Any
) -> Unwaited:
    """Learn R from what it was in the runs of each configuration.

    `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    most = max(map(len, seconds.values()))
    values = np.array([[*several, *[np.nan] * (most - len(several))] for several in seconds.values()])
    series = Series(tuple(parameters), np.array(list(seconds)), values[None], (MPI,), ("time",))
    return Unwaited(fit_varied(series, **settings))
