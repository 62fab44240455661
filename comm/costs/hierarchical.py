"""Collectives in two levels: one stage inside the nodes, one between one rank of each node.

Source: Karonis et al., IPDPS 2000 (multilevel collectives); Luo et al., "HAN", IEEE Cluster 2020 (Open MPI's coll/han).
With ``k`` ranks on each of ``n`` nodes; stages follow one another, nothing is overlapped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksight.comm.costs.fabric import Fabric
from ranksight.core.arrays import Array, Ints

Stage = Callable[[str, Ints, Array, Fabric], Array]
"""Costs one flat operation of one level: (operation, ranks, size, fabric) -> seconds."""

HIERARCHICAL = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")
"""Operations that have a form in two levels here."""


def hierarchical(operation: str, ranks: Ints, size: Array, fabric: Fabric, stage: Stage) -> Array:
    """Seconds of `operation` in two levels; each level's algorithm is chosen by `stage`.

    ========= ==================================================================
    bcast     bcast over n of m, bcast over k of m
    reduce    reduce over k of m, reduce over n of m
    allreduce reduce over k of m, allreduce over n of m, bcast over k of m
    allgather gather over k of m, allgather over n of k m, bcast over k of p m
    gather    gather over k of m, gather over n of k m (scatter: mirrored)
    barrier   barrier over k, barrier over n, bcast over k of nothing
    ========= ==================================================================
    """
    k = np.minimum(fabric.ranks_per_node, ranks)
    n = fabric.nodes(ranks)
    inside, between = Fabric(fabric.near, None, fabric.ranks_per_node), Fabric.flat(fabric.far)

    def near(name: str, part: Array) -> Array:
        return stage(name, k, part, inside)

    def far(name: str, part: Array) -> Array:
        return stage(name, n, part, between)

    if operation == "barrier":
        return near("barrier", size) + far("barrier", size) + near("bcast", size * 0.0)
    if operation == "allreduce":
        return near("reduce", size) + far("allreduce", size) + near("bcast", size)
    if operation == "allgather":
        return near("gather", size) + far("allgather", size * k) + near("bcast", size * ranks)
    if operation in ("gather", "scatter"):
        return near(operation, size) + far(operation, size * k)
    return near(operation, size) + far(operation, size)
