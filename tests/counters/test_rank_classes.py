"""Ranks that stand for others: their classes, the command that measures some of them, and the record."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.campaign.launching import Template
from ranksight.campaign.measuring import execute
from ranksight.cli._adapting import sampled
from ranksight.core.errors import InputError
from ranksight.counters.collectors import cache_sizes, sampling
from ranksight.counters.collectors._counting import build
from ranksight.counters.collectors._ranks import PATIENT, before_program
from ranksight.counters.collectors.callgrind import Callgrind
from ranksight.counters.collectors.perf_clock import PerfClock
from ranksight.counters.rank_classes import stands_of

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def stands(kinds, base=lambda rank: 0x5000 * (rank + 1), seconds=None):
    """Ranks whose kind is their number of neighbours, each process with its code at another place."""
    calls = [np.array([1, *[2] * kind, 3] * 40) for kind in kinds]
    sites = [base(rank) + np.array([16, *range(32, 32 + kind), 64] * 40) for rank, kind in enumerate(kinds)]
    times = [np.full(len(each), 1e-3) * (1 if seconds is None else seconds[rank]) for rank, each in enumerate(calls)]
    return stands_of(calls, sites, times)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_ranks_with_the_same_calls_are_one_class(kinds):
    result = stands(kinds)
    pairs = set(zip(kinds, result.classes, strict=True))
    assert len(pairs) == len(set(kinds)) == len(set(result.classes))
    for rank, by in enumerate(result.counted_by):
        assert result.classes[rank] == result.classes[by]
        assert result.counted_by[by] == by
    for kind in set(kinds):
        ranks = [rank for rank, each in enumerate(kinds) if each == kind]
        assert sum(rank in result.simulated for rank in ranks) == min(2, len(ranks))
    for first, second in result.checks:
        assert first != second
        assert {first, second} <= set(result.simulated)


def test_ranks_that_take_longer_are_another_class():
    result = stands([1] * 8, seconds=[1, 1, 1, 1.5, 1, 1.5, 1, 1.5])
    assert result.classes == (0, 0, 0, 1, 0, 1, 0, 1)
    assert len(result.simulated) == 4
    assert result.share == pytest.approx((2 * 1 + 2 * 1.5) / (5 * 1 + 3 * 1.5))


def test_noise_of_the_clock_makes_no_class():
    seconds = 1 + 0.02 * np.random.default_rng(0).standard_normal(32)
    assert len(set(stands([2] * 32, seconds=seconds).classes)) == 1


def test_messages_of_another_size_and_calls_from_elsewhere_are_other_classes():
    calls = [np.array([5, 6] * 30)] * 3 + [np.array([5, 7] * 30)]
    sites = [np.array([16, 32] * 30)] * 2 + [np.array([16, 40] * 30), np.array([16, 32] * 30)]
    assert stands_of(calls, sites, [np.full(60, 1e-3)] * 4).classes == (0, 0, 1, 2)


def test_two_ranks_that_differ_are_said():
    table = pd.DataFrame({"instructions": [900.0, 100.0], "loads": [90.0, 10.0], "stores": [0.0, 5.0]}, ["a", "b"])
    other = table.assign(instructions=[900.0, 110.0])
    result = stands([1, 1, 1])
    first, second = result.checks[0]
    _, notes, warnings = sampling.record_of_ranks(result, {first: table, second: table})
    assert "2 of 3 ranks" in notes[0]
    assert "at most 0.00%" in notes[0]
    assert not warnings
    far = table.assign(loads_l2=[8.0, 4.0])
    _, notes, warnings = sampling.record_of_ranks(result, {first: far, second: far.assign(loads_l2=[8.0, 3.0])})
    assert "at most 0.00%" in notes[0]
    assert "by 25.00% in its loads of one level" in notes[0]
    assert not warnings
    rows, notes, warnings = sampling.record_of_ranks(result, {first: table, second: other})
    assert "9.09%" in notes[0]
    assert warnings
    assert "--sample-ranks off" in warnings[0]
    assert rows["rank"].tolist() == [0, 1, 2]
    assert (rows["counted_by"] == first).sum() == 2


def test_tool_stands_in_front_of_the_chosen_ranks_only(tmp_path):
    launch = Template(("true",)).fill({"ranks": 1})
    words = list(before_program(launch, tmp_path, "echo tool", (0, 12)))
    for rank, text in (("0", "tool true"), ("12", "tool true"), ("1", ""), ("2", "")):
        done = subprocess.run(words, capture_output=True, text=True, env={"OMPI_COMM_WORLD_RANK": rank}, check=True)
        assert done.stdout.strip() == text


def test_ranks_that_wait_leave_their_cores_to_the_others(tmp_path):
    words = list(before_program(Template(("nice",)).fill({"ranks": 1}), tmp_path, "env", (0,)))
    each = []
    for rank in "01":
        done = subprocess.run(words, capture_output=True, text=True, env={"OMPI_COMM_WORLD_RANK": rank}, check=True)
        each.append(int(done.stdout))
    assert each[1] == min(each[0] + PATIENT, 19)


def test_ranks_by_class_need_the_record_of_calls():
    collectors = {"callgrind": Callgrind()}
    assert sampled(collectors, None, (), by_class=True)["callgrind"].by_class
    for how, kernels, chosen in (("off", (), collectors), (None, ("a",), collectors), (None, (), {"c": PerfClock()})):
        with pytest.raises(InputError, match="--sample-ranks auto"):
            sampled(chosen, how, kernels, by_class=True)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("Send", 2), ("Allreduce", 3), ("Iallreduce", 3), ("Alltoallv", 0), ("Ineighbor_alltoallw", 0), ("Wait", 0),
     ("Win_fence", 0), ("Isend", 2), ("Neighbor_alltoall", 2), ("Ibarrier", 0), ("Reduce_scatter", 0)],
)  # fmt: skip
def test_argument_that_counts_elements(name, argument):
    assert sampling._argument(name) == argument


SOURCE = """
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
KERNEL double smooth(double *a, double *b, long n) {
    for (long i = 1; i < n - 1; i++) b[i] = .5 * a[i] + .25 * (a[i - 1] + a[i + 1]);
    return b[n / 2];
}
int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long n = rank == 1 ? 80000 : 40000;
    double *a = calloc(n, 8), *b = calloc(n, 8), sum = 0, all = 0;
    for (long k = 0; k < 100; k++) {
        sum += smooth(a, b, n);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
def test_ranks_that_wait_have_the_counts_of_their_class(tmp_path):
    if build(tmp_path) is None or not cache_sizes.install(tmp_path):
        pytest.skip("no compiler, or valgrind without its libraries")
    (tmp_path / "p.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O2", "-g", "-o", tmp_path / "p", tmp_path / "p.c", "-lm"], check=True)
    launch = Template(("mpirun", "--oversubscribe", "-n", "{ranks}", str(tmp_path / "p"))).fill({"ranks": 5})
    folder = tmp_path / "run"
    folder.mkdir()
    collector = Callgrind().sampled(3, by_class=True)
    for number, step in enumerate(collector.steps(launch, folder)):
        execute(type(step)(step.command, {**step.environment, **ROOT}, None, step.enough), folder / f"o{number}", 120)
    reading = collector.collect(launch, folder)
    ranks = reading.tables[sampling.RANKS_TABLE]
    assert (ranks["class"] == ranks["class"][1]).sum() == 1  # the rank with twice the work is in no other's class
    counts = reading.counters.query("kernel == 'smooth'").set_index("rank")["instructions"]
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.01)
    for rank, by in zip(ranks["rank"], ranks["counted_by"], strict=True):
        assert counts[rank] == pytest.approx(counts[by], rel=1e-9)
    assert set(reading.tables[cache_sizes.TABLE]["rank"]) == set(range(5))
    assert set(reading.tables[sampling.TABLE]["rank"]) == set(ranks["counted_by"])
