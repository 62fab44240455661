"""The part of a run that stands for all of it: which stretches between MPI calls to simulate, and their weights.

A stretch is what a process computes from one MPI call to the next. Stretches between the same two calls, by operation
and address, that take about the same time natively are occurrences of one class. A simulation that ends after m calls
has seen n of the N occurrences of a class. With the first one apart, since it finds the caches cold, the others weigh

    w = (N - 1) / (n - 1),        the first 1

so that sums over the simulated stretches stand for sums over all. A class is counted when its first occurrence and k
more were seen, or all there are; m is where more simulation counts hardly more (:data:`GAIN`), and has to
stand for :data:`ENOUGH` of the processor time.

Work that grows, and work that is done once in many iterations, belong to classes of their own by their time, which
are seen late. A simulation goes on until it has seen the pairs of calls that occur again and again, such as every tenth
turn, but for :data:`MISSED` of the stretches. What was not seen counts as the class of the same calls that was seen
most, as noise of the clock divides classes too, and the last stretch, which another call ends, as one that began as it
did; where the weighted native time then differs from the measured one, k doubles, and a program for which that does not
help does not repeat. Where simulated occurrences differ in their instructions, windows along the rest of the run are
simulated too (:mod:`ranksight.counters.windows`).

How far occurrences of a class differ is the error of its counts. It shows in sums with other weights: those of half of
the n - 1 counted occurrences are raised and those of the others lowered,

    w (1 + f sqrt(b / a)),    w (1 - f sqrt(a / b)),    f^2 = 1 - (n - 1) / (N - 1),

with a and b the numbers in the halves, so that such a sum differs from the first one by one standard error, its sign
aside: none, where all occurrences are counted. The halves (:data:`HALVES`) are every other occurrence, those at the
ends of each four, and the earlier ones. Source: Panadero et al., "P3S: a methodology to analyze and predict
application scalability", 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.records import dataclass

ENOUGH = 0.95
"""Share of the time that the simulated part has to stand for: what ends a run may be left out, and is stated."""
GAIN = 5.0
"""Share of the time that may be simulated for each that counted classes gain by it."""
WORTH = 0.5
"""Share of the time that is simulated, from which the whole run is: it is exact and takes twice as long at most."""
AGREE = 0.075
"""Difference of the weighted time from the measured one that the clock and the cores' other work make."""
COUNTS = (2, 4, 8, 16, 32, 64, 128)
"""Occurrences after the first of which the fewest are counted that give back the time."""
RECURRING = 3
"""Occurrences of a pair of calls from which on it is part of what repeats, and no end of a run."""
MISSED = 0.01
"""Share of the stretches that may be between pairs of calls that repeat and were not seen: they take little time, but a
kernel's calls are counted where it is entered."""
HALVES = ("turns", "pairs", "halves")
"""Names of the further sums."""
PART = 0.5
"""Share of a standard error by which further sums differ: no weight is then below zero."""
_SMALL = 0.005
_SHORTEST = 5e-6
"""Seconds below which stretches take the same time as far as the clock knows."""


@dataclass(frozen=True)
class Signature:
    """What of one process is simulated."""

    weights: Array  # (m,) of the stretches that are simulated, from the first
    further: Array  # (3, m): their weights in the sums that show how far occurrences differ
    stretches: int  # of the whole run
    share: float  # of the whole run's processor time that they stand for: all between the same calls
    simulated: float  # share of the processor time that is simulated
    error: float  # of the weighted time of the simulated stretches, relative to that of all that they stand for
    places: int = 0  # windows behind the first part that are simulated too


