"""The system's own description: sockets, domains, cores and caches from sysfs trees of known machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.platforms.topology import parse_cpu_list, read_topology

Machine = Callable[..., Path]


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_two_sockets_with_sub_numa_clusters_and_smt(tmp_path: Path, machine: Machine) -> None:
    topology = read_topology(machine(tmp_path, sockets=2, nodes=2, cores=18, threads=2))
    layout = topology.layout()
    assert (layout.sockets, layout.cores_per_socket, layout.domains_per_socket) == (2, 36, 2)
    assert (layout.cores_per_domain, layout.threads_per_core) == (18, 2)
    assert topology.uneven() == ""
    assert topology.domains()[1, 2] == tuple(range(36, 54))
    assert (topology.vendor, topology.base, topology.virtual) == ("Intel", 2.4e9, False)
    first, second, third = topology.levels(0)
    assert (first.size, first.ways, topology.cores_of(first.cpus)) == (48 << 10, 12, 1)
    assert (second.size, topology.cores_of(second.cpus)) == (1280 << 10, 1)
    assert (third.size, third.ways, topology.cores_of(third.cpus)) == (54 << 20, 12, 36)
    assert len(topology.caches) == 72 + 72 + 2


def test_offline_threads_and_memory_nodes_do_not_count(tmp_path: Path, machine: Machine) -> None:
    root = machine(tmp_path, sockets=1, nodes=2, cores=4, threads=2)
    write(root / "sys/devices/system/cpu/online", "0-7")
    write(root / "sys/devices/system/node/node7/cpulist", "")
    layout = read_topology(root).layout()
    assert (layout.domains_per_socket, layout.cores_per_domain, layout.threads_per_core) == (2, 4, 1)


def test_uneven_machines_are_said_to_be_so(tmp_path: Path, machine: Machine) -> None:
    root = machine(tmp_path, sockets=1, nodes=2, cores=4, threads=1)
    write(root / "sys/devices/system/cpu/online", "0-6")
    topology = read_topology(root)
    assert topology.uneven() == "cores of a domain [3, 4]"
    assert topology.layout().cores_per_domain == 4


def test_a_container_without_caches_and_nodes(tmp_path: Path, machine: Machine) -> None:
    write(tmp_path / "sys/devices/system/cpu/online", "0,2")
    topology = read_topology(tmp_path)
    assert topology.domains() == {(0, 0): (0, 2)}
    assert topology.caches == ()
    assert (topology.vendor, topology.model, topology.base) == ("unknown", "unknown", None)


@pytest.mark.parametrize(
    ("cpuinfo", "vendor", "model", "virtual"),
    [
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "Arm", "Neoverse V1", False),
        ("CPU implementer\t: 0xc0\nCPU part\t: 0xac3\n", "Ampere", "part 0xac3", False),
        ("CPU implementer\t: zero\n", "implementer 0x0", "part 0x0", False),
        ("cpu\t\t: POWER9, altivec supported\nclock\t: 2300MHz\n", "IBM", "POWER9", False),
        ("vendor_id : AuthenticAMD\nmodel name : AMD EPYC\nflags : fpu hypervisor\n", "AMD", "AMD EPYC", True),
        ("vendor_id : a\x07b\nmodel name : \x1b[31mred\n", "a b", "[31mred", False),
    ],
)
def test_processors_are_named(
    tmp_path: Path, machine: Machine, cpuinfo: str, vendor: str, model: str, virtual: bool
) -> None:
    topology = read_topology(machine(tmp_path, 1, 1, 1, 1, cpuinfo))
    assert (topology.vendor, topology.model, topology.virtual) == (vendor, model, virtual)


def test_the_kernels_base_frequency_goes_before_the_label(tmp_path: Path, machine: Machine) -> None:
    root = machine(tmp_path, 1, 1, 2, 1)
    write(root / "sys/devices/system/cpu/cpu0/cpufreq/base_frequency", 2_000_000)
    assert read_topology(root).base == 2e9


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("cpu/online", "0-"),
        ("cpu/online", "3-1"),
        ("cpu/online", "0-999999"),
        ("cpu/online", ""),
        ("cpu/cpu0/topology/core_cpus_list", "a"),
        ("cpu/cpu0/topology/physical_package_id", "one"),
        ("cpu/cpu0/cache/index0/size", "big"),
        ("cpu/cpu0/cache/index0/level", "L1"),
        ("node/node0/cpulist", "0..3"),
    ],
)
def test_nonsense_in_sysfs_is_refused(tmp_path: Path, machine: Machine, file: str, text: str) -> None:
    root = machine(tmp_path, 1, 1, 2, 1)
    write(root / "sys/devices/system" / file, text)
    with pytest.raises(InputError):
        read_topology(root)


def test_no_sysfs_is_said(tmp_path: Path, machine: Machine) -> None:
    with pytest.raises(InputError, match="mount /sys"):
        read_topology(tmp_path)


@given(st.sets(st.integers(0, 300), max_size=40))
def test_lists_of_processors_are_read_back(numbers: set[int]) -> None:
    assert parse_cpu_list(",".join(map(str, numbers))) == tuple(sorted(numbers))


def test_this_machine_is_described() -> None:
    topology = read_topology()
    assert {cpu.number for cpu in topology.cpus} >= os.sched_getaffinity(0)
    assert sum(map(len, topology.domains().values())) * topology.threads_per_core() >= len(topology.cpus)
