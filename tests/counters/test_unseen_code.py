"""Code that the simulated part of a run does not reach, though calls and times look the same."""

import shutil
import subprocess

import numpy as np
import pytest
from native_calls import of_one_call
from simulated_runs import measured

from ranksight.campaign.launching import Template
from ranksight.counters import signature
from ranksight.counters.collectors import sampling
from ranksight.counters.collectors._counting import build
from ranksight.counters.collectors.unseen import _ranges, unseen


def write(folder, samples, executed, rank=0):
    """`samples`: (calls before, address, object)."""
    text = "".join(f"{before} {address:x} {name}\n" for before, address, name in samples)
    (folder / f"calls.{rank}.code").write_text(text)
    text = "".join(f"{start:x} {size} {name}\n" for start, size, name in executed)
    (folder / f"sizes.{rank}.77.77.code").write_text(text)


APP = "/home/user/my app"
LOOP, PHASE = 0x1410, 0x14A0
EXECUTED = [(LOOP, 32, APP), (0x1000, 8, APP), (0x500, 64, "/lib/libc.so.6")]


def test_a_late_phase_is_found_and_where_it_begins(tmp_path):
    samples = [(n, LOOP + n % 30, APP) for n in range(900)] + [(n, PHASE, APP) for n in range(900, 1000)]
    write(tmp_path, samples, EXECUTED)
    found = unseen(tmp_path, {0: 40})
    assert found[0].share == pytest.approx(0.1)
    assert found[0].begins == 900


def test_code_that_was_executed_is_no_phase(tmp_path):
    samples = [(n, LOOP + n % 30, APP) for n in range(900)] + [(n, PHASE, APP) for n in range(900, 1000)]
    write(tmp_path, samples, [*EXECUTED, (PHASE - 16, 48, APP)])
    assert unseen(tmp_path, {0: 40}) == {}


def test_two_samples_and_less_than_a_hundredth_are_chance(tmp_path):
    for count, late in ((40, 2), (1000, 9)):
        samples = [(n, LOOP, APP) for n in range(count)] + [(count + n, PHASE, APP) for n in range(late)]
        write(tmp_path, samples, EXECUTED)
        assert unseen(tmp_path, {0: 4}) == {}


def test_code_chosen_by_the_processor_is_in_the_simulated_part_too(tmp_path):
    blas, libc = "/opt/lib/libown.so", "/lib/libc.so.6"
    samples = [(n, 0x9000, blas) for n in range(500)] + [(n, 0x9000, libc) for n in range(300, 500)]
    write(tmp_path, samples, [*EXECUTED, (0x7000, 64, blas)])
    assert unseen(tmp_path, {0: 50}) == {}


def test_without_samples_nothing_is_known(tmp_path):
    assert unseen(tmp_path, {0: 10, 1: 10}) == {}
    write(tmp_path, [], EXECUTED)
    assert unseen(tmp_path, {0: 10}) == {}


def test_what_begins_late_is_another_class():
    calls, seconds = np.zeros(1001, np.int64), np.full(1001, 1e-3)
    classes, pairs = signature.classes_of(calls, seconds, (50,))
    found = signature.of_run(classes, pairs, seconds, least=204)
    assert len(found.weights) >= 204
    assert found.weights[1:50] == pytest.approx(np.ones(49))
    assert found.weights[50:].sum() == pytest.approx(951)
    assert signature.of_run(*signature.classes_of(calls, seconds, (700,)), seconds, least=2804) is None


def test_plans_reach_the_code_or_say_that_they_do_not(tmp_path):
    launch = of_one_call(tmp_path, np.full(1001, 1e-3))
    write(tmp_path, [(n, LOOP, APP) for n in range(40)] + [(n, PHASE, APP) for n in range(40, 200)], EXECUTED)
    plans = sampling.plan(launch, tmp_path, 0)
    further = sampling.after_unseen(launch, tmp_path, plans, 0, False)
    assert further.begins == {0: (40,)}
    assert len(further.signatures[0].weights) >= 164
    plans = sampling.plan(launch, tmp_path, 3)
    further = sampling.after_unseen(launch, tmp_path, plans, 3, False)
    assert further.signatures[0].share == pytest.approx(0.2 * plans.signatures[0].share)
    sampling.write_record(tmp_path, further)
    _, notes, warnings = sampling.read_record(tmp_path)
    assert "80% of the time natively is run after the simulated part" in notes[-1]
    assert "stands for 20%" in warnings[0]


SOURCE = """
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
KERNEL double usual(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += sqrt(x[i] + i); return s; }
KERNEL double seldom(double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * i; return s; }
int main(int count, char **words) {
    MPI_Init(&count, &words);
    long n = 50000, steps = atol(words[1]), every = atol(words[2]), late = atol(words[3]);
    double *x = calloc(2 * n, 8), s = 0, all = 0;
    for (long t = 0; t < steps; t++) {
        if (t >= late && t % every == every - 1) s += seldom(x, 2 * n);
        s += usual(x, n);
        MPI_Allreduce(&s, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.parametrize(("every", "late"), [(10, 0), (1, 900)])
def test_kernels_between_the_same_calls_are_counted_however_seldom_or_late(tmp_path, every, late):
    if build(tmp_path) is None:
        pytest.skip("no compiler")
    (tmp_path / "p.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O1", "-g", "-o", tmp_path / "p", tmp_path / "p.c", "-lm"], check=True)
    steps = 1000
    words = ("mpirun", "--oversubscribe", "-n", "{ranks}", str(tmp_path / "p"), str(steps), str(every), str(late))
    reading = measured(Template(words).fill({"ranks": 1}), tmp_path / "part", 0)
    visits = reading.counters.set_index("kernel")["visits"]
    assert visits["usual"] == pytest.approx(steps, rel=0.01)
    assert visits["seldom"] == pytest.approx((steps - late) // every, rel=0.25)
    if late:
        assert any("first run later" in note for note in reading.notes)


CALLER = """
#include <math.h>
#include <mpi.h>
__attribute__((noinline)) double law(double x, long n) { for (long i = 0; i < n; i++) x += exp(-1e-3 * i); return x; }
int main(int count, char **words) {
    MPI_Init(&count, &words);
    double x = 0, all = 0;
    for (int t = 0; t < 100; t++) x = law(x, 1000), MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all < 0;
}
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.parametrize("table", [(), ("-fcf-protection=full", "-Wl,-z,ibtplt")])
def test_jumps_to_libraries_are_code_that_is_run(tmp_path, table):
    """Three samples in them were a seventh of a short run that the simulated part seemed not to reach."""
    if build(tmp_path) is None or shutil.which("objdump") is None:
        pytest.skip("no compiler")
    (tmp_path / "p.c").write_text(CALLER)
    subprocess.run(["mpicc", "-O2", "-g", *table, "-o", tmp_path / "p", tmp_path / "p.c", "-lm"], check=True)
    measured(Template(("mpirun", "-n", "{ranks}", str(tmp_path / "p"))).fill({"ranks": 1}), tmp_path / "part", 3)
    starts, ends = _ranges(next((tmp_path / "part").glob("sizes.0.*.code")))["p"]
    listing = subprocess.run(["objdump", "-d", tmp_path / "p"], check=True, capture_output=True, text=True).stdout
    jump = next(int(line.split()[0], 16) for line in listing.splitlines() if line.endswith("<exp@plt>:"))
    assert ((starts <= jump) & (jump < ends)).any()
