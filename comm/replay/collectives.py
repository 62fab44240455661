"""Collectives as the rounds of messages that their algorithms make; ranks count from the root, 0.

A round is sources, targets and bytes; a rank goes on when it has sent and received what it has of a round. In a tree
that ranks go down, messages below the eager limit do not wait for their receivers: a rank's messages to all of its
children are under way together, and share its adapter. Algorithms and their sources:
:mod:`ranksight.comm.costs.algorithms`. Those without rounds here cost what they cost there, from when the last rank has
entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass

MOST_MESSAGES = 1 << 22
"""Messages of one call, rounds that repeat counted once, beyond which an algorithm is taken as its cost alone."""


@dataclass(frozen=True)
class Round:
    """Messages of one round among p ranks."""

    source: Ints
    target: Ints
    size: Array
    combined: bool = False  # whether what arrives is combined with what is there
    down: bool = False  # whether it is a level of a tree, from the root on


@dataclass(frozen=True)
class Stage:
    """Rounds one after the other, all of them so many times."""

    rounds: tuple[Round, ...]
    times: int = 1


Rounds = Iterator[Round | Stage]


def _all(p: int, target: Ints, size: float | Array, combined: bool = False) -> Round:
    source = np.arange(p)
    kept = (target >= 0) & (target < p) & (target != source)
    return Round(source[kept], target[kept], np.broadcast_to(np.asarray(size, float), p)[kept], combined)


def _some(source: Ints, target: Ints, size: float | Array, combined: bool = False, down: bool = False) -> Round:
    return Round(source, target, np.broadcast_to(np.asarray(size, float), len(source)), combined, down)


def _doubling(p: int, m: float, combined: bool) -> Rounds:
    """Exchange at doubling distance; ranks beyond the power of two hand theirs to a neighbour and get it back."""
    core = 1 << (p.bit_length() - 1)
    extra = np.arange(p - core)
    if len(extra):
        yield _some(2 * extra, 2 * extra + 1, m, combined)
    # Odd ones of the pairs and the rest go on.
    active = np.concatenate([2 * extra + 1, np.arange(2 * len(extra), p)])
    for j in range(core.bit_length() - 1):
        yield _some(active, active[np.arange(core) ^ (1 << j)], m, combined)
    if len(extra):
        yield _some(2 * extra + 1, 2 * extra, m)


def _halving(p: int, m: float) -> Rounds:
    """Rabenseifner: halves to the nearest first, and back."""
    core = 1 << (p.bit_length() - 1)
    extra = np.arange(p - core)
    active = np.concatenate([2 * extra + 1, np.arange(2 * len(extra), p)])
    if len(extra):
        yield _some(2 * extra, 2 * extra + 1, m, True)
    steps = range(core.bit_length() - 1)
    for j in steps:
        yield _some(active, active[np.arange(core) ^ (1 << j)], m / (2 << j), True)
    for j in reversed(steps):
        yield _some(active, active[np.arange(core) ^ (1 << j)], m / (2 << j))
    if len(extra):
        yield _some(2 * extra + 1, 2 * extra, m)


def _ring(p: int, m: float, turns: int = 1) -> Rounds:
    ahead = (np.arange(p) + 1) % p
    for turn in range(turns):
        yield Stage((_all(p, ahead, m, turns == 2 and turn == 0),), p - 1)


def _neighbours(p: int, m: float) -> Rounds:
    """Pairs of neighbours exchange, with the one and the other in turn; from the second round on two blocks.

    Source: Chen, Zhang, Zhang and Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster with
    Fast Ethernet", HPC Asia 2005.
    """
    if p % 2:
        yield from _ring(p, m)
        return
    rank = np.arange(p)
    even, odd = rank ^ 1, np.where(rank % 2, rank + 1, rank - 1) % p
    yield _all(p, even, m)
    further = p // 2 - 1
    if further > 1:
        yield Stage((_all(p, odd, 2 * m), _all(p, even, 2 * m)), further // 2)
    if further % 2:
        yield _all(p, odd, 2 * m)


def _shifts(p: int, size: Callable[[int], float], combined: bool = False) -> Rounds:
    """To doubling distance around the ring, any number of ranks."""
    d = 1
    while d < p:
        yield _all(p, (np.arange(p) + d) % p, size(d), combined)
        d *= 2


def _gathered(p: int, m: float) -> Rounds:
    """Exchange all blocks held at doubling distance; Bruck's order where the ranks are no power of two."""
    if p & (p - 1):
        yield from _shifts(p, lambda d: m * min(d, p - d))
        return
    for j in range(p.bit_length() - 1):
        yield _all(p, np.arange(p) ^ (1 << j), m * (1 << j))


