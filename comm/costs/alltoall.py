"""All-to-all: a block of ``m`` bytes from every rank to every rank."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, over_rounds
from ranksight.core.arrays import Array, Ints


@algorithm(
    "alltoall/pairwise", "alltoallv/pairwise", "alltoall/two_proc", "alltoall/linear_sync", equation="(p - 1) (a + m G)"
)
def pairwise(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``p - 1`` rounds, each with another partner: ``sum_d T(m)``, on nodes with the border each round crosses.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.6 (long messages). It bounds ``linear_sync``
    (Open MPI coll/base), which is linear with few requests open at a time, and none to spare here.
    """
    return fabric.everyone(ranks, size)


@algorithm("alltoall/bruck", equation="ceil(log2 p) a + p/2 log2 p m G")
def bruck(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Round ``j`` sends, packed in one message, the blocks whose index has bit ``j`` set: ``sum_j T(n_j m)``.

    ``n_j`` counts them exactly: ``floor(p / 2^(j+1)) 2^j + max(0, p mod 2^(j+1) - 2^j)``, ``p / 2`` on a power of two.
    Source: Bruck et al., IEEE TPDS 8 (1997) 1143. Packing is not counted.
    """

    def step(j: int) -> Array:
        bit = 1 << j
        blocks = ranks // (2 * bit) * bit + np.maximum(ranks % (2 * bit) - bit, 0)
        return fabric.shift(ranks, blocks * size, bit)

    return over_rounds(ceil_log2(ranks), step)


@algorithm("alltoall/linear", "alltoallv/linear", "alltoall/scattered", equation="(p - 2) spacing(m) + T(m)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """All sends and receives are posted at once; a rank's own train of messages bounds it, and its node's link.

    All ranks of a node send to all outside at the same time, so their bytes share the border:
    ``max(train, bytes across the border at the shared rate)``.
    """
    k = fabric.ranks_per_node
    train = fabric.fan(ranks, size, ranks - 1)
    if k == 1 or not bool(np.any(ranks > k)):
        return train
    outside = np.maximum(ranks - k, 0)
    start = fabric.far.transfer_time(0.0)
    border = start + outside * (fabric.far.transfer_time(size, k) - start)
    return np.where(ranks > k, np.maximum(train, border), train)
