"""The function that is printed: a short closed form fitted to the medians that are predicted.

A mixture has no formula. What people read is the sum of few terms that is nearest to the latent medians over the
measured range and :data:`BEYOND` times its end, with its largest difference from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.model.process.means import along_one
from ranksight.model.process.posterior import Process
from ranksight.model.search.terms import growth, values

BEYOND = 16.0
"""Factor of the largest measured value up to which the printed function holds."""
POINTS = 25
"""Values of the coordinate, evenly apart in the logarithm, that it is fitted at."""
CLOSE = 0.02
"""Largest relative difference, 1, with which fewer terms are preferred to a closer sum of more."""
RIDGE = 1e-9
"""Part of the normal equations that keeps terms apart that are nearly one."""
LARGEST = 1e6
"""Difference of forms that do not fit at all."""
BATCH = 200


@dataclass(frozen=True)
class Shown:
    """Closed forms of p series."""

    terms: Array  # (t, 1, 3): those of :func:`ranksight.model.process.means.along_one`, and other powers
    members: Index  # (p, q): terms of each; -1 pads
    coefficients: Array  # (p, q)
    difference: Array  # (p,): largest relative difference from the medians


def shown(process: Process) -> Shown:
    """The closed form of every series of a process."""
    x = np.geomspace(process.x.min(), BEYOND * process.x.max(), POINTS)
    medians = process.medians(x)
    terms, members = along_one()
    batches = np.array_split(np.arange(len(process)), max(1, -(-len(process) // BATCH)))
    order = sorted(range(len(terms)), key=lambda at: growth((tuple(terms[at, 0].tolist()),)))
    place = np.empty(len(terms), dtype=np.intp)
    place[order] = np.arange(len(terms))
    found = [_nearest(medians[batch], values(terms, x[:, None]), members, place) for batch in batches]
    return _with_powers(np.log(x), medians, Shown(terms, *(np.concatenate(each) for each in zip(*found, strict=True))))


def _with_powers(logs: Array, medians: Array, found: Shown) -> Shown:
    """The same with powers of three digits where no listed sum is close and one power is nearer."""
    apart = logs - logs.mean()
    exponent = np.round(medians @ apart / (apart @ apart), 3)
    rest = medians - exponent[:, None] * logs
    level = (rest.max(axis=1) + rest.min(axis=1)) / 2
    difference = np.expm1(rest.max(axis=1) - level)
    rows = np.flatnonzero((found.difference > CLOSE) & (difference < found.difference))
    if not len(rows):
        return found
    own, which = np.unique(exponent[rows], return_inverse=True)
    added = np.zeros((len(own), 1, 3))
    added[:, 0, 0] = own
    members, coefficients = found.members.copy(), found.coefficients.copy()
    members[rows], coefficients[rows] = -1, 0.0
    members[rows, 0], coefficients[rows, 0] = len(found.terms) + which, np.exp(level[rows])
    nearer = np.where(np.isin(np.arange(len(medians)), rows), difference, found.difference)
    return Shown(np.concatenate([found.terms, added]), members, coefficients, nearer)


def _nearest(medians: Array, at: Array, members: Index, place: Index) -> tuple[Index, Array, Array]:
    """Members (p, q), coefficients (p, q) and differences (p,) of the sums of terms `at` (t, k) nearest to `medians`
    (p, k), logarithms; `place` (t,) is that of each term in the order of growth."""
    share = at[None] * np.exp(-medians)[:, None]
    unit = share.max(axis=2)
    share /= unit[..., None]
    normal, right = share @ np.swapaxes(share, 1, 2), share.sum(axis=2)
    difference = np.full((len(medians), len(members)), np.inf)
    coefficients = np.zeros((len(medians), *members.shape))
    sizes = (members >= 0).sum(axis=1)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        these = members[rows, :size]
        matrix = normal[:, these[:, :, None], these[:, None, :]]
        matrix = matrix * (1 + RIDGE * np.eye(size))
        each = np.linalg.solve(matrix, right[:, these][..., None])[..., 0]
        function = np.einsum("phq,phqk->phk", each, share[:, these])
        apart = np.abs(np.log(np.maximum(function, 1e-9))).max(axis=2)
        difference[:, rows] = np.where((each >= 0).all(axis=2), apart, np.inf)
        coefficients[:, rows, :size] = each
    # The fewest terms that are close, else the closest.
    least = difference.min(axis=1, keepdims=True)
    good = difference <= np.maximum(CLOSE / 2, least)
    # Forms that do not fit have no difference; between 0 and 1 it only decides among equally many terms.
    finite = np.minimum(difference, LARGEST)
    nearer = finite / (1 + finite)
    best = np.where(good, sizes + nearer, np.inf).argmin(axis=1)
    rows = np.arange(len(medians))
    # As they are read: what grows fastest comes last.
    used = members[best]
    order = np.argsort(np.where(used >= 0, place[used], len(place)), axis=1, kind="stable")
    used = np.take_along_axis(used, order, axis=1)
    found = np.take_along_axis(coefficients[rows, best], order, axis=1)
    scaled = found / np.where(used >= 0, np.take_along_axis(unit, np.maximum(used, 0), axis=1), 1.0)
    return used, np.where(used >= 0, scaled, 0.0), np.expm1(difference[rows, best])
