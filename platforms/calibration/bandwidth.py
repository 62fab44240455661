"""Bandwidth of streaming kernels: of one core from every cache, of the cores that share a cache, and from memory.

Cores that read a shared cache side by side have working sets of their own, which together fit in the cache while none
fits in what a core has to itself. Where the cores' own caches are nearly as large as their parts of the shared one no
such working set is left, and as many cores read as there is one for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranksight.core.records import dataclass
from ranksight.platforms.calibration.effort import Effort
from ranksight.platforms.calibration.programs import Programs
from ranksight.platforms.calibration.sampling import Samples, repeated

KERNELS = ("read", "write", "update", "copy", "triad")
TRAFFIC = {"read": 1.0, "write": 2.0, "update": 1.0, "copy": 1.5, "triad": 4.0 / 3.0}
"""Memory traffic over the bytes counted, where every written line is read first (write-allocate)."""
_LEAST = 32 << 20
_EVADED = 0.75


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Bandwidths in B/s, bytes as the program counts them."""

    caches: tuple[Samples | None, ...]
    """Reading from each cache by one core; None where no working set fits between two levels."""
    shared: tuple[tuple[tuple[int, Samples], ...], ...]
    """Of each cache: numbers of cores of an instance and what they read together; empty where no cores share one."""
    memory: dict[str, tuple[tuple[int, Samples], ...]]  # by kernel: number of cores and what they reach together

    def evades_write_allocate(self) -> bool:
        """True when one core writes nearly as fast as it reads, which it cannot if each written line is read first."""
        (_, reading), (_, writing) = self.memory["read"][0], self.memory["write"][0]
        return writing.rate > _EVADED * reading.rate

    def samples(self) -> tuple[Samples, ...]:
        """All of them."""
        caches = [each for each in self.caches if each is not None]
        caches += [each for curve in self.shared for _, each in curve[1:]]
        return (*caches, *(each for curve in self.memory.values() for _, each in curve))


def cores(count: int) -> str:
    """A number of cores in words."""
    return "1 core" if count == 1 else f"{count} cores"


def core_counts(most: int, points: int) -> tuple[int, ...]:
    """Numbers of cores from one to `most`, at most `points` of them, closer together where the slope changes."""
    spaced = np.geomspace(1, most, min(points, most))
    return tuple(sorted({1, most, *(int(count) for count in np.round(spaced))}))


def cache_working_set(above: int, size: int) -> int | None:
    """Bytes that a cache holds and the one above it does not: their geometric mean; None where they are too near."""
    middle = int((above * size) ** 0.5) if above else size // 2
    return middle if above * 1.5 < middle < size * 0.8 else None


def measure_bandwidth(
    programs: Programs,
    cpus: Sequence[int],
    caches: Sequence[int],
    sharers: Sequence[Sequence[int]],
    effort: Effort,
    largest: int,
    say: Callable[[str], None] = lambda line: None,
) -> Bandwidths:
    """Bandwidths of the domain whose cores are `cpus`, and of the caches that `sharers` share (one thread a core).

    Parameters
    ----------
    caches : sequence of int
        Capacities in bytes that one core sees, level 1 first.
    sharers : sequence of sequences of int
        Of each level, the cores of the instance that the first of `cpus` loads through, that one first.
    largest : int
        Bytes that may be used by all threads together.
    say : callable
        Called with lines about the progress.
    """

    def run(kernel: str, size: int, used: Sequence[int], label: str) -> Samples:
        listed = ",".join(map(str, used))
        arguments = (kernel, size, listed, effort.seconds, effort.samples)
        found = repeated(lambda _: programs.run("bandwidth", arguments, label), effort)
        say(f"{label}: {found.rate / 1e9:.1f} GB/s")
        return found

    above = 0
    from_caches: list[Samples | None] = []
    shared: list[tuple[tuple[int, Samples], ...]] = []
    for level, (size, sharing) in enumerate(zip(caches, sharers, strict=True), start=1):
        sets = {count: cache_working_set(above, size // count) for count in range(1, len(sharing) + 1)}
        most = max((count for count, middle in sets.items() if middle is not None), default=0)
        curve = [
            (count, run("read", middle, sharing[:count], f"bandwidth of L{level}, {cores(count)}"))
            for count in (core_counts(most, effort.core_counts) if most else ())
            if (middle := sets[count]) is not None
        ]
        from_caches.append(curve[0][1] if curve else None)
        shared.append(tuple(curve) if len(sharing) > 1 else ())
        above = size
    memory = {}
    for kernel in KERNELS:
        curve = []
        for count in core_counts(len(cpus), effort.core_counts):
            # All threads together stream through four times the last cache, as STREAM asks for.
            size = min(max(4 * max(caches, default=_LEAST) // count, _LEAST), largest // count)
            curve.append((count, run(kernel, size, cpus[:count], f"bandwidth of memory, {kernel}, {cores(count)}")))
        memory[kernel] = tuple(curve)
    return Bandwidths(tuple(from_caches), tuple(shared), memory)
