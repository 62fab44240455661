"""Which kernel is largest at a scale, and which grow with the number of ranks when they should not.

In weak scaling a rank's work stays what it is; in strong scaling it falls. Trees and hypercubes add a logarithm of the
ranks, and the halo of a Cartesian grid at most twice its dimensions. A kernel whose time per rank rises from the
largest measured number of ranks to the target by more than the logarithm does will hold the program back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.experiment import WHOLE
from ranksight.model.forecast import OK
from ranksight.model.model import Model

HEAVY = 0.01
"""Share of the predicted time from which a growing kernel is named."""


@dataclass(frozen=True)
class Rank:
    """One kernel at the target.

    Attributes
    ----------
    kernel : str
    time, share : float
        Predicted seconds per rank, and part of the sum over kernels.
    growth : float
        Time at the target over time at the largest measured number of ranks, other parameters as at the target.
    grows : bool
        Whether it grows faster than the logarithm of the ranks, carries weight, and is carried by its evidence.
    formula : str
        Of the metric that tells why: its instructions where counted, else its time.
    """

    kernel: str
    time: float
    share: float
    growth: float
    grows: bool
    formula: str


def rank_kernels(model: Model, point: NDArray[np.float64]) -> list[Rank]:
    """Kernels by predicted time at `point` (m,), the largest first; those whose time is insufficient are left out.

    Raises
    ------
    InputError
        When the model has no parameter ``ranks`` or no kernel's time.
    """
    from ranksight.errors import InputError

    if "ranks" not in model.parameters:
        raise InputError("the model has no parameter ranks", "growth is told over ranks")
    at = model.parameters.index("ranks")
    near = np.array(point, dtype=np.float64)
    near[at] = min(float(model.training[:, at].max()), float(point[at]))
    said = model.forecast(np.array([near, point]))
    rows = model.functions.rows
    timed = [(kernel, row) for (kernel, name), row in rows.items() if name == "time" and kernel != WHOLE]
    if not timed:
        raise InputError("the model has no kernel's time", "measure with perf-clock, or import times")
    # What the evidence does not carry at the target has no place in a ranking.
    timed = [(kernel, row) for kernel, row in timed if said.status[row, 1] == OK]
    times = np.array([said.value[row] for _, row in timed]).reshape(len(timed), 2)
    total = np.nansum(times[:, 1])
    # One more than the logarithm, so that two ranks count as one step.
    steps = np.log2(2 * max(float(point[at]), 1.0)) / np.log2(2 * max(float(near[at]), 1.0))
    found = []
    for (kernel, _), (before, after) in zip(timed, times, strict=True):
        if not np.isfinite(after):
            continue
        count = rows.get((kernel, "instructions"))
        growth = float(after / before) if before > 0 else float("nan")
        proof = float(said.value[count, 1] / said.value[count, 0]) if count is not None else growth
        grows = bool(growth > steps and proof > steps and after / total >= HEAVY)
        why = count if count is not None else rows[kernel, "time"]
        found.append(Rank(kernel, float(after), float(after / total), growth, grows, model.functions.formula(why)))
    return sorted(found, key=lambda rank: -rank.time)
