"""Broadcast: the root's vector of ``m`` bytes to everyone."""

from __future__ import annotations

from ranksight.comm.costs import allgather, gather, trees
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric
from ranksight.core.arrays import Array, Ints


@algorithm("bcast/linear", equation="(p - 2) spacing(m) + T(m)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """The root sends to everyone in turn."""
    return fabric.fan(ranks, size, ranks - 1)


@algorithm("bcast/binomial", equation="ceil(log2 p) (a + m G)")
def binomial(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.trees.binomial`."""
    return trees.binomial(ranks, size, fabric, size * 0.0)


@algorithm("bcast/knomial", equation="ceil(log4 p) (T(m) + 2 spacing(m))")
def knomial(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.trees.k_nomial`."""
    return trees.k_nomial(ranks, size, fabric, size * 0.0)


@algorithm("bcast/binary", equation="floor(log2 p) (T(m) + spacing(m))")
def binary(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.trees.binary`."""
    return trees.binary(ranks, size, fabric, size * 0.0)


@algorithm("bcast/split_binary", equation="floor(log2 p) (T(m/2) + spacing(m/2)) + T(m/2)")
def split_binary(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Each half of the vector goes down one side of a binary tree, then the sides exchange halves.

    Source: Pjesivac-Grbovic et al., Cluster Computing 10 (2007) 127.
    """
    down = trees.binary(ranks, size / 2, fabric, size * 0.0)
    return down + fabric.shift(ranks, size / 2, (ranks + 1) // 2)


@algorithm("bcast/chain", "bcast/pipeline", equation="(p - 1) T(m)")
def chain(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Rank after rank, unsegmented, as the fixed rules of Open MPI ask for it; see :func:`trees.chain`."""
    return trees.chain(ranks, size, fabric, size * 0.0)


@algorithm("bcast/scatter_recursive_doubling", equation="(2 log2 p) a + 2 (p-1)/p m G")
def scatter_recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Binomial scatter of ``m / p``, then allgather by recursive doubling.

    Source: van de Geijn's algorithm in Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.2.
    """
    part = size / ranks
    return gather.binomial(ranks, part, fabric) + allgather.recursive_doubling(ranks, part, fabric)


@algorithm("bcast/scatter_ring", equation="(log2 p + p - 1) a + 2 (p-1)/p m G")
def scatter_ring(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Binomial scatter of ``m / p``, then allgather around the ring; source as above."""
    part = size / ranks
    return gather.binomial(ranks, part, fabric) + allgather.ring(ranks, part, fabric)
