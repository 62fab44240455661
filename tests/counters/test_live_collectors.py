"""callgrind and perf at work on small programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Template
from ranksight.core.errors import InputError, ToolError
from ranksight.core.reading import READERS
from ranksight.counters.attribution import attribute
from ranksight.counters.callgrind_profile import read
from ranksight.counters.collectors import cache_sizes
from ranksight.counters.collectors.callgrind import Callgrind
from ranksight.counters.collectors.perf_clock import PerfClock
from ranksight.platforms import load

SOURCE = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KERNEL __attribute__((noinline, noclone))
enum { N = 4096, PASSES = 10 };
double a[N], b[N], c[N];
/* 2 loads and 1 store an element; three arrays of 32 KiB fit the second level and not the first */
KERNEL static void triad(void) { for (int i = 0; i < N; i++) { a[i] = b[i] + 2.0 * c[i]; } }
KERNEL static double law(int times) { double s = 0; for (int i = 0; i < times; i++) s += exp(-a[i % N]); return s; }
KERNEL static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
    int rank; double s = 0, t; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int times = argc > 1 ? atoi(argv[1]) : 1000;
    for (int k = 0; k < PASSES; k++) { triad(); s += law(times * (rank + 1)); memcpy(b, c, sizeof b);
        MPI_Allreduce(&s, &t, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); s = t; }
    s += fib(12);
    if (argc > 2) return 7;
    if (rank == 0) printf("%g\n", s);
    MPI_Finalize();
    return 0;
}
"""
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "small.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O1", "-g", "-o", "small", "small.c", "-lm"], cwd=folder, check=True)
    return folder / "small"


def measure(collector, ranks, program, folder, *arguments):
    launch = Template(("mpirun", "-n", "{ranks}", "--oversubscribe", str(program), *arguments)).fill({"ranks": ranks})
    for step in collector.steps(launch, folder):
        subprocess.run(step.command, env={**os.environ, **ROOT, **step.environment}, check=True, capture_output=True)
    return collector.collect(launch, folder)


@pytest.mark.mpi
@pytest.mark.valgrind
def test_callgrind_counts_what_the_program_does(program, tmp_path):
    reading = measure(Callgrind().on(load("haswell-e5-2680v3")), 2, program, tmp_path)
    table = reading.counters.set_index(["kernel", "rank"])
    assert set(table.loc[(slice(None), 1), :].index.get_level_values("kernel")) == {
        "triad", "law", "fib", "main", "memcpy [libc]", "exp [libm]"
    }  # fmt: skip
    triad = table.loc[("triad", 0)]
    assert triad["visits"] == 10
    # a call reads its return address too
    assert triad["loads"] == pytest.approx(10 * 2 * 4096, rel=1e-3)
    assert triad["stores"] == pytest.approx(10 * 4096, rel=1e-3)
    # one line of 64 bytes is 8 elements; after the first pass the second level serves what the first lost
    assert triad["loads_l2"] == pytest.approx(10 * 2 * 4096 / 8, rel=0.15)
    levels = reading.counters[["loads_l1", "loads_l2", "loads_l3", "loads_mem"]].sum(axis=1)
    assert levels.tolist() == pytest.approx(reading.counters["loads"].tolist())
    assert (reading.counters[["loads_l1", "loads_l2", "loads_l3", "loads_mem"]] >= 0).all(axis=None)
    assert table.loc[("fib", 0), "visits"] == 465
    assert table.loc[("exp [libm]", 1), "visits"] == 20000
    assert table.loc[("law", 1), "instructions"] == pytest.approx(2 * table.loc[("law", 0), "instructions"], rel=0.01)
    assert table.loc[("memcpy [libc]", 0), "visits"] == 10
    assert "simulated (callgrind" in reading.provenance["loads_l3"]
    assert reading.tables["left_out"].groupby("rank")["mpi"].sum().min() > 0


