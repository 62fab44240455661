"""Programs without symbols, and the warning that kernels lack work."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Template
from ranksight.cli.main import main
from ranksight.comm.tracer.callsites import CallSites
from ranksight.comm.tracer.rawfile import RankTrace
from ranksight.core.experiment import Experiment, Run
from ranksight.core.experiment import read as read_experiment
from ranksight.core.leftout import COLUMNS, TABLE, by_object, warning
from ranksight.core.sampled import TABLE as SAMPLES
from ranksight.core.symbols import beginning, needed, read_symbols, unnamed
from ranksight.counters.attributing import Frame, resolve
from ranksight.counters.objects import not_for_mpi

WORK = "double work(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }\n"
MAIN = r"""
#include <stdlib.h>
#define KERNEL __attribute__((noinline, noclone))
double work(int n);
KERNEL double helper(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i / i; return s; }
KERNEL static double inner(int n) { double s = 0; for (int i = 1; i < n; i++) s += i * 0.5; return s; }
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    double s = inner(n) + helper(10);
    for (int k = 0; k < 20; k++) s += work(n);
    return s < 0;
}
"""
TIMES = 20000


@pytest.fixture(scope="module")
def stripped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that exports one function of three, and its library, both without a symbol table."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found")
    place = tmp_path_factory.mktemp("stripped")
    (place / "work.c").write_text(WORK)
    (place / "main.c").write_text(MAIN)
    library = ["gcc", "-O1", "-s", "-shared", "-fPIC", "-o", "libwork.so", "work.c"]
    program = ["gcc", "-O1", "-s", "-o", "program", "main.c", "-L.", "-lwork", f"-Wl,-rpath,{place}"]
    subprocess.run(library, cwd=place, check=True)
    subprocess.run([*program, "-Wl,--export-dynamic-symbol=helper"], cwd=place, check=True)
    return place / "program"


@pytest.mark.valgrind
def test_a_stripped_program_keeps_its_work(stripped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "stripped.exp"
    words = ["--collector", "callgrind", "-o", str(folder), "--ranks", "1", "--size", str(TIMES)]
    assert main(["measure", *words, "--", str(stripped), "{size}", "{ranks}"]) == 0
    assert "kernels lack" not in capfd.readouterr().err
    cost = read_experiment(folder).counters(["instructions"]).set_index("kernel")["instructions"]
    assert cost["work"] > 20 * TIMES
    assert cost["helper"] > 9
    # main and its static function, which no symbol names
    rest = cost[[name for name in cost.index if "program" in str(name)]]
    assert 5 * TIMES < rest.sum() < 10 * TIMES


def made(folder: Path, other: dict[str, float], kept: float = 1000.0, ranks: tuple[int, ...] = (2, 4)) -> Experiment:
    """An experiment of one kernel whose largest run leaves `other` out."""
    experiment = Experiment.create(folder, "app", ("ranks",))
    for count in ranks:
        counters = pd.DataFrame({"kernel": "main", "rank": range(count), "instructions": kept / count})
        parts = [("application", "", 0, kept), ("mpi", "libmpi", 0, 50 * kept)]
        parts += [("other", name, 0, value) for name, value in other.items() if count == ranks[-1]]
        table = by_object(pd.DataFrame(parts, columns=["group", "object", "rank", "value"]), "instructions")
        experiment.add(Run({"ranks": count}, collector="callgrind"), counters, tables={TABLE: table})
    return experiment


def test_what_is_left_out_is_kept_with_the_run(tmp_path: Path) -> None:
    experiment = made(tmp_path / "e", {"libwork": 90.0})
    table = experiment.table(experiment.runs[-1], TABLE)
    assert table is not None
    assert tuple(table.columns) == COLUMNS
    assert table.set_index("object").loc["libwork", ["kept", "mpi", "other"]].tolist() == [0, 0, 90]


def test_a_tenth_is_the_limit_and_mpi_does_not_count(tmp_path: Path) -> None:
    assert warning(made(tmp_path / "a", {"libwork": 60.0, "app": 30.0})) == ""
    said = warning(made(tmp_path / "b", {"libwork": 300.0, "app": 100.0, "libc": 2.0, "libm": 1.0, "libz": 1.0}))
    assert "libwork 74%, app 25%" in said
    assert "and 2 more" in said
    assert "ranks = 4" in said
    assert "40%" in said
    assert "libmpi" not in said
    assert "14 times" in warning(made(tmp_path / "c", {"libwork": 14000.0}))
    assert "ranks = 4, and hold none: in libwork 100%" in warning(made(tmp_path / "d", {"libwork": 14.0}, kept=0.0))


def test_a_few_samples_that_fell_outside_of_kernels_are_chance(tmp_path: Path) -> None:
    for samples, lacks in ((4, False), (4000, True)):
        experiment = Experiment.create(tmp_path / str(samples), "app", ("ranks",))
        counters = pd.DataFrame({"kernel": ["main"], "rank": 0, "time": 9 * samples * 1e-3})
        sampled = pd.DataFrame({"kernel": ["main"], "rank": 0, "samples": 9 * samples, "metric": "time", "worth": 1e-3})
        parts = [("application", "", 0, 9 * samples * 1e-3), ("other", "libfft", 0, samples * 1e-3)]
        table = by_object(pd.DataFrame(parts, columns=["group", "object", "rank", "value"]), "time")
        run = Run({"ranks": 1}, collector="perf-clock", provenance={"time": "sampled, n = 9"})
        experiment.add(run, counters, tables={TABLE: table, SAMPLES: sampled})
        assert ("11% of what they hold: in libfft 100%" in warning(experiment)) == lacks


def test_fit_and_report_say_first_that_kernels_lack_work(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    experiment = made(tmp_path / "e", {"libwork": 14000.0}, ranks=(2, 4, 8, 16, 32))
    model, page = tmp_path / "m.json", tmp_path / "m.html"
    main(["fit", str(experiment.path), "-o", str(model)])
    first = capfd.readouterr().err.splitlines()[0]
    assert "warning: kernels lack" in first
    assert "libwork" in first
    main(["report", str(model), "-o", str(page)])
    assert "libwork" in capfd.readouterr().err.splitlines()[0]
    text = page.read_text()
    assert text.index("kernels lack") < text.index('class="cards"')


def test_an_import_says_first_that_kernels_lack_work(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "callgrind.out.1"
    file.write_text(
        "creator: callgrind-3.19.0\nevents: Ir\nob=(1) /home/me/app\nfn=(1) main\n1 100\n"
        "ob=(2) /home/me/libsetup.so\nfn=(2) setup\n1 50\n"
        "ob=(3) /lib64/ld-linux-x86-64.so.2\nfn=(3) call_init\n1 5\ncob=(2)\ncfn=(2)\ncalls=1 0\n1 50\ntotals: 155\n"
    )
    assert main(["import", str(file), "--set", "ranks=1", "-o", str(tmp_path / "e")]) == 0
    first = capfd.readouterr().err.splitlines()[0]
    assert "kernels lack 50 instructions" in first  # the loader's own 5 are nobody's loss
    assert "libsetup 100%" in first


# ---- functions without a symbol -------------------------------------------------------------------------------------

MPI = r"""
#include <mpi.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline, noclone))
static double a[4096];
KERNEL static void relax(int n) { for (int k = 0; k < n; k++) for (int i = 1; i < 4095; i++) a[i] += a[i - 1] * 0.5; }
KERNEL static void halo(void) { MPI_Barrier(MPI_COMM_WORLD); a[0] += 1; MPI_Barrier(MPI_COMM_WORLD); a[1] += 1; }
KERNEL static void sum(void) {
    MPI_Allreduce(MPI_IN_PLACE, a, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    a[2] += 1;
}
KERNEL void exported(int n) { for (int k = 0; k < n; k++) { relax(40); halo(); sum(); } }
int main(int argc, char **argv) { MPI_Init(&argc, &argv); exported(atoi(argv[1])); MPI_Finalize(); return a[1] < 0; }
"""
"""Functions of a stripped program: the tracer sees halo and sum call MPI, counters see relax compute."""


def built(place: Path, *options: str) -> tuple[Path, dict[str, int]]:
    """The program without its symbols, and where each function began as its symbols said."""
    (place / "p.c").write_text(MPI)
    subprocess.run(["mpicc", "-O1", "-o", "p", "p.c", *options], cwd=place, check=True)
    table = read_symbols(place / "p")
    assert table is not None
    starts = dict(zip(table.names, table.starts.tolist(), strict=True))
    subprocess.run(["strip", "p"], cwd=place, check=True)
    return place / "p", {name: starts[name] for name in ("main", "relax", "halo", "sum", "exported")}


@pytest.mark.mpi
@pytest.mark.parametrize("options", [(), ("-no-pie",), ("-Wl,--export-dynamic-symbol=exported",)])
def test_a_stripped_file_says_where_its_functions_begin(tmp_path: Path, options: tuple[str, ...]) -> None:
    program, starts = built(tmp_path, *options)
    table = read_symbols(program)
    assert table is not None
    for start in starts.values():
        segment = next(s for s in table.segments if s["vaddr"] <= start < s["vaddr"] + s["memsz"])
        offset = start - int(segment["vaddr"]) + int(segment["offset"])
        for inside in (0, 1, 7):
            assert beginning(str(program), start + inside) == start
            assert beginning(str(program), offset + inside, offset=True) == start
    assert beginning(str(program), 1 << 60) is None
    assert beginning(str(tmp_path / "absent"), 0x1000) is None


@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.perf
def test_all_collectors_give_a_function_without_a_symbol_one_name(tmp_path: Path) -> None:
    program, starts = built(tmp_path, "-Wl,--export-dynamic-symbol=exported")
    names = {name: unnamed(start, str(program)) for name, start in starts.items()} | {"exported": "exported"}
    found = {}
    for name, repetitions in (("callgrind", 20), ("pmpi", 20), ("perf-clock", 4000)):
        place = tmp_path / name
        place.mkdir()
        launch = Template(("mpirun", "-n", "{ranks}", str(program), str(repetitions))).fill({"ranks": 1})
        for step in COLLECTORS[name].steps(launch, place):
            subprocess.run(step.command, env={**os.environ, **step.environment}, check=True, capture_output=True)
        reading = COLLECTORS[name].collect(launch, place)
        assert reading.counters is not None
        found[name] = reading.counters.set_index("kernel")
    counted, traced, timed = (found[name] for name in ("callgrind", "pmpi", "perf-clock"))
    assert {names[name] for name in ("main", "relax", "halo", "sum", "exported")} <= set(counted.index)
    assert counted.loc[names["relax"], "visits"] == 20
    assert traced.loc[names["halo"], "messages"] == 40  # two call sites, one function
    assert traced.loc[names["sum"], "messages"] == 20
    assert timed["time"].idxmax() == names["relax"]


@pytest.mark.skipif(shutil.which("objcopy") is None or shutil.which("gcc") is None, reason="no binutils")
def test_symbols_are_read_from_the_file_that_a_link_names(stripped: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    work = ["-L", str(stripped.parent), "-lwork"]
    subprocess.run(["gcc", "-O1", "-Wl,--build-id=none", "-o", "p", "main.c", *work], cwd=tmp_path, check=True)
    subprocess.run(["objcopy", "--only-keep-debug", "p", "p.debug"], cwd=tmp_path, check=True)
    subprocess.run(["strip", "p"], cwd=tmp_path, check=True)
    without = read_symbols(tmp_path / "p")
    subprocess.run(["objcopy", "--add-gnu-debuglink=p.debug", "p"], cwd=tmp_path, check=True)
    linked = read_symbols(tmp_path / "p")
    assert without is not None
    assert linked is not None
    assert "inner" not in without.names
    assert {"inner", "helper", "main"} <= set(linked.names)
    (tmp_path / "p.debug").write_bytes((tmp_path / "p.debug").read_bytes() + b"x")  # of another build
    other = read_symbols(tmp_path / "p")
    assert other is not None
    assert "inner" not in other.names


def test_call_sites_in_no_function_are_one_kernel_a_file(tmp_path: Path) -> None:
    trace = RankTrace({"rank": 0}, 1e-9, (), ((0x1000, 0x2000, 0, str(tmp_path / "libx.so.1")),), [])
    places = CallSites()
    places.sites(trace, np.array([0x1100, 0x1200], dtype=np.uint64))
    assert set(places.kernels()[1]) == {"(unknown)", "(no symbol) [libx]"}


def test_a_library_without_symbols_is_the_applications_unless_mpi_is_linked_with_it(tmp_path: Path) -> None:
    """Samples in it show no caller, as libraries keep no frame pointers."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found")
    (tmp_path / "work.c").write_text("static int inner(int n) { return n; }\nint OUTER(int n) { return inner(n); }\n")

    def library(name: str, *needed: str) -> str:
        line = ["gcc", "-shared", "-fPIC", "-s", f"-DOUTER={name}", "-Wl,--no-as-needed", f"-Wl,-soname,lib{name}.so.1"]
        links = [str(tmp_path / f"lib{each}.so.1.2") for each in needed]
        subprocess.run([*line, "-o", f"lib{name}.so.1.2", "work.c", *links], cwd=tmp_path, check=True)
        return str(tmp_path / f"lib{name}.so.1.2")

    cells, topology, transport = library("cells"), library("topology"), library("transport", "topology")
    mpi = library("mpi", "transport")
    assert needed(mpi)[:1] == ("libtransport.so.1",)  # type: ignore[index]
    ours = not_for_mpi({cells, topology, transport, mpi})
    assert ours == {cells}
    assert not_for_mpi({cells, str(tmp_path / "libmpi.so.40")}) == frozenset()  # of another machine

    def chain(path: str) -> tuple[str, str, bool]:
        return resolve([Frame("0x0000000000001100", path)], ours)

    assert chain(cells)[0] == "application"
    assert chain(cells)[1].endswith(" [libcells]")
    assert chain(topology)[:2] == ("other", topology)
