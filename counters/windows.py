"""Places along a run that are simulated as well, where its first part shows that occurrences of a stretch differ.

The first part of a run says nothing of work that changes later: of a crystal that melts, each particle has as many
neighbours as the others for some time. Native times do not say it either, since those of the same instructions drift by
a tenth as caches and other work on the machine make them. Instructions that differ between the occurrences that were
simulated do: the run is then followed to its end without being simulated but in :data:`PLACES` windows, each in the
middle of as large a part of what is left. They are as long as what repeats takes to come by, its period, at least, and
together as long as the first part. Before each another period is simulated, which finds the caches and does not count.
What ends a run and is like nothing before is simulated, too.

All that was simulated first counts once. An occurrence later counts as those in the window of its part, or in the
nearest that has the class: the n in a window that stand for N weigh N / n each. Sums with other weights show how far
windows differ (:data:`~ranksight.counters.signature.HALVES`): half of them are raised and the others lowered,

    w (1 + sqrt(b / a)),    w (1 - sqrt(a / b)),

with a and b what the halves stand for, so that a class whose occurrences are the same has no error.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass
from ranksight.counters.signature import ENOUGH, PART, WORTH, Signature, like, upper_halves

PLACES = 4
"""Windows: the halves of an even number are as large, and of four a trend is in one of three sums."""


@dataclass(frozen=True)
class Windows:
    """What of one process is simulated behind the first part of its signature."""

    begins: Ints  # (v,): stretches at which simulation goes on
    lengths: Ints  # (v,): stretches that are simulated from each, those before the window included
    signature: Signature  # of all that is simulated: of the first part, and of the windows in order


def windows_of(first: Signature, classes: Ints, pairs: Ints, seconds: Array) -> Windows | None:
    """Windows behind the first part; None where they would be most of it, or no period is known.

    `classes` (n,), `pairs` (c,), `seconds` (n,): as of :func:`ranksight.counters.signature.of_run`.
    """
    end, whole = len(first.weights), len(classes)
    later = np.bincount(classes[end:], seconds[end:], len(pairs)).astype(np.float64)
    period = _period(classes[:end], later)
    length = max(period, -(-end // PLACES))
    if period == 0 or PLACES * (length + 2 * period + 2) > whole - end:
        return None
    bounds = np.rint(np.linspace(end, whole, PLACES + 1)).astype(np.int64)
    opens = (bounds[1:] + bounds[:-1]) // 2 - length // 2
    begins, closes = opens - period, opens + length
    part = np.searchsorted(bounds[:-1], np.arange(whole), side="right")  # of each stretch, 0 the first
    counted = np.concatenate([np.arange(end), (opens[:, None] + np.arange(length)).ravel()])
    unknown = np.flatnonzero(_stands(classes, pairs, seconds, counted, end) < 0)
    last = max(int(unknown[unknown >= closes[-1]].min(initial=whole)), int(closes[-1]) + 1)
    if last < whole - 1:
        # What ends the run, but for what follows its last call.
        begins = np.append(begins, max(last - period, int(closes[-1]) + 1))
        opens, closes = np.append(opens, last), np.append(closes, whole - 1)
        part[last:] = PLACES + 1
        counted = np.concatenate([counted, np.arange(last, whole - 1)])
    number = np.concatenate([np.arange(end), *map(np.arange, begins.tolist(), closes.tolist())])
    simulated = float(seconds[number].sum() / seconds.sum())
    if simulated > WORTH:
        return None
    stands = _stands(classes, pairs, seconds, counted, end)
    weight, further = _weights(classes, stands, part, counted)
    at = np.searchsorted(counted, number)
    counts = counted[np.minimum(at, len(counted) - 1)] == number
    each, others = np.zeros(len(number)), np.zeros((len(further), len(number)))
    each[counts], others[:, counts] = weight, further
    stood = float(seconds[stands >= 0].sum())
    error = abs(float(weight @ seconds[counted]) / stood - 1.0)
    share = stood / float(seconds.sum())
    return Windows(begins, closes - begins, Signature(each, others, whole, share, simulated, error, PLACES))


def _stands(classes: Ints, pairs: Ints, seconds: Array, counted: Ints, end: int) -> Ints:
    """Of each stretch the class that stands for it, -1 where none does. `counted`: those that count."""
    return like(classes, pairs, seconds, np.bincount(classes[counted], minlength=len(pairs)), end)[classes]


def _weights(classes: Ints, stands: Ints, part: Ints, counted: Ints) -> tuple[Array, Array]:
    """Weights (m,) of the stretches that count (m,), and those in the further sums (3, m)."""
    shape = (int(max(classes.max(), stands.max())) + 1, PLACES + 2)
    known = stands >= 0
    seen = np.bincount(classes[counted] * shape[1] + part[counted], minlength=shape[0] * shape[1]).reshape(shape)
    often = np.bincount(stands[known] * shape[1] + part[known], minlength=shape[0] * shape[1]).reshape(shape)
    stood = _moved(often, seen)
    at = classes[counted], part[counted]
    weight = (stood / np.maximum(seen, 1))[at]
    return weight, weight * (1.0 + PART * _raised(stood)[:, at[0], at[1]])


def _period(classes: Ints, later: Array) -> int:
    """Stretches up to which every class that matters comes by in the first part (m,), of those that do twice; 0 where
    none does.

    `later` (c,): time of each class behind the first part.
    """
    order = np.argsort(classes, kind="stable")
    same = np.diff(classes[order]) == 0
    gaps = np.zeros(len(later), dtype=np.int64)
    np.maximum.at(gaps, classes[order][1:][same], np.diff(order)[same])
    known = np.flatnonzero((gaps > 0) & (later > 0))
    by_gap = known[np.argsort(gaps[known], kind="stable")]
    share = np.cumsum(later[by_gap]) / max(float(later.sum()), 1e-300)
    at = min(int(np.searchsorted(share, ENOUGH)), len(by_gap) - 1)
    return int(gaps[by_gap[at]]) if len(by_gap) else 0


def _moved(often: Ints, seen: Ints) -> Ints:
    """Occurrences that those of each class and part (c, v) stand for: of parts in which none counts, too.

    `often`, `seen` (c, v): occurrences in each part, and those that count. The first part and the end stand for others
    only where no window has the class.
    """
    parts = np.arange(often.shape[1])
    distance = np.abs(parts[:, None] - parts).astype(np.float64)
    distance[1:, 0] = distance[:-1, -1] = len(parts)
    nearest = np.where(seen[:, None] > 0, distance, np.inf).argmin(axis=2)
    moved = np.zeros_like(often)
    np.add.at(moved, (np.arange(len(often))[:, None], nearest), often)
    return moved


def _raised(weight: Ints) -> Array:
    """By how much of itself (3, c, v) what each part of a class stands for (c, v) is raised in the further sums, in
    standard errors; the first part and the end in none."""
    windows = weight[:, 1:-1]
    present = windows > 0
    at, many = np.cumsum(present, axis=1) - 1, present.sum(axis=1, keepdims=True)
    upper = upper_halves(at, many) & present
    above = (upper * windows).sum(axis=2, keepdims=True)
    below = (~upper * windows).sum(axis=2, keepdims=True)
    ratio = np.sqrt(below / np.maximum(above, 1))
    lowered = np.where(ratio > 0, 1 / np.where(ratio > 0, ratio, 1.0), 0.0)
    scale = np.minimum(1.0, 1 / np.maximum(PART * lowered, 1e-300))  # no weight is below zero
    raised = np.where(upper, ratio, np.where(present, -lowered, 0.0)) * scale
    raised = np.where((above > 0) & (below > 0), raised, 0.0)
    return np.pad(raised, ((0, 0), (0, 0), (1, 1)))
