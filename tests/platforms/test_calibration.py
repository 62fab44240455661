"""Calibration of a synthetic machine of known figures, of this one, and the verb."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.platforms import load, simulated_caches
from ranksight.platforms.calibration import node
from ranksight.platforms.calibration.describing import associativity
from ranksight.platforms.calibration.effort import CAREFUL, QUICK, Effort
from ranksight.platforms.calibration.node import calibrate
from ranksight.platforms.calibration.programs import Programs
from ranksight.platforms.calibration.sampling import Samples
from ranksight.platforms.topology import SystemCache, read_topology
from ranksight.platforms.writing import dumps

KI, MI = 1 << 10, 1 << 20
TINY = Effort(seconds=1e-4, samples=2, processes=1, per_octave=1, core_counts=2)
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="cc, gcc and clang not found"
)


def test_unknown_associativity_divides_the_size() -> None:
    def cache(size: int, ways: int | None) -> SystemCache:
        return SystemCache(1, size, 64, ways, frozenset({0}))

    assert associativity(cache(48 * KI, 12)) == (12, True)
    assert associativity(cache(48 * KI, None)) == (8, False)
    assert associativity(cache(64 * 7, None)) == (7, False)
    assert associativity(cache(48 * KI, 5)) == (8, False)


class SyntheticPrograms(Programs):
    """A machine of known figures in place of the measuring programs; bandwidth of `rate` a core up to `limit`."""

    clock, rate, limit = 2.0e9, 12e9, 80e9
    shared = (20e9, 300e9)
    levels, capacities = (2.5e-9, 7e-9, 30e-9, 90e-9), (48 * KI, 1280 * KI, 54 * MI)

    def __init__(self) -> None:
        self.compiler, self.flags = "/usr/bin/cc", ("-O3",)

    def __exit__(self, *rest: object) -> None:
        pass

    def run(self, name: str, arguments: Sequence[object], label: str) -> Samples:
        if name == "clock":
            return Samples(label, ((1e8, 1e8 / self.clock), (1e8, 1e8 / self.clock)))
        if name == "latency":
            seconds = self.levels[sum(int(str(arguments[0])) > capacity for capacity in self.capacities)]
            return Samples(label, ((1e7, 1e7 * seconds),) * 2)
        kernel, size, cpus = str(arguments[0]), int(str(arguments[1])), str(arguments[2]).split(",")
        traffic = {"read": 1, "write": 2, "update": 1, "copy": 1.5, "triad": 4 / 3}[kernel]
        fast = size * len(cpus) <= self.capacities[-1]
        served = self.shared if size > self.capacities[1] else (100e9, math.inf)
        rate = min(len(cpus) * served[0], served[1]) if fast else min(len(cpus) * self.rate, self.limit) / traffic
        return Samples(label, ((1e9, 1e9 / rate),) * 2)


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "Programs", SyntheticPrograms)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(1000)))


@pytest.mark.usefixtures("synthetic")
@pytest.mark.parametrize("effort", [QUICK, CAREFUL])
def test_a_known_machine_is_described_as_it_is(tmp_path: Path, machine: Callable[..., Path], effort: Effort) -> None:
    root = machine(tmp_path, sockets=2, nodes=2, cores=18, threads=2)
    cpuinfo = (root / "proc/cpuinfo").read_text()
    (root / "proc/cpuinfo").write_text(f"{cpuinfo.rstrip()}\ncpu family : 6\nmodel : 106\nstepping : 6\n")
    (root / "proc/meminfo").write_text("MemTotal: 500000000 kB\nMemAvailable:   400000000 kB\n")
    found = calibrate("known", effort, root=root)
    platform = found.platform
    assert found.warnings == ()
    assert (platform.cores, platform.domains, platform.layout.threads_per_core) == (72, 4, 2)
    assert platform.events == "icelake-x"
    assert platform.architecture == "Ice Lake-SP"
    assert platform.clock.base == 2.4e9
    assert platform.frequency == 2.0e9
    assert [cache.latency for cache in platform.caches] == pytest.approx([5, 14, 60])
    assert [cache.shared_by for cache in platform.caches] == [1, 1, 36]
    assert platform.memory.latency == pytest.approx(90e-9)
    assert platform.memory.bandwidth_core == 12e9
    assert platform.memory.bandwidth_domain == 80e9
    counts, rates = zip(*platform.memory.scaling["triad"], strict=True)
    assert (counts[0], counts[-1]) == (1, 18)
    assert rates[-1] == pytest.approx(60e9)
    assert "traffic is 2 times" in platform.sources["memory.scaling.write"].text
    assert platform.estimates() == ()
    assert platform.caches[-1].effective == platform.caches[-1].size
    # 19 cores at most have working sets that fit in the third cache and not in the second, of 36 that share it
    assert [cache.bandwidth_shared for cache in platform.caches] == [None, None, 300e9]
    target = tmp_path / "known.toml"
    target.write_text(dumps(platform))
    assert load(target) == platform


@pytest.mark.usefixtures("synthetic")
def test_doubts_are_reported(tmp_path: Path, machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    virtual = "vendor_id : GenuineIntel\nmodel name : cpu\nflags : hypervisor\n"
    root = machine(tmp_path, sockets=1, nodes=1, cores=8, threads=1, cpuinfo=virtual)
    governor = root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    governor.parent.mkdir()
    governor.write_text("powersave\n")
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3})
    monkeypatch.setattr(SyntheticPrograms, "capacities", (48 * KI, 1280 * KI, 8 * MI))
    found = calibrate("doubtful", QUICK, root=root)
    warned = "\n".join(found.warnings)
    expected = (
        "load average is 3.0",
        "'powersave'",
        "virtual machine",
        "2 of the 8 cores",
        "L3: loads go to memory from",
        "no table of hardware events",
    )
    for part in expected:
        assert part in warned
    assert "2 cores reach 2.0 times" in warned
    assert "L3: 2 of the 8 cores that share it do not saturate it" in warned
    assert found.platform.caches[-1].bandwidth_shared is None
    assert "clock.base" in found.platform.estimates()
    last = found.platform.caches[-1]
    assert last.size == 54 * MI
    assert 8 * MI / 2 ** (1 / 3) <= last.capacity <= 8 * MI * 2 ** (1 / 3)
    assert simulated_caches(found.platform)[2].size == pytest.approx(last.capacity, rel=0.1)
    target = tmp_path / "doubtful.toml"
    target.write_text(dumps(found.platform))
    assert load(target) == found.platform


@pytest.mark.usefixtures("synthetic")
def test_a_system_that_shows_no_caches(tmp_path: Path, machine: Callable[..., Path]) -> None:
    root = machine(tmp_path, sockets=1, nodes=1, cores=2, threads=1)
    for cpu in (0, 1):
        shutil.rmtree(root / f"sys/devices/system/cpu/cpu{cpu}/cache")
    (root / "proc/meminfo").write_text("MemAvailable:   400000000 kB\n")
    found = calibrate("bare", CAREFUL, root=root)
    assert [cache.latency for cache in found.platform.caches] == pytest.approx([5, 14, 60])
    for cache, size in zip(found.platform.caches, SyntheticPrograms.capacities, strict=True):
        assert size / 2 ** (1 / 4) <= cache.size <= size
    assert "names no caches" in "".join(found.warnings)
    assert {"caches.L1.size", "caches.L2.ways"} <= set(found.platform.estimates())


@pytest.mark.usefixtures("synthetic")
@pytest.mark.parametrize(
    ("levels", "wrong", "kept", "source"),
    [
        (
            (2.5e-9, 2.0e-9, 30e-9, 90e-9),
            {"caches.L2"},
            {"caches.L1": 5.0, "caches.L3": 60.0, "memory": 180.0},
            "icelake-8360y",
        ),
        (
            (2.5e-9, 7e-9, 30e-9, 29e-9),
            {"caches.L3"},
            {"caches.L1": 5.0, "caches.L2": 14.0, "memory": 60.0},
            "geometric mean",
        ),
        (
            (200e-9, 7e-9, 30e-9, 90e-9),
            {"caches.L1"},
            {"caches.L2": 14.0, "caches.L3": 60.0, "memory": 180.0},
            "icelake-8360y",
        ),
        (
            (2.5e-9, 400e-9, 300e-9, 90e-9),
            {"caches.L2", "caches.L3"},
            {"caches.L1": 5.0, "memory": 180.0},
            "icelake-8360y",
        ),
    ],
)
def test_latencies_that_contradict_each_other_come_from_the_nearest_description(
    machine: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    levels: tuple[float, ...],
    wrong: set[str],
    kept: dict[str, float],
    source: str,
) -> None:
    root = machine(tmp_path, 2, 2, 18, 2)
    monkeypatch.setattr(SyntheticPrograms, "levels", levels)
    found = calibrate("odd", QUICK, root=root)
    estimates = {key.removesuffix(".latency") for key in found.platform.estimates() if key.endswith(".latency")}
    latencies = found.platform.latencies()
    assert wrong <= estimates
    for key, cycles in kept.items():
        assert latencies[key.removeprefix("caches.")] == pytest.approx(cycles, rel=1e-3)
        assert key not in estimates
    for key in wrong:
        (text,) = [each for each in found.warnings if each.startswith(f"{key}.latency")]
        assert "which the other levels contradict" in text
        assert source in found.platform.sources[f"{key}.latency"].text
    target = tmp_path / "odd.toml"
    target.write_text(dumps(found.platform))
    assert load(target) == found.platform


@pytest.mark.usefixtures("synthetic")
def test_a_busy_machine_still_gets_a_description(
    tmp_path: Path, machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the curve says, the verb ends with 0, warns, and writes what the library reads."""
    root = machine(tmp_path, 1, 1, 2, 1, "model name : nobody's\n")
    monkeypatch.setattr(node, "read_topology", lambda _: read_topology(root))
    monkeypatch.setattr(SyntheticPrograms, "levels", (90e-9, 30e-9, 7e-9, 2.5e-9))
    target = tmp_path / "busy.toml"
    assert main(["calibrate", "-o", str(target), "--quick"]) == 0
    assert "contradict" in capsys.readouterr().err
    latencies = list(load(target).latencies().values())
    assert latencies == sorted(latencies)


