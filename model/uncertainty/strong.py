"""Strong scaling ahead: between ideal and none.

Times that fall along a parameter are work that is divided. What comes after the last measured value, functions of that
parameter alone cannot know: a plateau may be the bandwidth of a domain that the next ranks leave, a fall may end at the
cost of communication. From the last value on, the slope of ln y over ln x lies between -1 (ideal) and 0 (none), and
seldom
outside: it is given a normal law around -1/2 with a standard deviation of 1/2.

How likely the law changes: changes come at a constant rate per e-fold, of which D e-folds were measured without knowing
one and d are asked for, so that one falls ahead with the odds d to D (Laplace's rule of succession in its continuous
form:
Jaynes, *Probability Theory*, 6.9 and 18.6). Series that fall less than ideally are strong scaling only in part, and
have that part of the probability; those that keep to their functions more closely than usual, as their repetitions
show, have as much less of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

IDEAL = -1.0
RATE = 1.0
"""Changes in the range measured that the odds suppose."""
SAY = 0.4
"""Most that changes which no value tells have to say in the median: it stays within a standard deviation of the
functions."""
NORMAL = 100.0
"""Degrees of freedom from which Student's law is normal."""


@dataclass(frozen=True)
class Change:
    """One more component of the mixtures of s series at k points.

    Attributes
    ----------
    share, centre, spread : (s, k)
        Probability of a change, and the law of ln y after it.
    told : bool
        Whether the values themselves tell it, and not what is usual.
    """

    share: Array
    centre: Array
    spread: Array
    told: bool = False

    @classmethod
    def none(cls, series: int, points: int, told: bool = False) -> Change:
        """No change anywhere."""
        return cls(np.zeros((series, points)), np.zeros((series, points)), np.ones((series, points)), told)

    def put(self, rows: NDArray[np.intp], other: Change) -> None:
        """Take the changes of some series from another where they are more likely."""
        more = other.share > self.share[rows]
        for name in ("share", "centre", "spread"):
            mine = getattr(self, name)
            mine[rows] = np.where(more, getattr(other, name), mine[rows])

    def of(self, part: NDArray[np.intp]) -> Change:
        """The same of some series."""
        return Change(self.share[part], self.centre[part], self.spread[part], self.told)


def change(low: float, high: float, x: Array, first: Array, last: Array, pace: Array) -> Change:
    """What a change of the law of falling times makes of the values ahead.

    Parameters
    ----------
    low, high : float
        Ends of the range measured, positive.
    x : (1, k)
    first, last : (s, k)
        ln y at both ends of the range, other parameters as asked.
    pace : (s,)
        How much faster than usual series leave their functions (:func:`ranksight.model.uncertainty.drift.pace`).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = float(np.log(high / low))
        ahead = np.log(x / high)
        use = (measured > 0) & (ahead > 0) & np.isfinite(ahead) & np.isfinite(first) & np.isfinite(last)
        ahead = np.where(use, ahead, 0.0)
        scales = np.clip(np.where(use, (last - first) / (IDEAL * measured), 0.0), 0.0, 1.0)
        share = np.where(use, RATE * ahead / (measured + RATE * ahead), 0.0) * scales
        share = share * np.minimum(pace, 1.0)[:, None]
    last = np.where(use, last, 0.0)
    return Change(share, last + IDEAL / 2 * ahead, np.maximum(abs(IDEAL) / 2 * ahead, 1e-9))


def less_likely(changes: Sequence[Change]) -> list[Change]:
    """The changes, those that no value tells together no likelier than :data:`SAY`."""
    total = sum((change.share for change in changes if not change.told), np.zeros(1))
    part = SAY / np.maximum(total, SAY)
    return [change if change.told else replace(change, share=change.share * part) for change in changes]


def with_changes(
    parts: tuple[Array, Array, Array, Array], changes: Sequence[Change]
) -> tuple[Array, Array, Array, Array]:
    """Add a component for each change to mixtures (c, s, k) of weights, centres, spreads and degrees of freedom; one
    after the other takes its share of all before it."""
    if not changes:
        return parts
    share, centre, spread, nu = parts
    # What scatters around the functions does so around what they turn into.
    scatter = (share * spread**2).sum(axis=0)
    known, rest, shares = share.sum(axis=0) > 0, np.ones(share.shape[1:]), []
    for change in reversed(changes):
        there = change.share * known
        shares.append((rest * there)[None])
        rest = rest * (1 - there)
    return (
        np.concatenate([share * rest, *reversed(shares)]),
        np.concatenate([centre, *(change.centre[None] for change in changes)]),
        np.concatenate([spread, *(np.sqrt(change.spread**2 + scatter)[None] for change in changes)]),
        np.concatenate([nu, np.full((len(changes), *rest.shape), NORMAL)]),
    )
