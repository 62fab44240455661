"""The registry of collective algorithms and what is common to all of them.

What ``size`` means, per operation (bytes): the argument that the operation's caller states.

============================================== ==================================================
barrier                                        not used
bcast, reduce, allreduce, scan, exscan         the whole vector
allgather, allgatherv, gather, gatherv         what one rank contributes (its mean, for the v forms)
scatter, scatterv, alltoall, alltoallv         the block for one rank (its mean, for the v forms)
reduce_scatter, reduce_scatter_block           the block that one rank receives
============================================== ==================================================

:func:`block` converts the bytes that a rank hands over, as message tables hold them, into this size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs.fabric import Fabric
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry

Algorithm = Callable[[Ints, Array, Fabric], Array]

OPERATIONS = (
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
)
SPREAD = ("alltoall", "alltoallv", "reduce_scatter", "reduce_scatter_block")
"""Operations of which every rank hands over one block for every rank."""
ALIASES = {"alltoallw": "alltoallv", "win_fence": "barrier"}
"""Operations that cost what another does."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One algorithm of one operation."""

    operation: str
    algorithm: str
    equation: str
    steps: Algorithm

    def __call__(self, ranks: ArrayLike, size: ArrayLike, fabric: Fabric) -> Array:
        """Seconds for each of the broadcast `ranks` and `size` (B, see the module); 0 at one rank.

        Raises InputError when a number of ranks is not a whole number from 1, or a size is negative or not finite.
        """
        ranks, size = checked(ranks, size)
        time = np.asarray(self.steps(np.maximum(ranks, 2), size, fabric), dtype=float)
        return np.where(ranks > 1, time, 0.0)


COLLECTIVES: Registry[Collective] = Registry(
    "collective algorithm", packages=("ranksight.comm.costs",), group="ranksight.collectives"
)


def algorithm(*names: str, equation: str) -> Callable[[Algorithm], Algorithm]:
    """Register a function as an algorithm under each of `names` (``operation/algorithm``)."""

    def decorate(steps: Algorithm) -> Algorithm:
        for name in names:
            operation, _, kind = name.partition("/")
            COLLECTIVES.register(name)(Collective(operation, kind, equation, steps))
        return steps

    return decorate


def collective(operation: str, kind: str) -> Collective:
    """The algorithm `kind` of `operation`; InputError naming the nearest when there is none."""
    return COLLECTIVES[f"{operation}/{kind}"]


@lru_cache(maxsize=4096)
def operation_name(text: str) -> str:
    """The plain name of an MPI function: ``"MPI_Iallreduce"`` and ``"Allreduce_start"`` are ``"allreduce"``."""
    name = text.lower().removeprefix("pmpi_").removeprefix("mpi_").removesuffix("_c").removesuffix("_start")
    name = name[1:] if name[:1] == "i" and name[1:] in (*OPERATIONS, *ALIASES) else name
    return ALIASES.get(name, name)


def checked(ranks: ArrayLike, size: ArrayLike) -> tuple[Ints, Array]:
    """Broadcast and check ranks and sizes; InputError where one is not a rank count or size."""
    ranks, size = np.broadcast_arrays(np.asarray(ranks, dtype=float), np.asarray(size, dtype=float))
    bad = ~np.isfinite(ranks) | (ranks < 1) | (ranks != np.floor(ranks))
    if bool(np.any(bad)):
        raise InputError(f"{ranks[bad][0]:g} is not a number of ranks", "ranks are whole numbers from 1")
    bad = ~np.isfinite(size) | (size < 0)
    if bool(np.any(bad)):
        raise InputError(f"{size[bad][0]:g} is not a message size", "sizes are finite and not negative")
    return ranks.astype(np.int64), np.array(size)


def block(operation: str, ranks: ArrayLike, handed_over: ArrayLike) -> Array:
    """Convert the bytes that one rank hands over in one call into the ``size`` of this module; broadcast shape.

    Scatter is not converted: its root hands over all blocks, and the block is what every other rank gets.
    """
    ranks, handed_over = np.asarray(ranks, dtype=float), np.asarray(handed_over, dtype=float)
    spread: Array = handed_over / ranks
    return spread if operation_name(operation) in SPREAD else handed_over + 0.0 * ranks