@pytest.mark.usefixtures("synthetic")
def test_the_verb_writes_what_the_library_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, samples = tmp_path / "my-node.toml", tmp_path / "samples.json"
    line = ["calibrate", "-o", str(target), "--samples", str(samples), "--quick"]
    if main([*line, "--format", "json"]) != 0:
        pytest.fail(capsys.readouterr().err)
    assert '"name": "my-node"' in capsys.readouterr().out
    assert load(target).frequency == 2.0e9
    assert samples.stat().st_size > 0
    assert main(line) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*line, "--force"]) == 0
    out = capsys.readouterr().out
    assert f"next: ranksight fit EXPERIMENT --platform {target}" in out
    assert "memory" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-node.toml", "samples.json"]


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["-o", "/no/such/folder/x.toml"], 1, "cannot write"),
        (["-o", "x.toml", "--name", "a b"], 2, "--name 'a b'"),
        (["--sizes", "3"], 2, "--help"),
    ],
)
def test_the_verb_refuses_before_it_measures(
    options: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "calibrate", lambda *rest: pytest.fail("measured"))
    assert main(["calibrate", *options]) == status
    assert says in capsys.readouterr().err


def test_the_verb_lists_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--list"]) == 0
    assert "icelake-8360y" in capsys.readouterr().out


@needs_compiler
def test_this_machine_can_be_measured() -> None:
    """Figures depend on what else runs here, so only what cannot be otherwise is asserted."""
    said: list[str] = []
    found = calibrate("here", TINY, said.append)
    assert len(found.samples) > 20
    latencies = list(found.platform.latencies().values())
    assert latencies == sorted(latencies)
    assert any(line.startswith("latency of 4 KiB") for line in said)
    assert any(line.startswith("bandwidth of memory, triad") for line in said)
