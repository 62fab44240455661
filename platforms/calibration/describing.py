"""Turn what was measured into the sections of a platform, each value with its source and what speaks against it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.platforms.calibration.bandwidth import TRAFFIC, Bandwidths
from ranksight.platforms.calibration.boundary import Boundary
from ranksight.platforms.calibration.latency import Curve
from ranksight.platforms.calibration.sampling import Samples, rounded
from ranksight.platforms.platform import Cache, Clock, Layout, Memory, Platform, Source
from ranksight.platforms.topology import SystemCache, Topology

_LINEAR = 0.9  # of the bandwidth per core of one, above which more cores would bring more
_SYSFS = "the system's sysfs"


@dataclass(slots=True)
class Evidence:
    """Sources by dotted key and warnings, gathered while a platform is described.

    `when` opens measured sources; `missing` names the sections of which a latency could not be measured.
    """

    when: str
    sources: dict[str, Source] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def state(self, where: str, section: Layout, text: str) -> None:
        """Give all values that a section has one source."""
        stated = (item.name for item in fields(section) if getattr(section, item.name) is not None)
        self.sources.update({f"{where}.{name}": Source(text) for name in stated})

    def measured(self, key: str, text: str, estimate: bool = False) -> None:
        """Record how a value was measured."""
        self.sources[key] = Source(f"{self.when}: {text}", estimate)


def describe_clock(base: float | None, single: Samples, loaded: Samples, cores: int, evidence: Evidence) -> Clock:
    """The clock section; the measured clock replaces a nominal one that the system does not name."""
    evidence.sources["clock.base"] = (
        Source("not named by the system; the measured clock", estimate=True)
        if base is None
        else Source("the system: cpufreq, or the processor's label")
    )
    evidence.measured("clock.measured", f"dependent additions on {cores} cores, {loaded.describe()}")
    evidence.measured("clock.single", f"dependent additions on one core, {single.describe()}")
    return Clock(
        base=rounded(loaded.rate) if base is None else base, measured=rounded(loaded.rate), single=rounded(single.rate)
    )


def describe_caches(
    topology: Topology,
    caches: Sequence[SystemCache],
    known: bool,
    curve: Curve,
    bandwidths: Bandwidths,
    clock: float,
    evidence: Evidence,
) -> tuple[Cache, ...]:
    """The cache sections; `known` says whether the system described them, `clock` is that of one busy core."""
    plateaus = curve.levels[:-1] if known else curve.plateaus[:-1]
    found: list[Cache] = []
    above = 0
    for cache, plateau, streamed in zip(caches, plateaus, bandwidths.caches, strict=True):
        level = len(found) + 1
        key = f"caches.L{level}"
        seconds = plateau.latency if plateau else curve.between(1.5 * above, 0.7 * cache.size)
        for name in ("size", "line", "shared_by"):
            text = _SYSFS if known else "end of a plateau of the latency curve"
            evidence.sources[f"{key}.{name}"] = Source(text, estimate=not known)
        ways, exact = associativity(cache)
        text = _SYSFS if exact else "not named by the system; one that divides the size"
        evidence.sources[f"{key}.ways"] = Source(text, estimate=not exact)
        if seconds is None:
            evidence.missing.append(key)
        elif plateau is None:
            evidence.warnings.append(f"L{level}: no plateau in the latency curve; the lower quartile of its range")
            evidence.measured(f"{key}.latency", "pointer chasing, lower quartile of its range", estimate=True)
        else:
            span = f"{plateau.first / 1024:.0f} to {plateau.last / 1024:.0f} KiB"
            evidence.measured(f"{key}.latency", f"pointer chasing, plateau {span}")
        edge = curve.edge(level - 1)
        effective = None if edge is None else describe_edge(f"L{level}", cache.size, edge, evidence)
        if streamed is not None:
            evidence.measured(f"{key}.bandwidth", f"streaming reads of one core, {streamed.describe()}")
        cores = max(topology.cores_of(cache.cpus), 1)
        found.append(
            Cache(
                level=level,
                size=cache.size,
                line=cache.line,
                ways=ways,
                shared_by=cores,
                latency=math.nan if seconds is None else rounded(seconds * clock),
                bandwidth=None if streamed is None else rounded(streamed.rate),
                bandwidth_shared=describe_shared(f"L{level}", cores, bandwidths.shared[level - 1], evidence),
                effective=effective,
            )
        )
        above = cache.size
    return tuple(found)


def describe_shared(name: str, cores: int, curve: Sequence[tuple[int, Samples]], evidence: Evidence) -> float | None:
    """Bandwidth of an instance with all its `cores`; None, with a warning, where too few were measured."""
    if not curve or cores == 1:
        return None
    one, (most, last), (at, best) = curve[0][1].rate, curve[-1], max(curve, key=lambda item: item[1].rate)
    if most < cores and last.rate > _LINEAR * most * one:
        evidence.warnings.append(
            f"{name}: {most} of the {cores} cores that share it do not saturate it, and more were not measured: this "
            "process may use no others, or their working sets would fit in caches of their own; the bandwidth "
            "of all of them together is not known"
        )
        return None
    evidence.measured(f"caches.{name}.bandwidth_shared", f"reads side by side, best at {at} cores, {best.describe()}")
    return rounded(best.rate)


def describe_edge(name: str, nominal: int, edge: Boundary, evidence: Evidence) -> int | None:
    """The effective size of a cache in bytes; None, with a warning, where the curve does not show it."""
    if not edge.sure:
        size_named = f"{nominal / 2**20:.4g} MiB"
        evidence.warnings.append(f"{name}: the size is the {size_named} that the system names: {edge.doubt}")
        return None
    size = edge.seen(nominal)
    seen = f"{edge.size / 2**20:.3g} MiB ({edge.low / 2**20:.3g} to {edge.high / 2**20:.3g})"
    evidence.measured(f"caches.{name}.effective", f"pointer chasing, half of the loads go to memory at {seen}")
    if size < nominal:
        evidence.warnings.append(
            f"{name}: loads go to memory from {seen} on, the system names {nominal / 2**20:.4g} MiB: others use it, or "
            "this machine has a part of it; models and callgrind take what was measured"
        )
    return size


def associativity(cache: SystemCache) -> tuple[int, bool]:
    """Ways, and whether the system named them; otherwise the number nearest to 8 that divides the size."""
    lines = cache.size // cache.line
    if cache.ways and cache.size % (cache.line * cache.ways) == 0:
        return cache.ways, True
    return min((ways for ways in range(1, 65) if lines % ways == 0), key=lambda ways: abs(ways - 8)), False


def describe_memory(curve: Curve, bandwidths: Bandwidths, cores: int, evidence: Evidence) -> Memory:
    """The memory section; its bandwidths are those of reads, which no write-allocate blurs."""
    plateau, last = curve.memory, curve.samples[-1]
    if plateau is None:
        evidence.warnings.append("memory: no plateau beyond the last cache; the largest working set is taken")
    text = f"plateau from {plateau.first / 2**20:.0f} MiB" if plateau else f"{curve.sizes[-1] / 2**20:.0f} MiB"
    evidence.measured("memory.latency", f"pointer chasing, {text}, {last.describe()}", estimate=plateau is None)
    evaded = bandwidths.evades_write_allocate()
    scaling = {}
    for kernel, measured in bandwidths.memory.items():
        scaling[kernel] = tuple((count, rounded(each.rate)) for count, each in measured)
        note = "bytes of the program's loads and stores"
        if TRAFFIC[kernel] > 1:
            note += (
                "; this processor seems not to read lines that it overwrites whole"
                if evaded
                else f"; where written lines are read first the traffic is {TRAFFIC[kernel]:.3g} times that"
            )
        evidence.measured(f"memory.scaling.{kernel}", f"streaming {kernel}, ordinary stores, {note}")
    reading = bandwidths.memory["read"]
    one, (at, best) = reading[0][1], max(reading, key=lambda item: item[1].rate)
    if at == cores > 1 and best.rate / cores > _LINEAR * one.rate:
        evidence.warnings.append(
            f"memory: {cores} cores reach {best.rate / one.rate:.1f} times the bandwidth of one: "
            "they do not saturate the domain, whose bandwidth may be higher"
        )
    evidence.measured("memory.bandwidth_core", f"streaming reads of one core, {one.describe()}")
    evidence.measured("memory.bandwidth_domain", f"streaming reads, best at {at} of {cores} cores, {best.describe()}")
    return Memory(
        latency=rounded(plateau.latency if plateau else last.seconds),
        bandwidth_core=rounded(one.rate),
        bandwidth_domain=rounded(best.rate),
        scaling=scaling,
    )


def reconciled(
    caches: Sequence[Cache], memory: Memory, frequency: float, reference: Platform, evidence: Evidence
) -> tuple[tuple[Cache, ...], Memory]:
    """The caches and the memory with latencies that rise from level to level.

    Samples taken on a busy machine may show a level as faster than the one above it. The most levels that rise together
    are kept, plateaus of the curve before stand-ins, then those nearest to the reference; each of the others is taken
    from the reference, or where that does not lie between its neighbours either, from their geometric mean. Sources and
    a warning mark it.

    `caches`: level 1 first; a latency that could not be measured is NaN. `frequency`: clock under load in Hz, at which
    the latency of memory counts. `reference`: description of the nearest machine.
    """
    keys = [f"caches.{cache.name}" for cache in caches] + ["memory"]
    measured = np.array([*(cache.latency for cache in caches), memory.latency * frequency])
    given = {f"caches.{cache.name}": cache.latency for cache in reference.caches}
    given["memory"] = reference.memory.latency * frequency
    expected = np.array([given.get(key, math.nan) for key in keys])
    guessed = {
        key for key in keys if (source := evidence.sources.get(f"{key}.latency")) is not None and source.estimate
    }
    kept = _rising(measured, expected, [key not in guessed for key in keys])
    if len(kept) == len(keys):
        return tuple(caches), memory
    found = measured.copy()
    for place, key in enumerate(keys):
        if place in kept:
            continue
        low = found[place - 1] if place else 0.0
        high = min((measured[other] for other in kept if other > place), default=math.inf)
        if low < expected[place] < high:
            found[place], how = expected[place], f"from the description of {reference.name}"
        elif place and math.isfinite(high):
            found[place], how = math.sqrt(low * high), "the geometric mean of its neighbours"
        else:
            found[place], how = (2.0 * low, "twice the level above") if place else (high / 2, "half of the level below")
        said = f"{measured[place]:.3g} cycles were" if math.isfinite(measured[place]) else "none was"
        evidence.warnings.append(
            f"{key}.latency: {said} measured, which the other levels contradict: {found[place]:.3g} cycles are {how}; "
            "calibrate an idle node without --quick"
        )
        evidence.measured(f"{key}.latency", f"{said} measured and contradicted by other levels; {how}", estimate=True)
    latencies = [rounded(float(each)) for each in found]
    return (
        tuple(replace(cache, latency=each) for cache, each in zip(caches, latencies, strict=False)),
        replace(memory, latency=memory.latency if len(caches) in kept else rounded(latencies[-1] / frequency)),
    )


def _rising(measured: Array, expected: Array, sound: Sequence[bool]) -> tuple[int, ...]:
    """Places of the levels to keep: the most that rise, sound ones counting twice, nearest to what is expected."""

    def worth(places: tuple[int, ...]) -> tuple[int, float]:
        off = np.abs(np.log(measured[list(places)] / expected[list(places)]))
        return sum(1 + sound[place] for place in places), -float(np.nansum(off))

    known = [place for place, each in enumerate(measured) if each > 0]
    choices = (places for count in range(len(known) + 1) for places in combinations(known, count))
    return max((each for each in choices if (np.diff(measured[list(each)]) > 0).all()), key=worth)
