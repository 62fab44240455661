"""The part of a run that stands for all of it, and its weights."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_calls import of_one_call
from simulated_runs import measured

from ranksight.campaign.launching import Template
from ranksight.counters import signature
from ranksight.counters.collectors import sampling
from ranksight.counters.collectors._counting import build
from ranksight.counters.collectors.callgrind import Callgrind


def of(calls, seconds, counted=0):
    return signature.of_run(*signature.classes_of(np.array(calls), np.array(seconds)), np.array(seconds), counted)


@given(st.lists(st.floats(1e-4, 1e-2), min_size=1, max_size=6), st.integers(60, 300))
def test_weights_stand_for_every_occurrence_of_an_exact_loop(times, steps):
    calls = [9, *(step for _ in range(steps) for step in range(len(times)))]
    seconds = [1e-4, *(each for _ in range(steps) for each in times)]
    found = of(calls, seconds)
    assert found is not None
    assert len(found.weights) < len(calls) / 2
    assert found.weights.sum() == pytest.approx(len(calls))
    assert found.weights @ np.array(seconds[: len(found.weights)]) == pytest.approx(sum(seconds), rel=0.02)
    assert found.share == pytest.approx(1.0)


@pytest.mark.parametrize("counted", [1, 5, 30])
def test_as_many_occurrences_are_counted_as_asked_for(counted):
    found = of([0, 1] * 200, [1e-3, 2e-3] * 200, counted)
    assert (len(found.weights) - 1) // 2 in (counted, counted + 1)


def test_cold_start_counts_once():
    found = of([0] * 100, [1e-3] * 100)
    assert found.weights[1] == 1.0
    assert found.weights[2:].sum() == pytest.approx(98)


@pytest.mark.parametrize("seconds", [1e-3 * np.arange(1, 401), 1e-3 * 1.02 ** np.arange(400)])
def test_work_that_changes_does_not_repeat(seconds):
    assert of([0] * 400, seconds) is None


def test_what_is_done_once_in_many_iterations_is_seen():
    seconds = np.where(np.arange(2000) % 50 == 49, 2e-2, 1e-3)
    found = of([0] * 2000, seconds)
    assert found.weights @ seconds[: len(found.weights)] == pytest.approx(seconds.sum(), rel=0.05)


def test_a_heavy_phase_that_begins_late_is_reached():
    seconds = np.r_[[1e-3] * 300, [2e-2] * 100]
    found = of([0] * 400, seconds)
    assert len(found.weights) > 300
    assert found.weights @ seconds[: len(found.weights)] == pytest.approx(seconds.sum(), rel=0.05)


def test_a_program_without_repetition_has_no_signature():
    assert of(range(50), [1e-3] * 50) is None
    assert of([], []) is None


def test_a_share_below_nine_tenths_is_said(tmp_path):
    one = of([0] * 100 + list(range(1, 60)), [1e-3] * 159, 2)
    assert one.share < 0.9
    sampling.write_record(tmp_path, sampling.Plans((one,)))
    table, notes, warnings = sampling.read_record(tmp_path)
    assert table["simulated"].tolist() == [len(one.weights)]
    assert "64" in warnings[0]
    assert "159 stretches" in notes[0]


def test_damaged_sequences_are_no_plan(tmp_path):
    launch = Template(("true",)).fill({"ranks": 1})
    for content in (b"", b"x" * 17, bytes(32), np.array([(1, 1, np.nan), (0xFFFF, 0, 0)], sampling._RECORD).tobytes()):
        (tmp_path / "calls.0").write_bytes(content)
        assert not sampling.plan(launch, tmp_path, 0).signatures


SOURCE = """
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
KERNEL double triad(double *a, double *b, long n) {
    for (long i = 0; i < n; i++) a[i] += 3 * b[i];
    return a[n / 2];
}
KERNEL double law(double x, long n) {
    for (long i = 0; i < n; i++) x += exp(-1e-3 * i);
    return x;
}
int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long n = 20000 * (1 + rank), steps = atol(words[1]);
    double *a = calloc(n, 8), *b = calloc(n, 8), sum = 0, all = 0;
    for (long k = 0; k < steps; k++) {
        sum += triad(a, b, n);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += law(all, count > 2 ? 1000 * k : 2000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.valgrind
@pytest.mark.parametrize(
    ("program", "refine", "why"),
    [
        ("true", (), "a shared MPI library is missing"),
        (sys.executable, (), "a program of Python"),
        ("true", ("k",), "split"),
    ],
)
def test_why_all_is_simulated_is_said(tmp_path, program, refine, why):
    launch = Template((program,)).fill({"ranks": 1})
    for counted, expected in ((0, 1), (None, 0)):
        folder = tmp_path / str(counted)
        folder.mkdir()
        list(Callgrind(refine=refine).sampled(counted).steps(launch, folder))
        _, notes, _ = sampling.read_record(folder)
        assert len(notes) == expected
        assert all(note.startswith("simulated in full: ") and why in note for note in notes)


@pytest.mark.valgrind
def test_the_library_is_compiled_once_and_again_where_a_header_differs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("one", "other", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "calls.h").write_text(sampling.header())
    first = build(tmp_path / "one", "signature.c")
    if first is None:
        pytest.skip("no compiler")
    content = first.read_bytes()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("compiled again"))
    assert build(tmp_path / "other", "signature.c").read_bytes() == content
    (tmp_path / "third" / "calls.h").write_text("#define TIMER 0\n")
    with pytest.raises(pytest.fail.Exception):
        build(tmp_path / "third", "signature.c")


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
def test_part_of_a_run_stands_for_all(tmp_path):
    if build(tmp_path) is None:
        pytest.skip("no compiler")
    (tmp_path / "p.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O2", "-g", "-o", tmp_path / "p", tmp_path / "p.c", "-lm"], check=True)
    words = ("mpirun", "--oversubscribe", "-n", "{ranks}", str(tmp_path / "p"), "150")
    launch = Template(words).fill({"ranks": 2})
    part, whole = (measured(launch, tmp_path / name, counted) for name, counted in (("part", 3), ("whole", None)))
    table = part.tables[sampling.TABLE]
    # About 10 of 300 on an idle machine, 130 where other work made some stretches longer, which are of other classes then.
    assert (table["simulated"] < 0.8 * table["stretches"]).all()
    assert (table["share"] > 0.95).all()
    a, b = (reading.counters.set_index(["kernel", "rank"]) for reading in (part, whole))
    for kernel in ("triad", "law", "exp [libm]"):
        for rank in (0, 1):
            assert a.loc[(kernel, rank), "visits"] == pytest.approx(b.loc[(kernel, rank), "visits"], rel=0.01)
            for metric in ("instructions", "loads", "loads_l1"):
                assert a.loc[(kernel, rank), metric] == pytest.approx(b.loc[(kernel, rank), metric], rel=0.01)
    growing = measured(Template((*words, "x")).fill({"ranks": 1}), tmp_path / "growing", 0)
    assert any(note.startswith("simulated in full") for note in growing.notes)


