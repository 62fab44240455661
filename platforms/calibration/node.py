"""Calibrate this node: topology from the system, clock, latencies and bandwidths from measurements."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path

from ranksight.core.records import dataclass
from ranksight.platforms.calibration.bandwidth import cores, measure_bandwidth
from ranksight.platforms.calibration.describing import (
    Evidence,
    describe_caches,
    describe_clock,
    describe_memory,
    reconciled,
)
from ranksight.platforms.calibration.effort import Effort
from ranksight.platforms.calibration.latency import measure_latency
from ranksight.platforms.calibration.programs import Programs
from ranksight.platforms.calibration.sampling import Samples, repeated, system_advice, unstable
from ranksight.platforms.cores import SETS
from ranksight.platforms.events.processors import recognise, this_processor
from ranksight.platforms.platform import Platform
from ranksight.platforms.recognition import nearest_description
from ranksight.platforms.topology import SystemCache, Topology, read_topology

_BUSY = 0.5  # load average beyond which others share the machine
_LINE = 64

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated platform, what speaks against its values, and the samples behind them."""

    platform: Platform
    warnings: tuple[str, ...]
    samples: tuple[Samples, ...]


def calibrate(
    name: str, effort: Effort, say: Say = lambda line: None, root: str | os.PathLike[str] = "/"
) -> Calibration:
    """Measure this node and describe it.

    Latencies that contradict each other are replaced by those of the nearest machine that is described, marked as
    estimates and with a warning.

    `name`: name of the platform. `say`: called with lines about the progress. `root`: where sysfs and procfs are.

    Raises InputError without a sysfs to read the topology from; ToolError without a C compiler, or when a measuring
    program failed.
    """
    topology = read_topology(root)
    warnings = list(surroundings(topology, Path(root)))
    if Path(root) == Path("/") and (advice := system_advice()):
        warnings.append(advice)
    cpus = _measured_domain(topology, warnings)
    caches = topology.levels(cpus[0])
    line = caches[0].line if caches else _LINE
    largest = memory_available(Path(root)) // 4
    with Programs() as programs:
        single, loaded = _clocks(programs, cpus, effort, say)
        curve = measure_latency(programs, cpus[0], [cache.size for cache in caches], line, effort, largest, say)
        known = bool(caches)
        if not known:
            warnings.append("the system names no caches; sizes are the ends of the latency curve's plateaus")
            caches = tuple(
                SystemCache(level, int(plateau.last), line, None, frozenset(cpus[:1]))
                for level, plateau in enumerate(curve.plateaus[:-1], start=1)
            )
        sizes = [edge.seen(cache.size) if (edge := curve.edge(at)) else cache.size for at, cache in enumerate(caches)]
        bandwidths = measure_bandwidth(
            programs, cpus, sizes, [_sharers(topology, cache, cpus[0]) for cache in caches], effort, largest, say
        )
        compiler = f"{Path(programs.compiler).name} {' '.join(programs.flags)}"
    samples = (*dict.fromkeys((single, loaded)), *curve.samples, *bandwidths.samples())
    today = datetime.date.today().isoformat()
    evidence = Evidence(f"ranksight calibrate, {today}, {compiler}", warnings=[*warnings, *unstable(samples)])
    table = recognise(this_processor(Path(root)))
    if table is None:
        evidence.warnings.append("no table of hardware events is for this processor; write its name as 'events'")
    layout = topology.layout()
    evidence.state("topology", layout, f"the system's sysfs, {today}")
    clock = describe_clock(topology.base, single, loaded, len(cpus), evidence)
    described_caches = describe_caches(topology, caches, known, curve, bandwidths, single.rate, evidence)
    described_memory = describe_memory(curve, bandwidths, len(cpus), evidence)
    measured = clock.measured if clock.measured is not None else clock.base
    nearest = nearest_description(topology.model, layout, table.name if table else "")
    sound_caches, memory = reconciled(described_caches, described_memory, measured, nearest, evidence)
    platform = Platform(
        name=name,
        vendor=topology.vendor,
        model=topology.model,
        architecture=_architecture(nearest),
        events=table.name if table else "",
        layout=layout,
        clock=clock,
        caches=sound_caches,
        memory=memory,
        sources=evidence.sources,
    )
    return Calibration(platform, tuple(evidence.warnings), samples)


def _architecture(nearest: Platform) -> str:
    """The core of a described machine of the same kind (:mod:`ranksight.platforms.cores`), else the instruction set."""
    machine = os.uname().machine
    return SETS.get(machine.lower(), machine) if nearest.name == "generic" else nearest.architecture


def surroundings(topology: Topology, root: Path = Path("/")) -> tuple[str, ...]:
    """What around the measurement makes its numbers doubtful: other load, clock governor, a hypervisor."""
    found = []
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    if load > _BUSY:
        found.append(f"other programs run: the load average is {load:.1f}; calibrate an idle node")
    governor = root / f"sys/devices/system/cpu/cpu{topology.cpus[0].number}/cpufreq/scaling_governor"
    if governor.is_file() and (mode := governor.read_text().strip()) not in ("performance", "schedutil"):
        found.append(f"the clock governor is {mode!r}; 'cpupower frequency-set -g performance' keeps the clock up")
    if topology.virtual:
        found.append("this is a virtual machine: caches and bandwidth may be shared with others that are not seen")
    if topology.uneven():
        found.append(f"the parts of the machine differ: {topology.uneven()}; the largest are described")
    return tuple(found)


def memory_available(root: Path = Path("/")) -> int:
    """Bytes that can be allocated without swapping; 1 GiB where the system does not say."""
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 30


def _measured_domain(topology: Topology, warnings: list[str]) -> tuple[int, ...]:
    """One thread of each core of the domain in which this process may use the most cores."""
    allowed = os.sched_getaffinity(0)
    usable = [tuple(cpu for cpu in cpus if cpu in allowed) for cpus in topology.domains().values()]
    best = max(usable, key=len)
    if not best:
        best = (min(allowed),)
    present = topology.layout().cores_per_domain
    if len(best) < present:
        warnings.append(
            f"this process may use {len(best)} of the {present} cores of a domain: "
            f"its bandwidth is that of {len(best)}; calibrate in a job that has the whole node"
        )
    return best


def _sharers(topology: Topology, cache: SystemCache, first: int) -> tuple[int, ...]:
    """One thread of each core that shares a cache and that this process may use, `first` before the others."""
    allowed = os.sched_getaffinity(0)
    cores = {cpu.core for cpu in topology.cpus if cpu.number in cache.cpus & allowed}
    own = next(cpu.core for cpu in topology.cpus if cpu.number == first)
    return (first, *sorted(cores & allowed - {own}))


def _clocks(programs: Programs, cpus: tuple[int, ...], effort: Effort, say: Say) -> tuple[Samples, Samples]:
    def run(used: tuple[int, ...], label: str) -> Samples:
        arguments = (",".join(map(str, used)), max(effort.seconds, 0.01), effort.samples)
        found = repeated(lambda _: programs.run("clock", arguments, label), effort)
        say(f"{label}: {found.rate / 1e9:.3f} GHz")
        return found

    single = run(cpus[:1], "clock, 1 core")
    return single, run(cpus, f"clock, {cores(len(cpus))}") if len(cpus) > 1 else single
