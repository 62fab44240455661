"""What fitted functions may turn into beyond the values measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.core.metrics import metric
from ranksight.model.series.noise import JOBS
from ranksight.model.uncertainty.ceiling import between
from ranksight.model.uncertainty.late import ending
from ranksight.model.uncertainty.plateau import plateau
from ranksight.model.uncertainty.strong import Change, change

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted

Array = NDArray[np.float64]

STEP = 1.1
"""Factor over which elasticities are taken."""


def changes(fitted: Fitted, points: Array) -> list[Change]:
    """Strong scaling along the axis where that is most likely or growth that ended, and along the ranks plateaus and
    ceilings, as far as they are asked for at `points` (k, m)."""
    kinds = {name: metric(name).kind for name in set(fitted.metrics)}
    times = fitted.positive & np.array([kinds[name] == "time" for name in fitted.metrics])
    law, full, hit = (Change.none(len(fitted), len(points), told) for told in (False, False, True))
    around = (fitted.weight * np.where(fitted.weight > 0, fitted.variance, 0.0)).sum(axis=1)
    scatter = np.hypot(JOBS, np.sqrt(around))
    lasting = fitted.lasting
    for axis, name in enumerate(fitted.parameters):
        if name == fitted.iterations:
            continue
        low, high = fitted.trained[:, axis, 0], fitted.trained[:, axis, 1]
        for ends in np.unique(fitted.trained[times & (low > 0) & (high > low), axis], axis=0):
            rows = np.flatnonzero(times & (low == ends[0]) & (high == ends[1]))
            if not (points[:, axis] > ends[1]).any():
                continue
            first, last, after = (
                fitted.logs(rows, np.where(np.arange(points.shape[1]) == axis, at, points))
                for at in (ends[0], ends[1], ends[1] * STEP)
            )
            ahead = points[None, :, axis]
            law.put(rows, change(ends[0], ends[1], ahead, first, last, fitted.pace()[rows]))
            if name == "ranks":
                full.put(rows, plateau(ends[0], ends[1], ahead, first, last, after, scatter[rows]))
                if lasting is not None:
                    hit.put(rows, between(ends[1], ahead, last, lasting.full[rows]))
    if lasting is not None and lasting.ended.any():
        law.put(np.arange(len(fitted)), ending(lasting, points))
    return [each for each in (law, full, hit) if each.share.any()]