def test_the_last_stretch_counts_as_those_that_began_as_it_did() -> None:
    """Twenty steps of two exchanges, the last of which ends with the program: 19 between exchanges."""
    calls = np.array([1, *[2, 1] * 20, 3])[:-2].tolist()
    calls = np.array([*calls[:-1], 3])
    seconds = np.where(np.arange(len(calls)) % 2 == 0, 1.0, 1e-4)
    seconds[0] = 1e-3
    found = of(calls, seconds)
    assert found is not None
    assert found.share == pytest.approx(1.0)
    assert found.weights @ seconds[: len(found.weights)] == pytest.approx(seconds.sum(), rel=1e-3)


def test_what_ends_a_loop_counts_as_what_else_follows_there() -> None:
    """Twenty steps of two exchanges, the last of which ends with calls that report results."""
    calls = np.array([1, *[2, 1] * 20, 5, 6, 3])
    seconds = np.where(np.arange(len(calls)) % 2 == 1, 1.0, 1e-4)
    seconds[0], seconds[-3:] = 1e-3, (1.02, 1e-5, 1e-5)
    found = of(calls, seconds)
    assert found is not None
    simulated = calls[: len(found.weights)]
    assert found.weights[simulated == 2].sum() == pytest.approx(21)
    assert found.share == pytest.approx(1.0, abs=1e-5)


def test_an_end_as_slow_as_some_of_its_kind_later_is_one_of_them() -> None:
    """Two turns are enough; the last of 200, which another call ends, took as long as some that were not simulated."""
    calls = np.array([*[0, 1] * 200, 0, 2])
    seconds = np.where(calls == 0, 1e-4, 1e-3)
    seconds[201::40] *= 1.2
    seconds[-1] = 1.15e-3
    found = of(calls, seconds)
    assert len(found.weights) < 200
    assert found.share == pytest.approx(1.0)
    assert found.weights[calls[: len(found.weights)] == 1].sum() == pytest.approx(201)


def test_an_end_that_takes_longer_stands_for_itself() -> None:
    calls = np.array([1] * 30 + [3])
    seconds = np.array([1.0] * 30 + [1.0])
    assert of(calls, seconds, 2).share == pytest.approx(1.0)
    seconds[-1] = 4.0
    found = of(calls, seconds, 2)
    assert found.share == pytest.approx(30 / 34)


def test_what_recurs_seldom_is_seen_before_the_simulation_ends():
    """Every tenth turn makes one call more, whose stretches take next to no time and have a kernel's calls."""
    turn, more = [0, 1], [0, 1, 2]
    calls = [9, *(call for n in range(1, 301) for call in (more if n % 10 == 0 else turn))]
    seconds = [1e-6 if call == 2 else 1e-3 for call in calls]
    found = of(calls, seconds)
    assert found is not None
    simulated = np.array(calls[: len(found.weights)])
    assert len(simulated) < len(calls) / 2
    assert found.weights[simulated == 2].sum() == pytest.approx(30)


