"""Texts of sampling profilers: perf script, perf report, gprof, VTune; against the tools where they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from readings import cell, read

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data"
SWEEP = 'sweep<double, "a, b">'


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("perf-script", "perf/script.txt"),
        ("perf-script", "perf/script_flat.txt"),
        ("perf-report", "perf/report.txt"),
        ("gprof", "gprof/flat.txt"),
        ("vtune", "vtune/hw_events.csv"),
        ("vtune", "vtune/hotspots.csv"),
    ],
)
def test_recognised_by_one_reader(reader: str, name: str) -> None:
    path = DATA / name
    assert [n for n in READERS if READERS[n].recognises(path, path.read_bytes()[:4096])] == [reader]


def test_perf_script() -> None:
    reading = read("perf-script", DATA / "perf" / "script.txt")
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "sweep<double, 3>", "time", 1) == pytest.approx(0.003)
    assert cell(reading, "(MPI library)", "time", 0) == pytest.approx(0.002)
    assert "n = 3" in reading.provenance["time"]
    flat = read("perf-script", DATA / "perf" / "script_flat.txt")
    assert cell(flat, "sweep", "cycles") == 2_000_006
    assert flat.configuration == {}
    sampled = flat.tables["sampling"].set_index(["kernel", "metric"]).loc[("sweep", "cycles")]
    assert sampled["samples"] == pytest.approx(2)
    assert sampled["worth"] == pytest.approx(1_000_003)


def test_perf_report() -> None:
    reading = read("perf-report", DATA / "perf" / "report.txt")
    assert cell(reading, SWEEP, "cycles") == pytest.approx(3e9)
    assert cell(reading, SWEEP, "time") == pytest.approx(0.6)
    assert cell(reading, "(MPI library)", "time") == pytest.approx(0.400000001)
    assert cell(reading, "(system and start-up)", "cycles") == pytest.approx(0.2e9)
    assert "percentages" in reading.provenance["cycles"]
    assert "percentages" not in reading.provenance["time"]
    sampled = reading.tables["sampling"]
    assert set(sampled["metric"]) == {"cycles", "time"}
    assert sampled["worth"].groupby(sampled["metric"]).nunique().eq(1).all()


def test_gprof() -> None:
    reading = read("gprof", DATA / "gprof" / "flat.txt")
    assert cell(reading, "sweep<double, 3>(int, char const*)", "time") == 1.2
    assert cell(reading, "sweep<double, 3>(int, char const*)", "visits") == 1000
    assert cell(reading, "2d_halo", "visits") == 10
    assert cell(reading, "main", "time") == 0.5
    assert "n = 200" in reading.provenance["time"]
    sampled = reading.tables["sampling"].set_index("kernel")
    assert sampled.loc["main", "samples"] == pytest.approx(50)
    assert (sampled["metric"] == "time").all()


def test_vtune() -> None:
    reading = read("vtune", DATA / "vtune" / "hw_events.csv")
    sweep = 'sweep<double, 3>(int, "x")'
    assert cell(reading, sweep, "instructions") == 4e9
    assert cell(reading, sweep, "cycles") == 3e9
    assert cell(reading, sweep, "loads") == 1e9
    assert cell(reading, "[Loop at line 30 in main]", "instructions") == 1e9
    assert cell(reading, "(MPI library)", "instructions") == 70
    assert cell(read("vtune", DATA / "vtune" / "hotspots.csv"), "sweep(int, int)", "time") == 12.5


@pytest.mark.parametrize(("reader", "name"), [("gprof", "gprof/flat.txt"), ("vtune", "vtune/hotspots.csv")])
def test_folder_with_one_file_a_rank(tmp_path: Path, reader: str, name: str) -> None:
    for rank in range(2):
        shutil.copy(DATA / name, tmp_path / f"profile.rank{rank}.txt")
    assert READERS[reader].recognises(tmp_path, b"")
    reading = read(reader, tmp_path)
    assert reading.configuration == {"ranks": 2.0}
    assert set(reading.counters["rank"]) == {0, 1}
    if reader == "gprof":
        assert set(reading.tables["sampling"]["rank"]) == {0, 1}


@pytest.mark.parametrize(
    ("reader", "name", "old", "new", "says"),
    [
        ("perf-report", "perf/report.txt", "75.00%", "7x.00%", r":12: '7x\.00' of Overhead is not a number"),
        ("perf-report", "perf/report.txt", "75.00%", "975.0%", r":12: a share of 975% cannot be"),
        (
            "perf-report",
            "perf/report.txt",
            "600000000 ",
            "-60000000 ",
            r":28: Period is -6e\+07, which no counter holds",
        ),
        ("perf-report", "perf/report.txt", "# Samples: 2K", "# Samples: " + "9" * 400 + "K", "samples"),
        (
            "perf-report",
            "perf/report.txt",
            "# Event count (approx.): 4000000000\n",
            "",
            "Event count.* of cycles:u is missing",
        ),
        ("gprof", "gprof/flat.txt", "1.20     1000", "1.2x     1000", ":7 is not a complete row"),
        (
            "gprof",
            "gprof/flat.txt",
            "     1.20     1000",
            "    -1.20     1000",
            r":7: self seconds is -1\.2, which no counter holds",
        ),
        ("gprof", "gprof/flat.txt", "Flat profile:", "Flat pro", "holds no flat profile"),
        ("vtune", "vtune/hw_events.csv", "\t4000000000\t", "\tfour\t", ":2: 'four' of Hardware Event Count:INST"),
        ("vtune", "vtune/hw_events.csv", "\t4000000000\t", "\t", ":2 has 6 fields, the header has 7"),
        ("vtune", "vtune/hw_events.csv", "Function\t", "Module Name\t", "no column of functions"),
        ("perf-script", "perf/script.txt", "cpu-clock:u:\n", "cpu-clo", r"script\.txt"),
    ],
)
def test_damage_is_named(tmp_path: Path, reader: str, name: str, old: str, new: str, says: str) -> None:
    text = (DATA / name).read_text()
    assert old in text
    path = tmp_path / Path(name).name
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        read(reader, path)


# ---- the tools themselves -------------------------------------------------------------------------------------------

PROGRAM = r"""
#include <stdio.h>
volatile double sink;
double inner(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; sink = s; return s; }
double outer(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / (i + inner(3)); sink = s; return s; }
int main(void) { double s = 0; for (int k = 0; k < 8; k++) { s += inner(2000000); s += outer(400000); } printf("%g\n", s); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc not found")
    folder = tmp_path_factory.mktemp("program")
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-fno-inline", "-pg", "-o", folder / "p", folder / "p.c"], check=True)
    return folder / "p"


def test_gprof_itself(program: Path) -> None:
    if shutil.which("gprof") is None:
        pytest.skip("gprof not found")
    folder = program.parent
    subprocess.run([program], cwd=folder, check=True, capture_output=True)
    text = subprocess.run(["gprof", program, folder / "gmon.out"], check=True, capture_output=True, text=True).stdout
    (folder / "flat.txt").write_text(text)
    reading = read("gprof", folder / "flat.txt")
    assert cell(reading, "outer", "visits") == 8
    assert cell(reading, "inner", "visits") == 8 + 8 * 399_999
    last = re.findall(r"(?m)^ *\d+\.\d+ +(\d+\.\d+) +\d+\.\d+ .*\w$", text.split("%         the")[0])[-1]
    assert reading.counters["time"].sum() == pytest.approx(float(last), abs=0.011)


@pytest.mark.perf
def test_perf_script_and_report_agree(program: Path) -> None:
    folder = program.parent
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-F", "997", "-e", "cpu-clock", "-g", "-o", data, program]
    if subprocess.run(record, cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("perf record does not work here")

    def text(*command: str) -> Path:
        done = subprocess.run(["perf", *command, "-i", data], capture_output=True, text=True, check=True)
        path = folder / f"{command[0]}{len(command)}.txt"
        path.write_text(done.stdout)
        return path

    script = read("perf-script", text("script", "-F", "comm,pid,tid,time,event,period,ip,sym,dso"))
    exact = read("perf-report", text("report", "--stdio", "-g", "none", "-F", "overhead,sample,period,dso,sym"))
    rounded = read("perf-report", text("report", "--stdio", "--no-children"))
    total = script.counters["time"].sum()
    assert exact.counters["time"].sum() == pytest.approx(total, rel=1e-9)
    assert rounded.counters["time"].sum() == pytest.approx(total, rel=5e-3)
    assert cell(exact, "inner", "time") == pytest.approx(cell(script, "inner", "time"), rel=0.05, abs=0.02)
