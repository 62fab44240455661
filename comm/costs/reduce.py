"""Reduce: the vectors of ``m`` bytes of all ranks combined at the root; ``y`` seconds to combine a byte."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs import gather, reduce_scatter, trees
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, floor_log2
from ranksight.core.arrays import Array, Ints


@algorithm("reduce/linear", equation="(p - 2) spacing(m) + T(m) + (p - 1) y m")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """The root receives from everyone in turn and combines."""
    return fabric.fan(ranks, size, ranks - 1, in_turn=True) + (ranks - 1) * fabric.combine(size)


@algorithm("reduce/binomial", equation="ceil(log2 p) (a + m G + y m)")
def binomial(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.trees.binomial`; Thakur et al. 2005, section 4.4."""
    return trees.binomial(ranks, size, fabric, fabric.combine(size))


@algorithm("reduce/binary", equation="floor(log2 p) (T(m) + spacing(m) + 2 y m)")
def binary(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """See :func:`ranksight.comm.costs.trees.binary`; the in-order form costs the same."""
    return trees.binary(ranks, size, fabric, fabric.combine(size))


@algorithm("reduce/chain", "reduce/pipeline", equation="(p - 1) (T(m) + y m)")
def chain(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Rank after rank, unsegmented, as the fixed rules of Open MPI ask for it; see :func:`trees.chain`."""
    return trees.chain(ranks, size, fabric, fabric.combine(size))


@algorithm("reduce/rabenseifner", equation="2 log2 p a + 2 (p-1)/p m G + (p-1)/p y m")
def rabenseifner(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Reduce-scatter by recursive halving, then binomial gather.

    Source: Rabenseifner, ICCS 2004, LNCS 3036, 1; Thakur, Rabenseifner and Gropp 2005, section 4.4. Surplus ranks of a
    count that is not a power of two first send their vector to a neighbour.
    """
    core = 1 << floor_log2(ranks)
    halved = reduce_scatter.nearest_halving(core, size, fabric, fabric.combine(size))
    fold = fabric.level(ranks, size, 1) + fabric.combine(size)
    return halved + gather.binomial(core, size / core, fabric) + np.where(ranks > core, fold, 0.0)
