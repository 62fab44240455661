"""What was counted of memory's levels at each measured configuration, kept in the model's file.

Which level serves a load changes where a working set outgrows a cache, within a step from one size to the next, and no
function of the parameters follows that. A verdict on a configuration that was measured rests on its own counts; those
of functions decide the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

METRICS = (*LEVELS, "store_misses_l1", "store_misses_l2", "store_misses_l3",
           "bytes_l2", "bytes_l3", "bytes_mem_read", "bytes_mem")  # fmt: skip
SAMPLED = (*METRICS, "time", "cycles", "instructions", "stall_cycles")
"""Metrics of which it is kept what a sample was worth."""
Rows = tuple[tuple[str, str, Array], ...]


@dataclass(frozen=True)
class Counted(Stored):
    """Counts of the memory levels."""

    points: Array  # (n, m): configurations measured
    rows: Rows
    """tuple of (kernel, metric, (n,)): of :data:`METRICS`, a rank's mean, the median over repetitions; NaN where one is
    missing."""
    worth: Rows | None = None
    """tuple of (kernel, metric, (n,)), or None: what a sample was worth in those of :data:`SAMPLED` that are made of
    samples (:mod:`ranksight.core.sampled`), over all repetitions."""

    @classmethod
    def of(cls, series: Series) -> Counted:
        """The counts of a series."""
        values = reduce(series.values, "median", axis=2)
        keys = series.keys
        worth: Rows | None = None
        if series.sampled.any():
            # The mean of repetitions has the samples of all.
            with np.errstate(invalid="ignore", divide="ignore"):
                each = 1 / np.nansum(1 / series.worth, axis=2)
            sampled_rows = zip(keys, series.sampled.tolist(), np.where(np.isfinite(each), each, np.nan), strict=True)
            worth = tuple((*key, row) for key, yes, row in sampled_rows if yes and key[1] in SAMPLED)
        rows = tuple((*key, row) for key, row in zip(keys, values, strict=True) if key[1] in METRICS)
        return cls(series.points, rows, worth)

    def at(self, kernels: Sequence[str], metric: str, points: Array) -> Array:
        """A metric of K kernels at `points` (k, m), (K, k); NaN where it was not counted."""
        return self._at(self.rows, kernels, metric, points)

    def worth_at(self, kernels: Sequence[str], metric: str, points: Array) -> Array:
        """What a sample of the metric is worth, as :meth:`at`; NaN where it was not measured or was not sampled."""
        return self._at(self.worth or (), kernels, metric, points)

    def _at(self, rows: Rows, kernels: Sequence[str], metric: str, points: Array) -> Array:
        worth = np.full((len(kernels), len(points)), np.nan)
        if not rows or self.points.shape[1] != points.shape[1]:
            return worth
        same = (self.points[:, None] == points[None]).all(axis=2)
        matching = np.flatnonzero(same.any(axis=0))
        which = same[:, matching].argmax(axis=0)
        wanted = {kernel: row for kernel, name, row in rows if name == metric}
        for place, kernel in enumerate(kernels):
            if kernel in wanted:
                worth[place, matching] = wanted[kernel][which]
        return worth

    def _fits(self) -> bool:
        tables = [*self.rows, *(self.worth or ())]
        same = self.points.ndim == 2 and all(row.shape == (len(self.points),) for _, _, row in tables)
        return same and not any((row <= 0).any() for _, _, row in self.worth or ())
