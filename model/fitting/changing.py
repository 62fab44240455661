"""Changes of slope of fitted times beyond the measured values (:mod:`ranksight.model.uncertainty.slope`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.uncertainty.slope import DIVIDING, Change

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

STEP = 1.5
"""Factor over which the slope at the smallest value is taken."""
INSIDE = (0.0, 1 / 4, 1 / 2, 3 / 4)
"""Places within the measured range at which it is seen whether a function rises towards its end."""
RISE = 0.1
"""Rise of the logarithm towards the end of the measured range up to which a time is flat: functions meet the edge of a
full memory domain with one."""


def changes(fitted: Fitted, points: Array) -> Change | None:
    """Changes of slope of fitted times beyond what was measured, at `points` (k, m); None where there are none.

    Of several parameters the one counts along which a change is likeliest.
    """
    kinds = {name: metric(name).kind for name in set(fitted.metrics)}
    times = fitted.positive & np.array([kinds[name] == "time" for name in fitted.metrics])
    calls = np.array([name.startswith("MPI_") or operation_name(name) in OPERATIONS for name in fitted.kernels])
    shape = len(priors.SLOPE_PLACES), len(fitted), len(points)
    share, centre, spread = np.zeros(shape), np.zeros(shape), np.ones(shape)
    for axis, name in enumerate(fitted.parameters):
        if name == fitted.iterations:
            continue
        low, high = fitted.trained[:, axis, 0], fitted.trained[:, axis, 1]
        for ends in np.unique(fitted.trained[times & (low > 0) & (high > low), axis], axis=0):
            rows = np.flatnonzero(times & (low == ends[0]) & (high == ends[1]))
            if not (points[:, axis] > ends[1]).any():
                continue
            found = _along(fitted, rows, points, axis, (float(ends[0]), float(ends[1])), calls[rows])
            more = found.share.sum(axis=0) > share[:, rows].sum(axis=0)
            for mine, other in ((share, found.share), (centre, found.centre), (spread, found.spread)):
                mine[:, rows] = np.where(more, other, mine[:, rows])
    return Change(share, centre, spread) if share.any() else None


def _along(fitted: Fitted, rows: Index, points: Array, axis: int, ends: tuple[float, float], calls: Mask) -> Change:
    """Changes of some series along one parameter, measured between `ends`; `calls` (r,) are times of MPI calls."""
    low, high = ends
    measured, ahead = np.log(high / low), np.log(np.maximum(points[:, axis] / high, 1.0))[None]
    name = fitted.parameters[axis]
    node = name in DIVIDING and name != "nodes" and low < priors.WHOLE_NODES

    def logs(at: float | Array) -> Array:
        """ln y at other values of the parameter."""
        moved = points.copy()
        moved[:, axis] = at
        return fitted.logs(rows, moved)

    last, there = logs(high), logs(np.maximum(points[:, axis], high))
    with np.errstate(invalid="ignore", divide="ignore"):
        least, most = (np.log(fitted.seen[rows, at])[:, None] for at in (0, 1))
        falls = there < last
        out = np.where(falls, np.minimum(last, least) - there, there - np.maximum(last, most))
        out = np.where(falls | (~calls[:, None] & (name in DIVIDING)), out, 0.0)
        if node:
            # Work that was divided at the least ranks divides again behind a memory domain that is full.
            divided = np.clip((logs(low) - logs(low * STEP)) / np.log(STEP), 0.0, 1.0)
            # A time that rises at the last ranks is held by messages or waits, and no domain.
            lowest = np.fmin.reduce([logs(low * (high / low) ** way) for way in INSIDE])
            again = np.where(last - lowest < RISE, (least - last + ahead) * divided, 0.0)
            out, falls = np.where(again > 0, np.fmax(np.where(falls, out, 0.0), again), out), falls | (again > 0)
        out = np.clip(np.where(np.isfinite(out), out, 0.0), 0.0, ahead)
    changes = priors.SLOPE_CHANGES + fitted.turned[rows][:, None]
    # What keeps closely to its function changes seldom, but for what turned already, as a memory domain that is full.
    steady = np.minimum(fitted.pace[rows], 1.0)[:, None]
    seldom = np.where(falls & node, np.fmax(steady, np.minimum(fitted.turned[rows], 1.0)[:, None]), steady)
    chance = (1 - (measured / (measured + out)) ** changes) * seldom
    fallen, grown = priors.SLOPE_AFTER["node" if node else "divided"], priors.SLOPE_AFTER["growth"]
    mean, deviation = (np.where(falls, fallen[at], grown[at]) for at in (0, 1))
    parts = []
    for place in (0.0,) * len(priors.SLOPE_PLACES) if node else priors.SLOPE_PLACES:
        start, rest = logs(high * np.exp(place * ahead[0])), (1 - place) * ahead
        use = np.isfinite(start) & (chance > 0)
        parts.append(
            (
                np.where(use, chance / len(priors.SLOPE_PLACES), 0.0),
                np.where(use, start, 0.0) + mean * rest,
                np.maximum(deviation * rest, 1e-9),
            )
        )
    return Change(*(np.stack(each) for each in zip(*parts, strict=True)))
