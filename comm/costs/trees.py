"""Shapes that several collectives share: rounds at doubling distance, trees and chains.

A reduction combines at every level what a broadcast copies: `y` is the time to combine a byte, 0 for a broadcast. The
others are scalars or arrays that broadcast: ranks, bytes, and the network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2, over_rounds
from ranksight.core.arrays import Array, Ints

Step = Callable[[Ints, ArrayLike, ArrayLike], Array]
"""A step of :class:`Fabric` over the ranks with so many bytes to a distance."""


def rounds(number: Ints, step: Step, ranks: Ints, part: Callable[[int], Array], y: float = 0.0) -> Array:
    """``sum_d (step(part(d), d) + y part(d))`` over as many distances ``d = 1, 2, 4, ...`` as `number` says."""
    return over_rounds(number, lambda j: step(ranks, part(1 << j), 1 << j) + y * part(1 << j))


def binomial(ranks: Ints, size: Array, fabric: Fabric, y: float = 0.0) -> Array:
    """``ceil(log2 p) (T(m) + y m)``: the ranks that hold the data double in each round.

    No path in the tree is longer than ``floor(log2 p)``: where ``p`` is not a power of two, the root's first send
    delays the longest path only until the next can be sent, ``spacing(m)``; from the eager limit on that is ``T(m)``.
    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2.
    """
    depth = floor_log2(ranks)

    def step(j: int) -> Array:
        sent = np.where(j < depth, fabric.level(ranks, size, 1 << j), fabric.after(ranks, size, 1 << j))
        return sent + y * size

    return over_rounds(ceil_log2(ranks), step)


def k_nomial(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``sum_j (T(m) + 2 spacing(m))``: each level serves 3 children in a train, ``ceil(log4 p)`` levels.

    The last level has fewer children where ``p`` is not a power of 4 (Open MPI's coll_tuned_bcast_knomial_radix).
    """
    time, reach = np.zeros(size.shape), 1
    while bool(np.any(ranks > reach)):
        children = np.clip(-(-ranks // reach) - 1, 1, 3)
        step = fabric.level(ranks, size, reach) + (children - 1) * fabric.link(reach).spacing(size)
        time = time + np.where(ranks > reach, step, 0.0)
        reach *= 4
    return time


def binary(ranks: Ints, size: Array, fabric: Fabric, y: float = 0.0) -> Array:
    """``floor(log2 p)`` levels of a balanced binary tree, each serving two children: ``T(m) + spacing(m) + 2 y m``.

    Without segments (both libraries' fixed rules give none), the whole vector goes from level to level.
    """

    def step(j: int) -> Array:
        # The first child's message is under way while the second is sent; a last node may have one child only.
        pair = np.where(ranks == 2, 0.0, fabric.link(1 << j).spacing(size) + y * size)
        return fabric.level(ranks, size, 1 << j) + y * size + pair

    return over_rounds(ceil_log2(ranks + 1) - 1, step)


def chain(ranks: Ints, size: Array, fabric: Fabric, y: float = 0.0) -> Array:
    """``(p - 1) (T(m) + y m)``: rank after rank, unsegmented, as Open MPI's fixed rules ask for it."""
    between = fabric.nodes(ranks) - 1
    return fabric.hops(size, between, ranks - 1 - between) + (ranks - 1) * y * size


def gather(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Blocks of whole subtrees go up a binomial tree: ``sum_j T(min(2^j, p - 2^j) m)``; a scatter is its mirror.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2 (scatter).
    """
    return rounds(ceil_log2(ranks), fabric.level, ranks, lambda d: np.clip(ranks - d, 0, d) * size)


def scatter_in_order(ranks: Ints, size: Array, fabric: Fabric) -> Array:
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
