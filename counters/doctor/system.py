"""The system under the measurement: clocks, frequencies, threads, memory domains, load and space."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.units import format_si
from ranksight.counters.doctor.findings import Examination, Finding, Machine
from ranksight.platforms.events import recognise, this_processor
from ranksight.platforms.recognition import described, options, related
from ranksight.platforms.topology import Topology, read_topology

_ENOUGH = 2 << 30
_GOOD_CLOCKS = ("tsc", "arch_sys_counter", "timebase", "kvm-clock", "hyperv_clocksource_tsc_page")


def _clock(machine: Machine) -> Iterator[Finding]:
    place = "sys/devices/system/clocksource/clocksource0"
    name = machine.text(f"{place}/current_clocksource")
    if name is None:
        return
    others = (machine.text(f"{place}/available_clocksource") or "").split()
    if name in _GOOD_CLOCKS:
        yield Finding("clock source", "ok", f"{name}: read without entering the kernel")
    else:
        remedy = f"echo tsc | sudo tee /{place}/current_clocksource" if "tsc" in others else ""
        means = "each reading of the time costs about a microsecond: tracing short MPI calls distorts them"
        yield Finding("clock source", "warning", f"{name} (available: {', '.join(others)})", means, remedy)


def _governor(machine: Machine) -> Iterator[Finding]:
    base = machine.root / "sys/devices/system/cpu"
    found: Counter[str] = Counter()
    for folder in sorted(base.glob("cpu[0-9]*"))[:4096]:
        text = machine.text(f"sys/devices/system/cpu/{folder.name}/cpufreq/scaling_governor")
        if text:
            found[text] += 1
    if not found:
        yield Finding(
            "frequency governor",
            "note",
            "the system does not report it",
            "whether the clock changes during a run is not known; cycles, where counted, are not touched by it",
        )
    elif set(found) == {"performance"}:
        yield Finding("frequency governor", "ok", "performance on all processors")
    else:
        counts = ", ".join(f"{name} on {count}" for name, count in found.most_common())
        means = "the clock depends on the load: short runs and few ranks are timed at another frequency"
        yield Finding("frequency governor", "warning", counts, means, "sudo cpupower frequency-set -g performance")
    turbo = machine.text("sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = machine.text("sys/devices/system/cpu/cpufreq/boost")
    if turbo == "0" or boost == "1":
        means = "one busy core runs faster than all busy cores: times at few ranks do not scale to full nodes"
        remedy = "measure with full ccNUMA domains, or switch it off: " + (
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
            if turbo == "0"
            else "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
        )
        yield Finding("turbo", "note", "it is on", means, remedy)


def _layout(machine: Machine) -> Iterator[Finding]:
    try:
        topology = read_topology(machine.root)
    except InputError as error:
        yield Finding("cores", "warning", str(error))
        return
    layout = topology.layout()
    model = topology.model if topology.model.startswith(topology.vendor) else f"{topology.vendor} {topology.model}"
    cores = layout.sockets * layout.cores_per_socket
    yield Finding(
        "cores",
        "ok",
        f"{model}: {cores} cores, {layout.sockets} socket{'s'[: layout.sockets > 1]}, "
        f"{layout.domains_per_socket} ccNUMA domain{'s'[: layout.domains_per_socket > 1]} a socket "
        f"of {layout.cores_per_domain} cores",
        f"more than {cores} ranks share cores: their wall time is no measurement, counts and bytes are",
    )
    if layout.threads_per_core > 1:
        yield Finding(
            "SMT",
            "note",
            f"{layout.threads_per_core} threads a core",
            "two ranks on one core halve each other; bind one rank to a core",
            "mpirun --map-by core --bind-to core (Open MPI), srun --hint=nomultithread (Slurm)",
        )
    allowed = len(os.sched_getaffinity(0))
    if machine.root == Path("/") and allowed < len(topology.cpus):
        yield Finding(
            "allowed processors",
            "note",
            f"this process may use {allowed} of {len(topology.cpus)}",
            "a batch job or container limits it",
        )
    yield from _last_cache(topology)
    yield from _platform(topology, machine)
    uneven = topology.uneven()
    if uneven:
        yield Finding("cores", "note", f"they differ: {uneven}", "one description does not fit all of them")
    if machine.text("proc/sys/kernel/numa_balancing") == "1" and layout.sockets * layout.domains_per_socket > 1:
        means = "the kernel moves pages during the run: times scatter"
        yield Finding("NUMA balancing", "note", "it is on", means, "sudo sysctl -w kernel.numa_balancing=0")


def _last_cache(topology: Topology) -> Iterator[Finding]:
    """A virtual machine reports the size of a whole chip's last cache, of which it has a part."""
    levels = topology.levels(topology.cpus[0].number)
    if topology.virtual and levels:
        last = levels[-1]
        yield Finding(
            "last cache",
            "note",
            f"L{last.level} of {last.size / 2**20:.4g} MiB for {topology.cores_of(last.cpus)} cores, says the system",
            "a virtual machine may have a part of it: loads then go to memory from smaller working sets on",
            "ranksight calibrate -o this-node.toml",
        )


def _platform(topology: Topology, machine: Machine) -> Iterator[Finding]:
    """Whether a description of this machine ships with the package, and what of it is otherwise here."""
    here = topology.layout()
    known = described(topology.model, here)
    if known is None:
        table = recognise(this_processor(machine.root))
        kin = ", ".join(related(table.name)) if table else ""
        yield Finding(
            "platform",
            "note",
            f"this machine is not described; of the same architecture: {kin}" if kin else "it is not described",
            "those have its kind of caches, not its cores and bandwidth" if kin else "",
            "ranksight calibrate -o this-node.toml",
        )
        return
    there = known.layout
    if (there.domains_per_socket, there.cores_per_domain) == (here.domains_per_socket, here.cores_per_domain):
        found, means = f"described as {known.name}: {known.title}", ""
    else:
        found = (
            f"described as {known.name}, with {there.domains_per_socket} x {there.cores_per_domain} cores in a "
            f"socket's ccNUMA domains; here {here.domains_per_socket} x {here.cores_per_domain}"
        )
        means = "the bandwidth of a domain then comes from the measured curve, not from the description"
    yield Finding("platform", "ok", found, means, f"ranksight fit EXPERIMENT {options(known, here)}")


def _load(machine: Machine) -> Iterator[Finding]:
    text = machine.text("proc/loadavg")
    count = os.cpu_count() or 1
    if text and text.split()[0].replace(".", "", 1).isdigit():
        load = float(text.split()[0])
        if load > 0.5 * count:
            means, remedy = "others compute here: times scatter, counts do not", "measure times on a node of your own"
            yield Finding("load", "warning", f"{load:g} on {count} processors", means, remedy)
        else:
            yield Finding("load", "ok", f"{load:g} on {count} processors")


def _space(machine: Machine) -> Iterator[Finding]:
    for topic, folder in (("free space", machine.folder), ("free memory for messages", machine.root / "dev/shm")):
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue
        where = f"{format_si(float(free), 'B')} in {folder.resolve()}"
        least = _ENOUGH if topic == "free space" else 64 << 20
        if free < least:
            means = "a campaign may stop" if topic == "free space" else "MPI within a node may fail or be slower"
            remedy = "name an experiment folder elsewhere (-o)" if topic == "free space" else "docker run --shm-size=1g"
            yield Finding(topic, "warning", where, means, remedy)
        else:
            yield Finding(topic, "ok", where)


EXAMINATIONS: tuple[Examination, ...] = (_clock, _governor, _layout, _load, _space)
