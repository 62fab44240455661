"""What was counted of memory's levels at each measured configuration, kept in the model's file.

Which level serves a load changes where a working set outgrows a cache, within a step from one size to the next, and no
function of the parameters follows that. A verdict on a configuration that was measured rests on its own counts; those
of functions decide the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.errors import InputError
from ranksight.model.plaindata import from_gaps, reading, with_gaps
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

Array = NDArray[np.float64]

METRICS = (*LEVELS, "store_misses_l1", "store_misses_l2", "store_misses_l3",
           "bytes_l2", "bytes_l3", "bytes_mem_read", "bytes_mem")  # fmt: skip
SAMPLED = (*METRICS, "time", "cycles", "instructions", "stall_cycles")
"""Metrics of which it is kept what a sample was worth."""


@dataclass(frozen=True)
class Counted:
    """Counts of the memory levels.

    Attributes
    ----------
    points : (n, m)
        Configurations measured.
    rows : mapping of (kernel, metric) to (n,)
        Of :data:`METRICS`, a rank's mean, the median over repetitions; NaN where one is missing.
    worth : mapping of (kernel, metric) to (n,)
        What a sample was worth in those of :data:`SAMPLED` that are made of samples (:mod:`ranksight.core.sampled`),
        over all repetitions.
    """

    points: Array
    rows: Mapping[tuple[str, str], Array]
    worth: Mapping[tuple[str, str], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, series: Series) -> Counted:
        """The counts of a series."""
        values = reduce(series.values, "median", axis=2)
        keys = series.keys
        worth = {}
        if series.worth is not None:
            # The mean of repetitions has the samples of all.
            with np.errstate(invalid="ignore", divide="ignore"):
                each = 1 / np.nansum(1 / series.worth, axis=2)
            mine = zip(keys, series.sampled.tolist(), np.where(np.isfinite(each), each, np.nan), strict=True)
            worth = {key: row for key, yes, row in mine if yes and key[1] in SAMPLED}
        return cls(series.points, {key: values[at] for at, key in enumerate(keys) if key[1] in METRICS}, worth)

    def at(self, kernels: Sequence[str], metric: str, points: Array) -> Array:
        """A metric of K kernels at `points` (k, m), (K, k); NaN where it was not counted."""
        return self._at(self.rows, kernels, metric, points)

    def worth_at(self, kernels: Sequence[str], metric: str, points: Array) -> Array:
        """What a sample of the metric is worth, as :meth:`at`; NaN where it was not measured or was not sampled."""
        return self._at(self.worth, kernels, metric, points)

    def _at(self, rows: Mapping[tuple[str, str], Array], kernels: Sequence[str], metric: str, points: Array) -> Array:
        found = np.full((len(kernels), len(points)), np.nan)
        if not rows or self.points.shape[1] != points.shape[1]:
            return found
        same = (self.points[:, None] == points[None]).all(axis=2)
        here = np.flatnonzero(same.any(axis=0))
        which = same[:, here].argmax(axis=0)
        for place, kernel in enumerate(kernels):
            if (row := rows.get((kernel, metric))) is not None:
                found[place, here] = row[which]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = {"points": self.points.tolist(), "rows": _plain(self.rows)}
        return plain | ({"worth": _plain(self.worth)} if self.worth else {})

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Counted:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'counted'"):
            points = np.array(content["points"], dtype=np.float64)
            rows, worth = _rows(content["rows"]), _rows(content.get("worth", ()))
        held = [*rows.values(), *worth.values()]
        fits = points.ndim == 2 and all(row.shape == (len(points),) for row in held)
        if not fits or any((row <= 0).any() for row in worth.values()):
            raise InputError("'counted' does not fit together", "fit the model again")
        return cls(points, rows, worth)


def _plain(rows: Mapping[tuple[str, str], Array]) -> list[list[Any]]:
    return [[kernel, metric, with_gaps(row)] for (kernel, metric), row in rows.items()]


def _rows(content: Any) -> dict[tuple[str, str], Array]:
    return {(str(kernel), str(metric)): from_gaps(row) for kernel, metric, row in content}
