"""Gather and scatter: one block of ``m`` bytes a rank, to or from the root; mirrored, they cost the same."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, over_rounds
from ranksight.core.arrays import Array, Ints


@algorithm("gather/binomial", "scatter/binomial", equation="ceil(log2 p) a + (p - 1) m G")
def binomial(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Blocks of whole subtrees go up a binomial tree: ``sum_j T(min(2^j, p - 2^j) m)``.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2 (scatter).
    """

    def step(j: int) -> Array:
        return fabric.level(ranks, np.clip(ranks - (1 << j), 0, 1 << j) * size, 1 << j)

    return over_rounds(ceil_log2(ranks), step)


@algorithm("scatter/binomial_in_order", equation="k (k + 1) / 2 a + (2 p - 2 - k) m G, k = ceil(log2 p)")
def binomial_in_order(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """The same tree, nearest child first: the largest subtree gets its blocks last, and so do its largest in turn.

    A root of ``n`` ranks sends to children with ``1, 2, 4, ...`` ranks, the last with the rest; it is done with child
    ``j`` at ``sum_(i < j) after(2^i m) + T(2^j m)``, and the child's own tree follows. The slowest path counts.
    ``after`` is the time to the next send, from the eager limit on the whole message, which gives the equation on
    powers of two. Source: Open MPI coll/base (its in-order binomial tree).
    """
    size, ranks = np.broadcast_arrays(size, ranks)
    most = int(ceil_log2(ranks).max(initial=1))
    blocks = [size * (1 << j) for j in range(most)]
    whole = np.stack([fabric.level(ranks, part, 1 << j) for j, part in enumerate(blocks)])
    nexts = np.stack([fabric.after(ranks, part, 1 << j) for j, part in enumerate(blocks)])
    waited = np.concatenate([np.zeros((1, *size.shape)), np.cumsum(nexts, axis=0)])
    # full[k] is a whole tree of 2^k ranks: its last child is the slowest path.
    full = np.concatenate([np.zeros((1, *size.shape)), np.cumsum(waited[:-1] + whole, axis=0)])

    def at(table: Array, index: Ints) -> Array:
        return np.asarray(np.take_along_axis(table, np.maximum(index, 0)[None], axis=0)[0])

    begun, slowest, left = np.zeros(size.shape), np.zeros(size.shape), ranks.astype(np.int64)
    while bool(np.any(left > 1)):
        last = ceil_log2(left) - 1
        before = begun + at(waited, last - 1) + at(whole, last - 1) + at(full, last - 1)
        slowest = np.where((left > 1) & (last > 0), np.maximum(slowest, before), slowest)
        rest = left - (1 << np.maximum(last, 0))
        arrival = begun + at(waited, last) + fabric.level(ranks, rest * size, 1 << np.maximum(last, 0))
        begun, left = np.where(left > 1, arrival, begun), np.where(left > 1, rest, 1)
    return np.maximum(slowest, begun)


@algorithm("gather/linear", "gatherv/linear", "scatter/linear", "scatterv/linear", equation="(p - 2) spacing(m) + T(m)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """The root handles everyone's block in turn, by blocking calls: ``(p - 1) T(m)`` from the eager limit on."""
    return fabric.fan(ranks, size, ranks - 1, in_turn=True)


@algorithm("scatter/linear_nb", equation="(p - 2) spacing(m) + T(m)")
def linear_nonblocking(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """The root posts all sends at once."""
    return fabric.fan(ranks, size, ranks - 1)


@algorithm("gather/linear_sync", equation="(p - 1) T(0) + (p - 2) spacing(m) + T(m)")
def linear_sync(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """As linear, but each sender waits for the root's empty message first, so that the root is not flooded.

    Source: Open MPI coll/base (gather_intra_linear_sync).
    """
    return fabric.fan(ranks, size, ranks - 1) + fabric.fan(ranks, size * 0.0, ranks - 1)
