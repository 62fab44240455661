"""The cache geometries that a simulator accepts, as near as they come to those of a platform.

Valgrind's cache simulators (cachegrind, callgrind) want line size and number of sets to be powers of two.
"""

from __future__ import annotations

import math

from ranksight.core.records import dataclass
from ranksight.platforms.platform import Cache, Platform


@dataclass(frozen=True, slots=True)
class SimulatedCache:
    """One cache level for a simulator.

    `level`, `size`, `ways`, `line`: level, capacity in bytes, associativity, line size in bytes; ``size / (ways *
    line)`` is a power of two. `note`: how it differs from the machine's; empty where it does not.
    """

    level: int
    size: int
    ways: int
    line: int
    note: str = ""

    @property
    def option(self) -> str:
        """As valgrind's ``--D1=``, ``--I1=`` and ``--LL=`` take it: size, associativity, line size."""
        return f"{self.size},{self.ways},{self.line}"


def simulated_caches(platform: Platform) -> tuple[SimulatedCache, ...]:
    """The levels of a platform as a simulator accepts them, level 1 first; no level is smaller than the one before."""
    found: list[SimulatedCache] = []
    for cache in platform.caches:
        found.append(_fit(cache, max(cache.capacity, found[-1].size if found else cache.line)))
    return tuple(found)


def _fit(cache: Cache, size: int) -> SimulatedCache:
    """The geometry nearest in capacity, then in associativity (at most doubled or halved), with 2^k sets."""
    line = 1 << max(round(math.log2(cache.line)), 4)  # valgrind takes no lines below 16 bytes
    lines = max(size / line, 1.0)
    choices = []
    for ways in range(max(1, cache.ways // 2), 2 * cache.ways + 1):
        for sets in {1 << max(math.floor(math.log2(max(lines / ways, 1))) + up, 0) for up in (0, 1)}:
            off = abs(math.log(sets * ways / lines))
            choices.append((round(off, 9), abs(math.log(ways / cache.ways)), ways, sets))
    _, _, ways, sets = min(choices)
    fitted = sets * ways * line
    changes = []
    if cache.capacity != cache.size:
        changes.append(f"{cache.capacity} B of {cache.size} B are seen")
    if fitted != cache.capacity:
        changes.append(f"{fitted} B instead of {cache.capacity} B ({100 * (fitted / cache.capacity - 1):+.1f} %)")
    if ways != cache.ways:
        changes.append(f"{ways} ways instead of {cache.ways}")
    if line != cache.line:
        changes.append(f"lines of {line} B instead of {cache.line} B")
    note = f"{cache.name}: {', '.join(changes)}; the simulator wants 2^k sets" if changes else ""
    return SimulatedCache(cache.level, fitted, ways, line, note)