def test_times_that_change_while_calls_repeat_are_unsteady(tmp_path):
    for name, slower in (("steady", 1.0), ("unsteady", 1.6)):
        seconds = np.full(1001, 1e-3)
        seconds[400:800] *= slower
        folder = tmp_path / name
        folder.mkdir()
        plans = sampling.plan(of_one_call(folder, seconds), folder, 0)
        assert (plans.spared > sampling.COUNTING) == (slower > 1)
        assert bool(plans.signatures) == (slower == 1)


def test_timers_bound_stretches_where_no_calls_do(tmp_path):
    launch = Template(("true",)).fill({"ranks": 1})
    records = np.zeros(4001, sampling._RECORD)
    records["call"], records["site"] = sampling._TIMER, np.arange(4001) % 4
    records["seconds"] = 1e-3 * (1 + np.arange(4001) % 4)
    records["call"][-1] = 0xFFFF
    records.tofile(tmp_path / "calls.0")
    assert sampling.plan(launch, tmp_path, 0).signatures[0].simulated < 0.1
    records["call"][1::2] = 1  # what communicates is enough
    records.tofile(tmp_path / "calls.0")
    assert sampling.plan(launch, tmp_path, 0).signatures[0].stretches == 2001


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.parametrize("runs", [1, 2])
def test_instructions_show_what_repeats_where_times_of_two_runs_do_not(tmp_path, monkeypatch, runs):
    if build(tmp_path) is None:
        pytest.skip("no compiler")
    source = SOURCE.replace(
        "MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);", "all += MPI_Wtime() > 0;"
    )
    (tmp_path / "p.c").write_text(source.replace("MPI_Barrier(MPI_COMM_WORLD);", "MPI_Wtime();"))
    subprocess.run(["mpicc", "-O2", "-g", "-o", tmp_path / "p", tmp_path / "p.c", "-lm"], check=True)
    launch = Template(("mpirun", "--oversubscribe", "-n", "{ranks}", str(tmp_path / "p"), "150")).fill({"ranks": 1})
    whole = measured(launch, tmp_path / "whole", None)
    plan, seen = sampling.plan, []

    def unsteady(*given):
        seen.append(plan(*given))
        return sampling.Plans(spared=1.0) if len(seen) <= runs else seen[-1]

    monkeypatch.setattr(sampling, "plan", unsteady)
    part = measured(launch, tmp_path / "part", 0)
    assert runs + 1 <= len(seen) <= 3  # a busy machine makes times of the second run unsteady, too
    assert part.tables[sampling.TABLE]["error"].max() < (1e-3 if runs == 2 else 0.1)
    a, b = (reading.counters.set_index("kernel") for reading in (part, whole))
    for kernel in ("triad", "law", "exp [libm]"):
        assert a.loc[kernel, "visits"] == pytest.approx(b.loc[kernel, "visits"], rel=0.01)
        assert a.loc[kernel, "instructions"] == pytest.approx(b.loc[kernel, "instructions"], rel=0.01)


def test_a_noisy_end_counts_as_what_most_often_follows():
    """Every tenth turn works a little more before another call; the last turn, of the usual kind, came out as slow."""
    calls, seconds = [9], [1e-3]
    for n in range(1, 401):
        seldom = n % 10 == 0
        calls += [1, 2 if seldom else 3]
        seconds += [1e-4, 1.07e-3 if seldom else 1e-3 * (1 + 0.05 * (n % 3))]
    calls[-1], seconds[-1] = 4, 1.14e-3
    found = of(calls, seconds)
    simulated = np.array(calls[: len(found.weights)])
    assert found.weights[simulated == 2].sum() == pytest.approx(39, abs=0.5)
    assert found.weights[simulated == 3].sum() == pytest.approx(361, abs=0.5)


@pytest.mark.parametrize("counted", [2, 3, 6, 9, 40])
def test_further_sums_differ_by_the_standard_error_of_the_counts(counted):
    generator = np.random.default_rng(counted)
    calls, seconds = [9, *[0] * 400], [1e-3] * 401
    found = of(calls, seconds, counted)
    work = 100 + generator.normal(0, 10, (4000, len(found.weights)))
    truth = found.weights @ work.T
    assert (found.further >= 0).all()
    for sums in found.further:
        assert sums.sum() == pytest.approx(found.weights.sum())
        difference = (sums @ work.T - truth) / signature.PART
        assert difference.std() == pytest.approx(truth.std() * np.sqrt(1 - counted / 399), rel=0.15)
    steady = found.further @ np.full(len(found.weights), 5.0)
    assert steady == pytest.approx(np.full(3, 5.0 * found.weights.sum()))


def test_what_is_counted_whole_has_no_error():
    found = of([*[0, 1] * 200, 2, 2, 2], [*[1e-3, 1e-3] * 200, 1e-6, 1e-6, 1e-6], 1)
    assert found.further[:, 0] == pytest.approx(np.full(3, found.weights[0]))
