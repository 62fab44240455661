"""How much of a kernel's time is execution, within what its counters determine.

Let c be a kernel's cycles, i its instructions, and M = sum over l >= L2 of n_l l_l the cycles that its loads would wait
if each waited alone, n_l loads served by level l of latency l_l. With e cycles of execution, s = c - e are stalls.

Where stalls were counted, e is known. Where they were not, three bounds hold whatever the kernel does:

- e / i <= CPI_calm, its cycles per instruction where memory asked least of it (minimum CPI, Panadero et al.): stalls
  only add;
- e / i >= CPI_calm - M_calm / i: loads wait no longer than if each waited alone;
- e / i >= 1 / W: no core retires more than W instructions a cycle.

Within them, log(e / i) follows what programs' instructions cost when caches serve their loads: a normal law around
:data:`USUAL` with standard deviation :data:`SPREAD`, cut at the bounds. A kernel whose loads the nearest cache serves
has M = 0 and is known exactly; one that waits for memory at every configuration is known as precisely as the law.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, ratio
from ranksight.core.records import dataclass

WIDTH = 8.0
"""Instructions that a core retires a cycle at most; the widest of today's cores rename or retire six to eight."""
USUAL, SPREAD = 0.5, 0.8
"""Median of cycles per instruction without stalls and standard deviation of its logarithm: 90 % lie between 0.13 (dense
vector code that fills the core) and 1.9 (chains of additions, some divisions or mispredicted branches)."""
LONGEST = USUAL * float(np.exp(4 * SPREAD))
"""Cycles per instruction, 12, from which execution alone is not believed: four standard deviations above the usual.
Dependent divisions take 13 to 20 each, with other instructions between them."""


@dataclass(frozen=True)
class Execution:
    """Execution's share of kernels' time as a law: log-normal between bounds, all arrays (K, k)."""

    low: Array  # bounds of the share
    high: Array
    centre: Array  # median of the uncut law's share
    spread: Array  # standard deviation of the uncut law's logarithm

    def _scaled(self, share: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr((np.log(share) - np.log(self.centre)) / self.spread))

    def below(self, share: Array) -> Array:
        """Probability that execution's share is below `share`."""
        first, last = self._scaled(self.low), self._scaled(self.high)
        mass = last - first
        inside = (self._scaled(np.clip(share, self.low, self.high)) - first) / np.where(mass > 1e-12, mass, 1.0)
        narrow = np.clip((share - self.low) / np.maximum(self.high - self.low, 1e-12), 0.0, 1.0)
        return np.asarray(np.where(mass > 1e-12, inside, narrow))

    def quantile(self, probability: float) -> Array:
        """The share that execution stays below with `probability`."""
        first, last = self._scaled(self.low), self._scaled(self.high)
        with np.errstate(over="ignore", invalid="ignore"):
            at = np.exp(np.log(self.centre) + self.spread * special.ndtri(first + probability * (last - first)))
        linear = self.low + probability * (self.high - self.low)
        crossing = np.where(last - first > 1e-12, at, linear)
        return np.asarray(np.clip(np.nan_to_num(crossing, nan=1.0), self.low, self.high))


def execution(
    cycles: Array,
    instructions: Array,
    waiting: Array,
    minimum_cpi: Array,
    minimum_wait: Array,
    stalls: Array,
    error: Array,
) -> Execution:
    """What is known of execution's share of K kernels' time at k configurations.

    All (K, k) but `minimum_wait` (K,), NaN where not known. `waiting`: M, cycles that loads would wait one after
    another; infinite where loads by level were not counted. `minimum_cpi`: CPI where memory asked least, as the model
    has it at each configuration. `minimum_wait`: M per instruction there. `stalls`, `error`: stall cycles by the
    kernel's own counters, and their standard error.
    """
    each = np.divide(cycles, instructions, out=np.full(cycles.shape, np.nan), where=instructions > 0)
    top = np.fmin(each, minimum_cpi)
    with np.errstate(invalid="ignore"):
        computing_cpi = each - np.divide(
            waiting, instructions, out=np.full(cycles.shape, np.inf), where=instructions > 0
        )
        bottom = np.fmax(np.fmax(minimum_cpi - minimum_wait[:, None], computing_cpi), 1 / WIDTH)
    # Rounding, and times and counts of different runs: bounds that cross meet where they do.
    bottom = np.fmin(bottom, top)
    share = ratio(instructions, cycles, 1.0)
    known = np.isfinite(stalls)
    counted = np.clip(1 - ratio(stalls, cycles, 0.0), 1e-6, 1.0)
    reach = np.maximum(2 * ratio(np.nan_to_num(error), cycles, 0.0), 0.02)
    blank = ~known & ~np.isfinite(each)
    low = np.where(known, np.maximum(counted - reach, 1e-6), np.clip(np.nan_to_num(bottom * share), 1e-6, 1.0))
    high = np.where(known, np.minimum(counted + reach, 1.0), np.clip(np.nan_to_num(top * share, nan=1.0), 1e-6, 1.0))
    low, high = np.where(blank, 1e-6, low), np.where(blank, 1.0, high)
    centre = np.where(known, counted, np.where(blank, 0.5, np.maximum(USUAL * share, 1e-9)))
    spread = np.where(known, np.maximum(reach / np.maximum(counted, 1e-6), 1e-3), np.where(blank, 5.0, SPREAD))
    return Execution(np.minimum(low, high), high, centre, spread)
