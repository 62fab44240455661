"""Scan and exscan: rank ``i`` gets the combination of the vectors of the ranks up to it."""

from __future__ import annotations

from ranksight.comm.costs import trees
from ranksight.comm.costs.collective import algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, over_rounds
from ranksight.core.arrays import Array, Ints


@algorithm("scan/recursive_doubling", "exscan/recursive_doubling", equation="ceil(log2 p) (a + m G + 2 y m)")
def recursive_doubling(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """In round ``j`` partial results go ``2^j`` ranks on and are combined twice.

    Source: Hillis and Steele, CACM 29 (1986) 1170; MPICH scan_intra_recursive_doubling.
    """
    combined = 2 * fabric.combine(size)
    return over_rounds(ceil_log2(ranks), lambda j: fabric.shift(ranks, size, 1 << j) + combined)


@algorithm("scan/linear", "exscan/linear", equation="(p - 1) (a + m G + y m)")
def linear(ranks: Ints, size: Array, fabric: Fabric) -> Array:
    """Rank after rank; source: Open MPI coll/base (scan_intra_linear)."""
    return trees.chain(ranks, size, fabric, fabric.combine(size))
