"""Means of a series along one coordinate: sums of one to three terms x^i log2(x)^j, coefficients not negative.

Work that is divided falls with powers between those of surfaces and volumes of a domain, steeper ones where caches hold
more with every rank; what grows are trees (logarithms), surfaces, volumes, and their sums. Parts between which a short
table cannot decide are all there: how often each occurs is learned (:mod:`ranksight.model.process.prevalence`).
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.search.terms import LEVELLING, ONE, Factor, write_term
from ranksight.model.series.domains import Domains
from ranksight.model.spaces.default import GROWING, STEEP


def power(exponent: float, logs: float = 0.0) -> Factor:
    """The term x^exponent log2(x)^logs."""
    return (exponent, logs, 0.0)


TWELFTHS = (24, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
FALLING = (*(power(-n / 12) for n in TWELFTHS), power(-1, 1), power(-1, 0.5))
SLOW = (power(1 / 12), power(1 / 6), power(0, 0.5))
"""Growth slower than the terms of Extra-P (:data:`ranksight.model.spaces.default.GROWING`)."""
RISING = (*SLOW, *GROWING, *STEEP)
DIVIDED = (power(-1), power(-2 / 3))
"""Volumes and surfaces of a divided domain, to which others are added."""
ADDED = (power(0, 1), power(0, 2), power(1 / 4), power(1 / 3), power(1 / 2), power(2 / 3), power(1), power(2))
SLOWER = (power(-2 / 3), power(-1 / 2), power(-1 / 3), power(-1, 0.5), power(-1, 1))


@lru_cache(maxsize=1)
def along_one() -> tuple[Array, Index]:
    """Terms (t, 1, 3) and the means (h, 3) that are sums of them; -1 pads."""
    single = [(ONE,), *((term,) for term in FALLING + RISING)]
    with_constant = [(ONE, term) for term in FALLING + RISING]
    pairs = list(itertools.product(DIVIDED, ADDED))
    pairs += [(power(-1), term) for term in SLOWER]
    growth = [(power(0, 1), term) for term in (power(1 / 2), power(1), power(2))]
    growth += [(power(1), power(2)), (power(1), power(3)), (power(2), power(3)), (power(1), power(1, 1))]
    levels = [(first, term) for first in (ONE, *DIVIDED) for term in LEVELLING]
    several = [*single, *with_constant, *levels, *pairs, *growth, *((ONE, *pair) for pair in pairs + growth)]
    names = list(dict.fromkeys(term for mean in several for term in mean))
    members = np.full((len(several), 3), -1, dtype=np.intp)
    for row, mean in enumerate(several):
        members[row, : len(mean)] = [names.index(term) for term in mean]
    return np.array(names, dtype=np.float64)[:, None, :], members


def divided(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) fall along a coordinate: it divides their work."""
    falls = np.asarray((terms[..., 0] < 0).any(axis=1))
    return np.asarray(((members >= 0) & falls[members]).any(axis=-1))


def of_free_power(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) may have another exponent than listed: one term that falls. Caches and iterations
    make any; what grows alone grows as an algorithm does."""
    return np.asarray(((members >= 0).sum(axis=-1) == 1) & divided(terms, members))


@lru_cache(maxsize=1)
def in_domains() -> tuple[Array, Index]:
    """Terms (t, 2, 3) of x ranks, y of which share a memory domain, and means (2 h, 3): those f(x) of
    :func:`along_one`, and each with a cost per work that follows the ranks of a domain and stays when it is full.

    That is f(y) where the work of a rank stays, and f(y) y / x where ranks divide it. Within one domain both are f(x).
    """
    terms, members = along_one()
    count = len(terms)
    whole, shared, full = (np.zeros((count, 2, 3)) for _ in range(3))
    whole[:, 0] = shared[:, 1] = full[:, 1] = terms[:, 0]
    full[:, 1, 0] += 1
    full[:, 0, 0] = -1
    moved = np.where(divided(terms, members)[:, None], members + 2 * count, members + count)
    return np.concatenate([whole, shared, full]), np.concatenate([members, np.where(members < 0, -1, moved)])


def coordinates(points: Array, domains: Domains | None) -> Array:
    """What terms are functions of, at `points` (k, d): these, or ranks (k, 1) and those that share a domain, (k, 2)."""
    return points if domains is None else np.stack([points[:, 0], domains.active(points[:, 0])], axis=1)


def text_of(terms: Array, members: Index) -> str:
    """A mean (q,) over terms (t, m, 3) as people read it, such as ``1 + x^-1``."""
    names = ("x", "y")[: terms.shape[1]]
    return " + ".join(write_term(terms[at], names) or "1" for at in members if at >= 0)
