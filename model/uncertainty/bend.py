"""How much the growth of a time bends, and what that says of the growth ahead.

Strong scaling leaves its law: a plateau may be the shared bandwidth of a domain that the next ranks leave, or serial
work that stays; a fall faster than ideal may end with the cache that the data came to fit into. A time of the runs'
ranks alone cannot tell. The slope of ln y over ln x ahead is therefore taken to lie anywhere between that of the
function and where it came from, evenly: away from the bend, by a standard deviation of its change over sqrt(3). That it
bends further is what the functions say themselves.

A time that grows ever less may be on its way to a value that it keeps, as neighbours to exchange with are no more from
some ranks on; no form of a search space has such an end. As far as its functions leave more than noise unexplained, the
slope ahead may be as much less as it became.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.core.metrics import Kind
from ranksight.model.search import leastsquares
from ranksight.model.series.noise import Location

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_POINTS = 4


def bend(points: Array, location: Location, positive: Mask, kind: Kind, part: Array) -> Array:
    """Standard deviations (s, 2) of the slope ahead of times along the one parameter, downwards and upwards.

    The change of slope is that of a parabola of ln y in ln x over the range measured; `part` (s,) is how much of it is
    believed of growth: the part of the variance around the functions that noise does not explain
    (:class:`ranksight.model.uncertainty.lasting.Lasting`), less at a pace slower than usual
    (:func:`ranksight.model.uncertainty.drift.pace`).
    """
    x = points[:, 0]
    none = np.zeros((len(location.values), 2))
    if kind != "time" or points.shape[1] != 1 or (x <= 0).any() or len(x) < LEAST_POINTS:
        return none
    present = (location.repeats > 0) & positive[:, None] & (np.where(location.repeats > 0, location.values, 0.0) > 0)
    place = np.log(x)
    design = np.stack([np.ones_like(place), place, place**2], axis=1)[None]
    y = np.log(np.where(present, location.values, 1.0))
    solved = leastsquares.solve(design, present.astype(np.float64), y)
    first = np.where(present, place, np.inf).min(axis=1)
    last = np.where(present, place, -np.inf).max(axis=1)
    use = (present.sum(axis=1) >= LEAST_POINTS) & np.isfinite(solved.residual[:, 0])
    _, slope, curve = np.moveaxis(np.where(use[:, None], solved.coefficients[:, 0], 0.0), 1, 0)
    first, last = np.where(use, first, 0.0), np.where(use, last, 0.0)
    width = last - first
    falls = slope * width + curve * (last**2 - first**2) < 0
    turn = np.where(use, 2 * curve * width / np.sqrt(3), 0.0)
    down = np.where(falls, np.maximum(turn, 0.0), np.maximum(-turn, 0.0) * part)
    return np.stack([down, np.where(falls, np.maximum(-turn, 0.0), 0.0)], axis=1)
