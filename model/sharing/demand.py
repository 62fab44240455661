"""What tells the traffic through a resource that ranks share: the memory of a domain, or a cache of several cores.

A cache is asked for by kernels that it serves. Counters tell the bytes that pass between it and the caches within, both
ways, or the loads that it served, which leave out what was fetched ahead; a platform tells what it gives to readers.
The traffic that its bandwidth limits is therefore known to a factor of two, which the measured times narrow. What goes
on to memory passes a cache as well: a kernel is taken for one that the cache holds up where it asks for more of the
cache's bandwidth than of memory's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.model.resource.resource import LEVELS
from ranksight.platforms import Platform
from ranksight.platforms.platform import Cache

Array = NDArray[np.float64]

BYTES = ("bytes_mem_read", "bytes_mem_written", "bytes_mem")
"""Metrics of memory's traffic."""
MEMORY = "memory"
TWICE = float(np.log(2))
"""Standard deviation of the logarithm of a cache's bandwidth over what its counted traffic makes of it."""
LIGHT = 0.25
"""Part of an instance's bandwidth that its cores ask for below which they hardly wait for each other."""


@dataclass(frozen=True)
class Demand:
    """The counters of a cache's traffic, and what memory is told by beside it.

    Attributes
    ----------
    name : str
        Of the cache.
    bytes, loads : str
        Metrics of what passes between it and the caches within, and of the loads that it serves.
    line : float
        Bytes of a line.
    core, rival : float
        Bandwidth in B/s of a core of a full instance, and of a core of a full domain of memory.
    """

    name: str
    bytes: str
    loads: str
    line: float
    core: float
    rival: float

    @classmethod
    def on(cls, platform: Platform) -> Demand | None:
        """On the outermost shared cache of a platform; None where that does not tell its bandwidth."""
        cache = shared_cache(platform)
        if cache is None or cache.bandwidth_shared is None:
            return None
        return cls(
            cache.name,
            f"bytes_l{cache.level}",
            f"loads_l{cache.level}",
            float(cache.line),
            cache.bandwidth_shared / cache.shared_by,
            platform.memory.bandwidth_domain / platform.layout.cores_per_domain,
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that is read."""
        return (self.bytes, self.loads, "loads_mem", *BYTES)

    def traffic(self, of: Callable[[str, str], Array], kernel: str) -> Array:
        """Bytes of a rank through the cache (n,): as they were counted, else those of the loads that it served.

        NaN where memory holds the kernel up rather, where the cache is hardly asked for, and where the traffic of one
        of the two was not counted.
        """
        through, served = of(kernel, self.bytes), self.line * of(kernel, self.loads)
        through = through if np.isfinite(through).any() else served
        beyond = np.fmax(of(kernel, "bytes_mem"), of(kernel, "bytes_mem_read") + of(kernel, "bytes_mem_written"))
        beyond = np.fmax(beyond, self.line * of(kernel, "loads_mem"))
        with np.errstate(invalid="ignore", divide="ignore"):
            pace = 1 / of(kernel, "time")
            known = np.isfinite(through * beyond * pace)
            asked, rival = (
                np.max(part * pace, initial=0.0, where=known) / core
                for part, core in ((through, self.core), (beyond, self.rival))
            )
        return through if asked >= max(LIGHT, rival) else np.full(len(through), np.nan)


def shared_cache(platform: Platform) -> Cache | None:
    """The outermost cache that cores share and whose loads are counted; None where there is none."""
    shared = [cache for cache in platform.caches if cache.shared_by > 1 and 2 <= cache.level < len(LEVELS)]
    return max(shared, key=lambda one: one.level, default=None)


def loads_of(resource: str) -> str:
    """Which of :data:`ranksight.model.resource.resource.LEVELS` a resource serves."""
    return LEVELS[-1] if resource == MEMORY else f"loads_{resource.lower()}"
