"""Find the plateaus of a latency curve and say which memory level each belongs to.

Over the logarithm of the working set the latency is flat while one level serves all loads, and rises where a level
overflows.  A plateau is a run of points between which the curve rises by less than :data:`STEEP` per doubling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ranksight.core.records import dataclass

STEEP = 0.25
"""Rise of log2(latency) per doubling of the working set from which on a curve is no longer flat (19 %)."""
SAME = 1.25
"""Neighbouring plateaus nearer than this factor are one, with a glitch in between."""
LEAST = 3
"""Points that make a plateau."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """A flat part of the curve: first and last working set in bytes, median latency in seconds."""

    first: float
    last: float
    latency: float

    def overlap(self, low: float, high: float) -> float:
        """Doublings of the working set that the plateau and ``low`` to ``high`` have in common."""
        return max(0.0, math.log2(min(self.last, high) / max(self.first, low)))


def find_plateaus(sizes: Sequence[float], latencies: Sequence[float]) -> tuple[Plateau, ...]:
    """The plateaus of a curve, from small working sets to large.

    `sizes` (sequence of float, shape (n,)): working sets in bytes, rising. `latencies` (sequence of float, shape (n,)):
    seconds per load.
    """
    x, y = np.log2(np.asarray(sizes, dtype=float)), np.log2(np.asarray(latencies, dtype=float))
    if len(x) < LEAST:
        return ()
    flat = np.abs(np.diff(smoothed(y)) / np.diff(x)) < STEEP
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(int), [0]])))
    runs: list[tuple[int, int]] = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):  # points start..end, both included
        if runs and abs(_level(y, *runs[-1]) - _level(y, start, end)) < math.log2(SAME):
            runs[-1] = (runs[-1][0], int(end))
        else:
            runs.append((int(start), int(end)))
    kept = [(start, end) for start, end in runs if end - start + 1 >= LEAST]
    return tuple(Plateau(float(sizes[a]), float(sizes[b]), float(2.0 ** _level(y, a, b))) for a, b in kept)


def smoothed(y: np.ndarray) -> np.ndarray:
    """Running median of three (n,): it takes single glitches out and leaves steps where they are."""
    padded = np.concatenate([y[:1], y, y[-1:]])
    return np.asarray(np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0))


def _level(y: np.ndarray, start: int, end: int) -> float:
    return float(np.median(y[start : end + 1]))


def assign(plateaus: Sequence[Plateau], caches: Sequence[float]) -> list[Plateau | None]:
    """The plateau of every cache and, last, of memory; None where the curve shows none.

    `caches` (sequence of float, shape (levels,)): capacities in bytes as the system names them, rising.

    Notes
    -----
    The last plateau is that of memory if it reaches beyond the last cache, even where it starts below that: a cache
    that is shared with others, or a part of which is given to a virtual machine, is smaller than it says. Of the others
    each cache has the one that covers most of its range ``size(level - 1) .. size(level)``, in the order of levels.
    """
    rest = list(plateaus)
    beyond = caches[-1] if caches else 0.0
    memory = rest.pop() if rest and rest[-1].last > beyond else None
    found: list[Plateau | None] = []
    low = 1.0
    for size in caches:
        covering = [(plateau.overlap(low, size), plateau) for plateau in rest]
        best = max(covering, key=lambda item: item[0], default=(0.0, None))
        mine = best[1] if best[0] > 0 else None
        if mine is not None:
            rest = rest[rest.index(mine) + 1 :]
        found.append(mine)
        low = size
    return [*found, memory]
