"""Latency of each memory level, by pointer chasing over working sets of all sizes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from ranksight.core.records import dataclass
from ranksight.platforms.calibration.boundary import BEYOND, Boundary, find_boundary
from ranksight.platforms.calibration.effort import Effort
from ranksight.platforms.calibration.plateaus import Plateau, assign, find_plateaus
from ranksight.platforms.calibration.programs import Programs
from ranksight.platforms.calibration.sampling import Samples, repeated

SMALLEST = 4096
_PAGES = 32  # fit the first-level translation buffers of all processors described here
_WITHOUT_CACHES = 256 << 20  # largest working set where the system names no caches
_LARGE = 1 << 30  # a working set that takes seconds to set up


@dataclass(frozen=True, slots=True)
class Curve:
    """Latency over the working set."""

    sizes: tuple[int, ...]  # working sets in bytes, rising
    samples: tuple[Samples, ...]  # seconds per load at each
    plateaus: tuple[Plateau, ...]  # all that were found
    levels: tuple[Plateau | None, ...]  # that of each cache and, last, of memory
    edges: tuple[Boundary | None, ...] = ()
    """Where each cache ends, where the curve shows it, which is at the last one; empty where the system names no
    caches."""

    @property
    def memory(self) -> Plateau | None:
        """That of memory; where no caches are known, the last of several."""
        return self.levels[-1] if len(self.levels) > 1 else (self.plateaus[-1] if len(self.plateaus) > 1 else None)

    def edge(self, place: int) -> Boundary | None:
        """Where the cache at `place` ends; None where the curve does not show it."""
        return self.edges[place] if self.edges else None

    def between(self, low: float, high: float) -> float | None:
        """Lower quartile of the latency at working sets from `low` to `high`: a stand-in where no plateau shows."""
        found = zip(self.sizes, self.samples, strict=True)
        inside = sorted(each.seconds for size, each in found if low <= size <= high)
        return inside[len(inside) // 4] if inside else None


def working_sets(caches: Sequence[int], per_octave: int, largest: int) -> tuple[int, ...]:
    """Working sets from 4 KiB to eight times the last cache, evenly in their logarithm, and no more than `largest`.

    Of caches so large that this takes long, to twice the last.
    """
    last = max(caches, default=_WITHOUT_CACHES // 8)
    # a step more, so that a point lies beyond what the boundary asks for
    end = min(8 * last, max(int(BEYOND * last * 2 ** (1 / per_octave)), _LARGE), largest)
    found = []
    step = 0
    while (size := int(SMALLEST * 2 ** (step / per_octave))) <= max(end, SMALLEST):
        found.append(size // 1024 * 1024)
        step += 1
    return tuple(dict.fromkeys(found))


def measure_latency(
    programs: Programs,
    cpu: int,
    caches: Sequence[int],
    line: int,
    effort: Effort,
    largest: int,
    say: Callable[[str], None] = lambda line: None,
) -> Curve:
    """Latency of all working sets on one processor.

    Parameters
    ----------
    cpu : int
        The processor that measures.
    caches : sequence of int
        Capacities in bytes of its caches, level 1 first; empty where unknown.
    line : int
        Line size in bytes; pointers stand two lines apart.
    largest : int
        Bytes that may be used.
    say : callable
        Called with lines about the progress.
    """
    window = _PAGES * os.sysconf("SC_PAGE_SIZE")
    sizes = working_sets(caches, effort.per_octave, largest)
    samples = []
    for place, size in enumerate(sizes):
        label = f"latency of {size >> 10} KiB"
        samples.append(repeated(partial(_chase, programs, size, line, window, cpu, effort, label), effort))
        say(f"{label}: {1e9 * samples[-1].seconds:.2f} ns ({place + 1} of {len(sizes)} working sets)")
    plateaus = find_plateaus(sizes, [each.seconds for each in samples])
    levels = tuple(assign(plateaus, caches))
    edges: list[Boundary | None] = [None] * len(caches)
    if caches:
        edges[-1] = find_boundary(sizes, [each.per_unit() for each in samples], levels[-2], levels[-1], caches[-1])
    return Curve(sizes, tuple(samples), plateaus, levels, tuple(edges))


def _chase(
    programs: Programs, size: int, line: int, window: int, cpu: int, effort: Effort, label: str, seed: int
) -> Samples:
    """One process that chases pointers; its `seed` gives it an order of its own."""
    return programs.run("latency", (size, 2 * line, window, cpu, seed, effort.seconds, effort.samples), label)