@pytest.mark.mpi
@pytest.mark.valgrind
def test_the_whole_process_gives_the_same_kernels(program, tmp_path, monkeypatch):
    monkeypatch.setattr(cache_sizes, "install", lambda folder: False)
    found = []
    for place in (tmp_path / "a", tmp_path / "b c"):  # nothing can be preloaded from a path with a blank
        place.mkdir()
        launch = Template(("mpirun", "-n", "{ranks}", str(program))).fill({"ranks": 1})
        step = Callgrind().steps(launch, place)[1]
        subprocess.run(step.command, env={**os.environ, **ROOT, **step.environment}, check=True, capture_output=True)
        file = next(file for file in place.iterdir() if file.name.startswith("l3.0."))
        found.append(attribute(read(file)).kernels)
    assert not list((tmp_path / "b c").glob("*.so"))
    (imported,) = READERS["callgrind"].read(file)
    table = imported.counters.set_index("kernel")["instructions"]
    assert table["(MPI library)"] > table.drop(["(MPI library)", "(system and start-up)"]).sum()
    for kernel, count in table.items():  # what MPI_Init had libc, libxml2 and others do is not a kernel
        ours = found[1]["Ir"].get(kernel, 0.0)
        assert count == pytest.approx(ours) or str(kernel).startswith("("), kernel
    assert set(found[1].index[found[1]["Ir"] > 200]) == set(found[0].index[found[0]["Ir"] > 200])
    for kernel in ("triad", "law", "fib", "exp [libm]"):
        for metric in ("visits", "Ir", "Dr", "Dw"):
            assert found[0].loc[kernel, metric] == found[1].loc[kernel, metric]


@pytest.mark.mpi
@pytest.mark.perf
def test_perf_clock_samples_the_kernels_time(program, tmp_path):
    reading = measure(PerfClock(), 2, program, tmp_path, "12000000")
    table = reading.counters.set_index(["kernel", "rank"])["time"]
    exp, here = table.loc["exp [libm]"], table.xs(0, level="rank")
    # `law` calls `exp`; which of the two takes longer, and how much of `exp` has no name, depends on processor and library
    work = here[here.index.str.contains("libm") | (here.index == "law")]
    assert work.sum() > 0.8 * here.sum()
    assert here["law"] > 0.1 * here.sum()
    assert exp[0] > 0.1 * here.sum()
    # rank 1 does twice the work of rank 0; how long that takes is the machine's affair
    assert exp[1] > exp[0]
    sampled = reading.tables["sampling"].set_index(["kernel", "rank", "metric"]).loc[("exp [libm]", 1, "time")]
    assert sampled["samples"] > 25
    assert sampled["samples"] * sampled["worth"] == pytest.approx(exp[1])
    assert reading.provenance["time"].startswith("sampled, n = ")


CXX = r"""
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
namespace {
template <class T, int N> struct Field {
    std::vector<T> values;
    explicit Field(unsigned long n) : values(n) {}
    __attribute__((noinline)) T sum(const std::map<std::string, int> &map, unsigned long k) const {
        T s = 0;
        for (auto &value : values) s += value / (s + map.size() + k);
        return s;
    }
};
}
int main(int, char **argv) {
    Field<double, 3> field(10000);
    std::map<std::string, int> map;
    double s = 0;
    for (int i = 0; i < std::atoi(argv[1]); i++) { field.values[i] = i; s += field.sum(map, i); }
    return s < 0;
}
"""


@pytest.mark.perf
@pytest.mark.valgrind
def test_both_name_cxx_functions_alike(tmp_path):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "field.cc").write_text(CXX)
    subprocess.run([compiler, "-O2", "-g", "-o", "field", "field.cc"], cwd=tmp_path, check=True)
    found = []
    for collector, repetitions in ((Callgrind(), 3), (PerfClock(), 4000)):
        place = tmp_path / str(repetitions)
        place.mkdir()
        launch = Template((str(tmp_path / "field"), str(repetitions))).fill({})
        for step in collector.steps(launch, place):
            subprocess.run(step.command, env={**os.environ, **step.environment}, check=True, capture_output=True)
        found.append(collector.collect(launch, place).counters.set_index("kernel"))
    counted, timed = found
    name = timed["time"].idxmax()
    assert "Field<double, 3>::sum(" in name
    assert counted.loc[name, "visits"] == 3


