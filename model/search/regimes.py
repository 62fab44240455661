"""A first configuration in another regime: one rank, one node, no network.

The smallest configuration often runs without what all others need. Where a series strays from every form by much more
than its noise, its functions are also fitted without its first value; both sets of hypotheses stand side by side with
their weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search.offer import Offer
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import KEPT, Found, Screened, evidence, keep
from ranksight.model.search.shrinkage import of, shifted
from ranksight.model.series.noise import Location

LEAST_POINTS = 4
STRAYS = 4.0
"""Residual variance over that of the noise from which the first value is put to the test."""
LEAST = 0.01
"""Share below which another regime moves no end of an interval visibly: a fifth of what lies beyond it."""


def without_first(
    space: Offer,
    points: Array,
    location: Location,
    positive: Mask,
    kind: Kind,
    forms: Found,
    problem: Problem,
    screened: Screened,
    ratio: Array,
    v0: Array,
    d0: Array,
    shift: Array,
) -> Found:
    """Add the hypotheses that leave the first value out to those found with it.

    The value left out is given a log-normal density of one e-fold around what the others say, so that both evidences
    are of all values. They are those of each series by itself: where the first values of all are of another regime, all
    differ from every hypothesis, and what series have in common would make that usual.

    Parameters
    ----------
    problem, screened
        All hypotheses with the first value.
    ratio : (s,)
        Residual variance over that of the noise.
    v0, d0 : (s,)
        Prior of the variance of each series by itself.
    shift
        How much more common the hypotheses' classes are (:func:`ranksight.model.search.shrinkage.shift`).
    """
    if points.shape[1] != 1 or kind not in ("time", "other"):
        return forms
    present = location.repeats > 0
    rows = np.flatnonzero((ratio > STRAYS) & (present.sum(axis=1) >= LEAST_POINTS) & positive)
    if not len(rows):
        return forms
    first = np.where(present[rows], points[:, 0], np.inf).argmin(axis=1)
    part = location.part(rows)
    repeats = part.repeats.copy()
    repeats[np.arange(len(rows)), first] = 0.0
    v0, d0, learned = v0[rows], d0[rows], of(shift, rows)
    score = shifted(evidence(screened.part(rows), problem.count[rows], v0, d0), learned)
    problem, screened = space.screen(points, replace(part, repeats=repeats), positive[rows], kind)
    rest = shifted(evidence(screened, problem.count, v0, d0), learned)
    other = keep(problem, screened, rest, v0, d0)
    odds = special.logsumexp(rest, axis=1) + priors.ANOTHER_REGIME - special.logsumexp(score, axis=1)
    share = np.where(np.isfinite(odds), 1 / (1 + np.exp(-np.clip(odds, -50, 50))), 0.0)
    return merge(forms, other, rows, share)


def merge(forms: Found, other: Found, rows: Index, share: Array) -> Found:
    """Mix the hypotheses of some series with others that carry a share (r,) of the weight; the leading one stays where
    that is less than half."""
    much = share > LEAST
    if not much.any():
        return forms
    rows, share = rows[much], share[much]
    weight = np.concatenate([forms.weight[rows] * (1 - share)[:, None], other.weight[much] * share[:, None]], axis=1)
    first = np.zeros_like(weight)
    first[:, 0] = share < 1 / 2
    order = np.argsort(-weight - first, axis=1, kind="stable")[:, :KEPT]
    arrays = {}
    for name in Found.__dataclass_fields__:
        if name == "basis":
            continue
        former, new = getattr(forms, name), getattr(other, name)[much]
        if name == "weight":
            mixed = weight
        else:
            missing = [(0, 0), (0, 0), *((0, a - b) for a, b in zip(former.shape[2:], new.shape[2:], strict=True))]
            mixed = np.concatenate(
                [former[rows], np.pad(new, missing, constant_values=-1 if name == "members" else 0)], axis=1
            )
        chosen = np.take_along_axis(mixed, order.reshape(order.shape + (1,) * (mixed.ndim - 2)), axis=1)
        array = former.copy()
        array[rows] = chosen[:, : array.shape[1]]
        arrays[name] = array
    total = arrays["weight"].sum(axis=1, keepdims=True)
    arrays["weight"] = arrays["weight"] / np.where(total > 0, total, 1.0)
    return Found(basis=forms.basis, **arrays)
