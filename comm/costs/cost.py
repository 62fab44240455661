"""The cost of any MPI operation on a network: the one entry for predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs import pointtopoint
from ranksight.comm.costs.collective import OPERATIONS, checked, collective, operation_name
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.hierarchical import HIERARCHICAL, hierarchical
from ranksight.comm.costs.selection import Selector, forced, selector
from ranksight.comm.network import NetworkParameters
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError


def cost(
    operation: str,
    ranks: ArrayLike,
    size: ArrayLike,
    network: Fabric | NetworkParameters,
    choice: str | Selector | Mapping[str, str] = "openmpi-5.0",
) -> Array:
    """Seconds of one call of an operation.

    Raises InputError when the operation, selector or algorithm is unknown, or a value is not a rank count or size.

    Parameters
    ----------
    operation : str
        ``"allreduce"`` or ``"MPI_Allreduce"``; nonblocking and persistent forms cost what the blocking one does.
        A message's time is counted where it is sent: receiving and waiting operations cost 0.
    ranks : array_like of int
        Ranks of the communicator.
    size : array_like
        Bytes, as :mod:`ranksight.comm.costs.collective` defines them per operation; broadcast with `ranks`.
    network : Fabric or NetworkParameters
        Links and placement; bare parameters are a flat network.
    choice : str, Selector or mapping
        A selector, its name, or algorithms by operation where the rest is Open MPI's.
    """
    fabric = Fabric.flat(network) if isinstance(network, NetworkParameters) else network
    if isinstance(choice, str):
        rules = selector(choice)
    else:
        rules = choice if isinstance(choice, Selector) else forced(choice, selector("openmpi-5.0"))
    name = operation_name(operation)
    ranks, size = checked(ranks, size)
    if name in pointtopoint.SENDS or name in pointtopoint.NEIGHBOURS:
        return pointtopoint.message(size, ranks, fabric)
    if name in pointtopoint.FETCHES:
        return pointtopoint.message(size * 0.0, ranks, fabric) + pointtopoint.message(size, ranks, fabric)
    if name in pointtopoint.RECEIVES or name.endswith("_init"):
        return np.zeros(size.shape)
    if name not in OPERATIONS:
        raise InputError(f"no cost is known for the operation {operation!r}", f"known: {', '.join(OPERATIONS)}, send")

    def flat(part: str, p: Ints, m: Array, on: Fabric) -> Array:
        p, m = np.broadcast_arrays(p, m)
        kinds = rules.choose(part, p, m)
        time = np.zeros(m.shape)
        for kind in np.unique(kinds.astype(str)):
            at = kinds == kind
            if kind == "reduce_bcast":
                # The library's own reduce and broadcast, each with the algorithm that it chooses there.
                time[at] = flat("reduce", p[at], m[at], on) + flat("bcast", p[at], m[at], on)
                continue
            time[at] = collective(part, str(kind))(p[at], m[at], on)
        return time

    shared = fabric.ranks_per_node > 1 and name in rules.hierarchical and name in HIERARCHICAL
    levels = (ranks > fabric.ranks_per_node) if shared else np.zeros(ranks.shape, dtype=bool)
    time = np.zeros(size.shape)
    if not bool(np.all(levels)):
        time[~levels] = flat(name, ranks[~levels], size[~levels], fabric)
    if bool(np.any(levels)):
        time[levels] = hierarchical(name, ranks[levels], size[levels], fabric, flat)
    return time
