"""Allgather: everyone contributes ``m`` bytes and gets everyone's."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs import gather, trees
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2, over_rounds
from ranksight.core.arrays import Array, Ints


@algorithm("allgather/ring", "allgatherv/ring", equation="(p - 1) (a + m G)")
def ring(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``(p - 1) T(m)``: the blocks go around, each rank passing on what it got (:meth:`Fabric.ring` on two levels).

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.1.
    """
    return fabric.ring(ranks, size)


@algorithm("allgather/recursive_doubling", "allgatherv/recursive_doubling", equation="log2 p a + (p - 1) m G")
def recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``sum_j T(2^j m)``; source as for the ring.

    Where ``p`` is not a power of two, Open MPI takes Bruck's algorithm instead and MPICH does not choose this one: a
    further round brings the missing blocks, which costs what Bruck's does.
    """
    rounds = floor_log2(ranks)
    time = over_rounds(rounds, lambda j: fabric.exchange(ranks, size * (1 << j), 1 << j))
    missing = ranks - (1 << rounds)
    last = fabric.shift(ranks, size * missing, 1 << rounds)
    return time + np.where(missing > 0, last, 0.0)


@algorithm("allgather/bruck", "allgatherv/bruck", equation="ceil(log2 p) a + (p - 1) m G")
def bruck(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``sum_j T(min(2^j, p - 2^j) m)``, any number of ranks.

    Source: Bruck et al., IEEE TPDS 8 (1997) 1143; Thakur, Rabenseifner and Gropp 2005, section 4.1. The final local
    shift of blocks is not counted.
    """

    def step(j: int) -> Array:
        return fabric.shift(ranks, np.clip(ranks - (1 << j), 0, 1 << j) * size, 1 << j)

    return over_rounds(ceil_log2(ranks), step)


@algorithm("allgather/neighbor_exchange", "allgatherv/neighbor_exchange", equation="T(m) + (p/2 - 1) T(2 m)")
def neighbor_exchange(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Neighbours exchange, from the second round on two blocks at once; an odd number of ranks takes the ring.

    Source: Chen et al., "Performance evaluation of allgather algorithms on terascale Linux cluster", HPCS 2005.
    """
    even = fabric.shift(ranks, size, 1) + (ranks // 2 - 1) * fabric.shift(ranks, 2 * size, 1)
    return np.where(ranks % 2 == 0, even, ring(ranks, size, fabric))


@algorithm("allgather/linear", "allgatherv/default", equation="(p - 2) spacing(m) + T(m) + ceil(log2 p) T(p m)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Gather at one rank, then broadcast the whole.

    Source: Open MPI coll/base (allgather_intra_basic_linear, allgatherv_intra_basic_default).
    """
    return gather.linear(ranks, size, fabric) + trees.binomial(ranks, ranks * size, fabric, size * 0.0)


@algorithm("allgather/two_proc", "allgatherv/two_proc", equation="T(m)")
def two_proc(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Two ranks exchange once; it is never chosen for more, where the ring stands in for it."""
    return ring(ranks, size, fabric)
