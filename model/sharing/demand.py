"""The traffic through a resource that ranks share: the memory of a domain, or a cache of several cores.

A cache is used by kernels that it serves. Counters give the bytes that pass between it and the caches within, both
ways, or the loads that it served, which leave out prefetches; a platform gives its bandwidth for reads.
The traffic that its bandwidth limits is therefore known to a factor of two, which the measured times narrow. So it is
with memory where its bytes were not counted and the loads that it served were. What goes on to memory passes a cache as
well: a kernel is taken for one that the cache holds up where it asks for more of the cache's bandwidth than of
memory's, else for one that memory does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.resource.equation import LEVELS
from ranksight.platforms import Platform
from ranksight.platforms.platform import Cache

BYTES = ("bytes_mem_read", "bytes_mem_written", "bytes_mem")
"""Metrics of memory's traffic."""
LOADS = "loads_mem"
"""Metric of the loads that memory serves."""
MEMORY = "memory"
LIGHT = 0.25
"""Part of an instance's bandwidth that its cores ask for below which they hardly wait for each other."""


@dataclass(frozen=True)
class Demand:
    """The counters of the traffic through the outermost cache that cores share, or through memory behind it."""

    name: str = MEMORY  # of the cache, or :data:`MEMORY`
    cache: Cache | None = None  # the outermost shared cache whose bandwidth is known
    line: float = 0.0  # bytes of a line; 0 where memory's bytes are taken alone
    memory: float = np.inf  # bandwidth in B/s of a core of a full domain of memory

    @classmethod
    def on(cls, platform: Platform) -> Demand:
        """On the outermost shared cache of a platform, otherwise on its memory."""
        demand = cls.on_memory(platform)
        return replace(demand, name=demand.cache.name) if demand.cache else demand

    @classmethod
    def on_memory(cls, platform: Platform) -> Demand:
        """On the memory of a platform, by the loads that it serves."""
        cache = shared_cache(platform)
        known = cache if cache is not None and cache.bandwidth_shared is not None else None
        core = platform.memory.bandwidth_domain / platform.layout.cores_per_domain
        return cls(MEMORY, known, float(platform.line), core)

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that is read."""
        of_cache = (f"bytes_l{self.cache.level}", f"loads_l{self.cache.level}") if self.cache else ()
        return (*of_cache, *((LOADS,) if self.line else ()), *BYTES)

    def moved(self, of: Callable[[str, str], Array], kernel: str) -> tuple[Array, Array]:
        """Bytes of a rank that were read and written (n,); all of them, and NaN, where lines are counted."""
        if self.line:
            return self.traffic(of, kernel), np.full(len(of(kernel, LOADS)), np.nan)
        read, written, both = (of(kernel, name) for name in BYTES)
        if np.isfinite(read).any() and np.isfinite(written).any():
            return read, written
        return both, np.full(len(both), np.nan)

    def traffic(self, of: Callable[[str, str], Array], kernel: str) -> Array:
        """Bytes of a rank through the resource (n,): as they were counted, else those of the loads that it served.

        NaN where the other, cache or memory, holds the kernel up rather, where the resource is hardly asked for, and
        where the traffic of one of the two was not counted.
        """
        beyond = np.fmax(of(kernel, "bytes_mem"), of(kernel, "bytes_mem_read") + of(kernel, "bytes_mem_written"))
        beyond = np.fmax(beyond, self.line * of(kernel, LOADS))
        through, core = np.zeros(len(beyond)), np.inf
        if self.cache is not None:
            through = of(kernel, f"bytes_l{self.cache.level}")
            if not np.isfinite(through).any():
                through = self.line * of(kernel, f"loads_l{self.cache.level}")
            core = float(self.cache.bandwidth_shared or np.inf) / self.cache.shared_by
        with np.errstate(invalid="ignore", divide="ignore"):
            pace = 1 / of(kernel, "time")
            known = np.isfinite(through * beyond * pace)
            cached, memory = (
                np.max(part * pace, initial=0.0, where=known) / each
                for part, each in ((through, core), (beyond, self.memory))
            )
        chosen = memory >= LIGHT and memory > cached if self.name == MEMORY else cached >= max(LIGHT, memory)
        return (beyond if self.name == MEMORY else through) if chosen else np.full(len(through), np.nan)


BYTES_OF_MEMORY = Demand()


def shared_cache(platform: Platform) -> Cache | None:
    """The outermost cache that cores share and whose loads are counted; None where there is none."""
    shared = [cache for cache in platform.caches if cache.shared_by > 1 and 2 <= cache.level < len(LEVELS)]
    return max(shared, key=lambda one: one.level, default=None)


def loads_of(resource: str) -> str:
    """Which of :data:`ranksight.model.resource.equation.LEVELS` a resource serves."""
    return LEVELS[-1] if resource == MEMORY else f"loads_{resource.lower()}"
