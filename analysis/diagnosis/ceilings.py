"""The ceilings of a machine: what its memory levels deliver, as a diagnosis needs it, kept in the model's file.

A model predicts times from counts and latencies. Whether the bandwidth or the latency of a level limits a kernel is
decided by what the level can deliver. The ceilings are taken from the platform where the model is fitted, so that a
model can be diagnosed on a machine that has no description of the measured one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored, from_gaps
from ranksight.platforms import events

MEASURED, ESTIMATED = 1.15, 2.0
"""Factors either way within which a bandwidth or a latency is known: scatter of calibration runs, and values that are
typical of a class of machines."""
LONGER = np.array([1.15, 1.5, 2.5])
"""Times the idle latency of L2, L3 and memory that a load may take: cores that share the third level and memory make
each other wait, and where pages are small and addresses random each load from memory brings a page's entry as well."""
NAMES = ("L1", "L2", "L3", "memory")
"""Levels that serve loads, nearest first."""


@dataclass(frozen=True)
class Ceilings(Stored):
    """What one machine delivers."""

    name: str
    frequency: float  # Hz
    latency: Array  # (4,): cycles of a load served by each of :data:`NAMES`
    bandwidth: Array  # (4,): B/s of one core from each of :data:`NAMES`; NaN where it is not known
    shared: Array  # (4,)
    """B/s of an instance of each level with all its cores at work, for memory that of a ccNUMA domain; NaN where it is
    not known."""
    cores: Index  # of an instance
    node: int  # cores of a node
    line: int  # bytes
    certain: Mask
    """Whether each level's values were measured or read from a manual; estimates are known to :data:`ESTIMATED`."""
    instructions: float | None = None
    flops: float | None = None
    """What a core does in a cycle at most, flops in double precision; None where the processor is not known."""

    @classmethod
    def of(cls, platform: Any) -> Ceilings:
        """Of a :class:`ranksight.platforms.Platform`; a machine without a third level has none to serve from."""
        frequency = float(platform.frequency)
        peak = events.load(platform.events).peak if platform.events in events.names() else {}
        caches = list(platform.caches)[:3]
        guessed = set(platform.estimates())
        memory = platform.memory
        missing = 3 - len(caches)
        latency = [*(float(cache.latency) for cache in caches)]
        latency += [float(memory.latency) * frequency] * (missing + 1)
        bandwidth = [*(cache.bandwidth for cache in caches), *[None] * missing, float(memory.bandwidth_core)]
        full = [*(cache.bandwidth_shared for cache in caches), *[None] * missing, float(memory.bandwidth_domain)]
        cores = [int(cache.shared_by) for cache in caches] + [1] * missing + [int(platform.layout.cores_per_domain)]
        described = ("latency", "bandwidth", "bandwidth_shared")
        sure = [not {f"caches.{cache.name}.{name}" for name in described} & guessed for cache in caches]
        sure += [True] * missing + [
            not {"memory.latency", "memory.bandwidth_core", "memory.bandwidth_domain"} & guessed
        ]
        return cls(
            str(platform.name),
            frequency,
            np.array(latency),
            from_gaps(bandwidth),
            from_gaps(full),
            np.array(cores, dtype=np.intp),
            int(platform.cores),
            int(platform.line),
            np.array(sure),
            peak.get("instructions"),
            peak.get("flops_dp"),
        )

    def peak(self, operations: str) -> float:
        """``instructions`` or ``flops`` that a core does in a second at most; NaN where that is not known."""
        each = self.flops if operations == "flops" else self.instructions
        return float("nan") if each is None else each * self.frequency

    def at(self, frequency: float) -> Ceilings:
        """The same machine at another clock: the caches' latencies in cycles and what a core's own caches deliver a
        cycle stay, what memory and the cache before it deliver a second does."""
        times = frequency / self.frequency
        latency, bandwidth = self.latency * [1, 1, 1, times], self.bandwidth * [times, times, 1, 1]
        return replace(self, frequency=frequency, latency=latency, bandwidth=bandwidth)

    @property
    def longest(self) -> Array:
        """Factor on the idle latency of L2, L3 and memory that a load may take, (3,)."""
        return np.asarray(LONGER * np.where(self.certain, 1.0, ESTIMATED)[1:])

    @property
    def slack(self) -> Array:
        """Factor either way within which each level's values are known, (4,)."""
        return np.where(self.certain, MEASURED, ESTIMATED)

    def share(self, ranks: Array) -> Array:
        """Bandwidth in B/s of each of :data:`NAMES` for one rank where `ranks` (k,) run, (4, k).

        Ranks are placed a core each, domain after domain. The bandwidth is that of the domain or cache with most ranks;
        its cores divide what it delivers, ``min(bandwidth of a core, bandwidth of the instance / its active cores)``
        (Treibig and Hager, "Introducing a performance model for bandwidth-limited loop kernels", PPAM 2009).
        """
        ranks = np.minimum(np.asarray(ranks, dtype=np.float64), self.node)[None, :]
        active = np.clip(ranks, 1, self.cores[:, None])
        # Where what an instance gives is not known, its cores are taken not to be in each other's way.
        divided = np.where(np.isfinite(self.shared), self.shared, np.inf)[:, None] / active
        return np.asarray(np.minimum(self.bandwidth[:, None], divided))

    def _fits(self) -> bool:
        levels = (self.latency, self.bandwidth, self.shared, self.cores, self.certain)
        return (
            {each.shape for each in levels} == {(4,)}
            and all(0 < x < np.inf for x in (self.frequency, self.node, self.line, self.shared[3]))
            and all(0 < x < np.inf for x in (*self.latency, *self.cores))
            and not (self.bandwidth <= 0).any()
            and not (self.shared <= 0).any()
            and all(each is None or 0 < each < np.inf for each in (self.instructions, self.flops))
        )
