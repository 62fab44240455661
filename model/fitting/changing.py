"""Changes of slope of fitted times beyond the measured values (:mod:`ranksight.model.uncertainty.slope`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import metric
from ranksight.core.mpi import communicates
from ranksight.model import priors
from ranksight.model.uncertainty.slope import DIVIDING, Change

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted


AT_ONCE = (0.0,) * len(priors.SLOPE_PLACES)
"""Places of a change within a node: its domains and caches are shared from where the runs end."""


def changes(fitted: Fitted, points: Array) -> Change | None:
    """Changes of slope of fitted times beyond what was measured, at `points` (k, m); None where there are none.

    Of several parameters the one counts along which a change is likeliest.
    """
    kinds = {name: metric(name).kind for name in set(fitted.metrics)}
    times = fitted.positive & np.array([kinds[name] == "time" for name in fitted.metrics])
    calls = np.array([communicates(name) or operation_name(name) in OPERATIONS for name in fitted.kernels])
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
            turn = _along(fitted, rows, points, axis, (float(ends[0]), float(ends[1])), calls[rows])
            more = turn.share.sum(axis=0) > share[:, rows].sum(axis=0)
            for array, other in ((share, turn.share), (centre, turn.centre), (spread, turn.spread)):
                array[:, rows] = np.where(more, other, array[:, rows])
    return Change(share, centre, spread) if share.any() else None


def _along(fitted: Fitted, rows: Index, points: Array, axis: int, ends: tuple[float, float], calls: Mask) -> Change:
    """Changes of some series along one parameter, measured between `ends`; `calls` (r,) are times of MPI calls."""
    low, high = ends
    measured, ahead = np.log(high / low), np.log(np.maximum(points[:, axis] / high, 1.0))[None]
    name = fitted.parameters[axis]
    divides = name in DIVIDING
    node = divides and name != "nodes" and low < priors.WHOLE_NODES

    def logs(at: float | Array) -> Array:
        """ln y at other values of the parameter."""
        moved = points.copy()
        moved[:, axis] = at
        return fitted.logs(rows, moved)

    last, beyond = logs(high), logs(np.maximum(points[:, axis], high))
    grows = ~calls[:, None] & divides
    with np.errstate(invalid="ignore", divide="ignore"):
        least, most = (np.log(fitted.seen[rows, at])[:, None] for at in (0, 1))
        falls = beyond < last
        out = np.where(falls, np.minimum(last, least) - beyond, np.where(grows, beyond - np.maximum(last, most), 0.0))
        out = np.clip(np.where(np.isfinite(out), out, 0.0), 0.0, ahead)
    # What keeps closely to its function changes seldom.
    seldom = np.minimum(fitted.pace[rows], 1.0)[:, None]
    chance = (1 - (measured / (measured + out)) ** (priors.SLOPE_CHANGES + fitted.turned[rows][:, None])) * seldom
    fallen, grown = priors.SLOPE_AFTER["node" if node else "divided"], priors.SLOPE_AFTER["growth"]
    mean, deviation = (np.where(falls, fallen[at], grown[at]) for at in (0, 1))
    chance = chance / len(priors.SLOPE_PLACES)
    parts = []
    for place in AT_ONCE if node else priors.SLOPE_PLACES:
        start, rest = logs(high * np.exp(place * ahead[0])), (1 - place) * ahead
        use = np.isfinite(start) & (chance > 0)
        normal = np.where(use, start, 0.0) + mean * rest, np.maximum(deviation * rest, 1e-9)
        parts.append((np.where(use, chance, 0.0), *normal))
    return Change(*(np.stack(each) for each in zip(*parts, strict=True)))
