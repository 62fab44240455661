"""Kernels' times at the configurations that were measured: the posterior that has the measurement in it.

A law and n runs of the same configuration are two measurements of ln T, with the deviation s of the law and the
standard error e of the runs. A law that misses the runs by more than both allow is wrong there, by as much as it
misses them, so that s^2 is at least gap^2 - e^2. The posterior has the weight s^2 / (s^2 + e^2) on the runs; a further
run scatters around it as one of them did. Where nothing was repeated, runs are taken to scatter as the law says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Part, Stored
from ranksight.model.priors import REPEATED
from ranksight.model.quantity import Quantity
from ranksight.model.series.reducing import Series, located
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import ARRAYS

SAME = 1e-9
"""Relative difference up to which configurations are the same."""


@dataclass(frozen=True)
class Runs(Part):
    """Times of K kernels at n configurations."""

    kernels: tuple[str, ...]
    points: Array  # (n, m)
    logs: Array  # (K, n): of the median over repetitions; NaN where there is none
    errors: Array  # (K, n): their standard errors; NaN where nothing was repeated
    scatter: Array  # (K, n): standard deviations of one run; NaN where nothing was repeated
    excess: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """(K, n): logarithm of the instructions that runs on another machine counted over those that the functions give;
    None where nothing is compared."""
    _sizes = "kernels:k points:nm logs:kn errors:kn scatter:kn"

    @classmethod
    def of(cls, series: Series) -> Runs:
        """The times of `series`."""
        rows = [row for row, (kernel, name) in enumerate(series.keys) if name == "time"]
        if not rows:
            return NO_RUNS
        part = series.select(np.array(rows, dtype=np.intp))
        middle, error = located(part)
        repeated = (np.isfinite(part.values).sum(axis=2) > 1).any(axis=1)[:, None]
        count = np.maximum(np.isfinite(part.values).sum(axis=2), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(middle > 0, np.log(middle), np.nan)
        known = repeated & np.isfinite(logs)
        errors = np.where(known, np.maximum(error, REPEATED / np.sqrt(count)), np.nan)
        return cls(part.kernels, series.points, logs, errors, errors * np.sqrt(count))

    def met(self, predicted: Forecast, points: Array, rows: Mapping[str, int], pace: float = 0.0) -> Forecast:
        """The forecast with the times of kernels in `rows` at those of `points` (k, m) that were measured.

        `pace`: standard deviation of the logarithm of what all times of a run have in common, and repetitions of one
        job do not show.
        """
        kernels = [at for at, kernel in enumerate(self.kernels) if kernel in rows]
        if not kernels:
            return predicted
        scale = np.maximum(np.abs(self.points), 1.0)
        same = np.asarray((np.abs(points[:, None] - self.points[None]) <= SAME * scale).all(axis=2))
        asked = np.flatnonzero(same.any(axis=1))
        if not len(asked):
            return predicted
        index = np.array([rows[self.kernels[at]] for at in kernels], dtype=np.intp)
        run = same[asked].argmax(axis=1)
        logs, errors, scatter = (table[np.ix_(kernels, run)] for table in (self.logs, self.errors, self.scatter))
        place = np.ix_(index, asked)
        law = replace(predicted, **{name: getattr(predicted, name)[place] for name in ARRAYS}).quantity()
        met = Forecast.of(_posterior(law, logs, errors, scatter, pace)).judged()
        arrays: dict[str, Any] = {}
        for name in ARRAYS:
            arrays[name] = np.array(getattr(predicted, name), dtype=object if name == "reason" else None)
            arrays[name][place] = np.where(np.isfinite(logs), getattr(met, name), arrays[name][place])
        return replace(predicted, **arrays)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Runs:
        """No runs: their ranks were placed in another way."""
        return NO_RUNS

    def _fits(self) -> bool:
        return not len(self.excess) or self.excess.shape == self.logs.shape


NO_RUNS = Runs((), *np.empty((4, 0, 0)))
"""The runs of a program where none says how long kernels take."""


def _posterior(law: Quantity, logs: Array, errors: Array, scatter: Array, pace: float) -> Quantity:
    """Times (K, a) with the deviations of a further run; what has no law is what was measured."""
    deviation = np.maximum(law.deviation, REPEATED)
    repeated = np.isfinite(errors)
    errors = np.where(repeated, errors, deviation)
    gap = logs - law.centre
    variance = np.maximum(deviation**2, gap**2 - errors**2)
    weight = variance / (variance + errors**2)
    again = np.where(repeated, np.hypot(scatter, pace), deviation)
    lawless = ~np.isfinite(gap)
    spread = np.where(repeated & ~lawless, np.sqrt(weight * errors**2 + again**2), again)
    return Quantity.even(np.where(lawless, logs, law.centre + weight * gap), spread)


@dataclass(frozen=True)
class Anchor(Stored):
    """Times that were measured on another machine."""

    name: str  # of its platform
    platform: str  # as its file describes it
    runs: Runs
    doubts: tuple[str, ...] = ()  # what of the runs differs from the program's by more than machines do
