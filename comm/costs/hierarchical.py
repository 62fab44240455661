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

_STAGES = {
    "bcast": ("n bcast m", "k bcast m"),
    "reduce": ("k reduce m", "n reduce m"),
    "allreduce": ("k reduce m", "n allreduce m", "k bcast m"),
    "allgather": ("k gather m", "n allgather km", "k bcast pm"),
    "gather": ("k gather m", "n gather km"),
    "scatter": ("k scatter m", "n scatter km"),
    "barrier": ("k barrier m", "n barrier m", "k bcast 0"),
}
"""Stages of each operation: over which ranks, which operation, of how many bytes."""
HIERARCHICAL = tuple(sorted(_STAGES))
"""Operations that have a form in two levels here."""


def hierarchical(operation: str, ranks: Ints, size: Array, fabric: Fabric, stage: Stage) -> Array:
    """Seconds of `operation` in two levels; each level's algorithm is chosen by `stage`."""
    k = np.minimum(fabric.ranks_per_node, ranks)
    levels = {
        "k": (k, Fabric(fabric.near, None, fabric.ranks_per_node)),
        "n": (fabric.nodes(ranks), Fabric(None, fabric.far, 1, topology=fabric.topology)),
    }
    sizes = {"m": size, "km": size * k, "pm": size * ranks, "0": size * 0.0}
    parts = (words.split() for words in _STAGES[operation])
    times = [stage(name, levels[level][0], sizes[amount], levels[level][1]) for level, name, amount in parts]
    return np.asarray(sum(times))
