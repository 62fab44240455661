"""Trees that broadcast and reduction share: data goes down or comes up, level by level.

A reduction combines at every level what a broadcast copies, so each function takes the cost of combining as an
argument; ``y`` is 0 for a broadcast.
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2, over_rounds
from ranksight.core.arrays import Array, Ints


def binomial(ranks: Ints, size: Array, fabric: Fabric, combining: Array) -> Array:
    """``ceil(log2 p) (T(m) + y m)``: the ranks that hold the data double in each round.

    No path in the tree is longer than ``floor(log2 p)``: where ``p`` is not a power of two, the root's first send
    delays the longest path only until the next can be sent, ``spacing(m)``; from the eager limit on that is ``T(m)``.
    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2.
    """
    depth = floor_log2(ranks)

    def step(j: int) -> Array:
        sent = np.where(j < depth, fabric.level(ranks, size, 1 << j), fabric.after(ranks, size, 1 << j))
        return sent + combining

    return over_rounds(ceil_log2(ranks), step)


def k_nomial(ranks: Ints, size: Array, fabric: Fabric, combining: Array) -> Array:
    """``sum_j (T(m) + 2 spacing(m))``: each level serves 3 children in a train, ``ceil(log4 p)`` levels.

    The last level has fewer children where ``p`` is not a power of 4 (Open MPI's coll_tuned_bcast_knomial_radix).
    """
    time, reach = np.zeros(size.shape), 1
    while bool(np.any(ranks > reach)):
        children = np.clip(-(-ranks // reach) - 1, 1, 3)
        link = fabric.far if fabric.inter is not None and reach >= fabric.ranks_per_node else fabric.near
        step = fabric.level(ranks, size, reach) + (children - 1) * link.spacing(size) + children * combining
        time = time + np.where(ranks > reach, step, 0.0)
        reach *= 4
    return time


def binary(ranks: Ints, size: Array, fabric: Fabric, combining: Array) -> Array:
    """``floor(log2 p)`` levels of a balanced binary tree, each serving two children: ``T(m) + spacing(m) + 2 y m``.

    Without segments (both libraries' fixed rules give none), the whole vector goes from level to level.
    """

    def step(j: int) -> Array:
        link = fabric.far if fabric.inter is not None and (1 << j) >= fabric.ranks_per_node else fabric.near
        # The first child's message is under way while the second is sent; a last node may have one child only.
        pair = np.where(ranks == 2, 0.0, link.spacing(size) + combining)
        return fabric.level(ranks, size, 1 << j) + combining + pair

    return over_rounds(ceil_log2(ranks + 1) - 1, step)


def chain(ranks: Ints, size: Array, fabric: Fabric, combining: Array, segment: float = 0.0) -> Array:
    """``(p - 2 + n) (T(m / n) + y m / n)`` with ``n = ceil(m / segment)``: rank after rank, pipelined where segmented.

    Source: the pipeline of Träff and Ripke, JPDC 68 (2008) 1252; `segment` 0 sends the vector whole (``n = 1``).
    """
    pieces = np.maximum(np.ceil(size / segment), 1.0) if segment > 0 else np.ones(size.shape)
    part = size / pieces
    nodes = fabric.nodes(ranks)
    between = np.where(nodes > 1, nodes - 1, 0)
    within = ranks - 1 - between
    step, slowest = np.zeros(size.shape), np.zeros(size.shape)
    if bool(np.any(between > 0)):
        hop = fabric.far.transfer_time(part) + combining / pieces
        step, slowest = between * hop, np.where(between > 0, hop, 0.0)
    if bool(np.any(within > 0)):
        hop = fabric.near.transfer_time(part) + combining / pieces
        step, slowest = step + within * hop, np.maximum(slowest, np.where(within > 0, hop, 0.0))
    return np.asarray(step + (pieces - 1) * slowest)