def classes_of(calls: Ints, seconds: Array, begins: Sequence[int] = ()) -> tuple[Ints, Ints]:
    """The class of each stretch, by its bounding calls and its time in powers of four; and each class's pair.

    `calls`: what identifies the call that ends each stretch. `seconds`: processor time of each, natively. Times are
    relative to the median of all stretches between the same calls; those that take :data:`_SMALL` of all time together
    are no class of their own. `begins`: stretches from which on the program runs other code between the same calls, and
    the same calls are others therefore. Classes and pairs count from 0.
    """
    _, call = np.unique(calls, return_inverse=True)
    before = np.concatenate(([call.max(initial=0) + 1], call[:-1]))
    phase = np.searchsorted(np.sort(np.array(begins, np.int64)), np.arange(len(call)), side="right")
    number = call.max(initial=0) + 2
    _, pair = np.unique((phase * number + before) * number + call, return_inverse=True)
    times = np.log2(np.maximum(seconds, _SHORTEST))
    order = np.lexsort((times, pair))
    often = np.bincount(pair)
    middle = times[order][np.cumsum(often) - often + often // 2]
    power = np.rint((times - middle[pair]) / 2).astype(np.int64)
    _, part = np.unique(np.column_stack((pair, power)), axis=0, return_inverse=True)
    part = part.reshape(-1)
    small = np.bincount(part, seconds) < _SMALL * seconds.sum()
    own = np.where(small[part] | (power == 0), -1 - pair, part)
    _, first, classes = np.unique(own, return_index=True, return_inverse=True)
    return classes, pair[first]


def of_run(
    classes: Ints, pairs: Ints, seconds: Array, counted: int = 0, agree: float = AGREE, least: int = 0
) -> Signature | None:
    """The signature of a process; None where no part of the run stands for the whole.

    Parameters
    ----------
    classes : array of int
        Class of each stretch, in order.
    pairs : array of int
        Of each class, its pair of calls.
    seconds : array of float
        Processor time of each, natively.
    counted : int, optional
        Occurrences to count after the first; by default those of the shortest part that gives back the time, and None
        where none does.
    agree : float, optional
        Largest difference of the weighted time from the measured one, where `counted` is not given.
    least : int, optional
        Stretches to simulate at least.
    """
    if len(classes) == 0 or not seconds.sum() > 0:
        return None
    order = np.argsort(classes, kind="stable")
    missed = _missed(pairs[classes])
    if counted:
        return _of_counted(classes, pairs, seconds, order, missed, counted, least)
    every = [_of_counted(classes, pairs, seconds, order, missed, number, least) for number in COUNTS]
    good = [one for one in every if one and one.simulated <= WORTH and one.share >= ENOUGH and one.error <= agree]
    return min(good, key=lambda one: one.simulated, default=None)


def _of_counted(
    classes: Ints, pairs: Ints, seconds: Array, order: Ints, missed: Array, counted: int, least: int
) -> Signature | None:
    """The signature with as many occurrences counted. `order`: the stretches by their class; `missed` as of
    :func:`_missed`."""
    total = float(seconds.sum())
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    often = np.diff(np.append(starts, len(classes)))
    complete = order[starts + np.minimum(often, counted + 1) - 1] + 1
    rank = np.empty(len(classes), np.int64)  # number of each stretch among the occurrences of its class
    rank[order] = np.arange(len(classes)) - np.repeat(starts, often)
    time = np.bincount(classes, seconds, len(starts))
    complete = np.maximum(complete, min(least, len(classes)))
    at = np.argsort(complete, kind="stable")
    share = np.cumsum(time[at]) / total
    spent = np.cumsum(seconds)[complete[at] - 1] / total
    usable = (spent <= WORTH) & (missed[complete[at] - 1] <= MISSED)
    loss = np.where(usable, spent - GAIN * share, np.inf)
    enough = int(np.argmin(loss))
    if not np.isfinite(loss[enough]):
        return None
    end = int(complete[at[enough]])
    seen = np.bincount(classes[:end], minlength=len(often))
    stand = like(classes, pairs, seconds, seen, end)
    stands = stand >= 0
    often = _folded(often, seen, stand)
    later = (often - 1) / np.maximum(seen - 1, 1)
    simulated, once = classes[:end], seen[classes[:end]] == 1
    weights = np.where(rank[:end] == 0, np.where(once, often[simulated], 1.0), later[simulated])
    further = weights * (1.0 + PART * _halves(rank[:end], seen[simulated] - 1, often[simulated] - 1))
    stood = float(time[stands].sum())
    error = abs(float(weights @ seconds[:end]) / stood - 1.0)
    return Signature(weights, further, len(classes), stood / total, float(spent[enough]), error)


def upper_halves(at: Ints, many: Ints) -> Mask:
    """Which (3, ...) of so many occurrences, by their numbers `at` from 0, are in the half that is raised in each of
    the sums of :data:`HALVES`."""
    return np.array([at % 2 == 0, at % 4 % 3 == 0, 2 * at < many])


def _halves(number: Ints, counted: Ints, whole: Ints) -> Array:
    """By how much of itself (3, m) each weight is raised in the sums of :data:`HALVES`, in standard errors.

    `number` (m,): of a stretch among the occurrences of its class, 0 the first. `counted`, `whole` (m,): occurrences of
    the class after the first that are simulated, and all.
    """
    at = number - 1
    upper = upper_halves(at, counted)
    rest, odd = np.divmod(counted, 4)
    many = np.array([(counted + 1) // 2, 2 * rest + (odd > 0), (counted + 1) // 2])
    few = counted - many
    left = np.sqrt(np.maximum(1.0 - counted / np.maximum(whole, 1), 0.0))
    ratio = np.sqrt(few / np.maximum(many, 1))
    each = np.where(upper, ratio, -1 / np.where(ratio > 0, ratio, 1.0))
    return np.asarray(np.where((at >= 0) & (few > 0), left * each, 0.0))


def _missed(pairs: Ints) -> Array:
    """Share of the stretches (n,), by their pairs, that occur again and again and begin after each: what a simulation
    up to it misses."""
    _, first, often = np.unique(pairs, return_index=True, return_counts=True)
    begins = np.zeros(len(pairs))
    np.add.at(begins, first, np.where(often >= RECURRING, often, 0))
    return np.asarray((begins.sum() - np.cumsum(begins)) / len(pairs))


def like(classes: Ints, pairs: Ints, seconds: Array, seen: Ints, end: int) -> Ints:
    """Of each class the class that stands for it, -1 where none does: itself where it was seen, else the one of the
    same calls that was seen most.

    What ends a loop is between other calls than what came before. Where no class of the same calls was seen, a stretch
    is of the one that was seen most of those that follow the same two calls and whose occurrences, in all of the run,
    took such times, but for what the clock makes: it is rather left out, which is stated, than counted as what it is
    not.
    """
    by_seen = np.argsort(seen, kind="stable")
    most = np.full(int(pairs.max()) + 1, -1, dtype=np.int64)
    most[pairs[by_seen[seen[by_seen] > 0]]] = by_seen[seen[by_seen] > 0]
    stand: Ints = np.where(seen > 0, np.arange(len(seen)), most[pairs])
    # What may end a loop: the first stretch of an unseen class, after a pair that a seen one follows.
    _, first = np.unique(classes, return_index=True)
    times = np.maximum(seconds, _SHORTEST)
    ends = first[(stand < 0) & (first > 0)]
    ends = ends[np.isin(pairs[classes[ends - 1]], pairs[classes[: end - 1]])]
    before = pairs[classes[:-1]]
    for pair in np.unique(pairs[classes[ends - 1]]).tolist():
        follows = 1 + np.flatnonzero(before == pair)
        follows = follows[seen[classes[follows]] > 0]
        shortest, longest = np.full(len(seen), np.inf), np.zeros(len(seen))
        np.minimum.at(shortest, classes[follows], times[follows])
        np.maximum.at(longest, classes[follows], times[follows])
        for at in ends[pairs[classes[ends - 1]] == pair].tolist():
            close = np.flatnonzero((shortest <= times[at] * (1 + AGREE)) & (times[at] <= longest * (1 + AGREE)))
            if len(close):
                stand[classes[at]] = close[np.argmax(seen[close])]
    return stand


def _folded(often: Ints, seen: Ints, stand: Ints) -> Ints:
    """Occurrences of classes, those that were not seen added to the class that stands for them."""
    folded = np.where(seen > 0, often, 0)
    unseen = (seen == 0) & (stand >= 0)
    np.add.at(folded, stand[unseen], often[unseen])
    return folded
