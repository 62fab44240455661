"""Allreduce: the vectors of ``m`` bytes of all ranks combined, the result at everyone."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs import allgather, reduce, reduce_scatter, trees
from ranksight.comm.costs.barrier import recursive_exchange
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, floor_log2
from ranksight.core.arrays import Array, Ints


@algorithm("allreduce/recursive_doubling", equation="log2 p (a + m G + y m)")
def recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.barrier.recursive_exchange`; Thakur et al. 2005, section 4.5."""
    return recursive_exchange(ranks, size, fabric)


@algorithm("allreduce/ring", "allreduce/ring_segmented", equation="2 (p - 1) a + 2 (p-1)/p m G + (p-1)/p y m")
def ring(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Reduce-scatter and allgather around the ring, ``m / p`` a step.

    Source: Thakur and Gropp, EuroPVM/MPI 2003, LNCS 2840, 257; Patarasuk and Yuan, JPDC 69 (2009) 117. Without a
    segment size, as in the fixed rules, the segmented form is the same.
    """
    part = size / ranks
    return reduce_scatter.ring(ranks, part, fabric) + allgather.ring(ranks, part, fabric)


@algorithm("allreduce/rabenseifner", equation="2 log2 p a + 2 (p-1)/p m G + (p-1)/p y m")
def rabenseifner(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Reduce-scatter by halving the vector at doubling distance, allgather back along the same steps.

    Source: Rabenseifner, ICCS 2004, LNCS 3036, 1; Thakur, Rabenseifner and Gropp 2005, section 4.5. Where ``p`` is no
    power of two, surplus ranks hand their vector to a neighbour before and get the result after: ``2 T(m) + y m`` more.
    """
    core = 1 << floor_log2(ranks)
    fold = 2 * fabric.level(ranks, size, 1) + fabric.combine(size)
    inner = reduce_scatter.nearest_halving(core, size, fabric, fabric.combine(size)) + reduce_scatter.nearest_halving(
        core, size, fabric, size * 0.0
    )
    return inner + np.where(ranks > core, fold, 0.0)


@algorithm("allreduce/reduce_bcast", equation="2 ceil(log2 p) (a + m G) + ceil(log2 p) y m")
def reduce_bcast(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Binomial reduce, then binomial broadcast; Open MPI's nonoverlapping.

    The library takes its own reduce and broadcast there, as :func:`ranksight.comm.costs.cost.cost` does.
    """
    return reduce.binomial(ranks, size, fabric) + trees.binomial(ranks, size, fabric, size * 0.0)


@algorithm("allreduce/linear", equation="2 ((p - 2) spacing(m) + T(m)) + (p - 1) y m")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Everyone to the root, which combines and sends to everyone; source: Open MPI coll/base."""
    return reduce.linear(ranks, size, fabric) + fabric.fan(ranks, size, ranks - 1)
