"""Late changes: the last value measured may be of another regime, and growth may have ended before it.

A last value that is far from what all others foretell is what a steeper form makes of it, or slow by chance, or the
first of another regime (a switch, another level of memory); growth that falls short may have ended on the way, as
neighbours to exchange with are no more from some ranks on. No form of a search space has such an end. The last value y
is left out, and the others foretell it with a density (:mod:`ranksight.model.uncertainty.drift`). Against that stand,
with the odds :data:`ranksight.model.search.regimes.RARE` before the data,

- another regime, ln y with a standard deviation of one: the hypotheses of the others get its share of the weight, and
  what y departs from them by goes on as departures do (:mod:`ranksight.model.uncertainty.lasting`);
- an end anywhere between the last two points: ln y is even between what the others say at both, within their scatter,
  and values ahead are as y.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from ranksight.model.search.regimes import LEAST, RARE, merge
from ranksight.model.search.search import Found
from ranksight.model.series.noise import Location
from ranksight.model.uncertainty.drift import LeftOut, foretold
from ranksight.model.uncertainty.lasting import Lasting
from ranksight.model.uncertainty.strong import Change

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SURE = 1e-9
"""Spread that is none, beside that of values around their functions."""


def with_changes(
    found: Found, known: Lasting, left: LeftOut, density: Array, law: Array, location: Location, positive: Mask
) -> tuple[Found, Lasting]:
    """Add what other regimes and ends make of the last values to the hypotheses found and to what is known.

    Parameters
    ----------
    left : LeftOut
        What the other values say.
    density : (s, g)
        Log-densities of the last values for each drift.
    law : (g,)
        Law of drift.
    """
    if left.found is None:
        return found, known
    rows = left.rows
    others = logsumexp(density[rows], axis=1, b=law)
    regime = np.full(len(rows), RARE - np.log(2 * np.pi) / 2)
    end = RARE + _ended(left.found, known.points, location.part(rows), positive[rows])
    told = density[rows].any(axis=1)
    either = np.logaddexp(others, regime)
    ended = np.zeros(len(positive))
    ended[rows] = np.where(told, np.exp(end - np.logaddexp(either, end)), 0.0)
    ended[ended < LEAST] = 0.0
    share = np.where(told, np.exp(regime - either), 0.0)
    return merge(found, left.found, rows, share), replace(known, ended=ended)


def _ended(found: Found, points: Array, location: Location, positive: Mask) -> Array:
    """Log-density (r,) of the last value where growth ended between the two last points; of none where it falls."""
    weight, centre, spread, _ = foretold(found, points, positive)
    total = weight.sum(axis=0)
    weight = weight / np.where(total > 0, total, 1.0)
    place = np.argsort(np.where(location.repeats > 0, points[:, 0], -np.inf), axis=1)[:, -2:]
    low, high = np.take_along_axis((weight * centre).sum(axis=0), place, axis=1).T
    scatter = np.sqrt(np.take_along_axis((weight * spread**2).sum(axis=0), place, axis=1)[:, 0])
    last = np.take_along_axis(np.where(location.repeats > 0, location.values, np.nan), place[:, 1:], axis=1)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        y, rise = np.log(last), high - low
        within = (ndtr((y - low) / scatter) - ndtr((y - high) / scatter)) / rise
        return np.where((rise > 0) & (within > 0), np.log(within), -np.inf)


def ending(known: Lasting, points: Array) -> Change:
    """What ends make of the values ahead at `points` (k, m): they are as the last one."""
    x = known.points[:, known.axis].T
    x = np.where(np.isfinite(known.logs), x, -np.inf)
    last = np.take_along_axis(known.logs, x.argmax(axis=1)[:, None], axis=1)
    ahead = (x.max(axis=1)[:, None] < points[:, known.axis].T) & np.isfinite(last)
    return Change(
        np.where(ahead, known.ended[:, None], 0.0),
        np.where(ahead, last, 0.0),
        np.full(ahead.shape, SURE),
    )
