"""Platform files: the shipped library, reading back what was written, and refusals that name file and key."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.platforms import Cache, Clock, Layout, Memory, Platform, Source, load, names, save, simulated_caches
from ranksight.platforms.events import tables
from ranksight.platforms.files import parse
from ranksight.platforms.platform import measurable
from ranksight.platforms.writing import dumps

SMALL = """
schema = 1
name = "small"
vendor = "V"
model = "M"
processors = ["X 1"]
[topology]
source = "seen"
sockets = 1
cores_per_socket = 4
domains_per_socket = 2
cores_per_domain = 2
threads_per_core = 1
[clock]
base = { value = 2e9, source = "label" }
[caches.L1]
source = "seen"
size = "32 KiB"
line = 64
ways = 8
shared_by = 1
latency = { value = 4, source = "chase", estimate = true }
[memory]
source = "timed"
latency = 90e-9
bandwidth_core = 10e9
bandwidth_domain = 40e9
[memory.scaling.read]
cores = [1, 2]
bandwidth = [10e9, 20e9]
source = "timed"
estimate = true
[network]
note = "kept"
[network.p2p]
from = [0, 4096]
alpha = [1e-6, 2e-6]
"""


def small() -> Platform:
    return parse(SMALL.encode(), "small.toml")


@pytest.mark.parametrize("name", names())
def test_shipped_platforms_are_complete(name: str) -> None:
    platform = load(name)
    assert platform.name == name
    assert len(platform.caches) == (2 if name == "a64fx" else 3)
    sections = {"topology": platform.layout, "clock": platform.clock, "memory": platform.memory}
    sections |= {f"caches.{cache.name}": cache for cache in platform.caches}
    given = {
        f"{where}.{key}" for where, part in sections.items() for key in measurable(type(part)) if getattr(part, key)
    }
    assert platform.sources.keys() == given | {f"memory.scaling.{kernel}" for kernel in platform.memory.scaling}
    assert all(len(source.text) > 10 for source in platform.sources.values())


@pytest.mark.parametrize("name", names())
def test_shipped_values_agree_with_each_other(name: str) -> None:
    platform = load(name)
    layout, memory, caches = platform.layout, platform.memory, platform.caches
    cycles = list(platform.latencies().values())
    assert cycles == sorted(set(cycles))
    assert 60e-9 < memory.latency < 200e-9
    sizes = [cache.size for cache in caches]
    assert sizes == sorted(set(sizes))
    assert {cache.line for cache in caches} == ({256} if name == "a64fx" else {64})
    assert all(layout.cores_per_socket % cache.shared_by == 0 for cache in caches)
    assert caches[0].shared_by == 1
    rates = [cache.bandwidth for cache in caches if cache.bandwidth] + [memory.bandwidth_core]
    assert rates == sorted(rates, reverse=True)
    for cache in caches:  # cores side by side are no faster than one alone, but for what its measurement scattered
        assert cache.bandwidth_shared is None or cache.bandwidth_shared <= 1.01 * cache.shared_by * cache.bandwidth
    assert memory.bandwidth_core < memory.bandwidth_domain
    # cores that read as fast as one alone would fill the domain, and no domain is faster than they all together
    assert memory.bandwidth_domain <= 1.001 * layout.cores_per_domain * memory.bandwidth_core
    assert 0.8 * platform.clock.base < platform.frequency <= (platform.clock.single or math.inf)


@pytest.mark.parametrize("name", names())
def test_shipped_curves_are_those_of_a_domain(name: str) -> None:
    platform = load(name)
    cores = platform.layout.cores_per_domain
    for kernel, curve in platform.memory.scaling.items():
        rates = [rate for _, rate in curve]
        assert curve[-1][0] == cores
        assert rates[-1] > 0.94 * max(rates)  # full domains lose little against their best
        assert rates[0] >= platform.memory.bandwidth_core or kernel == "read"
    if read := platform.memory.scaling.get("read"):
        assert read[0] == (1, platform.memory.bandwidth_core)
        assert 0.97 < platform.memory.bandwidth_domain / max(rate for _, rate in read) <= 1


def test_no_two_machines_are_one_processor() -> None:
    processors = [processor for name in names() for processor in load(name).processors]
    assert len(set(processors)) == len(processors) >= len(names()) - 2  # generic, simulated


def test_event_tables_exist() -> None:
    wanted = {load(name).events for name in names()} - {""}
    assert wanted
    assert wanted <= set(tables.names())


def test_library_holds_the_machines_it_promises() -> None:
    intel = {"haswell-e5-2680v3", "broadwell-e5-2697v4", "skylake-8160", "cascadelake-6248", "icelake-8360y"}
    others = {"sapphirerapids-8470", "rome-7742", "milan-7763", "zen4", "a64fx", "grace", "altra-q80-30", "neoverse-v1"}
    assert intel | others | {"generic"} <= set(names())


def test_icelake_has_four_domains_of_eighteen_cores() -> None:
    platform = load("icelake-8360y")
    assert (platform.cores, platform.domains, platform.layout.cores_per_domain) == (72, 4, 18)


def test_values_units_and_sources_of_a_small_file() -> None:
    platform = small()
    assert [(cache.level, cache.size) for cache in platform.caches] == [(1, 32768)]
    assert platform.source("caches.L1.latency") == Source("chase", estimate=True)
    assert platform.source("caches.L1.size") == Source("seen")
    assert platform.source("clock.single") is None
    assert platform.estimates() == ("caches.L1.latency", "memory.scaling.read")
    assert platform.processors == ("X 1",)
    assert platform.latencies() == {"L1": 4.0, "memory": pytest.approx(180)}
    assert platform.memory.scaling == {"read": ((1, 10e9), (2, 20e9))}
    assert platform.network == {"note": "kept", "p2p": {"from": [0, 4096], "alpha": [1e-6, 2e-6]}}
    assert [platform.bandwidth(cores, "copy") for cores in (1, 3, 4, 9)] == [10e9, 30e9, 40e9, 40e9]
    assert [platform.bandwidth(cores) for cores in (1, 2, 3)] == [10e9, 20e9, 20e9]
    with pytest.raises(InputError, match="0 cores"):
        platform.bandwidth(0)


def test_bandwidth_follows_the_measured_points() -> None:
    memory = dataclasses.replace(small().memory, scaling={"update": ((2, 20e9), (4, 30e9), (8, 32e9))})
    platform = dataclasses.replace(small(), memory=memory)
    found = [platform.bandwidth(cores, "update") for cores in (1, 2, 3, 4, 6, 8, 16)]
    assert found == pytest.approx([10e9, 20e9, 25e9, 30e9, 31e9, 32e9, 32e9])


def test_measured_clock_counts_before_the_nominal_one() -> None:
    platform = dataclasses.replace(small(), clock=Clock(base=2e9, measured=3e9))
    assert platform.frequency == 3e9
    assert platform.latencies()["memory"] == pytest.approx(270)


@pytest.mark.parametrize("name", names())
def test_writing_and_reading_back_changes_nothing(name: str, tmp_path: Path) -> None:
    platform = load(name)
    assert load(save(platform, tmp_path / "copy.toml")) == platform


texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)
plain = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.floats(1e6, 1e12), st.floats(1e-8, 1e-5), texts, st.dictionaries(texts, plain, max_size=3))
def test_any_value_and_text_survives_writing(clock: float, latency: float, text: str, network: dict[str, int]) -> None:
    platform = small()
    seconds = max(latency, 8 / clock)
    sources = dict(platform.sources) | {"memory.latency": Source(text, estimate=True)}
    changed = dataclasses.replace(
        platform,
        vendor=text,
        clock=Clock(base=clock),
        memory=dataclasses.replace(platform.memory, latency=seconds),
        network=network,
        sources=sources,
    )
    assert parse(dumps(changed).encode(), "again") == changed


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    target = save(small(), tmp_path / "mine.toml")
    with pytest.raises(InputError, match="--force"):
        save(small(), target)
    assert save(small(), target, overwrite=True) == target
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
    with pytest.raises(InputError, match="cannot write"):
        save(small(), tmp_path / "absent" / "mine.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("schema = 1", "schema = 2", "schema is 2"),
        ("schema = 1", "", "schema is None"),
        ('name = "small"', 'name = "../small"', "name"),
        ('vendor = "V"', "vendor = 3", "vendor"),
        ('model = "M"', "", "model: missing"),
        ("[clock]", "[clocks]", "unknown key clocks"),
        ("sockets = 1\n", "sokets = 1\n", "unknown key topology.sokets"),
        ("cores_per_domain = 2", "cores_per_domain = 3", "topology.cores_per_domain"),
        ("sockets = 1\n", "sockets = 1.5\n", "topology.sockets: 1.5"),
        ("sockets = 1\n", "sockets = true\n", "topology.sockets: True"),
        ("sockets = 1\n", "sockets = 0\n", "topology.sockets: 0 is out of range"),
        ("sockets = 1\n", "sockets = 99999999999999999999\n", "topology.sockets"),
        ("sockets = 1\n", "sockets = 99999999\n", "topology.cores_per_socket: a node of 399999996 cores"),
        ("threads_per_core = 1\n", "", "topology.threads_per_core is missing"),
        ('"label"', '""', "clock.base: the source is empty"),
        ("base = { value = 2e9, source = \"label\" }", "base = 2e9", "clock.base has no source"),
        ("value = 2e9", "value = inf", "clock.base: inf is out of range"),
        ("value = 2e9", "value = nan", "clock.base: nan"),
        ("value = 2e9", "value = -1", "clock.base: -1"),
        ("value = 2e9, ", "", "clock.base"),
        ("[caches.L1]", "[caches.L2]", "level 1 is missing"),
        ("[caches.L1]", "[caches.L9]", "unknown key caches.L9"),
        ('"32 KiB"', '"32 Kb"', "caches.L1.size"),
        ('"32 KiB"', "32000", "not a multiple"),
        ("shared_by = 1", "shared_by = 64", "caches.L1.shared_by"),
        ("shared_by = 1", 'shared_by = 1\nbandwidth_shared = 9e10', "caches.L1.bandwidth_shared: one core has it"),
        ("shared_by = 1", 'shared_by = 2\nbandwidth_shared = 9e10', "that of one core is not given"),
        ("shared_by = 1", "shared_by = 2\nbandwidth = 9e10\nbandwidth_shared = 8e10", "less than that of one core"),
        ("shared_by = 1", "shared_by = 2\nbandwidth = 9e10\nbandwidth_shared = -1", "bandwidth_shared: -1"),
        ("latency = 90e-9", "latency = 1e-9", "memory.latency"),
        ("latency = 90e-9", 'latency = "90 ns"', "memory.latency"),
        ("bandwidth_domain = 40e9", "bandwidth_domain = 4e9", "memory.bandwidth_domain"),
        ("cores = [1, 2]", "cores = [2, 1]", "memory.scaling.read.cores"),
        ("cores = [1, 2]", "cores = [1]", "not lists of one length"),
        ("bandwidth = [10e9, 20e9]", "bandwidth = [10e9, -1]", "memory.scaling.read.bandwidth"),
        ('note = "kept"', "note = 1979-05-27", "network.note: a date"),
        ('note = "kept"', "note = nan", "network.note"),
        ('note = "kept"', f"note = {'[' * 40}{']' * 40}", "nested too deeply"),
        ("[topology]", "[topology", "not TOML"),
        ("[topology]", "[[topology]]", "topology"),
        ('processors = ["X 1"]', 'processors = "X 1"', "processors"),
        ('processors = ["X 1"]', "processors = [1]", "processors: 1"),
    ],
)  # fmt: skip
def test_faults_are_refused_by_file_and_key(old: str, new: str, says: str) -> None:
    assert SMALL.count(old) == 1
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        parse(SMALL.replace(old, new).encode(), "hostile.toml")
    assert str(caught.value).startswith("hostile.toml")


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"\x00" * 100, b"a = " + b"[" * 100_000, b"x = " + b"9" * 5000, b"#" * (2 << 20)]
)
def test_rubbish_is_refused(content: bytes) -> None:
    with pytest.raises(InputError, match="rubbish"):
        parse(content, "rubbish")


@given(st.binary(max_size=200), st.integers(0, len(SMALL)))
def test_a_damaged_file_is_read_or_refused(damage: bytes, at: int) -> None:
    refused = ""
    try:
        parse(SMALL.encode()[:at] + damage + SMALL.encode()[at + len(damage) :], "damaged")
    except InputError as error:
        refused = error.what
    assert refused == "" or refused.startswith("damaged")


@pytest.mark.parametrize("name", ["icelake", "", "zen4.toml", "/no/such.toml", "..", "../zen4"])
def test_unknown_names_and_files(name: str) -> None:
    with pytest.raises(InputError):
        load(name)


def test_a_folder_is_no_platform_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a platform file"):
        load(tmp_path)


def test_near_names_are_offered() -> None:
    with pytest.raises(InputError, match="icelake-8360y"):
        load("icelake-8360")


def test_loading_needs_the_standard_library_only() -> None:
    code = "import sys; from ranksight.platforms import load; load('zen4'); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("name", names())
def test_simulated_caches_are_what_valgrind_accepts(name: str) -> None:
    platform = load(name)
    levels = simulated_caches(platform)
    for cache, real in zip(levels, platform.caches, strict=True):
        sets = cache.size // (cache.ways * cache.line)
        assert sets * cache.ways * cache.line == cache.size
        assert sets & (sets - 1) == 0
        assert cache.line & (cache.line - 1) == 0
        assert abs(math.log(cache.size / max(real.size, levels[cache.level - 2].size if cache.level > 1 else 0))) < 0.1
        assert bool(cache.note) == ((cache.size, cache.ways, cache.line) != (real.size, real.ways, real.line))


def test_simulated_caches_say_what_they_change() -> None:
    haswell = simulated_caches(load("haswell-e5-2680v3"))
    assert haswell[0].option == "32768,8,64"
    assert haswell[2].size == 30 << 20  # 30 MiB and 20 ways are 24,576 sets: fewer ways keep the capacity
    assert "ways instead of 20" in haswell[2].note


@pytest.mark.valgrind
@pytest.mark.parametrize("name", names())
def test_valgrind_takes_every_level(name: str, tmp_path: Path) -> None:
    first, *others = simulated_caches(load(name))
    for last in others:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={tmp_path / 'out'}"]
        command += [f"--I1={first.option}", f"--D1={first.option}", f"--LL={last.option}", "true"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        used = f"desc: LL cache:         {last.size} B, {last.line} B, {last.ways}-way"
        assert used in (tmp_path / "out").read_text()


def test_contradictions_are_refused_in_python_too() -> None:
    memory = Memory(latency=1e-7, bandwidth_core=1e10, bandwidth_domain=1e10)
    layout = Layout(sockets=1, cores_per_socket=1, domains_per_socket=1, cores_per_domain=1, threads_per_core=1)
    cache = Cache(level=1, size=32768, line=64, ways=8, shared_by=1, latency=4.0)
    slower = Cache(level=2, size=65536, line=64, ways=8, shared_by=1, latency=4.0)
    with pytest.raises(InputError, match=r"caches\.L2\.latency"):
        Platform(
            name="x", vendor="", model="", layout=layout, clock=Clock(base=1e9), caches=(cache, slower), memory=memory
        )
    grown = dataclasses.replace(cache, effective=65536)
    with pytest.raises(InputError, match=r"caches\.L1\.effective: 65536 B is more than the size"):
        Platform(name="x", vendor="", model="", layout=layout, clock=Clock(base=1e9), caches=(grown,), memory=memory)


def test_what_cores_see_of_a_cache_goes_before_its_size() -> None:
    text = SMALL.replace('size = "32 KiB"', 'size = "32 KiB"\neffective = { value = "8 KiB", source = "chase" }')
    platform = parse(text.encode(), "small.toml")
    assert (platform.caches[0].size, platform.caches[0].capacity) == (32768, 8192)
    assert parse(dumps(platform).encode(), "again") == platform
    (level,) = simulated_caches(platform)
    assert level.size == 8192
    assert "8192 B of 32768 B are seen" in level.note
    assert parse(SMALL.encode(), "small.toml").caches[0].capacity == 32768


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-" + "9" * 19, "0x" + "f" * 5000])
@pytest.mark.parametrize("line", ["cores_per_socket = {}", "clock = [1, {}]"])
def test_whole_numbers_beyond_64_bits_are_refused(number: str, line: str) -> None:
    text = SMALL.replace("cores_per_socket = 4", line.format(number))
    with pytest.raises(InputError, match="is a whole number of more than 64 bits"):
        parse(text.encode(), "small.toml")
