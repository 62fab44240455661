"""Changes of slope of fitted times beyond the measured values (:mod:`ranksight.model.uncertainty.slope`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import metric
from ranksight.core.mpi import communicates
from ranksight.model import priors
from ranksight.model.uncertainty.drift import STEADIEST
from ranksight.model.uncertainty.slope import DIVIDING, Change, filled, shows

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
    shape = 1 + len(priors.SLOPE_PLACES), len(fitted), len(points)
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
    divides = name in DIVIDING
    node = divides and name != "nodes" and low < priors.WHOLE_NODES

    def logs(at: float | Array) -> Array:
        """ln y at other values of the parameter."""
        moved = points.copy()
        moved[:, axis] = at
        return fitted.logs(rows, moved)

    last, there = logs(high), logs(np.maximum(points[:, axis], high))
    grows = ~calls[:, None] & divides
    with np.errstate(invalid="ignore", divide="ignore"):
        least, most = (np.log(fitted.seen[rows, at])[:, None] for at in (0, 1))
        falls = there < last
        out = np.where(falls, np.minimum(last, least) - there, np.where(grows, there - np.maximum(last, most), 0.0))
        out = np.clip(np.where(np.isfinite(out), out, 0.0), 0.0, ahead)
    # What keeps closely to its function changes seldom.
    seldom = np.minimum(fitted.pace[rows], 1.0)[:, None]
    chance = (1 - (measured / (measured + out)) ** (priors.SLOPE_CHANGES + fitted.turned[rows][:, None])) * seldom
    fallen, grown = priors.SLOPE_AFTER["node" if node else "divided"], priors.SLOPE_AFTER["growth"]
    mean, deviation = (np.where(falls, fallen[at], grown[at]) for at in (0, 1))
    # Functions meet a domain that fills up to a percent or two, and work with a serial part up to its scatter.
    misfit = fitted.pace[rows] * priors.DISCREPANCY - STEADIEST
    missed = np.clip(misfit / (priors.REPEATED - STEADIEST), 0.0, 1.0)[:, None]
    if fitted.lasting is not None:
        # What scatter explains may hide a misfit or not, one as likely as the other.
        missed *= (1 + fitted.lasting.part[rows, None]) / 2
    filling = max(high, fitted.filling)
    full, kept = _full_domain(logs, last, (low, high, filling), points[:, axis])
    likely = (priors.FULL_NODE if fitted.filling else filled(low, high)) * shows(low, fitted.metrics)
    likely *= node and len(fitted.parameters) == 1
    full = np.where(full & grows, likely * missed, 0.0)
    apart = np.minimum(priors.FULL_NODE_SPREAD * ahead, np.where(full > 0, np.abs(kept - there), 0.0))
    parts = [(full, np.where(full > 0, kept, 0.0), np.maximum(apart, 1e-9))]
    chance = chance * (1 - full) / len(priors.SLOPE_PLACES)
    for place in AT_ONCE if node else priors.SLOPE_PLACES:
        start, rest = logs(high * np.exp(place * ahead[0])), (1 - place) * ahead
        use = np.isfinite(start) & (chance > 0)
        normal = np.where(use, start, 0.0) + mean * rest, np.maximum(deviation * rest, 1e-9)
        parts.append((np.where(use, chance, 0.0), *normal))
    return Change(*(np.stack(each) for each in zip(*parts, strict=True)))


def _full_domain(
    logs: Callable[[float | Array], Array], last: Array, ends: tuple[float, float, float], ranks: Array
) -> tuple[Mask, Array]:
    """Whether ranks (k,) are more than fill a memory domain (r, k), and ln y then; `ends` are the fewest and the
    most of the runs, and those that fill one.

    What ranks of one node take from each other is in the cost per unit of work, which stays what it is in a full
    domain: time that falls is divided further, time that does not stays. Only runs from one rank on show the cost
    without others, which is how work that is not divided differs from a domain that is full already.
    """
    low, high, filling = ends
    further = np.log(np.maximum(ranks / filling, 1.0))
    divided = logs(low) - last > priors.DIVIDED_SLOPE * np.log(high / low)
    kept = logs(filling) - np.where(divided, further, 0.0)
    return np.isfinite(kept) & (divided | (low < 2)) & (further > 0), kept
