"""Traffic of ranks that work on as much, as many to a domain, as ranks that were measured.

What caches hold goes by what each rank works on and by how many ranks share them, whichever domain they are on and
however many there are: 72 ranks on four full domains find the caches as 18 ranks on one find them with a quarter of the
problem. Functions of the ranks and the size do not know that. Where as many ranks to a domain were measured with more
and with less work w a rank, the bytes per unit of work b / w lie between theirs,

    ln(b / w) = (1 - t) ln(b_1 / w_1) + t ln(b_2 / w_2),    t = ln(w / w_1) / ln(w_2 / w_1),

nearer to the one or to the other by min(t, 1 - t) of their distance at most.

A parameter may change the traffic for other reasons: more variables in a cell are no larger share of the same. That the
caches do it shows where traffic falls with the ranks as well, at the same other parameters, as each brings caches of
its own; by as much as that is beyond doubt it is believed, and else the answer lies between that and the functions.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, log, log_ratio
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import Quantity, mix
from ranksight.model.sharing.traffic import NOISE
from ranksight.model.uncertainty.forecast import TAIL

NEAR = 0.05
"""Logarithmic distance up to which work is as much as was measured."""


@dataclass(frozen=True)
class Seen(Stored):
    """What K kernels moved at the n configurations measured."""

    active: Index  # (n,): ranks in the fullest domain
    work: Array  # (K, n): per rank; NaN where it was not counted
    reads: Array  # (K, n): bytes per unit of work
    writes: Array  # (K, n)
    belief: Array  # (K,): that the share of a rank determines its traffic, whatever the parameters are
    _sizes = "active:n>=1 work:kn reads:kn writes:kn belief:k>=0"

    def take(self, counts_by_functions: list[Quantity], active: Index, where: Mask) -> list[Quantity]:
        """Work, bytes read and bytes written, with the bytes as they were counted at configurations `where` (k,).

        `counts_by_functions`: the three as functions say, (K, k) each. `active` (k,): ranks in the fullest domain.
        """
        work, *counts = counts_by_functions
        known, rates, far = self.at(np.exp(work.centre), active)
        share = np.where(known & where, self.belief[:, None], 0.0)
        weights, width = np.stack([share, 1 - share]), np.hypot(far / TAIL, NOISE)
        return [
            work,
            *(mix([work.moved(log(rate)).wider(width), now], weights) for rate, now in zip(rates, counts, strict=True)),
        ]

    def at(self, work: Array, active: Index) -> tuple[Mask, tuple[Array, Array], Array]:
        """Where it is known, bytes read and written per unit of work, and how far off these may be, each (K, k).

        `work` (K, k): per rank. `active` (k,): ranks in the fullest domain.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.log(self.work)[:, :, None] - np.log(work)[:, None, :]
        same = (self.active[:, None] == active[None, :]) & np.isfinite(distance)
        less, more = (np.where(same & side, np.abs(distance), np.inf) for side in (distance <= 0, distance >= 0))
        first, second = less.argmin(axis=1), more.argmin(axis=1)
        below, above = less.min(axis=1), more.min(axis=1)
        # A little beyond the least or the most that was measured is as good as there.
        first, below = np.where(np.isfinite(below), first, second), np.where(np.isfinite(below), below, 0.0)
        beyond = ~np.isfinite(less.min(axis=1)) | ~np.isfinite(more.min(axis=1))
        second, above = np.where(np.isfinite(above), second, first), np.where(np.isfinite(above), above, 0.0)
        known = same.any(axis=1) & (~beyond | (below + above <= NEAR))
        span = below + above
        t = np.where(beyond | (span == 0), 0.0, below / np.where(span > 0, span, 1.0))
        result, far = [], np.zeros(t.shape)
        for rate in (self.reads, self.writes):
            one, two = (np.take_along_axis(rate, place, axis=1) for place in (first, second))
            between = log_ratio(two, one)
            between = np.where(np.isfinite(between), between, 0.0)
            result.append(one * np.exp(t * between))
            far = np.maximum(far, np.minimum(t, 1 - t) * np.abs(between))
        known &= np.isfinite(result[0]) & (result[0] > 0)
        return known, (result[0], np.nan_to_num(result[1])), far

    def _fits(self) -> bool:
        return bool((self.belief <= 1).all())


def by_share(rates: Array, points: Array, column: int) -> Array:
    """Belief (K,) that each rank's share determines the bytes per unit of work, `rates` (K, n) at `points` (n, m).

    Caches that come with further ranks are small compared with the one that they share: where these make traffic fall,
    larger problems make it rise by the same. `column`: the ranks among the parameters.
    """
    ranks, others = points[:, column], np.delete(points, column, axis=1)
    logs = log(rates)
    logs = np.where(np.isfinite(logs), logs, np.nan)
    moved, fallen = np.zeros((2, len(rates)))
    for members in _groups(ranks[:, None]):
        moved = np.fmax(moved, np.fmax.reduce(logs[:, members], axis=1) - np.fmin.reduce(logs[:, members], axis=1))
    for members in _groups(others):
        first, last = members[ranks[members].argmin()], members[ranks[members].argmax()]
        fallen = np.fmax(fallen, logs[:, first] - logs[:, last])
    return np.asarray(np.where(moved > NEAR, 1 - np.exp(-((fallen / NEAR) ** 2)), 1.0))


def _groups(keys: Array) -> list[Index]:
    """Indices of equal rows."""
    _, which = np.unique(keys, axis=0, return_inverse=True)
    which = np.asarray(which).reshape(-1)
    return [np.flatnonzero(which == one) for one in range(int(which.max()) + 1)]
