"""Time in communication that is no waiting for ranks that still compute.

A rank that has less to compute waits longer in its next call of MPI, so that a profile by rank has the imbalance twice:
in the kernel that is uneven and, as its opposite, in communication. The program takes

    T = max over ranks of sum_k T_k + R,    k the kernels that compute,

and R, what the rank that waits least spends in communication, is a function of the parameters. So a barrier that
all but waits for one rank costs next to nothing, and what it waits for is the imbalance of the kernel that this rank is
slow in. Where ranks wait for each other after every kernel, the maximum is of each kernel by itself, and R what is left
of the time then. Each function of MPI has the part of R that it has on that rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.leftout import MPI
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import Forecast


@dataclass(frozen=True)
class Unwaited(Stored):
    """Time in communication that is no waiting."""

    fitted: Fitted  # one row
    phased: bool  # whether ranks wait for each other after every kernel
    calls: Fitted | None = None  # R of each function of MPI, a row each, where there are several

    def parts(self, kernels: Sequence[str], points: Array) -> Array:
        """The part of R that each of some functions of MPI has at `points`, (len(kernels), k); NaN where that is not
        known."""
        if self.calls is None or not set(kernels) <= set(self.calls.kernels):
            return np.full((len(kernels), len(points)), np.nan)
        rows = [self.calls.kernels.index(kernel) for kernel in kernels]
        seconds = np.maximum(self.calls.predict(points).value[rows], 0.0)
        return ratio(seconds, seconds.sum(axis=0))

    def at(self, points: Array) -> Forecast:
        """Seconds at `points` (k, m), one row."""
        return self.fitted.predict(points)

    def _fits(self) -> bool:
        return len(self.fitted) == 1 and (self.calls is None or self.calls.parameters == self.fitted.parameters)


def beyond_slowest(computing: Array, communicating: Array) -> tuple[float, float, int]:
    """Seconds R of a run in which ranks spent `computing` (P, K) and `communicating` (P,), how much longer the slowest
    ranks of all kernels take than the slowest rank of all, and the rank that decides R.

    Where ranks do not end together the longest of all decides: what it takes beyond the longest computation. Otherwise
    that one waits least, but for the scatter of times.
    """
    each = computing.sum(axis=1)
    total, more = each + communicating, float(computing.max(axis=0).sum() - each.max())
    if total.max() > priors.WAITING["late"] * total.mean():
        return float(total.max() - each.max()), more, int(total.argmax())
    return float(communicating.min()), more, int(communicating.argmin())


def in_phases(rests: Array, more: Array) -> bool:
    """Whether ranks wait for each other after every kernel: even the one that waits least waits for the slowest of
    other kernels, in all runs, of which `rests` and `more` (n,) are the results of :func:`beyond_slowest`."""
    near = np.abs(rests - more) < priors.WAITING["differs"] * more
    return bool((more > 0).any() and near.mean() > priors.WAITING["runs"])


def fit_unwaited(
    parameters: Sequence[str],
    seconds: Mapping[tuple[float, ...], Sequence[float]],
    phased: bool,
    calls: Mapping[str, Mapping[tuple[float, ...], Sequence[float]]],
    **settings: Any,
) -> Unwaited:
    """Learn R from what it was in the runs of each configuration; `phased`: :func:`in_phases`.

    `calls`: the same of each function of MPI. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    fitted = fit_varied(_series(parameters, {MPI: seconds}), **settings)
    return Unwaited(fitted, phased, fit_varied(_series(parameters, calls), **settings) if len(calls) > 1 else None)


def _series(parameters: Sequence[str], seconds: Mapping[str, Mapping[tuple[float, ...], Sequence[float]]]) -> Series:
    """Series of times by kernel, of the values at each configuration."""
    points = list(next(iter(seconds.values())))
    most = max(len(several) for each in seconds.values() for several in each.values())
    values = [[[*each[point], *[np.nan] * (most - len(each[point]))] for point in points] for each in seconds.values()]
    return Series(tuple(parameters), np.array(points), np.array(values), tuple(seconds), ("time",) * len(seconds))
