"""Counters: the PMU, who may use it, and the tools that read it or do without."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ranksight.counters.collectors._perf import core_pmu
from ranksight.counters.collectors.energy import meters, perf_events, readable
from ranksight.counters.collectors.perf import Perf
from ranksight.counters.doctor.findings import Examination, Finding, Machine, finding, say, version
from ranksight.counters.installing import how_to_install

_HYPERVISORS = ("QEMU", "KVM", "VMware", "VirtualBox", "Amazon EC2", "Google", "Xen", "Virtual Machine", "OpenStack")


def _virtual(machine: Machine) -> Iterator[Finding]:
    info = machine.text("proc/cpuinfo") or ""
    flagged = any("hypervisor" in line.split() for line in info.splitlines() if line.startswith(("flags", "Features")))
    names = (machine.text(f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name"))
    vendor = " ".join(filter(None, names))
    named = any(name in vendor for name in _HYPERVISORS)
    metal = ".metal" in vendor
    if (flagged or named or machine.text("sys/hypervisor/type")) and not metal:
        yield finding("virtual", vendor=f" ({vendor})" if vendor else "")
    else:
        yield finding("not_virtual")


def _unit(machine: Machine) -> str:
    return core_pmu(machine.root / "sys/bus/event_source/devices")


def _pmu(machine: Machine) -> Iterator[Finding]:
    if name := _unit(machine):
        yield finding("pmu", name=name, period=Perf.period, rare=Perf.rare_period)
    else:
        yield finding("no_pmu")


def _paranoid(machine: Machine) -> Iterator[Finding]:
    text = machine.text("proc/sys/kernel/perf_event_paranoid")
    if text is None:
        yield finding("no_perf_events")
        return
    level = int(text) if text.lstrip("-").isdigit() else 2
    if os.geteuid() == 0:
        yield finding("paranoid", level=level, means="you are root, whom it does not bind")
    elif level > 2:
        yield finding("paranoid_root_only", level=level)
    else:
        where = "user code" if level > 1 else "the kernel too"
        means = f"own programs can be sampled, in {where}"
        yield finding("paranoid_own" if level > 0 else "paranoid", level=level, means=means)


def _watchdog(machine: Machine) -> Iterator[Finding]:
    if machine.text("proc/sys/kernel/nmi_watchdog") == "1" and _unit(machine):
        yield finding("watchdog")


def _perf(machine: Machine) -> Iterator[Finding]:
    text = say(("perf", "--version"))
    if text is None or not version(text):
        why = "it is not installed" if text is None else "it is installed for another kernel: " + text.strip()[:80]
        yield finding("no_perf", why=why, install=how_to_install("perf"))
    else:
        yield finding("perf", version=version(text))


def _valgrind(machine: Machine) -> Iterator[Finding]:
    text = say(("valgrind", "--version"))
    if text is None:
        yield finding("no_valgrind", install=how_to_install("valgrind"))
        return
    found = version(text)
    numbers = tuple(int(part) for part in found.split(".")[:2])
    if numbers and numbers < (3, 15):
        yield finding("old_valgrind", version=found, install=how_to_install("valgrind"))
        return
    yield finding("valgrind", version=found)
    if "avx512f" in (machine.text("proc/cpuinfo") or "").split():
        yield finding("avx512")


def _likwid(machine: Machine) -> Iterator[Finding]:
    text = say(("likwid-perfctr", "--version"))
    if text is None:
        yield finding("no_likwid", install=how_to_install("likwid-perfctr"))
        return
    registers = os.access(machine.root / "dev/cpu/0/msr", os.R_OK | os.W_OK)
    access = registers or say(("likwid-accessD", "--version")) is not None or _unit(machine)
    yield finding("likwid" if access else "likwid_without_access", version=version(text))


def _papi(machine: Machine) -> Iterator[Finding]:
    text = say(("papi_avail", "-a"))
    if text is None:
        yield finding("no_papi", install=how_to_install("papi_avail"))
        return
    presets = sum(line.startswith("PAPI_") for line in text.splitlines())
    known = version(say(("papi_version",)) or text)
    yield finding("papi" if presets else "papi_without_events", version=known, presets=presets)


def _energy(machine: Machine) -> Iterator[Finding]:
    zones = machine.root / "sys/class/powercap"
    events = machine.root / "sys/bus/event_source/devices/power/events"
    counted = perf_events(events, machine.root / "proc/sys/kernel/perf_event_paranoid")
    if found := readable(zones):
        names = sorted({machine.text(f"sys/class/powercap/{zone.name}/name") or "" for zone in found})
        yield finding("energy", names=", ".join(names), how="the powercap files")
    elif counted:
        yield finding("energy", names=", ".join(counted), how="perf")
    elif meters(zones) or events.is_dir():
        yield finding("energy_root_only", files=zones)
    else:
        yield finding("no_energy")


EXAMINATIONS: tuple[Examination, ...] = (
    _virtual,
    _pmu,
    _paranoid,
    _watchdog,
    _perf,
    _valgrind,
    _likwid,
    _papi,
    _energy,
)
