"""How much of the last cache a core has to itself: the working set from which its loads go to memory.

What a system names is the whole cache. A virtual machine may have a part of it, others may use it at the same time, and
then loads go to memory long before. Let a and b be the latencies of the last cache and of memory, plateaus of the curve
on either side; at a working set w the part

    m(w) = (t(w) - a) / (b - a)

of the loads comes from memory. A cache that throws out what was used least recently, gone through again and again,
steps from m = 0 to 1 at its size C; one that throws out at random follows m = 1 - exp(-m w/C), and is at 1/2 at
2 ln(2) C; the best that can be done is m = 1 - C/w. The effective size is where m = 1/2, that of the cache of the first
kind which comes nearest, as simulators have it; between the working sets of m = 1/10 and 9/10 a part of the loads is
served, whatever the kind.

Waiting for translations raises latencies as well, though by less than :data:`APART`, so that no step as small as that
is taken for the end of a cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.platforms.calibration.plateaus import Plateau, smoothed
from ranksight.platforms.calibration.sampling import rounded

APART = 1.5
"""Least ratio of memory's latency to the last cache's: walks through page tables, one for many loads, add less."""
BEYOND = 2.0
"""The curve has to reach this multiple of the size that the system names, or its last plateau may be the cache."""
OCTAVE = 2.0
"""Ratio of working sets over which memory's plateau is flat at least."""
QUARTILES = 0.25, 0.75
"""Other processes slow a load down and never speed it up, so the curve is the lower quartile of the samples."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """The end of the last cache."""

    size: float  # effective size in bytes
    low: float  # working sets between which the cache serves a part of the loads
    high: float
    doubt: str = ""  # why the curve does not show the end; `size` is then the one that the system names

    @property
    def sure(self) -> bool:
        """Whether the curve shows the end."""
        return not self.doubt

    def seen(self, nominal: int) -> int:
        """Bytes that the cores see of `nominal`; all of them unless the curve clearly shows fewer."""
        return int(rounded(self.size)) if self.sure and self.high < nominal else nominal


def find_boundary(
    sizes: Sequence[float], times: Sequence[Array], near: Plateau | None, far: Plateau | None, nominal: float
) -> Boundary:
    """The end of the last cache on a latency curve.

    Parameters
    ----------
    sizes : sequence of float, shape (n,)
        Working sets in bytes, rising.
    times : sequence of n arrays
        Seconds per load, the samples of each working set.
    near, far : Plateau or None
        Those of the last cache and of memory (:func:`ranksight.platforms.calibration.plateaus.assign`).
    nominal : float
        Bytes that the system names.
    """
    doubt = _doubt(sizes, near, far, nominal)
    if doubt or near is None or far is None:
        return Boundary(nominal, nominal, nominal, doubt)
    fast, slow = (np.array([np.quantile(each, q) for each in times]) for q in QUARTILES)
    x = np.log2(np.asarray(sizes, dtype=np.float64))
    # From the middle of the cache's plateau to that of memory's, where the curve does nothing but rise.
    first, last = (0.5 * np.log2(plateau.first * plateau.last) for plateau in (near, far))
    from scipy.optimize import isotonic_regression  # takes long to import, and only calibration needs it

    inside = (x >= first) & (x <= last)

    def crossing(curve: Array, part: float) -> float:
        rising = isotonic_regression(smoothed(np.log(curve))[inside]).x
        goal = np.log(near.latency + part * (far.latency - near.latency))
        # Where the curve is level, its middle.
        return float(2 ** (0.5 * (_first(x[inside], rising, goal) - _first(-x[inside][::-1], -rising[::-1], -goal))))

    size = crossing(fast, 0.5)
    low, high = crossing(slow, 0.1), crossing(fast, 0.9)
    return Boundary(size, min(low, size), max(high, size))


def _first(x: Array, rising: Array, goal: float) -> float:
    """Where a curve that never falls first comes to `goal`."""
    at = int(np.searchsorted(rising, goal))
    if at == 0 or at == len(x):
        return float(x[min(at, len(x) - 1)])
    step = (goal - rising[at - 1]) / (rising[at] - rising[at - 1])
    return float(x[at - 1] + step * (x[at] - x[at - 1]))


def _doubt(sizes: Sequence[float], near: Plateau | None, far: Plateau | None, nominal: float) -> str:
    """What is missing for the curve to be whole; empty where nothing is."""
    if sizes[-1] < BEYOND * nominal:
        return f"the curve ends at {sizes[-1] / 2**20:.4g} MiB, short of {BEYOND:g} times that"
    if near is None:
        return "the latency curve has no plateau of it"
    if far is None or far.last < OCTAVE * far.first:
        return "the latency curve has no plateau of memory behind it"
    if far.latency < APART * near.latency:
        return f"memory takes {far.latency / near.latency:.2g} times as long only, which page tables may explain"
    return ""
