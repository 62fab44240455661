"""Classes of ranks that do the same work, of which some are simulated and stand for the others.

Ranks belong to one class when they make the same calls of MPI, with as many elements and from the same places in the
same order, and the processor time between each two calls, summed over the run, is the same as far as the clock knows.
Positions in a grid, other numbers of neighbours and other sizes of a block show in the calls or in the times.

Of a class of three ranks or more two are simulated, drawn at random: the first stands for those that are not, the
second shows how far ranks of the class differ. Smaller classes are simulated whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass
from ranksight.counters.signature import AGREE

_SEED = 44
_PAGE = 4096


@dataclass(frozen=True)
class Stands:
    """Which ranks are simulated, and for whom."""

    classes: tuple[int, ...]  # of each rank, from 0
    counted_by: tuple[int, ...]  # for each rank the one whose counts it has: itself where it is simulated
    checks: tuple[tuple[int, int], ...]  # ranks that stand for others, and the second rank of their class
    share: float  # of the processor time of all ranks that simulated ranks take

    @property
    def simulated(self) -> tuple[int, ...]:
        """The ranks that are simulated, in order."""
        return tuple(rank for rank, by in enumerate(self.counted_by) if rank == by)


def stands_of(calls: Sequence[Ints], sites: Sequence[Ints], seconds: Sequence[Array]) -> Stands:
    """The classes of ranks, and which ranks of each are simulated.

    Parameters
    ----------
    calls : sequence of array of int
        Of each rank, what identifies each call: the operation and its number of elements.
    sites : sequence of array of int
        From where each call was made. Addresses of two processes differ by whole pages: places are numbered as they
        come, and their offset in a page is compared.
    seconds : sequence of array of float
        Processor time of each rank from the call before to each call.
    """
    members: list[list[int]] = []
    sequences = [np.stack((call, _as_they_come(site), site % _PAGE)) for call, site in zip(calls, sites, strict=True)]
    for rank, sequence in enumerate(sequences):
        for group in members:
            if np.array_equal(sequence, sequences[group[0]]) and _same_times(
                sequence, seconds[rank], seconds[group[0]]
            ):
                group.append(rank)
                break
        else:
            members.append([rank])
    draw = np.random.default_rng(_SEED)
    classes, counted_by = np.zeros(len(calls), np.int64), np.arange(len(calls))
    checks: list[tuple[int, int]] = []
    for number, group in enumerate(members):
        classes[group] = number
        if len(group) > 2:
            first, second = draw.choice(group, 2, replace=False).tolist()
            counted_by[[rank for rank in group if rank != second]] = first
            checks.append((first, second))
    times = np.array([each.sum() for each in seconds])
    simulated = counted_by == np.arange(len(calls))
    share = float(times[simulated].sum() / times.sum()) if times.sum() > 0 else 1.0
    return Stands(tuple(classes.tolist()), tuple(counted_by.tolist()), tuple(checks), share)


def _as_they_come(values: Ints) -> Ints:
    """Numbers of the values in the order of their first occurrence."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return np.asarray(order[number.reshape(-1)])


def _same_times(sequence: Ints, seconds: Array, others: Array) -> bool:
    """Whether two ranks with the same calls take the same time between each two of them, weighed by that time."""
    before = np.roll(sequence, 1, axis=1)
    _, pair = np.unique(np.concatenate((before, sequence)), axis=1, return_inverse=True)
    one, other = (np.bincount(pair.reshape(-1), each) for each in (seconds, others))
    return bool(np.abs(one - other).sum() <= AGREE * max(one.sum(), other.sum()))
