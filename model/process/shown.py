"""The function that is printed: a short closed form fitted to the medians that are predicted.

A mixture has no formula. What people read is the sum of few terms that is nearest to the latent medians over the
measured range and :data:`BEYOND` times its end, with its largest difference from them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import SLOW, along_one, at_runs, doubling, offered_at
from ranksight.model.process.solve import dividing, divisions
from ranksight.model.search.terms import LEVELLING, LEVELS, ONE, beyond_doubling, growth, of_inverses, values

BEYOND = 16.0
"""Factor of the largest measured value up to which the printed function holds."""
POINTS = (25, 9, 6, 4)
"""Values of each of one to four coordinates, evenly apart in the logarithm, that it is fitted at."""
CLOSE = 0.02
"""Largest relative difference, 1, with which fewer terms are preferred to a closer sum of more."""
RIDGE = 1e-9
"""Part of the normal equations that keeps terms apart that are nearly one."""
LARGEST = 1e6
"""Difference of forms that do not fit at all."""
BATCH = 24


@dataclass(frozen=True)
class Shown:
    """Closed forms of p series."""

    terms: Array  # (t, d, 3)
    members: Index  # (p, q): terms of each; -1 pads
    coefficients: Array  # (p, q)
    difference: Array  # (p,): largest relative difference from the medians


def shown(process: Process, points: Array, medians: Array) -> Shown:
    """The closed form of every series of a process with `medians` (p, k) of ln y at its :func:`points_shown` (k, d):
    over one coordinate of all sums that it weighs and of single powers, over several of those that it found likely."""
    if len(process.axes) == 1:
        return nearest_sums(points, medians, process.points)
    runs, x = divisions(process.points, process.points), divisions(points, process.points)
    terms = _in_measured(process.terms, process.points)
    return _as_measured(_listed(terms, process.members, x, medians, runs)[0], process.points)


def nearest_sums(points: Array, medians: Array, measured: Array) -> Shown:
    """The sums over one coordinate nearest to `medians` (p, k) of ln y at `points` (k, 1), of all that a process weighs
    and of single powers; `measured` (n, 1) as the values were."""
    runs, x = divisions(measured, measured), divisions(points, measured)
    terms, members, _ = at_runs(*along_one(), runs[:, 0])
    offered = offered_at(terms, members, runs)
    if dividing(measured)[0]:
        offered &= ~doubling(terms, members)
    every = members[offered]
    listed, order = _listed(_in_measured(terms, measured), every[None], x, medians, runs)
    return _as_measured(_with_powers(np.log(x[:, 0]), medians, _in_powers(listed, order)), measured)


def _in_measured(terms: Array, measured: Array) -> Array:
    """Terms (t, d, 3) with the powers alone of coordinates that are divisions of one: these are powers of the parameter
    that was `measured` (n, d), too. The slowest stands for a logarithm."""
    divided = dividing(measured) & (terms[..., 2] == 0)
    logarithm = (terms[..., 0] == 0) & (terms[..., 1] > 0)
    power = np.where(logarithm, SLOW[0][0], terms[..., 0])
    return np.where(divided[..., None], power[..., None] * (np.arange(3) == 0), terms)


def _as_measured(sums: Shown, measured: Array) -> Shown:
    """The same in powers of the parameters that were `measured` (n, d), where it is of divisions of one."""
    return replace(sums, terms=of_inverses(sums.terms, dividing(measured)))


def _listed(terms: Array, members: Index, points: Array, medians: Array, measured: Array) -> tuple[Shown, list[int]]:
    """The nearest of sums `members` (p or 1, h, q) of terms (t, d, 3), and the order of the terms' growth."""
    at = np.where(beyond_doubling(terms, measured)[:, None], 0.0, values(terms, points))
    order = sorted(range(len(terms)), key=lambda place: growth(tuple(map(tuple, terms[place].tolist()))))
    place = np.empty(len(terms), dtype=np.intp)
    place[order] = np.arange(len(terms))
    batches = np.array_split(np.arange(len(medians)), max(1, -(-len(medians) // BATCH)))
    common = len(members) == 1
    nearest = [_nearest(medians[batch], at, members if common else members[batch], place) for batch in batches]
    return Shown(terms, *(np.concatenate(each) for each in zip(*nearest, strict=True))), order


def points_shown(process: Process) -> Array:
    """Where functions are fitted (k, d): evenly apart in the logarithm of every coordinate, the farthest last."""
    count, runs = len(process.axes), divisions(process.points, process.points)
    low, high = runs.min(axis=0), BEYOND * runs.max(axis=0)
    axes = [np.geomspace(a, b, POINTS[count - 1]) for a, b in zip(low, high, strict=True)]
    return divisions(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, count), process.points)


def _in_powers(listed: Shown, order: list[int]) -> Shown:
    """The same with b (1 - x^-a) written as b - b x^-a, in powers alone; `order` of the terms' growth."""
    whole = np.zeros((len(listed.members), len(listed.terms)))
    rows = np.broadcast_to(np.arange(len(whole))[:, None], listed.members.shape)
    used = listed.members >= 0
    whole[rows[used], listed.members[used]] = listed.coefficients[used]
    named = {tuple(term[0]): place for place, term in enumerate(listed.terms.tolist())}
    for factor, exponent in zip(LEVELLING, LEVELS, strict=True):
        level = whole[:, named[factor]].copy()
        whole[:, named[ONE]] += level
        whole[:, named[(-exponent, 0.0, 0.0)]] -= level
        whole[:, named[factor]] = 0.0
    powers = np.array([place for place in order if tuple(listed.terms[place, 0]) not in LEVELLING])
    whole = whole[:, powers]
    # What is taken off comes last.
    members = np.argsort(np.where(whole == 0, 2, whole < 0), axis=1, kind="stable")[:, : listed.members.shape[1]]
    coefficients = np.take_along_axis(whole, members, axis=1)
    return replace(
        listed, terms=listed.terms[powers], members=np.where(coefficients == 0, -1, members), coefficients=coefficients
    )


def _with_powers(logs: Array, medians: Array, listed: Shown) -> Shown:
    """The same with powers of three digits where no listed sum is close and one power is nearer."""
    centred = logs - logs.mean()
    exponent = np.round(medians @ centred / (centred @ centred), 3)
    rest = medians - exponent[:, None] * logs
    level = (rest.max(axis=1) + rest.min(axis=1)) / 2
    difference = np.expm1(rest.max(axis=1) - level)
    rows = np.flatnonzero((listed.difference > CLOSE) & (difference < listed.difference))
    if not len(rows):
        return listed
    powers, which = np.unique(exponent[rows], return_inverse=True)
    added = np.zeros((len(powers), 1, 3))
    added[:, 0, 0] = powers
    members, coefficients = listed.members.copy(), listed.coefficients.copy()
    members[rows], coefficients[rows] = -1, 0.0
    members[rows, 0], coefficients[rows, 0] = len(listed.terms) + which, np.exp(level[rows])
    nearer = np.where(np.isin(np.arange(len(medians)), rows), difference, listed.difference)
    return Shown(np.concatenate([listed.terms, added]), members, coefficients, nearer)


def _nearest(medians: Array, at: Array, members: Index, place: Index) -> tuple[Index, Array, Array]:
    """Members (p, q), coefficients (p, q) and differences (p,) of the sums `members` (p or 1, h, q) of terms `at`
    (t, k) nearest to `medians` (p, k), logarithms; `place` (t,) is that of each term in the order of growth."""
    least_median = medians.min(axis=1, keepdims=True)
    share = at[None] * np.exp(least_median - medians)[:, None]
    unit = share.max(axis=2)
    share /= np.where(unit > 0, unit, 1.0)[..., None]
    normal, right = share @ np.swapaxes(share, 1, 2), share.sum(axis=2)
    shape = len(medians), members.shape[1]
    members = np.broadcast_to(members, (*shape, members.shape[2]))
    difference, coefficients = np.full(shape, np.inf), np.zeros(members.shape)
    sizes = (members >= 0).sum(axis=2)
    for size in range(1, members.shape[2] + 1):
        rows, forms = np.nonzero(sizes == size)
        if not len(rows):
            continue
        used = members[rows, forms, :size]
        matrix = normal[rows[:, None, None], used[:, :, None], used[:, None, :]]
        matrix = matrix * (1 + RIDGE * np.eye(size))
        each = np.linalg.solve(matrix, right[rows[:, None], used][..., None])[..., 0]
        function = np.einsum("fq,fqk->fk", each, share[rows[:, None], used])
        largest = np.abs(np.log(np.maximum(function, 1e-9))).max(axis=1)
        difference[rows, forms] = np.where((each >= 0).all(axis=1), largest, np.inf)
        coefficients[rows, forms, :size] = each
    # The fewest terms that are close, else the closest.
    least = difference.min(axis=1, keepdims=True)
    good = difference <= np.maximum(CLOSE / 2, least)
    # Forms that do not fit have no difference; between 0 and 1 it only decides among equally many terms.
    finite = np.minimum(difference, LARGEST)
    nearer = finite / (1 + finite)
    best = np.where(good, sizes + nearer, np.inf).argmin(axis=1)
    rows = np.arange(len(medians))
    # As they are read: what grows fastest comes last.
    used = members[rows, best]
    order = np.argsort(np.where(used >= 0, place[used], len(place)), axis=1, kind="stable")
    used = np.take_along_axis(used, order, axis=1)
    ordered = np.take_along_axis(coefficients[rows, best], order, axis=1)
    scaled = ordered / np.where(used >= 0, np.take_along_axis(unit, np.maximum(used, 0), axis=1), 1.0)
    scaled *= np.exp(least_median)
    return used, np.where(used >= 0, scaled, 0.0), np.expm1(difference[rows, best])
