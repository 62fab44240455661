"""Reduce-scatter: vectors of ``p m`` bytes combined, ``m`` bytes of the result to each rank."""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs import gather, trees
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2, over_rounds
from ranksight.core.arrays import Array, Ints


def halving(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Recursive halving on a power of two: ``sum_j (T(2^j m) + y 2^j m)``, ``j = log2 p - 1 .. 0``."""

    def step(j: int) -> Array:
        return fabric.exchange(ranks, size * (1 << j), 1 << j) + fabric.combine(size * (1 << j))

    return over_rounds(floor_log2(ranks), step)


def nearest_halving(ranks: Ints, size: Array, fabric: Fabric, combining: Array) -> Array:
    """Rabenseifner's order on a power of two: the first, largest half to the nearest rank.

    ``sum_j (T(m / 2^(j+1)) + y m / 2^(j+1))`` at distance ``2^j``; backwards, with nothing to combine, it
    is the allgather.
    """

    def step(j: int) -> Array:
        share = 0.5 ** (j + 1)
        return fabric.exchange(ranks, size * share, 1 << j) + combining * share

    return over_rounds(floor_log2(ranks), step)


@algorithm(
    "reduce_scatter/recursive_halving",
    "reduce_scatter_block/recursive_halving",
    equation="log2 p a + (p - 1) m G + (p - 1) y m",
)
def recursive_halving(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Halve the vector and the ranks in each round.

    Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49, section 4.3. Surplus ranks of a count that is not a
    power of two give their whole vector to a neighbour before and get their block after.
    """
    core = 1 << floor_log2(ranks)
    whole = ranks * size
    fold = fabric.level(ranks, whole, 1) + fabric.combine(whole) + fabric.level(ranks, size, 1)
    return halving(core, whole / core, fabric) + np.where(ranks > core, fold, 0.0)


@algorithm("reduce_scatter/butterfly", "reduce_scatter_block/butterfly", equation="as recursive halving")
def butterfly(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Träff's butterfly, EuroPVM/MPI 2005, LNCS 3666, 129: the volumes and rounds of recursive halving."""
    return recursive_halving(ranks, size, fabric)


@algorithm("reduce_scatter/ring", equation="(p - 1) (a + m G + y m)")
def ring(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """``p - 1`` rounds to the neighbour, one block each."""
    return fabric.ring(ranks, size) + (ranks - 1) * fabric.combine(size)


@algorithm("reduce_scatter/pairwise", "reduce_scatter_block/pairwise", equation="(p - 1) (a + m G + y m)")
def pairwise(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Every rank sends each other rank its block directly; Thakur et al. 2005, section 4.3 (long messages)."""
    return fabric.everyone(ranks, size) + (ranks - 1) * fabric.combine(size)


@algorithm(
    "reduce_scatter/recursive_doubling",
    "reduce_scatter_block/recursive_doubling",
    equation="log2 p a + (log2 p - (p-1)/p) p m (G + y)",
)
def recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Exchange all that is not yet the partner's own: ``sum_j T((p - 2^j) m)``; Thakur et al. 2005, section 4.3."""

    def step(j: int) -> Array:
        part = size * np.maximum(ranks - (1 << j), 0)
        return fabric.shift(ranks, part, 1 << j) + fabric.combine(part)

    return over_rounds(ceil_log2(ranks), step)


@algorithm(
    "reduce_scatter/nonoverlapping",
    "reduce_scatter_block/linear",
    equation="ceil(log2 p) (T(p m) + y p m) + (p - 2) spacing(m) + T(m)",
)
def nonoverlapping(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Reduce the whole vector at one rank (binomial), then scatter the blocks; source: Open MPI coll/base."""
    whole = ranks * size
    return trees.binomial(ranks, whole, fabric, fabric.combine(whole)) + gather.linear(ranks, size, fabric)