@pytest.mark.mpi
@pytest.mark.perf
def test_hardware_events_are_refused_without_a_pmu():
    state = COLLECTORS["perf"].available()
    if state.ok:
        pytest.skip("this machine has a PMU")
    assert "counters cannot be reached" in state.reason
    assert "perf-clock" in state.remedy


@pytest.mark.perf
def test_a_clock_in_an_events_clothes_is_refused(tmp_path):
    from ranksight.counters.collectors._perf import recorded_events, refuse_software

    file = tmp_path / "perf.data"
    done = subprocess.run(
        ["perf", "record", "-q", "-e", "cycles", "-o", str(file), "sleep", "0.2"], capture_output=True, check=False
    )
    if done.returncode or set(recorded_events(file).values()) != {1}:
        pytest.skip("this machine has a PMU, or perf says that it has none")
    with pytest.raises(ToolError, match="software clock"):
        refuse_software(file, {"cycles:u": "cycles"})


@pytest.mark.mpi
@pytest.mark.valgrind
def test_a_rank_that_left_nothing_is_named(program, tmp_path):
    launch = Template(("mpirun", "-n", "{ranks}", str(program))).fill({"ranks": 3})
    with pytest.raises(ToolError, match="ranks 0, 1, 2 of 3"):
        Callgrind().collect(launch, tmp_path)


def test_a_script_is_refused(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\nexec true\n")
    script.chmod(0o755)
    launch = Template((str(script),)).fill({})
    for name in ("callgrind", "perf-clock", "perf"):
        with pytest.raises(InputError, match="is a script"):
            COLLECTORS[name].steps(launch, tmp_path)


def test_missing_tools_are_named_with_what_installs_them(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, tool in (("callgrind", "valgrind"), ("perf-clock", "perf")):
        state = COLLECTORS[name].available()
        assert not state.ok
        assert tool in state.reason
        assert "install" in state.remedy
        assert f"module load {tool}" in state.remedy


@pytest.mark.parametrize("tool", ["valgrind", "perf", "likwid-perfctr"])
@pytest.mark.parametrize(
    ("release", "word"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
        ("ID=x\n", "module load"),
    ],
)
def test_installation_lines(tool, release, word, tmp_path):
    from ranksight.counters.installing import how_to_install

    (tmp_path / "os-release").write_text(release)
    assert word in how_to_install(tool, tmp_path / "os-release")


def test_the_caches_are_the_platforms(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_sizes, "install", lambda folder: False)
    launch = Template(("true",)).fill({})
    steps = Callgrind().on(load("haswell-e5-2680v3")).steps(launch, tmp_path)
    lines = [" ".join(step.command) for step in steps]
    assert "--LL=262144,8,64" in lines[0]
    assert "--D1=32768,8,64" in lines[1]
    assert lines[1].split("--LL=")[1].startswith("3")
    monkeypatch.setattr(cache_sizes, "install", lambda folder: True)
    (step,) = Callgrind().on(load("haswell-e5-2680v3")).steps(launch, tmp_path)
    first, last, *others = " ".join(step.command).split("--caches=")[1].split()[0].split(":")
    assert first == "32768,8,64"
    assert last == lines[1].split("--LL=")[1].split()[0]
    assert "262144,8,64" in others


def test_ranks_that_take_themselves_for_each_other_are_refused(tmp_path):
    from ranksight.counters.collectors._ranks import rank_files

    for name in ("clock.0.100", "clock.0.101"):
        (tmp_path / name).write_bytes(b"x")
    launch = Template(("true",)).fill({"ranks": 2})
    with pytest.raises(ToolError, match="rank 0"):
        rank_files(Path(tmp_path), r"clock\.(?P<rank>\d+)\.\d+", launch, "perf")
