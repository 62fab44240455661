"""What was counted of memory's levels at each measured configuration, kept in the model's file.

Which level serves a load changes where a working set outgrows a cache, within a step from one size to the next, and no
function of the parameters follows that. A verdict on a configuration that was measured rests on its own counts; those
of functions tell the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.model.plaindata import from_gaps, reading, with_gaps
from ranksight.model.resource.resource import LEVELS
from ranksight.model.series.reduction import reduce
from ranksight.model.series.series import Series

Array = NDArray[np.float64]

METRICS = (*LEVELS, "store_misses_l1", "store_misses_l2", "store_misses_l3",
           "bytes_l2", "bytes_l3", "bytes_mem_read", "bytes_mem")  # fmt: skip


@dataclass(frozen=True)
class Counted:
    """Counts of the memory levels.

    Attributes
    ----------
    points : (n, m)
        Configurations measured.
    rows : mapping of (kernel, metric) to (n,)
        Of :data:`METRICS`, a rank's mean, the median over repetitions; NaN where one is missing.
    """

    points: Array
    rows: Mapping[tuple[str, str], Array]

    @classmethod
    def of(cls, series: Series) -> Counted:
        """The counts of a series."""
        values = reduce(series.values, "median", axis=2)
        keys = zip(series.kernels, series.metrics, strict=True)
        return cls(series.points, {key: values[at] for at, key in enumerate(keys) if key[1] in METRICS})

    def at(self, kernels: Sequence[str], metric: str, points: Array) -> Array:
        """A metric of K kernels at `points` (k, m), (K, k); NaN where it was not counted."""
        found = np.full((len(kernels), len(points)), np.nan)
        if not self.rows or self.points.shape[1] != points.shape[1]:
            return found
        same = (self.points[:, None] == points[None]).all(axis=2)
        here = np.flatnonzero(same.any(axis=0))
        which = same[:, here].argmax(axis=0)
        for place, kernel in enumerate(kernels):
            if (row := self.rows.get((kernel, metric))) is not None:
                found[place, here] = row[which]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = [[kernel, metric, with_gaps(row)] for (kernel, metric), row in self.rows.items()]
        return {"points": self.points.tolist(), "rows": plain}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Counted:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'counted'"):
            points = np.array(content["points"], dtype=np.float64)
            rows = {(str(kernel), str(metric)): from_gaps(row) for kernel, metric, row in content["rows"]}
        if points.ndim != 2 or any(row.shape != (len(points),) for row in rows.values()):
            raise InputError("'counted' does not fit together", "fit the model again")
        return cls(points, rows)
