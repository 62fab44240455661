"""The description of a machine: topology, clock, caches, memory and network, each value with its source.

Only the standard library is needed, so that any verb can look a machine up without loading numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from itertools import pairwise
from typing import Any

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

MEMORY = "memory"
"""Name of main memory among the levels of :meth:`Platform.latencies`."""


def _value(text: str, unit: str = "", least: float = 0.0, optional: bool = False) -> Any:
    """A field that a platform file holds: what it is, its unit, and the least value that makes sense (above 0)."""
    metadata = {"text": text, "unit": unit, "least": least, "optional": optional}
    return field(default=None, metadata=metadata) if optional else field(metadata=metadata)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from.

    `text`: manual, measurement, paper, or what it was estimated from. `estimate`: true when the value was inferred, not
    read from a source or measured on the machine.
    """

    text: str
    estimate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How cores are arranged; all sockets and ccNUMA domains are equal."""

    sockets: int = _value("sockets of a node", least=1)
    cores_per_socket: int = _value("physical cores of a socket", least=1)
    domains_per_socket: int = _value("ccNUMA domains of a socket", least=1)
    cores_per_domain: int = _value("physical cores of a ccNUMA domain", least=1)
    threads_per_core: int = _value("hardware threads of a core (SMT)", least=1)
    issue_width: int | None = _value("instructions that a core renames and issues a cycle", least=1, optional=True)
    """Needed for cores that ``cores.toml`` does not list; see :func:`ranksight.platforms.cores.issue_width`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Frequencies of a core in Hz."""

    base: float = _value("nominal frequency", "Hz")
    measured: float | None = _value("frequency while all cores of a domain work", "Hz", optional=True)
    single: float | None = _value("frequency while one core works", "Hz", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One level of data or unified cache."""

    level: int
    size: int = _value("capacity of one instance", "B", least=64)
    line: int = _value("line size", "B", least=8)
    ways: int = _value("associativity", least=1)
    shared_by: int = _value("physical cores that share an instance", least=1)
    latency: float = _value("load-to-use latency", "cycles")
    bandwidth: float | None = _value("read bandwidth of one core", "B/s", optional=True)
    bandwidth_shared: float | None = _value("read bandwidth of an instance with all its cores", "B/s", optional=True)
    effective: int | None = _value("capacity that the node's cores see", "B", least=64, optional=True)

    @property
    def name(self) -> str:
        """``"L1"`` and so on."""
        return f"L{self.level}"

    @property
    def capacity(self) -> int:
        """Bytes of an instance that its cores can use: `effective` where it was measured, else `size`."""
        return self.size if self.effective is None else self.effective


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory as one ccNUMA domain sees it.

    `scaling` (mapping of str to tuple of (int, float)): measured bandwidth in B/s of 1 and more cores of a domain, by
    kernel (``read``, ``write``, ``update``, ``copy``, ``triad``), with bytes counted as the program moves them (no
    write-allocate transfers).
    """

    latency: float = _value("load-to-use latency, local domain, idle", "s")
    bandwidth_core: float = _value("read bandwidth of one core", "B/s")
    bandwidth_domain: float = _value("read bandwidth of a domain with all its cores", "B/s")
    scaling: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A described machine."""

    name: str
    vendor: str
    model: str
    layout: Layout
    clock: Clock
    caches: tuple[Cache, ...]  # level 1 first
    memory: Memory
    architecture: str = ""
    events: str = ""  # name of the table of hardware events; empty when unknown
    processors: tuple[str, ...] = ()
    """What the system calls the processor, such as ``"Xeon Platinum 8360Y"``; see
    :func:`ranksight.platforms.recognition.described`."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """The ``[network]`` table as plain data (numbers, strings, lists, mappings); read by :mod:`ranksight.comm`."""
    sources: Mapping[str, Source] = field(default_factory=dict)  # by dotted key, such as ``"caches.L2.latency"``

    def __post_init__(self) -> None:
        check(self)

    @property
    def frequency(self) -> float:
        """Clock in Hz under load: measured, or the nominal one where it was not measured."""
        return self.clock.measured if self.clock.measured is not None else self.clock.base

    @property
    def title(self) -> str:
        """Vendor and model, for people."""
        return self.model if self.model.startswith(self.vendor) else f"{self.vendor} {self.model}"

    @property
    def cores(self) -> int:
        """Physical cores of a node."""
        return self.layout.sockets * self.layout.cores_per_socket

    @property
    def domains(self) -> int:
        """ccNUMA domains of a node."""
        return self.layout.sockets * self.layout.domains_per_socket

    @property
    def line(self) -> int:
        """Line size in bytes of the last cache level: the unit of memory traffic."""
        return self.caches[-1].line

    def latencies(self) -> dict[str, float]:
        """Load-to-use latency in cycles at :attr:`frequency` of ``L1``, ``L2``, ..., ``memory``."""
        return {cache.name: cache.latency for cache in self.caches} | {MEMORY: self.memory.latency * self.frequency}

    def bandwidth(self, cores: int, kernel: str = "read") -> float:
        """Memory bandwidth in B/s that `cores` active cores of one domain reach together.

        Interpolated between the measured points of ``memory.scaling[kernel]``, constant beyond the last. Where that
        kernel was not measured ``min(cores * bandwidth_core, bandwidth_domain)``: linear until the domain saturates
        (Treibig and Hager, "Introducing a performance model for bandwidth-limited loop kernels", PPAM 2009). `kernel`:
        ``read``, or ``update`` for as many reads as writes; the others count no write-allocate transfers.
        """
        if cores < 1:
            raise InputError(f"bandwidth of {cores} cores was asked for", "ask for one core or more")
        curve = self.memory.scaling.get(kernel, ())
        if not curve or curve[0][0] > cores:
            return min(cores * self.memory.bandwidth_core, self.memory.bandwidth_domain)
        for (low, below), (high, above) in pairwise(curve):
            if cores <= high:
                return below + (above - below) * (cores - low) / (high - low)
        return curve[-1][1]

    def source(self, key: str) -> Source | None:
        """Where the value of a dotted key comes from, such as ``"clock.base"``; None where the file does not say."""
        return self.sources.get(key)

    def estimates(self) -> tuple[str, ...]:
        """Dotted keys of the values that are estimates, sorted."""
        return tuple(sorted(key for key, source in self.sources.items() if source.estimate))


def measurable(section: type) -> dict[str, Mapping[str, Any]]:
    """The value fields of a section class: name to its text, unit, least value and whether it is optional."""
    return {item.name: item.metadata for item in fields(section) if item.metadata}


def check(platform: Platform) -> None:
    """Raise InputError, naming the key, where values of a platform contradict each other."""

    def refuse(key: str, what: str, remedy: str) -> None:
        raise InputError(f"platform {platform.name}: {key}: {what}", remedy)

    layout = platform.layout
    if layout.cores_per_domain * layout.domains_per_socket != layout.cores_per_socket:
        refuse(
            "topology.cores_per_domain",
            f"{layout.domains_per_socket} domains of {layout.cores_per_domain} cores are not the "
            f"{layout.cores_per_socket} cores of a socket",
            "cores_per_domain times domains_per_socket is cores_per_socket",
        )
    if (cores := layout.sockets * layout.cores_per_socket) > limits.CORES:
        refuse("topology.cores_per_socket", f"a node of {cores} cores", f"describe one of at most {limits.CORES}")
    if not platform.caches:
        refuse("caches", "none is described", "describe L1 at least, as [caches.L1]")
    for place, cache in enumerate(platform.caches):
        key = f"caches.{cache.name}"
        if cache.level != place + 1:
            refuse(key, f"level {place + 1} is missing", "describe the levels from L1 on without a gap")
        if cache.size % (cache.line * cache.ways):
            refuse(f"{key}.size", f"{cache.size} B is not a multiple of {cache.ways} x {cache.line} B", "correct one")
        if cache.capacity > cache.size:
            refuse(f"{key}.effective", f"{cache.capacity} B is more than the size, {cache.size} B", "correct one")
        if cache.shared_by > platform.cores:
            refuse(f"{key}.shared_by", f"{cache.shared_by} cores, the node has {platform.cores}", "correct one")
        if cache.bandwidth_shared is not None:
            if cache.shared_by == 1 or cache.bandwidth is None:
                what = "one core has it to itself" if cache.shared_by == 1 else "that of one core is not given"
                refuse(f"{key}.bandwidth_shared", what, "give bandwidth, and bandwidth_shared where cores share it")
            elif cache.bandwidth_shared < cache.bandwidth:
                refuse(f"{key}.bandwidth_shared", "it is less than that of one core", "give B/s of all its cores")
        if place and cache.latency <= platform.caches[place - 1].latency:
            refuse(f"{key}.latency", f"{cache.latency:g} cycles is no more than the level above", "give cycles, rising")
    cycles = platform.memory.latency * platform.frequency
    if cycles <= platform.caches[-1].latency:
        refuse(
            "memory.latency",
            f"{platform.memory.latency:g} s is {cycles:.3g} cycles, no more than the last cache",
            "give seconds, such as 90e-9",
        )
    if platform.memory.bandwidth_domain < platform.memory.bandwidth_core:
        refuse("memory.bandwidth_domain", "it is less than that of one core", "give B/s of the whole domain")
