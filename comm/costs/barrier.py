"""Barrier: nobody leaves before everybody has come; messages carry no data."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2, over_rounds
from ranksight.core.arrays import Array, Ints


@algorithm("barrier/dissemination", "barrier/bruck", equation="ceil(log2 p) a")
def dissemination(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """In round ``j`` every rank signals rank ``+ 2^j``: ``ceil(log2 p) T(0)``.

    Source: Hensgen, Finkel and Manber, Int. J. Parallel Programming 17 (1988) 1. Open MPI calls it bruck.
    """
    return over_rounds(ceil_log2(ranks), lambda j: fabric.shift(ranks, size * 0.0, 1 << j))


@algorithm("barrier/recursive_doubling", equation="log2 p' a, and 2 a where p is not a power of two")
def recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Pairwise exchanges at doubling distance; surplus ranks report before and are released after.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.5 (the scheme of allreduce, without data).
    """
    return recursive_exchange(ranks, size * 0.0, fabric)


def recursive_exchange(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Exchange the whole vector at doubling distance and combine: ``log2 p' (T(m) + y m)``, ``p' = 2^floor(log2 p)``.

    Where ``p`` is not a power of two, ``p - p'`` ranks first send theirs to a neighbour and get the result at the end:
    ``2 T(m) + y m`` more.
    """
    rounds = floor_log2(ranks)
    time = over_rounds(rounds, lambda j: fabric.exchange(ranks, size, 1 << j) + fabric.combine(size))
    surplus = 2 * fabric.level(ranks, size, 1) + fabric.combine(size)
    return time + np.where(ranks > (1 << rounds), surplus, 0.0)


@algorithm("barrier/linear", equation="2 ((p - 2) g + a)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """All report to the root, which then releases all: two trains of ``p - 1`` empty messages."""
    return 2 * fabric.fan(ranks, size * 0.0, ranks - 1)


@algorithm("barrier/double_ring", equation="2 p a")
def double_ring(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """A token goes around the ring twice, one rank after the other: ``2 p T(0)``; source: Open MPI coll/base."""
    near = ranks - fabric.nodes(ranks)
    far = ranks - near
    alone = ranks <= fabric.ranks_per_node
    inside = fabric.near.transfer_time(0.0) if fabric.ranks_per_node > 1 else np.zeros(())
    between = fabric.far.transfer_time(0.0) if bool(np.any(~alone)) else inside
    return np.asarray(2 * np.where(alone, ranks * inside, near * inside + far * between))


@algorithm("barrier/tree", equation="2 ceil(log2 p) a")
def tree(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Up a binomial tree and down again: ``2 ceil(log2 p) T(0)``."""
    return over_rounds(ceil_log2(ranks), lambda j: 2 * fabric.level(ranks, size * 0.0, 1 << j))
