"""What diagnosis keeps of the machine that was measured: its ceilings, and what kernels counted against them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.counted import Counted
from ranksight.analysis.diagnosis.gathering import served
from ranksight.core.arrays import Array
from ranksight.model.resource.equation import LEVELS, Machine
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.platforms import Platform


def observe_machine(series: Series, platform: Platform, machine: Machine) -> dict[str, Any]:
    """The entries ``ceilings``, ``minimum_wait`` and ``counted`` of :func:`ranksight.analysis.observed.observe`."""
    ceilings = Ceilings.of(platform).at(machine.frequency) if machine else Ceilings.of(platform)
    observed: dict[str, Any] = {"ceilings": ceilings.to_dict()}
    if minimum_wait := _minimum_wait(series, ceilings):
        observed["minimum_wait"] = minimum_wait
    if (counted := Counted.of(series)).rows:
        observed["counted"] = counted.to_dict()
    return observed


def _minimum_wait(series: Series, ceilings: Ceilings) -> dict[str, float]:
    """Least cycles an instruction that what L2, L3 and memory serve may take, of each kernel counted."""
    rows = series.rows
    values = reduce(series.values, "median", axis=2)
    waits: dict[str, float] = {}
    for kernel in dict.fromkeys(series.kernels):
        counts = [(at, rows[kernel, name]) for at, name in enumerate(LEVELS) if at and (kernel, name) in rows]
        if not counts or (kernel, "instructions") not in rows:
            continue
        counted = values[rows[kernel, "instructions"]]
        stores = served(*(_values(values, rows.get((kernel, f"store_misses_l{level}"))) for level in (1, 2, 3)))
        longest = ceilings.latency[1:] * ceilings.longest
        waiting = np.sum([(_values(values, row) + stores[at - 1]) * longest[at - 1] for at, row in counts], axis=0)
        known = counted > 0
        if known.any():
            waits[kernel] = float((waiting[known] / counted[known]).min())
    return waits


def _values(values: Array, row: int | None) -> Array:
    """A metric at each configuration; 0 where it was not counted."""
    return np.zeros(values.shape[1]) if row is None else np.nan_to_num(values[row])
