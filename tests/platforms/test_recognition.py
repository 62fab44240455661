"""Machines recognised by what their system calls the processor and how its cores are arranged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ranksight.core.processor import read_processor
from ranksight.counters.doctor import Finding, examine
from ranksight.counters.doctor.findings import Machine
from ranksight.platforms import Layout, load
from ranksight.platforms.recognition import described, measured_on, named, options, related
from ranksight.platforms.topology import read_topology


def layout(sockets: int, domains: int, cores: int, threads: int = 1) -> Layout:
    return Layout(
        sockets=sockets,
        cores_per_socket=domains * cores,
        domains_per_socket=domains,
        cores_per_domain=cores,
        threads_per_core=threads,
    )


@pytest.mark.parametrize(
    ("model", "shape", "name"),
    [
        ("Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz", (2, 1, 12), "haswell-e5-2680v3"),
        ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", (2, 2, 9), "broadwell-e5-2697v4"),
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", (2, 1, 20), "skylake-6148"),
        ("Intel(R) Xeon(R) Platinum 8160 CPU @ 2.10GHz", (2, 1, 24), "skylake-8160"),
        ("Intel(R) Xeon(R) Platinum 9242 CPU @ 2.30GHz", (2, 2, 24), "cascadelake-9242"),
        ("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", (2, 2, 18), "icelake-8360y"),
        ("Intel(R) Xeon(R) Platinum 8470", (2, 4, 13), "sapphirerapids-8470"),
        ("Intel(R) Xeon(R) Platinum 8480+", (2, 1, 56), "sapphirerapids-8480"),
        ("Intel(R) Xeon(R) CPU Max 9480", (2, 4, 14), "sapphirerapids-max-9480"),
        ("AMD EPYC 7742 64-Core Processor", (2, 4, 16), "rome-7742"),
        ("AMD EPYC 7763 64-Core Processor", (1, 4, 16), "milan-7763"),
        ("AMD EPYC 9654 96-Core Processor", (2, 4, 24), "zen4"),
        ("A64FX", (1, 4, 12), "a64fx"),
        ("Neoverse V2", (2, 1, 72), "grace"),
        ("Neoverse N1", (1, 1, 80), "altra-q80-30"),
        ("Neoverse V1", (1, 1, 64), "neoverse-v1"),
        ("Intel(R) Xeon(R) Platinum 8470", (2, 1, 52), "sapphirerapids-8470"),  # without sub-NUMA clustering
        ("Intel(R) Xeon(R) Platinum 8470Q", (2, 4, 13), ""),
        ("AMD EPYC 77420", (2, 4, 16), ""),
        ("EPYC", (2, 4, 16), ""),
        ("", (2, 4, 16), ""),
        ("Neoverse V2", (1, 1, 96), ""),  # the same core in another machine
        ("AMD EPYC 9654 96-Core Processor", (1, 1, 2), ""),  # a part of it, as virtual machines have
    ],
)
def test_machines_are_recognised(model: str, shape: tuple[int, int, int], name: str) -> None:
    found = described(model, layout(*shape))
    assert (found.name if found else "") == name


def test_another_number_of_cores_keeps_the_name() -> None:
    assert [each.name for each in named("AMD EPYC 9654 96-Core Processor")] == ["zen4"]
    assert set(related("zen3")) == {"milan-7713", "milan-7763"}
    assert related("") == related("no such table") == ()


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2, 4, 13), "--platform sapphirerapids-8470"),
        ((2, 1, 52), "--platform sapphirerapids-8470 --cores-per-domain 52"),
        ((1, 4, 13), "--platform sapphirerapids-8470 --ranks-per-node 52"),
        ((1, 2, 26), "--platform sapphirerapids-8470 --cores-per-domain 26 --ranks-per-node 52"),
    ],
)
def test_what_is_otherwise_is_an_option(shape: tuple[int, int, int], said: str) -> None:
    assert options(load("sapphirerapids-8470"), layout(*shape)) == said


@pytest.mark.parametrize(
    ("processor", "cores", "name"),
    [
        ("AMD EPYC 7742 64-Core Processor", "128", "rome-7742"),
        ("AMD EPYC 7742 64-Core Processor", "256", "rome-7742"),
        ("AMD EPYC 7742 64-Core Processor", "64", ""),
        ("A64FX", "48", "a64fx"),
        ("unknown", "128", ""),
    ],
)
def test_runs_show_their_machine(processor: str, cores: str, name: str) -> None:
    found = measured_on({"processor": processor, "cores": cores})
    assert (found.name if found else "") == name


def test_runs_without_environment() -> None:
    assert measured_on({}) is None


def _told(root: Path) -> Finding:
    (found,) = (finding for finding in examine(Machine(root, root)) if finding.topic == "platform")
    return found


def test_the_doctor_proposes_the_description(tmp_path: Path, machine: Callable[..., Path]) -> None:
    found = _told(machine(tmp_path, sockets=2, nodes=2, cores=18, threads=2))
    assert found.level == "ok"
    assert "icelake-8360y" in found.found
    assert found.remedy == "ranksight fit EXPERIMENT --platform icelake-8360y"


def test_the_doctor_states_another_setting(tmp_path: Path, machine: Callable[..., Path]) -> None:
    found = _told(machine(tmp_path, sockets=2, nodes=1, cores=36, threads=2))
    assert "2 x 18" in found.found
    assert "1 x 36" in found.found
    assert found.remedy.endswith("--platform icelake-8360y --cores-per-domain 36")


ARM = "CPU implementer\t: {:#x}\nCPU part\t: {:#x}\n"
MILAN = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7543 32-Core Processor\n"


@pytest.mark.parametrize(
    ("cpuinfo", "shape", "names"),
    [
        (MILAN, (2, 4, 8), "milan-7713, milan-7763"),
        (ARM.format(0x41, 0xD4F), (1, 1, 96), "grace"),
        (ARM.format(0xC0, 0xAC3), (1, 1, 4), ""),
    ],
)
def test_the_doctor_names_the_kin_of_others(
    tmp_path: Path, machine: Callable[..., Path], cpuinfo: str, shape: tuple[int, int, int], names: str
) -> None:
    found = _told(machine(tmp_path, *shape, 1, cpuinfo))
    assert found.level == "note"
    assert found.found.endswith(f": {names}" if names else "not described")
    assert found.remedy.startswith("ranksight calibrate")


def test_arm_processors_have_names(tmp_path: Path, machine: Callable[..., Path]) -> None:
    root = machine(tmp_path, 1, 4, 12, 1, ARM.format(0x46, 0x001))
    assert (read_topology(root).vendor, read_processor(root).model) == ("Fujitsu", "A64FX")
    assert read_processor(tmp_path / "nowhere").model == ""
