"""Callgrind and cachegrind files: exclusive costs, MPI apart, totals as callgrind_annotate and cg_annotate give them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from readings import cell, read

from ranksight.core import places
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data" / "valgrind"
SWEEP = 'sweep<int, "x">'


@pytest.mark.parametrize(("reader", "name"), [("callgrind", "callgrind.out.100"), ("cachegrind", "cachegrind.out.7")])
def test_costs_are_exclusive(reader: str, name: str) -> None:
    path = DATA / name
    assert [n for n in READERS if READERS[n].recognises(path, path.read_bytes()[:4096])] == [reader]
    reading = read(reader, path)
    assert reading.configuration == {}
    assert reading.command == ("./heat", "-n", "4")
    assert cell(reading, SWEEP, "instructions") == 1000
    assert cell(reading, SWEEP, "loads") == 390
    assert cell(reading, SWEEP, "loads_l1") == 350
    assert cell(reading, SWEEP, "loads_l3") == 30
    assert cell(reading, SWEEP, "loads_mem") == 10
    assert cell(reading, SWEEP, "store_misses_l1") == 20
    assert cell(reading, "main", "instructions") == 10
    assert reading.provenance["instructions"].startswith(f"simulated ({reader}: I1 cache: 32768 B")
    assert reading.provenance["loads_l1"].endswith("derived from Dr, D1mr")


def test_mpi_stands_apart_and_totals_are_the_files() -> None:
    reading = read("callgrind", DATA / "callgrind.out.100")
    defined = reading.tables[places.TABLE].set_index("kernel")
    assert defined.loc['sweep<int, "x">'].tolist() == ["heat.c", 20]
    assert "main" not in defined.index
    assert cell(reading, "(MPI library)", "instructions") == 50
    assert cell(reading, SWEEP, "visits") == 7
    assert reading.counters["instructions"].sum() == 1060


def test_folder_of_processes(tmp_path: Path) -> None:
    for name in ("callgrind.out.100", "callgrind.out.101"):
        shutil.copy(DATA / name, tmp_path / name)
    assert READERS["callgrind"].recognises(tmp_path, b"")
    reading = read("callgrind", tmp_path)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "main", "instructions", 0) == 10
    assert cell(reading, "main", "instructions", 1) == 20
    assert any("process ids" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("reader", "name", "old", "new", "says"),
    [
        ("callgrind", "callgrind.out.100", "totals: 1060", "tot", r"callgrind\.out\.100:\d+"),
        ("callgrind", "callgrind.out.100", "20 1000 390", "20 1x00 390", r"callgrind\.out\.100:24"),
        (
            "cachegrind",
            "cachegrind.out.7",
            "summary: 1010 ",
            "summary: 1011 ",
            "Ir of all functions is 1010, .* says 1011",
        ),
        ("cachegrind", "cachegrind.out.7", "summary:", "#summary:", "ends without its summary"),
        ("cachegrind", "cachegrind.out.7", "20 900 0", "20 -900 0", r"cachegrind\.out\.7"),
    ],
)
def test_damage_is_named(tmp_path: Path, reader: str, name: str, old: str, new: str, says: str) -> None:
    text = (DATA / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        read(reader, tmp_path / name)


# ---- the tools themselves -------------------------------------------------------------------------------------------

PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
double inner(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += sqrt(a[i]); return s; }
double outer(double *a, int n) { double s = 0; for (int i = 1; i < n; i += 64) s += inner(a, i); return s; }
int main(void) { int n = 20000; double *a = calloc(n, 8), s = inner(a, n) + outer(a, 2000); printf("%g\n", s); free(a); }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found")
    place = tmp_path_factory.mktemp("valgrind")
    (place / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "-o", place / "p", place / "p.c", "-lm"], check=True)
    return place


def annotated(text: str) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Totals and functions' costs as the annotating scripts print them."""
    names = re.search(r"Events shown: +(.*)", text)[1].split()
    rows: dict[str, dict[str, float]] = {}
    for line in text.split("-- Auto-annotated")[0].splitlines():
        found = re.match(r"^\s*((?:[\d,]+ \([ \d.]+%\)\s+|[\d,]+\s+|\.\s+)+)(\S.*)$", line)
        if found:
            numbers = [word.replace(",", "") for word in re.sub(r"\([^)]*\)", "", found[1]).split()]
            if len(numbers) == len(names):
                values = [0.0 if number == "." else float(number) for number in numbers]
                rows[found[2]] = dict(zip(names, values, strict=True))
    return rows.pop("PROGRAM TOTALS"), rows


@pytest.mark.valgrind
@pytest.mark.parametrize(("tool", "annotate"), [("callgrind", "callgrind_annotate"), ("cachegrind", "cg_annotate")])
def test_totals_are_those_of_the_annotating_script(folder: Path, tool: str, annotate: str) -> None:
    if shutil.which(annotate) is None:
        pytest.skip(f"{annotate} not found")
    out = folder / f"{tool}.out.5"
    caches = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64", "--cache-sim=yes"]
    run = ["valgrind", "-q", f"--tool={tool}", *caches, f"--{tool}-out-file={out}", folder / "p"]
    subprocess.run(run, check=True, capture_output=True)
    text = subprocess.run([annotate, "--auto=no", out], check=True, capture_output=True, text=True).stdout
    totals, functions = annotated(text)
    reading = read(tool, out)
    table = reading.counters
    for event, metric in {
        "Ir": "instructions",
        "Dr": "loads",
        "Dw": "stores",
        "DLmr": "loads_mem",
        "D1mr": "D1mr",
    }.items():
        # callgrind's own summary, which the script prints, counts a few instructions that are of no function
        assert table[metric].sum() == pytest.approx(totals[event], rel=1e-4)
        if tool == "cachegrind":
            assert table[metric].sum() == totals[event]
    found = 0
    for name, costs in functions.items():
        match = re.search(r":(inner|outer|main)\b", name)
        if match and "p.c" in name:
            assert cell(reading, match[1], "instructions") == costs["Ir"]
            found += 1
    assert found >= 1
