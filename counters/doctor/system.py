"""The system under the measurement: clocks, frequencies, threads, memory domains, load and space."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ranksight.core.addressspace import NEEDED, address_limit
from ranksight.core.errors import InputError
from ranksight.core.units import counted, format_si
from ranksight.counters.doctor.findings import Examination, Finding, Machine, finding
from ranksight.platforms.events import recognise, this_processor
from ranksight.platforms.recognition import described, options, related
from ranksight.platforms.topology import Topology, read_topology

_GOOD_CLOCKS = ("tsc", "arch_sys_counter", "timebase", "kvm-clock", "hyperv_clocksource_tsc_page")


def _clock(machine: Machine) -> Iterator[Finding]:
    place = "sys/devices/system/clocksource/clocksource0"
    name = machine.text(f"{place}/current_clocksource")
    if name is None:
        return
    others = (machine.text(f"{place}/available_clocksource") or "").split()
    if name in _GOOD_CLOCKS:
        yield finding("clock", name=name)
    else:
        line = f"echo tsc | sudo tee /{place}/current_clocksource" if "tsc" in others else ""
        yield finding("slow_clock", name=name, others=", ".join(others), line=line)


def _governor(machine: Machine) -> Iterator[Finding]:
    base = machine.root / "sys/devices/system/cpu"
    found: Counter[str] = Counter()
    for folder in sorted(base.glob("cpu[0-9]*"))[:4096]:
        text = machine.text(f"sys/devices/system/cpu/{folder.name}/cpufreq/scaling_governor")
        if text:
            found[text] += 1
    if not found:
        yield finding("no_governor")
    elif set(found) == {"performance"}:
        yield finding("governor")
    else:
        yield finding("other_governors", counts=", ".join(f"{name} on {count}" for name, count in found.most_common()))
    for file, on, off in (("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")):
        if machine.text(f"sys/devices/system/cpu/{file}") == on:
            yield finding("turbo", line=f"echo {off} | sudo tee /sys/devices/system/cpu/{file}")
            break


def _layout(machine: Machine) -> Iterator[Finding]:
    try:
        topology = read_topology(machine.root)
    except InputError as error:
        yield finding("unknown_cores", error=error)
        return
    layout = topology.layout()
    yield finding(
        "cores",
        model=topology.model if topology.model.startswith(topology.vendor) else f"{topology.vendor} {topology.model}",
        cores=layout.sockets * layout.cores_per_socket,
        sockets=counted(layout.sockets, "socket"),
        domains=counted(layout.domains_per_socket, "ccNUMA domain"),
        size=layout.cores_per_domain,
    )
    if layout.threads_per_core > 1:
        yield finding("smt", threads=layout.threads_per_core)
    allowed = len(os.sched_getaffinity(0))
    if machine.root == Path("/") and allowed < len(topology.cpus):
        yield finding("allowed", allowed=allowed, count=len(topology.cpus))
    levels = topology.levels(topology.cpus[0].number)
    if topology.virtual and levels:  # which reports the size of a whole chip's last cache
        last = levels[-1]
        yield finding("last_cache", level=last.level, size=last.size / 2**20, cores=topology.cores_of(last.cpus))
    yield _platform(topology, machine)
    if uneven := topology.uneven():
        yield finding("uneven_cores", uneven=uneven)
    if machine.text("proc/sys/kernel/numa_balancing") == "1" and layout.sockets * layout.domains_per_socket > 1:
        yield finding("balancing")


def _platform(topology: Topology, machine: Machine) -> Finding:
    """Whether a description of this machine ships with the package, and what of it is otherwise here."""
    here = topology.layout()
    known = described(topology.model, here)
    if known is None:
        table = recognise(this_processor(machine.root))
        kin = ", ".join(related(table.name)) if table else ""
        return finding("no_platform_but_related", related=kin) if kin else finding("no_platform")
    domains = [f"{layout.domains_per_socket} x {layout.cores_per_domain}" for layout in (known.layout, here)]
    return finding(
        "platform" if len(set(domains)) == 1 else "platform_of_other_domains",
        name=known.name,
        title=known.title,
        there=domains[0],
        here=domains[1],
        options=options(known, here),
    )


def _load(machine: Machine) -> Iterator[Finding]:
    text = machine.text("proc/loadavg")
    count = os.cpu_count() or 1
    if text and text.split()[0].replace(".", "", 1).isdigit():
        load = float(text.split()[0])
        yield finding("busy" if load > 0.5 * count else "load", load=load, count=count)


def _space(machine: Machine) -> Iterator[Finding]:
    for name, folder, least in (
        ("space", machine.folder, 2 << 30),
        ("shared_memory", machine.root / "dev/shm", 64 << 20),
    ):
        with suppress(OSError):
            free = shutil.disk_usage(folder).free
            where = f"{format_si(float(free), 'B')} in {folder.resolve()}"
            yield finding(f"little_{name}" if free < least else name, free=where)


def _addresses(machine: Machine) -> Iterator[Finding]:
    if (limit := address_limit()) is not None:
        texts = {"limit": format_si(float(limit), "B")}
        if limit < NEEDED:
            yield finding("little_addresses", needed=format_si(float(NEEDED), "B"), **texts)
        else:
            yield finding("addresses", **texts)


EXAMINATIONS: tuple[Examination, ...] = (_clock, _governor, _layout, _load, _space, _addresses)
