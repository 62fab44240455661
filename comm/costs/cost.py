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
from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.errors import InputError

Choice = str | Selector | Mapping[str, str]
"""A selector, its name, or algorithms by operation where the rest is Open MPI's."""


def _rules(choice: Choice) -> Selector:
    if isinstance(choice, str):
        return selector(choice)
    return choice if isinstance(choice, Selector) else forced(choice, selector("openmpi-5.0"))


def _in_levels(name: str, ranks: Ints, fabric: Fabric, rules: Selector) -> Mask:
    """Where an operation is done inside the nodes and between them apart."""
    shared = fabric.ranks_per_node > 1 and name in rules.hierarchical and name in HIERARCHICAL
    return np.asarray((ranks > fabric.ranks_per_node) & shared)


def algorithm_of(operation: str, ranks: int, size: float, fabric: Fabric, choice: Choice = "openmpi-5.0") -> str:
    """The algorithm that a collective operation takes, ``hierarchical`` where it has two levels; empty for others.

    For the parameters see :func:`cost`.
    """
    rules, name = _rules(choice), operation_name(operation)
    if name not in OPERATIONS:
        return ""
    given = checked(ranks, size)
    if bool(_in_levels(name, given[0], fabric, rules)):
        return "hierarchical"
    return str(rules.choose(name, *given)[()])


def cost(
    operation: str,
    ranks: ArrayLike,
    size: ArrayLike,
    network: Fabric | NetworkParameters,
    choice: Choice = "openmpi-5.0",
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
        See :data:`Choice`.
    """
    fabric = Fabric.flat(network) if isinstance(network, NetworkParameters) else network
    rules, name = _rules(choice), operation_name(operation)
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

    levels = _in_levels(name, ranks, fabric, rules)
    time = np.zeros(size.shape)
    if not bool(np.all(levels)):
        time[~levels] = flat(name, ranks[~levels], size[~levels], fabric)
    if bool(np.any(levels)):
        time[levels] = hierarchical(name, ranks[levels], size[levels], fabric, flat)
    return time
