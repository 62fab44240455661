"""The algorithms of collectives: one table of what each costs, from the shapes of :mod:`.trees`.

In equations ``a`` is the latency of a message, ``G`` the time of a byte, ``y`` that of combining one,
``T(m) = a + m G`` and ``spacing(m)`` the time to the next message of a train; :mod:`ranksight.comm.costs.collective`
defines ``m``. Where no source is named it is Open MPI's coll/base. [TRG]: Thakur, Rabenseifner and Gropp, IJHPCA 19
(2005) 49.
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.costs import trees
from ranksight.comm.costs.collective import Algorithm, algorithm
from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2
from ranksight.comm.costs.trees import rounds
from ranksight.core.arrays import Array, Ints


def train(p: Ints, m: Array, on: Fabric) -> Array:
    """One rank sends to or receives from all others, all requests posted at once."""
    return on.fan(p, m, p - 1)


def in_turn(p: Ints, m: Array, on: Fabric) -> Array:
    """The same by blocking calls: ``(p - 1) T(m)`` from the eager limit on."""
    return on.fan(p, m, p - 1, in_turn=True)


def recursive_exchange(p: Ints, m: Array, on: Fabric) -> Array:
    """Exchange the whole vector at doubling distance and combine: ``log2 p' (T(m) + y m)``, ``p' = 2^floor(log2 p)``.

    Where ``p`` is not a power of two, ``p - p'`` ranks first send theirs to a neighbour and get the result at the end:
    ``2 T(m) + y m`` more. [TRG] section 4.5.
    """
    number = floor_log2(p)
    surplus = 2 * on.level(p, m, 1) + on.reduction * m
    return rounds(number, on.exchange, p, lambda d: m, on.reduction) + np.where(p > 1 << number, surplus, 0.0)


def gather_doubling(p: Ints, m: Array, on: Fabric) -> Array:
    """``sum_j T(2^j m)``. [TRG] section 4.1.

    Where ``p`` is not a power of two, Open MPI takes Bruck's algorithm instead and MPICH does not choose this one: a
    further round brings the missing blocks, which costs what Bruck's does.
    """
    number = floor_log2(p)
    missing = p - (1 << number)
    last = on.shift(p, m * missing, 1 << number)
    return rounds(number, on.exchange, p, lambda d: m * d) + np.where(missing > 0, last, 0.0)


def gather_bruck(p: Ints, m: Array, on: Fabric) -> Array:
    """``sum_j T(min(2^j, p - 2^j) m)``, any number of ranks. Bruck et al., IEEE TPDS 8 (1997) 1143; [TRG] section 4.1.

    The final local shift of blocks is not counted.
    """
    return rounds(ceil_log2(p), on.shift, p, lambda d: np.clip(p - d, 0, d) * m)


def neighbor_exchange(p: Ints, m: Array, on: Fabric) -> Array:
    """Neighbours exchange, from the second round on two blocks at once; an odd number of ranks takes the ring.

    Chen et al., "Performance evaluation of allgather algorithms on terascale Linux cluster", HPCS 2005.
    """
    even = on.shift(p, m, 1) + (p // 2 - 1) * on.shift(p, 2 * m, 1)
    return np.where(p % 2 == 0, even, on.ring(p, m))


def alltoall_bruck(p: Ints, m: Array, on: Fabric) -> Array:
    """Round ``j`` sends, packed in one message, the blocks whose index has bit ``j`` set: ``sum_j T(n_j m)``.

    ``n_j = floor(p / 2^(j+1)) 2^j + max(0, p mod 2^(j+1) - 2^j)``, ``p / 2`` on a power of two. Packing is not counted.
    Bruck et al., IEEE TPDS 8 (1997) 1143.
    """
    return rounds(ceil_log2(p), on.shift, p, lambda d: (p // (2 * d) * d + np.maximum(p % (2 * d) - d, 0)) * m)


def alltoall_linear(p: Ints, m: Array, on: Fabric) -> Array:
    """All sends and receives are posted at once; a rank's own train of messages bounds it, and its node's link.

    All ranks of a node send to all outside at the same time, so their bytes share the border:
    ``max(train, bytes across the border at the shared rate)``.
    """
    k, own = on.ranks_per_node, np.maximum(train(p, m, on), on.together(p, m))
    if k == 1 or not bool(np.any(p > k)):
        return own
    start = on.far.transfer_time(0.0)
    border = start + np.maximum(p - k, 0) * (on.far.transfer_time(m, k) - start)
    return np.where(p > k, np.maximum(own, border), own)


def halving(core: Ints, m: Array, on: Fabric, y: float) -> Array:
    """Rabenseifner's order on a power of two: the first, largest half of the vector to the nearest rank.

    ``sum_j (T(m / 2^(j+1)) + y m / 2^(j+1))`` at distance ``2^j``; backwards, with nothing to combine, it is the
    allgather. Rabenseifner, ICCS 2004, LNCS 3036, 1; [TRG] sections 4.4 and 4.5.
    """
    return rounds(floor_log2(core), on.exchange, core, lambda d: m / (2 * d), y)


def reduce_rabenseifner(p: Ints, m: Array, on: Fabric) -> Array:
    """Reduce-scatter by halving, then binomial gather; surplus ranks first send their vector to a neighbour."""
    core = 1 << floor_log2(p)
    fold = on.level(p, m, 1) + on.reduction * m
    return halving(core, m, on, on.reduction) + trees.gather(core, m / core, on) + np.where(p > core, fold, 0.0)


def allreduce_rabenseifner(p: Ints, m: Array, on: Fabric) -> Array:
    """Halving, and back along the same steps; surplus ranks give their vector before and get the result after."""
    core = 1 << floor_log2(p)
    fold = 2 * on.level(p, m, 1) + on.reduction * m
    return halving(core, m, on, on.reduction) + halving(core, m, on, 0.0) + np.where(p > core, fold, 0.0)


def scatter_halving(p: Ints, m: Array, on: Fabric) -> Array:
    """Halve the vector and the ranks in each round: ``sum_j (T(2^j m) + y 2^j m)`` on a power of two.

    Surplus ranks give their whole vector to a neighbour before and get their block after. [TRG] section 4.3. Träff's
    butterfly (EuroPVM/MPI 2005, LNCS 3666, 129) has the same volumes and rounds.
    """
    core, whole = 1 << floor_log2(p), p * m
    fold = on.level(p, whole, 1) + on.reduction * whole + on.level(p, m, 1)
    blocks = rounds(floor_log2(core), on.exchange, core, lambda d: whole / core * d, on.reduction)
    return blocks + np.where(p > core, fold, 0.0)


def split_binary(p: Ints, m: Array, on: Fabric) -> Array:
    """Each half of the vector goes down one side of a binary tree, then the sides exchange halves.

    Pjesivac-Grbovic et al., Cluster Computing 10 (2007) 127.
    """
    return trees.binary(p, m / 2, on) + on.shift(p, m / 2, (p + 1) // 2)


def double_ring(p: Ints, m: Array, on: Fabric) -> Array:
    """A token goes around the ring twice, one rank after the other: ``2 p T(0)``."""
    far = np.where(p > on.ranks_per_node, on.nodes(p), 0)
    return 2 * on.hops(m * 0.0, far, p - far)


_RING, _TRAIN = "(p - 1) (a + m G)", "(p - 2) spacing(m) + T(m)"

TABLE: tuple[tuple[str, str, Algorithm], ...] = (
    ("allgather/ring allgatherv/ring", _RING, lambda p, m, on: on.ring(p, m)),  # [TRG] section 4.1
    ("allgather/two_proc allgatherv/two_proc", "T(m)", lambda p, m, on: on.ring(p, m)),  # chosen for two ranks only
    ("allgather/recursive_doubling allgatherv/recursive_doubling", "log2 p a + (p - 1) m G", gather_doubling),
    ("allgather/bruck allgatherv/bruck", "ceil(log2 p) a + (p - 1) m G", gather_bruck),
    (
        "allgather/neighbor_exchange allgatherv/neighbor_exchange",
        "T(m) + (p/2 - 1) T(2 m)",
        neighbor_exchange,
    ),
    (  # gather at one rank, then broadcast the whole
        "allgather/linear allgatherv/default",
        f"{_TRAIN} + ceil(log2 p) T(p m)",
        lambda p, m, on: in_turn(p, m, on) + trees.binomial(p, p * m, on),
    ),
    ("allreduce/recursive_doubling", "log2 p (a + m G + y m)", recursive_exchange),
    (  # Thakur and Gropp, EuroPVM/MPI 2003, LNCS 2840, 257; without a segment size the segmented form is the same
        "allreduce/ring allreduce/ring_segmented",
        "2 (p - 1) a + 2 (p-1)/p m G + (p-1)/p y m",
        lambda p, m, on: 2 * on.ring(p, m / p) + (p - 1) * on.reduction * (m / p),
    ),
    ("allreduce/rabenseifner", "2 log2 p a + 2 (p-1)/p m G + (p-1)/p y m", allreduce_rabenseifner),
    (  # Open MPI's nonoverlapping; `cost` takes the library's own reduce and broadcast there
        "allreduce/reduce_bcast",
        "2 ceil(log2 p) (a + m G) + ceil(log2 p) y m",
        lambda p, m, on: trees.binomial(p, m, on, on.reduction) + trees.binomial(p, m, on),
    ),
    (
        "allreduce/linear",
        f"2 ({_TRAIN}) + (p - 1) y m",
        lambda p, m, on: in_turn(p, m, on) + (p - 1) * on.reduction * m + train(p, m, on),
    ),
    (  # p - 1 rounds, each with another partner, [TRG] section 4.6; bounds linear_sync, which keeps few requests open
        "alltoall/pairwise alltoallv/pairwise alltoall/two_proc alltoall/linear_sync",
        _RING,
        lambda p, m, on: on.everyone(p, m),
    ),
    ("alltoall/bruck", "ceil(log2 p) a + p/2 log2 p m G", alltoall_bruck),
    ("alltoall/linear alltoallv/linear alltoall/scattered", _TRAIN, alltoall_linear),
    (  # Hensgen, Finkel and Manber, Int. J. Parallel Programming 17 (1988) 1
        "barrier/dissemination barrier/bruck",
        "ceil(log2 p) a",
        lambda p, m, on: rounds(ceil_log2(p), on.shift, p, lambda d: m * 0.0),
    ),
    (
        "barrier/recursive_doubling",
        "log2 p' a, and 2 a where p is not a power of two",
        lambda p, m, on: recursive_exchange(p, m * 0.0, on),
    ),
    ("barrier/linear", "2 ((p - 2) g + a)", lambda p, m, on: 2 * train(p, m * 0.0, on)),
    ("barrier/double_ring", "2 p a", double_ring),
    (  # up a binomial tree and down again
        "barrier/tree",
        "2 ceil(log2 p) a",
        lambda p, m, on: 2 * rounds(ceil_log2(p), on.level, p, lambda d: m * 0.0),
    ),
    ("bcast/linear", _TRAIN, train),
    ("bcast/binomial", "ceil(log2 p) (a + m G)", trees.binomial),
    ("bcast/knomial", "ceil(log4 p) (T(m) + 2 spacing(m))", trees.k_nomial),
    ("bcast/binary", "floor(log2 p) (T(m) + spacing(m))", trees.binary),
    ("bcast/split_binary", "floor(log2 p) (T(m/2) + spacing(m/2)) + T(m/2)", split_binary),
    ("bcast/chain bcast/pipeline", "(p - 1) T(m)", trees.chain),
    (  # scatter of m / p, then allgather: van de Geijn's algorithm in [TRG] section 4.2
        "bcast/scatter_recursive_doubling",
        "(2 log2 p) a + 2 (p-1)/p m G",
        lambda p, m, on: trees.gather(p, m / p, on) + gather_doubling(p, m / p, on),
    ),
    (
        "bcast/scatter_ring",
        "(log2 p + p - 1) a + 2 (p-1)/p m G",
        lambda p, m, on: trees.gather(p, m / p, on) + on.ring(p, m / p),
    ),
    ("gather/binomial scatter/binomial", "ceil(log2 p) a + (p - 1) m G", trees.gather),
    ("scatter/binomial_in_order", "k (k + 1) / 2 a + (2 p - 2 - k) m G, k = ceil(log2 p)", trees.scatter_in_order),
    ("gather/linear gatherv/linear scatter/linear scatterv/linear", _TRAIN, in_turn),
    ("scatter/linear_nb", _TRAIN, train),
    (  # each sender waits for the root's empty message first, so that the root is not flooded
        "gather/linear_sync",
        f"(p - 1) T(0) + {_TRAIN}",
        lambda p, m, on: train(p, m, on) + train(p, m * 0.0, on),
    ),
    ("reduce/linear", f"{_TRAIN} + (p - 1) y m", lambda p, m, on: in_turn(p, m, on) + (p - 1) * on.reduction * m),
    (  # [TRG] section 4.4
        "reduce/binomial",
        "ceil(log2 p) (a + m G + y m)",
        lambda p, m, on: trees.binomial(p, m, on, on.reduction),
    ),
    (  # the in-order form costs the same
        "reduce/binary",
        "floor(log2 p) (T(m) + spacing(m) + 2 y m)",
        lambda p, m, on: trees.binary(p, m, on, on.reduction),
    ),
    ("reduce/chain reduce/pipeline", "(p - 1) (T(m) + y m)", lambda p, m, on: trees.chain(p, m, on, on.reduction)),
    ("reduce/rabenseifner", "2 log2 p a + 2 (p-1)/p m G + (p-1)/p y m", reduce_rabenseifner),
    (
        "reduce_scatter/recursive_halving reduce_scatter_block/recursive_halving",
        "log2 p a + (p - 1) m G + (p - 1) y m",
        scatter_halving,
    ),
    ("reduce_scatter/butterfly reduce_scatter_block/butterfly", "as recursive halving", scatter_halving),
    (
        "reduce_scatter/ring",
        "(p - 1) (a + m G + y m)",
        lambda p, m, on: on.ring(p, m) + (p - 1) * on.reduction * m,
    ),
    (  # every rank sends each other rank its block directly, [TRG] section 4.3
        "reduce_scatter/pairwise reduce_scatter_block/pairwise",
        "(p - 1) (a + m G + y m)",
        lambda p, m, on: on.everyone(p, m) + (p - 1) * on.reduction * m,
    ),
    (  # exchange all that is not yet the partner's own, [TRG] section 4.3
        "reduce_scatter/recursive_doubling reduce_scatter_block/recursive_doubling",
        "log2 p a + (log2 p - (p-1)/p) p m (G + y)",
        lambda p, m, on: rounds(ceil_log2(p), on.shift, p, lambda d: m * np.maximum(p - d, 0), on.reduction),
    ),
    (  # reduce the whole vector at one rank, then scatter the blocks
        "reduce_scatter/nonoverlapping reduce_scatter_block/linear",
        f"ceil(log2 p) (T(p m) + y p m) + {_TRAIN}",
        lambda p, m, on: trees.binomial(p, p * m, on, on.reduction) + in_turn(p, m, on),
    ),
    (  # partial results go 2^j ranks on and are combined twice; Hillis and Steele, CACM 29 (1986) 1170
        "scan/recursive_doubling exscan/recursive_doubling",
        "ceil(log2 p) (a + m G + 2 y m)",
        lambda p, m, on: rounds(ceil_log2(p), on.shift, p, lambda d: m, 2 * on.reduction),
    ),
    ("scan/linear exscan/linear", "(p - 1) (a + m G + y m)", lambda p, m, on: trees.chain(p, m, on, on.reduction)),
)
"""Names (``operation/algorithm``), equation, and seconds from ranks, bytes and network."""

for _names, _equation, _steps in TABLE:
    algorithm(*_names.split(), equation=_equation)(_steps)
