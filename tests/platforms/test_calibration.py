"""Calibration: plateaus of known curves, samples and their checks, the C programs, and a synthetic machine."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.cli.main import main
from ranksight.errors import ToolError
from ranksight.platforms import load, simulated_caches
from ranksight.platforms.calibration import node
from ranksight.platforms.calibration.bandwidth import cache_working_set, core_counts
from ranksight.platforms.calibration.describing import associativity
from ranksight.platforms.calibration.effort import CAREFUL, QUICK, Effort
from ranksight.platforms.calibration.latency import working_sets
from ranksight.platforms.calibration.node import calibrate
from ranksight.platforms.calibration.plateaus import Plateau, assign, find_plateaus
from ranksight.platforms.calibration.programs import Programs
from ranksight.platforms.calibration.sampling import Samples, merge, select, unstable
from ranksight.platforms.topology import SystemCache
from ranksight.platforms.writing import dumps

KI, MI = 1 << 10, 1 << 20
TINY = Effort(seconds=1e-4, samples=2, processes=1, per_octave=1, core_counts=2)
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="cc, gcc and clang not found"
)


def curve(sizes: Sequence[int], capacities: Sequence[int], levels: Sequence[float]) -> list[float]:
    """Latency of a working set w: what fits level 1 is served there, the next part by level 2, and so on."""
    bounds = [0, *capacities, 1 << 60]
    found = []
    for size in sizes:
        parts = [max(0, min(size, high) - low) for low, high in itertools.pairwise(bounds)]
        found.append(sum(part * level for part, level in zip(parts, levels, strict=True)) / size)
    return found


def step(sizes: Sequence[int], capacities: Sequence[int], levels: Sequence[float]) -> list[float]:
    """Latency that jumps where a working set outgrows a level, as cyclic accesses under least recently used do."""
    return [levels[sum(size > capacity for capacity in capacities)] for size in sizes]


CAPACITIES, LEVELS = (32 * KI, 1 * MI, 32 * MI), (1.1e-9, 3.9e-9, 13e-9, 120e-9)


def test_plateaus_of_a_stepped_curve() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, step(sizes, CAPACITIES, LEVELS)), CAPACITIES)
    assert [plateau.latency for plateau in found if plateau] == pytest.approx(LEVELS, rel=1e-12)
    assert [plateau.last for plateau in found[:3] if plateau] == list(CAPACITIES)


def test_glitches_and_noise_leave_the_plateaus_where_they_are() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    values = np.array(step(sizes, CAPACITIES, LEVELS)) * np.random.default_rng(1).lognormal(0, 0.02, len(sizes))
    values[[3, 20, 30]] *= 4
    found = assign(find_plateaus(sizes, values.tolist()), CAPACITIES)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(LEVELS, rel=0.03)


def test_a_curve_that_mixes_levels_still_shows_each() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, curve(sizes, CAPACITIES, (1.0, 4.0, 14.0, 60.0))), CAPACITIES)
    assert found[0] is not None
    assert found[0].latency == pytest.approx(1.0)
    assert found[3] is not None
    assert found[3].latency == pytest.approx(60, rel=0.3)


def test_a_cache_of_which_others_have_the_larger_part() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    seen = step(sizes, (32 * KI, 1 * MI, 5 * MI), LEVELS)
    found = assign(find_plateaus(sizes, seen), CAPACITIES)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(LEVELS)
    assert found[2] is not None
    assert found[2].last < 6 * MI


def test_a_level_without_plateau_is_not_invented() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, step(sizes, (32 * KI, 1 * MI), (1e-9, 4e-9, 9e-8))), CAPACITIES)
    assert [plateau is not None for plateau in found] == [True, True, False, True]
    assert find_plateaus(sizes[:2], [1.0, 1.0]) == ()
    rising = [float(size) for size in sizes]
    assert find_plateaus(sizes, rising) == ()


@given(
    st.lists(st.floats(1.5, 8), min_size=2, max_size=4),
    st.lists(st.integers(2, 5), min_size=4, max_size=4),
    st.integers(3, 6),
)
def test_any_staircase_is_found(factors: list[float], octaves: list[int], per_octave: int) -> None:
    capacities = [16 * KI << sum(octaves[: place + 1]) for place in range(len(factors))]
    levels = [1e-9 * math.prod(factors[:place]) for place in range(len(factors) + 1)]
    sizes = working_sets(capacities, per_octave, 1 << 50)
    found = assign(find_plateaus(sizes, step(sizes, capacities, levels)), capacities)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(levels)


def test_overlap_is_in_doublings() -> None:
    assert Plateau(4.0, 64.0, 1.0).overlap(16.0, 1024.0) == 2
    assert Plateau(4.0, 8.0, 1.0).overlap(16.0, 1024.0) == 0


def test_working_sets_reach_from_small_to_beyond_the_last_cache() -> None:
    sizes = working_sets((32 * KI, 1 * MI), 4, 1 << 40)
    assert sizes[0] == 4 * KI
    assert sizes[-1] == 8 * MI
    assert list(sizes) == sorted(set(sizes))
    assert working_sets((32 * KI, 1 * MI), 2, 64 * KI)[-1] == 64 * KI


@pytest.mark.parametrize(("most", "points"), [(1, 12), (2, 12), (18, 12), (64, 4), (96, 12)])
def test_core_counts_go_from_one_to_all(most: int, points: int) -> None:
    counts = core_counts(most, points)
    assert (counts[0], counts[-1]) == (1, most)
    assert len(counts) <= points
    assert list(counts) == sorted(set(counts))


def test_working_set_of_a_cache_lies_between_it_and_the_one_above() -> None:
    assert cache_working_set(0, 32 * KI) == 16 * KI
    assert cache_working_set(32 * KI, 2 * MI) == 256 * KI
    assert cache_working_set(1 * MI, int(1.4 * MI)) is None


def test_samples_and_their_checks() -> None:
    good = Samples("x", ((1e6, 0.0100), (1e6, 0.0102), (1e6, 0.0098)))
    assert good.seconds == pytest.approx(1e-8)
    assert good.rate == pytest.approx(1e8)
    assert good.scatter == pytest.approx(0.02)
    assert good.warnings() == ()
    assert good.describe() == "median of 3, scatter 2.0 %"
    short = Samples("x", ((1e3, 1e-5),))
    assert short.warnings() == ("the shortest sample took 10 us, too short to time",)
    wild = Samples("x", ((1e6, 0.01), (1e6, 0.01), (1e6, 0.03)))
    assert "scatter by 69 %" in wild.warnings()[0]
    assert "+200 %" in wild.warnings()[1]
    with pytest.raises(ToolError, match="without work or time"):
        Samples("x", ((1e6, 0.0),))


def test_disturbed_samples_are_left_out_while_others_are_left() -> None:
    rows = [(1.0, 9.0, 1.0), (1.0, 2.0, 0.5), (1.0, 1.0, 0.999)]
    kept = select("x", rows)
    assert kept.pairs == ((1.0, 1.0),)
    assert kept.warmup == (1.0, 9.0)
    assert kept.disturbed == 0
    none = select("x", rows[:2])
    assert none.disturbed == 1
    both = merge([kept, none])
    assert both.pairs == ((1.0, 1.0), (1.0, 2.0))
    assert both.disturbed == 0.5
    assert "50 % of the samples shared" in both.warnings()[0]


def test_unstable_measurements_are_told_by_kind_with_the_worst() -> None:
    good = Samples("latency of 4 KiB", ((1e6, 0.01), (1e6, 0.01)))
    bad = Samples("latency of 8 KiB", ((1e6, 0.01), (1e6, 0.013)))
    worse = Samples("latency of 16 KiB", ((1e6, 0.01), (1e6, 0.04)))
    (line,) = unstable([good, bad, worse])
    assert line.startswith("latency: 2 of 3 unstable; latency of 16 KiB")
    assert unstable([good]) == ()


def test_samples_become_a_pyperf_file(tmp_path: Path) -> None:
    import pyperf

    samples = Samples("clock, 1 core", ((1e6, 0.010), (1e6, 0.012)), warmup=(1e6, 0.02))
    pyperf.BenchmarkSuite([samples.benchmark()]).dump(str(tmp_path / "s.json"))
    read = pyperf.BenchmarkSuite.load(str(tmp_path / "s.json")).get_benchmark("clock, 1 core")
    assert read.get_values() == (1.0e-8, 1.2e-8)
    assert read.median() == pytest.approx(samples.seconds)


def test_unknown_associativity_divides_the_size() -> None:
    def cache(size: int, ways: int | None) -> SystemCache:
        return SystemCache(1, size, 64, ways, frozenset({0}))

    assert associativity(cache(48 * KI, 12)) == (12, True)
    assert associativity(cache(48 * KI, None)) == (8, False)
    assert associativity(cache(64 * 7, None)) == (7, False)
    assert associativity(cache(48 * KI, 5)) == (8, False)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as built:
        yield built


@needs_compiler
@pytest.mark.parametrize(("nodes", "window"), [(1, 8), (7, 8), (8, 8), (100, 8), (1024, 1024), (4099, 64)])
def test_pointers_form_one_cycle_through_all_nodes_window_by_window(tmp_path: Path, nodes: int, window: int) -> None:
    source = files("ranksight.platforms.calibration").joinpath("latency.c")
    harness = tmp_path / "harness.c"
    harness.write_text(
        f'#define main measured_main\n#include "{source}"\n#undef main\n'
        "int main(void) {\n"
        f"  const size_t nodes = {nodes}, stride = 128, window = {window};\n"
        "  state = 1;\n  char *memory = lines_of(nodes * stride);\n  link_cycle(memory, nodes, stride, window);\n"
        "  void **at = (void **)memory;\n"
        '  do printf("%zu\\n", (size_t)((char *)at - memory) / stride), at = *at; while (at != (void **)memory);\n'
        "  return 0;\n}\n"
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    subprocess.run([compiler, "-O1", str(harness), "-o", str(tmp_path / "harness"), "-pthread"], check=True)
    done = subprocess.run([str(tmp_path / "harness")], capture_output=True, text=True, check=True)
    visited = [int(line) for line in done.stdout.split()]
    assert sorted(visited) == list(range(nodes))
    # Node 0 may stand anywhere in its window's part of the cycle: that window alone is entered twice.
    windows = [key for key, _ in itertools.groupby(place // window for place in visited)]
    assert len(windows) <= -(-nodes // window) + 1
    if nodes > 1000:
        jumps = np.abs(np.diff(visited))
        assert np.median(jumps) > window / 8  # no stride that a prefetcher could follow


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "arrays", "streams"),
    [("read", 1, 1), ("write", 1, 1), ("update", 1, 2), ("copy", 2, 2), ("triad", 3, 3)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_bandwidth_counts_loads_and_stores_of_all_threads(
    programs: Programs, kernel: str, arrays: int, streams: int, threads: int
) -> None:
    size = 3 * 512 * 100
    cpus = ",".join(["-1"] * threads)
    samples = programs.run("bandwidth", (kernel, size, cpus, 1e-5, 2), "test")
    swept = size // arrays * streams * threads
    assert all(work % swept == 0 for work, _ in samples.pairs)
    sweeps = {work / swept for work, _ in samples.pairs}
    assert all(math.log2(count).is_integer() for count in sweeps)


@needs_compiler
@pytest.mark.parametrize("kernel", ["write", "update", "copy", "triad"])
def test_no_streaming_kernel_is_optimised_away(programs: Programs, kernel: str) -> None:
    # The loop of a kernel that a compiler saw through would take no time for any number of bytes.
    rates = {name: programs.run("bandwidth", (name, 1 << 16, "-1", 1e-4, 3), name).rate for name in ("read", kernel)}
    assert rates[kernel] < 50 * rates["read"]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("latency", (4096,), "usage: latency"),
        ("latency", (4096, 128, 4096, -1, 1, "soon", 3), "a number on the command line is off"),
        ("bandwidth", ("scale", 65536, "-1", 1e-5, 1), "none of read, write, update, copy, triad"),
        ("bandwidth", ("read", 65536, ",", 1e-5, 1), "no processor is named"),
        ("clock", ("4000", 1e-5, 1), "cannot bind a thread"),
    ],
)
def test_programs_refuse_what_they_cannot_measure(
    programs: Programs, name: str, arguments: tuple[object, ...], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        programs.run(name, arguments, "test")


def test_missing_and_broken_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolError, match="install gcc"):
        Programs()
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'cc: error: licence expired' >&2\nexit 1\n")
    broken.chmod(0o755)
    with Programs() as programs, pytest.raises(ToolError, match="licence expired"):
        programs.build("clock")


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
            (seconds,) = step([int(str(arguments[0]))], self.capacities, self.levels)
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
def test_doubts_are_told(tmp_path: Path, machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    virtual = "vendor_id : GenuineIntel\nmodel name : cpu\nflags : hypervisor\n"
    root = machine(tmp_path, sockets=1, nodes=1, cores=8, threads=1, cpuinfo=virtual)
    governor = root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    governor.parent.mkdir()
    governor.write_text("powersave\n")
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3})
    monkeypatch.setattr(SyntheticPrograms, "capacities", (48 * KI, 1280 * KI, 8 * MI))
    found = calibrate("doubtful", QUICK, root=root)
    told = "\n".join(found.warnings)
    expected = (
        "load average is 3.0",
        "'powersave'",
        "virtual machine",
        "2 of the 8 cores",
        "L3: loads go to memory from",
        "no table of hardware events",
    )
    for part in expected:
        assert part in told
    assert "2 cores reach 2.0 times" in told
    assert "L3: 2 of the 8 cores that share it do not saturate it" in told
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
def test_a_system_that_tells_no_caches(tmp_path: Path, machine: Callable[..., Path]) -> None:
    root = machine(tmp_path, sockets=1, nodes=1, cores=2, threads=1)
    for cpu in (0, 1):
        shutil.rmtree(root / f"sys/devices/system/cpu/cpu{cpu}/cache")
    (root / "proc/meminfo").write_text("MemAvailable:   400000000 kB\n")
    found = calibrate("bare", CAREFUL, root=root)
    assert [cache.latency for cache in found.platform.caches] == pytest.approx([5, 14, 60])
    for cache, size in zip(found.platform.caches, SyntheticPrograms.capacities, strict=True):
        assert size / 2 ** (1 / 4) <= cache.size <= size
    assert "tells no caches" in "".join(found.warnings)
    assert {"caches.L1.size", "caches.L2.ways"} <= set(found.platform.estimates())


@pytest.mark.usefixtures("synthetic")
def test_values_that_contradict_each_other_are_refused(
    tmp_path: Path, machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SyntheticPrograms, "levels", (7e-9, 2e-9, 30e-9, 90e-9))
    with pytest.raises(ToolError, match=r"contradict each other.*caches\.L2\.latency"):
        calibrate("odd", QUICK, root=machine(tmp_path, 1, 1, 2, 1))


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
    refused, measured = "", 0
    try:
        measured = len(calibrate("here", TINY, said.append).samples)
    except ToolError as error:  # so few samples beside other work may contradict each other
        refused = error.what
    assert measured > 20 or "contradict" in refused or "no working set" in refused
    assert any(line.startswith("latency of 4 KiB") for line in said)
    assert any(line.startswith("bandwidth of memory, triad") for line in said)
