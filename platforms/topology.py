"""What the system says about its cores, caches and ccNUMA domains, read from sysfs and procfs (Linux).

Source: Linux, Documentation/admin-guide/cputopology.rst and Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.processor import read_processor
from ranksight.core.records import dataclass
from ranksight.core.units import parse_size
from ranksight.platforms.platform import Layout

_MOST_CPUS = 1 << 16


@dataclass(frozen=True, slots=True)
class Cpu:
    """One hardware thread."""

    number: int  # as the kernel counts them
    core: int  # lowest number among the threads of its physical core
    socket: int  # package and NUMA node, as the kernel counts them
    node: int


@dataclass(frozen=True, slots=True)
class SystemCache:
    """One data or unified cache instance; `ways` is None where the system does not say, `cpus` are threads."""

    level: int
    size: int
    line: int
    ways: int | None
    cpus: frozenset[int]


@dataclass(frozen=True, slots=True)
class Topology:
    """A machine as its kernel describes it."""

    vendor: str
    model: str
    cpus: tuple[Cpu, ...]  # hardware threads that are online, by number
    caches: tuple[SystemCache, ...]  # by level; empty where the system (a container, a virtual machine) does not say
    base: float | None = None  # nominal clock in Hz
    virtual: bool = False  # true when a hypervisor announces itself: sharing and sizes are then what it pretends

    def domains(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """One thread of each physical core, by (socket, NUMA node)."""
        found: dict[tuple[int, int], list[int]] = {}
        for cpu in self.cpus:
            if cpu.number == cpu.core:
                found.setdefault((cpu.socket, cpu.node), []).append(cpu.number)
        return {key: tuple(found[key]) for key in sorted(found)}

    def threads_per_core(self) -> int:
        """Hardware threads of the core that has the most."""
        return max(Counter(cpu.core for cpu in self.cpus).values())

    def layout(self) -> Layout:
        """Sockets, domains and cores, those of the largest where they differ (see :meth:`uneven`)."""
        domains = self.domains()
        per_socket = Counter(socket for socket, _ in domains)
        cores = max(map(len, domains.values()))
        return Layout(
            sockets=len(per_socket),
            cores_per_socket=cores * max(per_socket.values()),
            domains_per_socket=max(per_socket.values()),
            cores_per_domain=cores,
            threads_per_core=self.threads_per_core(),
        )

    def uneven(self) -> str:
        """How sockets, domains and cores differ; empty where all are equal."""
        domains = self.domains()
        counts = {
            "domains of a socket": set(Counter(socket for socket, _ in domains).values()),
            "cores of a domain": set(map(len, domains.values())),
            "threads of a core": set(Counter(cpu.core for cpu in self.cpus).values()),
        }
        return ", ".join(f"{what} {sorted(found)}" for what, found in counts.items() if len(found) > 1)

    def levels(self, cpu: int) -> tuple[SystemCache, ...]:
        """The caches that a hardware thread loads through, level 1 first."""
        return tuple(sorted((cache for cache in self.caches if cpu in cache.cpus), key=lambda cache: cache.level))

    def cores_of(self, cpus: Iterable[int]) -> int:
        """Physical cores among hardware threads."""
        wanted = set(cpus)
        return len({cpu.core for cpu in self.cpus if cpu.number in wanted})


def read_topology(root: str | os.PathLike[str] = "/") -> Topology:
    """What the system under `root` says.

    Raises InputError where there is no Linux sysfs, or a file in it makes no sense.
    """
    base = Path(root)
    system = base / "sys/devices/system"
    online = _read(system / "cpu/online")
    if online is None:
        raise InputError(f"{system}/cpu/online cannot be read", "the topology is read from Linux's sysfs; mount /sys")
    numbers = parse_cpu_list(online, str(system / "cpu/online"))
    if not numbers:
        raise InputError(f"{system}/cpu/online lists no processor")
    nodes = _nodes(system / "node")
    cpus = []
    for number in numbers:
        folder = system / f"cpu/cpu{number}/topology"
        siblings = _read(folder / "core_cpus_list") or _read(folder / "thread_siblings_list")
        threads = parse_cpu_list(siblings, str(folder)) if siblings else ()
        core = min((cpu for cpu in threads if cpu in numbers), default=number)
        socket = max(_integer(folder / "physical_package_id", 0), 0)  # -1 where the firmware does not say
        cpus.append(Cpu(number, core, socket, nodes.get(number, 0)))
    processor = read_processor(base)
    return Topology(
        vendor=processor.vendor or "unknown",
        model=processor.model or "unknown",
        cpus=tuple(cpus),
        caches=_caches(system / "cpu", numbers),
        base=_base_clock(system / f"cpu/cpu{numbers[0]}/cpufreq", processor.model),
        virtual=processor.virtual or (base / "sys/hypervisor/type").exists(),
    )


def parse_cpu_list(text: str, origin: str = "a list of processors") -> tuple[int, ...]:
    """Numbers of a kernel's list such as ``0-3,8,10-11``, rising.

    Raises InputError when `text` is no such list, naming `origin`.
    """
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= _MOST_CPUS:
            raise InputError(f"{origin} holds {text.strip()!r:.60}, no list of processors")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _read(path: Path) -> str | None:
    """The text of a small file of the kernel; None where there is none, or none for us."""
    try:
        with path.open("r", encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 22)
    except OSError:
        return None


def _integer(path: Path, default: int) -> int:
    text = _read(path)
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise InputError(f"{path} holds {text.strip()!r:.60}, no whole number")
    return int(text)


def _nodes(folder: Path) -> dict[int, int]:
    """NUMA node of each processor; nodes of memory alone have none."""
    found: dict[int, int] = {}
    for path in folder.glob("node[0-9]*") if folder.is_dir() else ():
        text = _read(path / "cpulist")
        if text is not None and re.fullmatch(r"node[0-9]{1,6}", path.name):
            found.update(dict.fromkeys(parse_cpu_list(text, str(path / "cpulist")), int(path.name[4:])))
    return found


def _caches(folder: Path, numbers: Iterable[int]) -> tuple[SystemCache, ...]:
    online = frozenset(numbers)
    found: dict[tuple[int, frozenset[int]], SystemCache] = {}
    for number in sorted(online):
        for index in sorted((folder / f"cpu{number}/cache").glob("index[0-9]*")):
            kind, size = (_read(index / "type") or "").strip(), (_read(index / "size") or "").strip()
            level, line = _integer(index / "level", 0), _integer(index / "coherency_line_size", 0)
            if kind not in ("Data", "Unified") or level < 1 or not size:
                continue
            shared = _read(index / "shared_cpu_list")
            sharing = frozenset(parse_cpu_list(shared, str(index / "shared_cpu_list"))) if shared else {number}
            cpus = online & sharing or frozenset({number})
            # The kernel writes 32K for 32 KiB.
            capacity = parse_size(size + "i" if size[-1:] in "KMG" else size)
            ways = _integer(index / "ways_of_associativity", 0) or None
            if capacity > 0:
                found.setdefault((level, cpus), SystemCache(level, capacity, line or 64, ways, cpus))
    return tuple(sorted(found.values(), key=lambda cache: (cache.level, min(cache.cpus))))


def _base_clock(folder: Path, model: str) -> float | None:
    kilohertz = _integer(folder / "base_frequency", 0)
    if kilohertz > 0:
        return kilohertz * 1e3
    match = re.search(r"@ ?([0-9]{1,2}(?:\.[0-9]{1,3})?) ?GHz", model)
    return float(match[1]) * 1e9 if match else None