def _pairwise(p: int, m: float) -> Rounds:
    for d in range(1, p):
        yield _all(p, (np.arange(p) + d) % p, m)


def _linear_all(p: int, m: float) -> Rounds:
    """All at once, every rank beginning with its neighbour."""
    source = np.repeat(np.arange(p), p - 1)
    yield _some(source, (source + np.tile(np.arange(1, p), p)) % p, m)


def _down(p: int, m: float, part: bool = False) -> Rounds:
    """A binomial tree from the root; with `part` each message holds the blocks of the receiver's subtree.

    The root's first message goes to the child with the largest subtree.
    """
    d = 1 << max(p - 1, 1).bit_length() >> 1
    while d >= 1:
        source = np.arange(0, p - d, 2 * d)
        blocks = np.minimum(d, p - (source + d)) if part else 1.0
        if len(source):
            yield _some(source, source + d, m * blocks, down=True)
        d //= 2


def _k_nomial(p: int, m: float, k: int = 4) -> Rounds:
    """A tree in which each level serves k - 1 children at once, that with the largest subtrees first."""
    reach = 1
    while reach * k < p:
        reach *= k
    while reach >= 1:
        child = np.arange(0, p, reach)
        child = child[child // reach % k > 0]
        if len(child):
            yield _some(child // (k * reach) * (k * reach), child, m, down=True)
        reach //= k


def _binary(p: int, m: float) -> Rounds:
    """A balanced binary tree from the root: two children each."""
    first = 1
    while first < p:
        child = np.arange(first, min(2 * first + 1, p))
        yield _some((child - 1) // 2, child, m, down=True)
        first = 2 * first + 1


def _backwards(rounds: Rounds, combined: bool = False) -> Rounds:
    """The rounds of a tree from its leaves to the root."""
    for each in reversed([one for one in rounds if isinstance(one, Round)]):
        yield _some(each.target, each.source, each.size, combined)


def _up(p: int, m: float, part: bool = False, combined: bool = False) -> Rounds:
    yield from _backwards(_down(p, m, part), combined)


def _from_root(p: int, m: float) -> Rounds:
    others = np.arange(1, p)
    yield _some(np.zeros(p - 1, dtype=np.int64), others, m)


def _to_root(p: int, m: float, combined: bool = False) -> Rounds:
    others = np.arange(1, p)
    yield _some(others, np.zeros(p - 1, dtype=np.int64), m, combined)


def _shift(p: int, m: float, d: int) -> Rounds:
    yield _all(p, (np.arange(p) + d) % p, m)


def _after(*parts: Rounds) -> Rounds:
    for part in parts:
        yield from part


def _bruck_block(p: int, d: int) -> float:
    return float(p // (2 * d) * d + max(p % (2 * d) - d, 0))


ROUNDS: dict[str, Callable[[int, float], Rounds]] = {
    "allreduce/recursive_doubling": lambda p, m: _doubling(p, m, True),
    "allreduce/rabenseifner": _halving,
    "allreduce/ring": lambda p, m: _ring(p, m / p, 2),
    "allreduce/ring_segmented": lambda p, m: _ring(p, m / p, 2),
    "allreduce/linear": lambda p, m: _after(_to_root(p, m, True), _from_root(p, m)),
    "allgather/ring": _ring,
    "allgather/two_proc": _ring,
    "allgather/neighbor_exchange": _neighbours,
    "allgather/bruck": lambda p, m: _shifts(p, lambda d: m * min(d, p - d)),
    "allgather/recursive_doubling": _gathered,
    "allgather/linear": lambda p, m: _after(_to_root(p, m), _down(p, p * m)),
    "alltoall/pairwise": _pairwise,
    "alltoall/two_proc": _pairwise,
    "alltoall/linear_sync": _linear_all,
    "alltoall/linear": _linear_all,
    "alltoall/scattered": _linear_all,
    "alltoall/bruck": lambda p, m: _shifts(p, lambda d: m * _bruck_block(p, d)),
    "barrier/dissemination": lambda p, m: _shifts(p, lambda d: 0.0),
    "barrier/bruck": lambda p, m: _shifts(p, lambda d: 0.0),
    "barrier/recursive_doubling": lambda p, m: _doubling(p, 0.0, False),
    "barrier/linear": lambda p, m: _after(_to_root(p, 0.0), _from_root(p, 0.0)),
    "barrier/tree": lambda p, m: _after(_up(p, 0.0), _down(p, 0.0)),
    "bcast/binomial": _down,
    "bcast/knomial": _k_nomial,
    "bcast/binary": _binary,
    "bcast/split_binary": lambda p, m: _after(
        _binary(p, m / 2), iter([_all(p, (np.arange(p) + (p + 1) // 2) % p, m / 2)])
    ),
    "bcast/scatter_recursive_doubling": lambda p, m: _after(_down(p, m / p, part=True), _gathered(p, m / p)),
    "bcast/scatter_ring": lambda p, m: _after(_down(p, m / p, part=True), _ring(p, m / p)),
    "bcast/linear": _from_root,
    "reduce/binomial": lambda p, m: _up(p, m, combined=True),
    "reduce/binary": lambda p, m: _backwards(_binary(p, m), True),
    "reduce/linear": lambda p, m: _to_root(p, m, True),
    "gather/binomial": lambda p, m: _up(p, m, part=True),
    "gather/linear": _to_root,
    "scatter/binomial": lambda p, m: _down(p, m, part=True),
    "scatter/binomial_in_order": lambda p, m: _down(p, m, part=True),
    "scatter/linear": _from_root,
    "scatter/linear_nb": _from_root,
}
"""By ``operation/algorithm``: rounds among p ranks of `m` bytes (:mod:`ranksight.comm.costs.collective`)."""
VECTORS = {"allgatherv": "allgather", "alltoallv": "alltoall", "gatherv": "gather", "scatterv": "scatter"}
"""Operations on blocks of any size, and those whose rounds they have with blocks of the mean size."""


def rounds_of(operation: str, algorithm: str, ranks: int, size: float, eager: float = np.inf) -> list[Stage] | None:
    """Rounds of a collective; None where the algorithm is known by its cost alone.

    `eager`: bytes from which a message waits for its receiver.
    """
    make = ROUNDS.get(f"{VECTORS.get(operation, operation)}/{algorithm}")
    if make is None or (make is _linear_all and ranks**2 > MOST_MESSAGES):
        return None
    stages, messages = list[Stage](), 0
    for each in make(ranks, size):
        stages.append(Stage((each,)) if isinstance(each, Round) else each)
        messages += sum(len(one.source) for one in stages[-1].rounds)
        if messages > MOST_MESSAGES:
            return None
    tree = [one for stage in stages for one in stage.rounds if one.down]
    if not tree or max(one.size.max() for one in tree) >= eager:
        return stages
    return [*_together(tree, ranks), *stages[len(tree) :]]


def _together(tree: list[Round], ranks: int) -> Iterator[Stage]:
    """Levels of a tree from its root: the messages of ranks that as many others are above leave together."""
    source, target, size = (
        np.concatenate([getattr(one, side) for one in tree]) for side in ("source", "target", "size")
    )
    parent, depth = np.zeros(ranks, dtype=np.int64), np.zeros(ranks, dtype=np.int64)
    parent[target], depth[target] = source, 1
    above = parent.copy()
    while (above != 0).any():
        depth[above != 0] += 1
        above = parent[above]
    for level in range(int(depth.max()) + 1):
        at = depth[source] == level
        if at.any():
            yield Stage((_some(source[at], target[at], size[at]),))
