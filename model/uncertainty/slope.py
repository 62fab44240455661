"""Change of slope: the growth of a time beyond the measured values may turn into another one at any place ahead.

Functions know nothing of what comes after the last measured value: work that is divided ever further falls into a
cache or meets the cost of messages, memory domains fill up and others follow, neighbours to exchange with are no more
from some ranks on. Changes come at a constant rate per e-fold of a parameter. After D measured e-folds, n changes of
which showed, one falls into the next d e-folds with the probability

    1 - (D / (D + d))^(1 + n)

(rule of succession of a Poisson process: Jaynes, *Probability Theory*, 6.9 and 18.6), at a place that is even in the
logarithm. From there on the slope of ln y over ln x follows a normal law
(:data:`ranksight.model.priors.SLOPE_AFTER`).

Only as far as a time leaves the values that were measured does it have d e-folds ahead: where another parameter grows
along, the work per rank stays within what was measured, and functions are as good as within the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.core.metrics import Kind, metric
from ranksight.model import priors
from ranksight.model.search import leastsquares
from ranksight.model.series.noise import Location

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

LEAST_POINTS = 4
"""Values that show a change of slope."""
STEP = 1.5
"""Factor over which the slope at the smallest value is taken."""
INSIDE = (0.0, 1 / 4, 1 / 2, 3 / 4)
"""Places within the measured range at which it is seen whether a function rises towards its end."""
RISE = 0.1
"""Rise of the logarithm towards the end of the measured range up to which a time is flat: functions meet the edge of a
full memory domain with one."""
NORMAL = 100.0
"""Degrees of freedom from which Student's law is normal."""
DIVIDING = ("ranks", "nodes", "p", "processes")
"""Parameters that divide work and add neighbours."""


@dataclass(frozen=True)
class Change:
    """Changes of slope of s series at k points: c more components of their mixtures.

    Attributes
    ----------
    share, centre, spread : (c, s, k)
        Probability of each, and the normal law of ln y after it.
    """

    share: Array
    centre: Array
    spread: Array

    def of(self, rows: Index) -> Change:
        """The same of some series."""
        return Change(self.share[:, rows], self.centre[:, rows], self.spread[:, rows])

    def for_median(self) -> Change:
        """The same, together no likelier than :data:`ranksight.model.priors.SLOPE_IN_MEDIAN`."""
        total = self.share.sum(axis=0)
        part = priors.SLOPE_IN_MEDIAN / np.maximum(total, priors.SLOPE_IN_MEDIAN)
        return Change(self.share * part, self.centre, self.spread)


def changes(fitted: Fitted, points: Array) -> Change | None:
    """Changes of slope of fitted times beyond what was measured, at `points` (k, m); None where there are none.

    Of several parameters the one counts along which a change is likeliest.
    """
    kinds = {name: metric(name).kind for name in set(fitted.metrics)}
    times = fitted.positive & np.array([kinds[name] == "time" for name in fitted.metrics])
    calls = np.array([name.startswith("MPI_") for name in fitted.kernels])
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


def turned(points: Array, location: Location, positive: Mask, kind: Kind) -> Array:
    """Changes of slope (s,) that times of one parameter show: how much the slope of a parabola of ln y in ln x changes
    over the measured range. Between ideal scaling and none lies one."""
    x, none = points[:, 0], np.zeros(len(location.values))
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
    curve, width = (np.where(use, each, 0.0) for each in (solved.coefficients[:, 0, 2], last - first))
    return np.asarray(np.abs(2 * curve * width))


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


def with_changes(
    parts: tuple[Array, Array, Array, Array], change: Change | None
) -> tuple[Array, Array, Array, Array]:
    """Add the components of changes to mixtures (c, s, k) of weights, centres, spreads and degrees of freedom."""
    if change is None:
        return parts
    share, centre, spread, nu = parts
    # What scatters around the functions does so around what they turn into.
    scatter = (share * spread**2).sum(axis=0)
    there = change.share * (share.sum(axis=0) > 0)
    return (
        np.concatenate([share * (1 - there.sum(axis=0)), there]),
        np.concatenate([centre, change.centre]),
        np.concatenate([spread, np.sqrt(change.spread**2 + scatter)]),
        np.concatenate([nu, np.full(there.shape, NORMAL)]),
    )
