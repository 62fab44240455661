"""Kinds of sums of terms of the ranks (:mod:`ranksight.model.structure.rankterms`), as masks over all sums."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.dims import dims_create
from ranksight.model.structure.rankterm import doublings
from ranksight.model.structure.rankterms import (
    ALL_AROUND,
    AROUND,
    CYCLIC,
    ENDS,
    HALVING,
    ONCE,
    RANK_TERMS,
    RINGS,
    SENT_TO,
    in_groups,
    sums,
    term_values,
)

FAST = 3.0
"""Growth of a term from 64 to 4,096 ranks above that of a tree's steps."""


@lru_cache(maxsize=1)
def cut_edges() -> Array:
    """Of how many edges of a block each term (t,) is a product: k where it falls as the k-th power of all sides.

    NaN in one dimension, where the ranks cut unknown sides.
    """
    near, far = 2**10, 2**20
    powers = []
    for term in RANK_TERMS.values():
        first, last = (term.value((side,) * term.dimensions) for side in (near, far))
        falls = term.dimensions > 1 and first > 0 and last > 0
        powers.append(np.log(first / last) / np.log(far / near) if falls else np.nan)
    return np.array(powers)


@lru_cache(maxsize=1)
def corners() -> Mask:
    """Terms (t,) of neighbours across edges and corners too."""
    return np.array([term.text in AROUND for term in RANK_TERMS.values()])


def fewest_partners(ranks: int) -> Array:
    """Mean number (t,) of ranks that a rank on the grid of each term of :data:`SENT_TO` sends to at least: one way, as
    waves go, on a domain that ends; of recursive halving a rank for each step; all that count partners; zero for other
    terms."""
    halving = doublings(ranks) * (1 << doublings(ranks)) / ranks
    fewest = []
    for name, term in RANK_TERMS.items():
        sides = dims_create(ranks, term.dimensions)
        around = prod(3 - 2 / side for side in sides) - 1 if term.text in ALL_AROUND.values() else 0.0
        near = max(around / 2, sum(1 - 1 / side for side in sides)) if name in SENT_TO else 0.0
        near = term.value(sides) if term.limit or term.text in ONCE else near
        fewest.append(halving if name == HALVING else near)
    return np.array(fewest)


@lru_cache(maxsize=1)
def rare() -> Mask:
    """Terms (t,) that grow with the ranks faster than a tree's steps do, and those of :data:`ONCE`, :data:`CYCLIC`."""
    first, last = term_values(np.array([64, 4096])).T
    named = np.array([term.text == CYCLIC for term in RANK_TERMS.values()])
    return np.asarray((last > FAST * first) | named | met_once())


@lru_cache(maxsize=1)
def met_once() -> Mask:
    """Terms (t,) of :data:`ONCE`: as many are whom a rank inside of a grid meets, and few send once to each of these
    where a ring has them on both sides."""
    return np.array([term.text in ONCE for term in RANK_TERMS.values()])


@lru_cache(maxsize=1)
def rare_sums() -> Mask:
    """Sums (2, h) with a term that is :func:`rare`; in the second row without :func:`met_once`."""
    kinds = rare(), rare() & ~met_once()
    return np.array([[bool(kind[list(one)].any()) for one in sums()] for kind in kinds])


@lru_cache(maxsize=1)
def limits() -> Index:
    """Partners that a rank has at most by each sum (h,); 0 where they are not limited."""
    of_terms = np.array([term.limit for term in RANK_TERMS.values()])
    return np.array([of_terms[list(one)].max() for one in sums()], dtype=np.intp)


@lru_cache(maxsize=8)
def grouped(group: int | None = None) -> Mask:
    """Sums (h,) of terms of groups of ranks; with `group`, of groups of that many alone."""
    of_terms = np.array([in_groups(name) for name in RANK_TERMS])
    members = [set(of_terms[list(one)].tolist()) - {0} for one in sums()]
    return np.array([bool(each) and (group is None or each == {group}) for each in members])


@lru_cache(maxsize=8)
def shown_groups(most: int) -> Mask:
    """Sums (h,) of a single term of groups of fewer than `most` ranks."""
    groups = [in_groups(name) for name in RANK_TERMS]
    return np.array([len(one) == 1 and 0 < groups[one[0]] < most for one in sums()])


@lru_cache(maxsize=1)
def uneven() -> Mask:
    """Sums (h,) with a term of which two ranks have different parts: of groups, and of bits in their numbers."""
    of_terms = np.array([in_groups(name) > 0 or "ones(" in name for name in RANK_TERMS])
    return np.array([bool(of_terms[list(one)].any()) for one in sums()])


@lru_cache(maxsize=8)
def of_sides(texts: tuple[str, ...]) -> tuple[Mask, Mask]:
    """Sums (h,) all of whose terms are these of a single side, and those that have any of them."""
    names = {text.format(name) for text in texts for name in "xyz"}
    single = np.array([term.dimensions > 1 and term.text in names for term in RANK_TERMS.values()])
    members = [single[list(one)] for one in sums()]
    return np.array([bool(each.all()) for each in members]), np.array([bool(each.any()) for each in members])


@lru_cache(maxsize=1)
def turned() -> Mask:
    """Sums (h,) of terms of a grid whose lines are turned."""
    of_terms = np.array([term.turned for term in RANK_TERMS.values()])
    return np.array([bool(of_terms[list(one)].any()) for one in sums()])


def partner_counts() -> Mask:
    """Sums (h,) of numbers of partners along single sides: on lines that end or are rings, all of a line, or a tree."""
    return of_sides((ENDS[0], RINGS[0], "{0} - 1", "ceil(log2({0}))"))[0]


def one_kind() -> Mask:
    """Sums (h,) all of whose terms are of lines that end, all of rings, or none of either."""
    ends, rings = of_sides(ENDS), of_sides(RINGS)
    return np.asarray(ends[0] | rings[0] | ~(ends[1] | rings[1]))
