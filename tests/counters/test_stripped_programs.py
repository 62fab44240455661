"""Programs without symbols, and the warning that kernels lack work."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.experiment import Experiment, Run
from ranksight.experiment import read as read_experiment
from ranksight.leftout import COLUMNS, TABLE, by_object, warning

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
    assert "kernels lack 55 instructions" in first
    assert "libsetup 91%" in first
