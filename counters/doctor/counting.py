"""Counters: the PMU, who may use it, and the tools that read it or do without."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ranksight.counters.collectors._perf import core_pmu
from ranksight.counters.collectors.perf import Perf
from ranksight.counters.doctor.findings import Examination, Finding, Machine, say, version
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
        yield Finding(
            "virtual machine",
            "warning",
            f"a hypervisor announces itself{f' ({vendor})' if vendor else ''}",
            "neighbours disturb times; sizes of caches and their sharing are what the hypervisor pretends",
            "take times and calibrate on the real node; counts by callgrind are as good here",
        )
    else:
        yield Finding("virtual machine", "ok", "no hypervisor announces itself")


def _pmu(machine: Machine) -> Iterator[Finding]:
    name = core_pmu(machine.root / "sys/bus/event_source/devices")
    if name:
        period, rare = Perf.period, Perf.rare_period
        yield Finding(
            "PMU",
            "ok",
            f"the kernel lists the processor's counters as {name}",
            f"perf takes a sample each {period:,} cycles or instructions and each {rare:,} misses: what n of them fell "
            "on is known to 1/sqrt(n), so let runs take seconds; perf-stat counts whole ranks without sampling",
        )
        return
    yield Finding(
        "PMU",
        "missing",
        "the kernel lists no counters of the processor",
        "no cycles, stalls or hardware cache events; callgrind simulates counts, perf-clock samples time. "
        "'perf record -e cycles' would record a software clock here without a word",
        "use a node that is not a virtual machine, or let its administrator give it a virtual PMU "
        "(KVM: <cpu mode='host-passthrough'/> and <pmu state='on'/>)",
    )


def _paranoid(machine: Machine) -> Iterator[Finding]:
    text = machine.text("proc/sys/kernel/perf_event_paranoid")
    if text is None:
        yield Finding("perf_event_paranoid", "missing", "the kernel has no performance events", "perf cannot work here")
        return
    level = int(text) if text.lstrip("-").isdigit() else 2
    means = "own programs can be sampled, in the kernel too"
    if os.geteuid() == 0:
        means = "you are root, whom it does not bind"
    elif level > 1:
        means = "only root may sample" if level > 2 else "own programs can be sampled, in user code"
    if level > 2 and os.geteuid() != 0:
        line = "sudo sysctl -w kernel.perf_event_paranoid=1"
        lasting = "echo kernel.perf_event_paranoid=1 | sudo tee /etc/sysctl.d/60-perf.conf"
        yield Finding("perf_event_paranoid", "missing", f"it is {level}", means, f"{line}; to keep it: {lasting}")
    elif level > 0 and os.geteuid() != 0:
        line = "sudo sysctl -w kernel.perf_event_paranoid=0"
        more = "memory traffic of the whole node (uncore events) needs 0 or less"
        yield Finding("perf_event_paranoid", "note", f"it is {level}", f"{means}; {more}", line)
    else:
        yield Finding("perf_event_paranoid", "ok", f"it is {level}", means)


def _watchdog(machine: Machine) -> Iterator[Finding]:
    if machine.text("proc/sys/kernel/nmi_watchdog") == "1" and core_pmu(machine.root / "sys/bus/event_source/devices"):
        yield Finding(
            "NMI watchdog",
            "warning",
            "it is on",
            "it holds one counter of every core: fewer events fit a pass",
            "sudo sysctl -w kernel.nmi_watchdog=0",
        )


def _perf(machine: Machine) -> Iterator[Finding]:
    text = say(("perf", "--version"))
    if text is None or not version(text):
        why = "it is not installed" if text is None else "it is installed for another kernel: " + text.strip()[:80]
        means = "no sampled time per function, no hardware events"
        yield Finding("perf", "missing", why, means, how_to_install("perf"))
    else:
        yield Finding("perf", "ok", f"version {version(text)}")


def _valgrind(machine: Machine) -> Iterator[Finding]:
    text = say(("valgrind", "--version"))
    if text is None:
        means = "no simulated instructions, loads and cache levels"
        yield Finding("valgrind", "missing", "it is not installed", means, how_to_install("valgrind"))
        return
    found = version(text)
    numbers = tuple(int(part) for part in found.split(".")[:2])
    if numbers and numbers < (3, 15):
        means = "it may not know the instructions of this processor's compilers"
        yield Finding("valgrind", "warning", f"version {found}", means, how_to_install("valgrind"))
        return
    yield Finding("valgrind", "ok", f"version {found}")
    if "avx512f" in (machine.text("proc/cpuinfo") or "").split():
        yield Finding(
            "AVX-512 under valgrind",
            "note",
            "this processor has AVX-512, which valgrind does not execute",
            "a program built with -march=native ends with SIGILL under callgrind",
            "build the copy that callgrind runs with -mno-avx512f (gcc, clang) or -xCORE-AVX2 (Intel)",
        )


def _likwid(machine: Machine) -> Iterator[Finding]:
    text = say(("likwid-perfctr", "--version"))
    if text is None:
        means = "not needed; on the processors it knows it measures memory traffic too"
        yield Finding("likwid", "note", "it is not installed", means, how_to_install("likwid-perfctr"))
        return
    registers = os.access(machine.root / "dev/cpu/0/msr", os.R_OK | os.W_OK)
    daemon = say(("likwid-accessD", "--version")) is not None
    if not registers and not daemon and not core_pmu(machine.root / "sys/bus/event_source/devices"):
        yield Finding(
            "likwid",
            "missing",
            f"version {version(text)}, but no access to the processor's registers",
            "likwid-perfctr cannot count",
            "sudo modprobe msr, and the access daemon set up, or a LIKWID built for perf_event",
        )
    else:
        yield Finding("likwid", "ok", f"version {version(text)}")


def _papi(machine: Machine) -> Iterator[Finding]:
    text = say(("papi_avail", "-a"))
    if text is None:
        yield Finding("papi", "note", "it is not installed", "not needed", how_to_install("papi_avail"))
        return
    presets = sum(line.startswith("PAPI_") for line in text.splitlines())
    found = say(("papi_version",)) or text
    if presets:
        yield Finding("papi", "ok", f"version {version(found)}, {presets} preset events")
    else:
        means = "programs instrumented with PAPI count nothing here"
        remedy = "'papi_component_avail' says why; without a PMU there is no remedy"
        yield Finding("papi", "missing", f"version {version(found)}, no preset events", means, remedy)


EXAMINATIONS: tuple[Examination, ...] = (_virtual, _pmu, _paranoid, _watchdog, _perf, _valgrind, _likwid, _papi)
