"""Places along a run that are simulated where occurrences of the same stretch differ."""

import subprocess

import numpy as np
import pytest
from native_calls import of_one_call
from simulated_runs import measured

from ranksight.campaign.launching import Template
from ranksight.counters import signature
from ranksight.counters.collectors import sampling
from ranksight.counters.collectors._counting import build
from ranksight.counters.windows import PLACES, windows_of


def looped(steps, often=1):
    """Calls and times of a loop of two stretches, with a third each `often` turns."""
    calls = [9]
    for turn in range(steps):
        calls += [0, 1] + ([2] if turn % often == often - 1 else [])
    return np.array(calls), np.full(len(calls), 1e-3)


def windows(calls, seconds, counted=0):
    classes = signature.classes_of(calls, seconds)
    first = signature.of_run(*classes, seconds, counted)
    return first, windows_of(first, *classes, seconds), classes[0]


def numbers(found, first):
    """The stretches that are simulated."""
    later = map(np.arange, found.begins, found.begins + found.lengths)
    return np.concatenate([np.arange(len(first.weights)), *later])


@pytest.mark.parametrize("often", [1, 7])
def test_weights_of_windows_stand_for_every_occurrence(often):
    calls, seconds = looped(2000, often)
    first, found, classes = windows(calls, seconds, 4)
    at = numbers(found, first)
    assert len(at) < len(calls) / 5
    assert found.lengths[0] >= 2 * often
    stands = np.bincount(classes[at], found.signature.weights)
    assert stands == pytest.approx(np.bincount(classes)[: len(stands)])
    assert found.signature.places == PLACES
    assert found.signature.share == pytest.approx(1.0)


def test_work_that_drifts_after_the_first_part_is_counted_within_its_error():
    calls, seconds = looped(3000)
    first, found, _ = windows(calls, seconds)
    work = 1000 - 40 * (np.maximum(np.arange(len(calls)) - 400, 0) / len(calls)) ** 0.5
    at = numbers(found, first)
    of_first, of_windows = first.weights @ work[: len(first.weights)], found.signature.weights @ work[at]
    error = np.sqrt(
        np.mean([((sums @ work[at] - of_windows) / signature.PART) ** 2 for sums in found.signature.further])
    )
    assert of_first / work.sum() - 1 > 0.02
    assert abs(of_windows - work.sum()) < 2 * error
    assert error < 0.01 * work.sum()


def test_occurrences_that_are_the_same_have_no_error_however_unevenly_they_come():
    calls = np.concatenate([looped(1500, 11)[0], looped(1500, 3)[0][1:]])
    seconds = np.full(len(calls), 1e-3)
    first, found, classes = windows(calls, seconds, 4)
    at = numbers(found, first)
    assert (found.signature.further >= 0).all()
    each = np.bincount(classes[at], found.signature.weights)
    for sums in found.signature.further:
        assert np.bincount(classes[at], sums) == pytest.approx(each)


def test_what_ends_a_run_and_is_like_nothing_before_is_simulated():
    """The first stretch of the end follows what a turn does, and counts as one that ends another."""
    calls = np.concatenate([looped(2000)[0], [5, 6, 7, 8]])
    first, found, _ = windows(calls, np.full(len(calls), 1e-3), 4)
    assert first.share == pytest.approx(1 - 3 / len(calls))
    assert len(found.begins) == PLACES + 1
    at = numbers(found, first)
    assert len(calls) - 1 not in at
    assert found.signature.weights[np.isin(calls[at], [6, 7])] == pytest.approx(np.ones(2))
    assert found.signature.weights[np.isin(calls[at], [0, 1])].sum() == pytest.approx(4001)


def test_short_runs_have_no_windows():
    calls, seconds = looped(60)
    assert windows(calls, seconds, 3)[1] is not None
    calls, seconds = looped(60, 10)
    assert windows(calls, seconds, 1)[1] is None


def test_a_plan_goes_on_only_behind_a_question(tmp_path):
    launch = of_one_call(tmp_path, np.full(4001, 1e-3))
    plans = sampling.plan(launch, tmp_path, 0)
    rows = np.fromfile(tmp_path / "plan.0", sampling._PLANNED)
    end = len(plans.signatures[0].weights)
    assert rows["call"][end] == sampling._DIFFERS
    skipped = rows["weight"][rows["call"] == sampling._SKIPS, 0]
    simulated = int((rows["call"] == 1).sum())
    assert len(skipped) == PLACES
    assert simulated + skipped.sum() < 4001
    assert sampling.followed(tmp_path, plans).signatures == plans.signatures
    (tmp_path / "plan.0.places").touch()
    (followed,) = sampling.followed(tmp_path, plans).signatures
    assert len(followed.weights) == simulated
    sampling.write_record(tmp_path, sampling.Plans((followed,)))
    table, notes, _ = sampling.read_record(tmp_path)
    assert sampling.growth(table) == {0: 0.0}
    assert any("4 places along the rest" in note for note in notes)
    sampling.plan(launch, tmp_path, 3)
    assert (np.fromfile(tmp_path / "plan.0", sampling._PLANNED)["call"] == 1).all()


SOURCE = """
#include <mpi.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
static unsigned long long state = 7;
KERNEL double near(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * i; return s; }
KERNEL double far(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] / (i + 1); return s; }
int main(int count, char **words) {
    MPI_Init(&count, &words);
    long n = 20000, steps = atol(words[1]), moves = atol(words[2]), late = steps / 10;
    double *x = calloc(2 * n, 8), s = 0, all = 0;
    for (long t = 0; t < steps; t++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        s += near(x, n + moves * (long)(state >> 33) % 200);
        MPI_Allreduce(&s, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        s += far(x, n - moves * (t > late ? (t - late) * n / steps / 10 : 0));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.parametrize("moves", [0, 1])
def test_a_run_is_followed_where_its_occurrences_differ(tmp_path, moves):
    """The work of `far` begins to fall, by a tenth, behind the part that is simulated; that of `near` always differs."""
    if build(tmp_path) is None:
        pytest.skip("no compiler")
    (tmp_path / "p.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O1", "-g", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    words = ("mpirun", "--oversubscribe", "-n", "{ranks}", str(tmp_path / "p"), "2000", str(moves))
    launch = Template(words).fill({"ranks": 2})
    part, whole = (measured(launch, tmp_path / name, counted) for name, counted in (("part", 0), ("whole", None)))
    places = part.tables[sampling.TABLE]["places"]
    assert places.max() == PLACES * moves
    a, b = (reading.counters.set_index(["kernel", "rank"]) for reading in (part, whole))
    for kernel in ("near", "far"):
        for rank in np.flatnonzero(
            places == PLACES * moves
        ):  # not where other work on the machine made a first part long
            for metric, within in (("visits", 1e-3), ("instructions", 2e-3), ("loads", 2e-3), ("loads_l1", 3e-3)):
                assert a.loc[(kernel, rank), metric] == pytest.approx(b.loc[(kernel, rank), metric], rel=within)
