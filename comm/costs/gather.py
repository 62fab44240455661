"""Gather and scatter: one block of ``m`` bytes a rank, to or from the root; mirrored, they cost the same."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, Floats, Ints, ceil_log2


@algorithm("gather/binomial", "scatter/binomial", equation="ceil(log2 p) a + (p - 1) m G")
def binomial(ranks: Ints, size: Floats, fabric: Fabric) -> Floats:
    """Blocks of whole subtrees go up a binomial tree: ``sum_j T(min(2^j, p - 2^j) m)``.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2 (scatter).
    """
    rounds, time = ceil_log2(ranks), np.zeros(size.shape)
    for j in range(int(rounds.max(initial=0))):
        blocks = np.clip(ranks - (1 << j), 0, 1 << j)
        time = time + np.where(j < rounds, fabric.level(ranks, blocks * size, 1 << j), 0.0)
    return time


@algorithm(
    "gather/linear",
    "gatherv/linear",
    "scatter/linear",
    "scatter/linear_nb",
    "scatterv/linear",
    equation="(p - 2) spacing(m) + T(m)",
)
def linear(ranks: Ints, size: Floats, fabric: Fabric) -> Floats:
    """The root handles everyone's block in turn."""
    return fabric.fan(ranks, size, ranks - 1)


@algorithm("gather/linear_sync", equation="(p - 1) T(0) + (p - 2) spacing(m) + T(m)")
def linear_sync(ranks: Ints, size: Floats, fabric: Fabric) -> Floats:
    """As linear, but each sender waits for the root's empty message first, so that the root is not flooded.

    Source: Open MPI coll/base (gather_intra_linear_sync).
    """
    return fabric.fan(ranks, size, ranks - 1) + fabric.fan(ranks, size * 0.0, ranks - 1)
