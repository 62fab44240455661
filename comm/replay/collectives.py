"""Collectives as the rounds of messages that their algorithms make; ranks count from the root, 0.

A round is sources, targets and bytes; a rank goes on when it has sent and received what it has of a round. Algorithms
and their sources: :mod:`ranksight.comm.costs.algorithms`. Those without rounds here cost what they cost there, from
when the last rank has entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Ints

MOST_MESSAGES = 1 << 22
"""Messages of one call, rounds that repeat counted once, beyond which an algorithm is taken as its cost alone."""


@dataclass(frozen=True)
class Round:
    """Messages of one round among p ranks."""

    source: Ints
    target: Ints
    size: Array
    combined: bool = False  # whether what arrives is combined with what is there
    times: int = 1  # how often it is made, one after the other


Rounds = Iterator[Round]


def _all(p: int, target: Ints, size: float | Array, combined: bool = False, times: int = 1) -> Round:
    source = np.arange(p)
    kept = (target >= 0) & (target < p) & (target != source)
    return Round(source[kept], target[kept], np.broadcast_to(np.asarray(size, float), p)[kept], combined, times)


def _some(source: Ints, target: Ints, size: float | Array, combined: bool = False) -> Round:
    return Round(source, target, np.broadcast_to(np.asarray(size, float), len(source)), combined)


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
        yield _all(p, ahead, m, turns == 2 and turn == 0, p - 1)


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
            yield _some(source, source + d, m * blocks)
        d //= 2


def _up(p: int, m: float, part: bool = False, combined: bool = False) -> Rounds:
    for each in reversed(list(_down(p, m, part))):
        yield _some(each.target, each.source, each.size, combined)


def _from_root(p: int, m: float) -> Rounds:
    others = np.arange(1, p)
    yield _some(np.zeros(p - 1, dtype=np.int64), others, m)


def _to_root(p: int, m: float, combined: bool = False) -> Rounds:
    others = np.arange(1, p)
    yield _some(others, np.zeros(p - 1, dtype=np.int64), m, combined)


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
    "allreduce/reduce_bcast": lambda p, m: _after(_up(p, m, combined=True), _down(p, m)),
    "allreduce/linear": lambda p, m: _after(_to_root(p, m, True), _from_root(p, m)),
    "allgather/ring": _ring,
    "allgather/two_proc": _ring,
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
    "bcast/linear": _from_root,
    "reduce/binomial": lambda p, m: _up(p, m, combined=True),
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


def rounds_of(operation: str, algorithm: str, ranks: int, size: float) -> list[Round] | None:
    """Rounds of a collective; None where the algorithm is known by its cost alone."""
    make = ROUNDS.get(f"{VECTORS.get(operation, operation)}/{algorithm}")
    if make is None or (make is _linear_all and ranks**2 > MOST_MESSAGES):
        return None
    rounds, messages = [], 0
    for each in make(ranks, size):
        rounds.append(each)
        messages += len(each.source)
        if messages > MOST_MESSAGES:
            return None
    return rounds
