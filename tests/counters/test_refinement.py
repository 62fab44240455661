"""Splitting kernels into loops and lines: on a written profile, and on a program under callgrind and perf."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ranksight.campaign.launching import Template
from ranksight.core.errors import InputError
from ranksight.counters._callgrind_numbers import positions
from ranksight.counters.callgrind_profile import read
from ranksight.counters.collectors._perf import gather
from ranksight.counters.collectors._perf_lines import _part, in_parts
from ranksight.counters.collectors.callgrind import Callgrind
from ranksight.counters.collectors.perf_clock import PerfClock
from ranksight.counters.refine import split, wanted

# 0x10 .. 0x16 is a loop (7 times) inside 0x0c .. 0x1a (2 times); 0x08 and 0x1c are outside
PROFILE = """creator: callgrind-3.19.0
positions: instr line
events: Ir Dr
ob=(1) /bin/app
fl=(1) /src/deep/a.c
fn=(1) main
0x400 50 5
cfn=(2) relax
calls=1 0x08 10
+4 * 40 9

fn=(2)
0x08 10 1
+4 +1 2 2
+4 +1 7 7
+3 * 7
+3 -1 7
jcnd=5/7 -6 *
* *
+4 * 2
jump=1 -14 -2
* *
jfi=(9) other.c
jfn=(9) elsewhere
jump=1 0x900 3
* *
+2 13 1
totals: 31 9
"""


def refined(folder: Path, text: str = PROFILE, block: int = 1 << 20):
    file = folder / "callgrind.out"
    file.write_text(text)
    return read(file, lambda name, path: wanted(["relax"], name, path), block=block)


@pytest.mark.parametrize("block", [50, 90, 1 << 20])
def test_loops(tmp_path, block):
    parts = split(refined(tmp_path, block=block), ["relax"]).set_index("kernel")
    assert parts.index.tolist() == ["relax@a.c", "relax@a.c:11-11", "relax@a.c:11-12"]
    assert parts.loc["relax@a.c:11-12", ["visits", "Ir", "Dr"]].tolist() == [7, 21, 7]
    assert parts.loc["relax@a.c:11-11", ["visits", "Ir", "Dr"]].tolist() == [2, 4, 2]
    assert parts.loc["relax@a.c", ["visits", "Ir"]].tolist() == [1, 2]


def test_a_profile_without_addresses_has_lines_only(tmp_path):
    text = "events: Ir\nob=(1) /bin/app\nfl=(1) a.c\nfn=(1) relax\n5 10\n+2 20\n-1 30\n"
    parts = split(refined(tmp_path, text), ["relax"]).set_index("kernel")
    assert parts["Ir"].to_dict() == {"relax@a.c:5": 10, "relax@a.c:6": 30, "relax@a.c:7": 20}
    assert parts["visits"].isna().all()


def test_what_cannot_be_refined(tmp_path):
    with pytest.raises(InputError, match="'nothing' cannot be refined"):
        split(refined(tmp_path), ["nothing"])
    with pytest.raises(InputError, match="no source lines"):
        split(refined(tmp_path, "events: Ir\nob=(1) /bin/app\nfn=(1) relax\n0 10\n"), ["relax"])


@pytest.mark.parametrize(
    ("old", "word"), [("+4 +1 2 2", "no instr"), ("+4 * 2\n", "no line"), ("0x08 10 1", "no instr")]
)
def test_positions_that_make_no_sense(tmp_path, old, word):
    new = {"+4 +1 2 2": "+x +1 2 2", "+4 * 2\n": "+4 *1 2\n", "0x08 10 1": "0xz8 10 1"}[old]
    with pytest.raises(InputError, match=word):
        refined(tmp_path, PROFILE.replace(old, new))


def test_a_missing_position(tmp_path):
    with pytest.raises(InputError, match=r":16: a position is missing"):
        refined(tmp_path, PROFILE.replace("+3 * 7\n", "+3\n"))


def test_relative_positions():
    words = ["0x10", "+3", "*", "-2", "25", "+1"]
    text = np.frombuffer(" ".join(words).encode(), np.uint8)
    start = np.array([0, 5, 8, 10, 13, 16])
    length = np.array([len(word) for word in words])
    assert positions(text, start, length, 7).tolist() == [16, 19, 19, 17, 25, 26]
    assert positions(text, start[1:4], length[1:4], 7).tolist() == [10, 10, 8]


def test_a_line_belongs_to_the_smallest_loop_around_it():
    spans = ("relax@a.c:10-40", "relax@a.c:20-25", "other@a.c:21-22", "relax@b.c:21-22")
    assert _part("relax", "a.c", 22, spans) == "relax@a.c:20-25"
    assert _part("relax", "a.c", 30, spans) == "relax@a.c:10-40"
    assert _part("relax", "a.c", 50, spans) == "relax@a.c"
    assert _part("relax", "a.c", 50, ()) == "relax@a.c:50"


SOURCE = """#include <stdio.h>
#include <stdlib.h>
double a[64][64], b[64][64], c[64][64];
__attribute__((noinline)) void multiply(int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++)
                s += a[i][k] * b[k][j];
            c[i][j] = s;
        }
}
int main(int argc, char **argv) {
    for (int r = 0; r < atoi(argv[1]); r++) multiply(64);
    return c[3][3] != 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refined")
    (folder / "serial.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-o", "serial", "serial.c"], cwd=folder, check=True)
    return folder / "serial"


def measure(collector, program, repetitions, folder):
    launch = Template((str(program), str(repetitions))).fill({})
    for step in collector.steps(launch, folder):
        subprocess.run(step.command, env={**os.environ, **step.environment}, check=True, capture_output=True)
    return collector.collect(launch, folder)


@pytest.mark.valgrind
def test_callgrind_finds_the_loops(program, tmp_path):
    reading = measure(Callgrind().refined(["multiply"]), program, 2, tmp_path)
    parts = reading.counters[reading.counters["kernel"].str.startswith("multiply@")].set_index("kernel")
    inner = parts["instructions"].idxmax()
    assert parts.loc[inner, "visits"] == 2 * 64**3
    assert parts.loc[inner, "loads"] == 2 * 2 * 64**3
    assert parts["visits"].tolist().count(2 * 64**2) == 1
    assert "multiply" not in set(reading.counters["kernel"])
    assert set(reading.tables["refined"]["parent"]) == {"multiply"}
    with pytest.raises(InputError, match="nowhere cannot be refined"):
        Callgrind().refined(["nowhere"]).collect(Template((str(program), "2")).fill({}), tmp_path)


@pytest.mark.perf
def test_perf_finds_the_line(program, tmp_path):
    reading = measure(PerfClock().refined(["multiply"]), program, 600, tmp_path)
    time = reading.counters.set_index("kernel")["time"]
    parts = time[time.index.str.startswith("multiply@")]
    inner = parts[parts.index.isin(["multiply@serial.c:8", "multiply@serial.c:9"])].sum()
    assert inner > 0.8 * parts.sum()
    assert "multiply" not in time.index
    grouped = measure(PerfClock().refined(["multiply"], ["multiply@serial.c:8-9"]), program, 600, _fresh(tmp_path))
    time = grouped.counters.set_index("kernel")["time"]
    assert time["multiply@serial.c:8-9"] > 0.8 * time[time.index.str.startswith("multiply@")].sum()


def _fresh(folder: Path) -> Path:
    (folder / "again").mkdir()
    return folder / "again"


@pytest.mark.perf
def test_samples_of_several_events_in_one_file(program, tmp_path):
    """Each event's samples keep their sum, whatever the other events of the file say."""
    file = tmp_path / "two"
    events = ("-e", "cpu-clock:u", "-e", "task-clock:u")
    command = ["perf", "record", "-q", "-B", "-N", "-F", "1999", *events, "-o", str(file), str(program), "300"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PERF_CONFIG": "/dev/null"})
    launch = Template((str(program), "300")).fill({})
    table = gather({0: file}, launch).periods
    parts, parents, lost = in_parts(table, {0: file}, ["multiply", "nothing"], ["multiply@serial.c:8-9"])
    assert lost == ("nothing",)
    assert set(parents["parent"]) == {"multiply"}
    whole = table[table["kernel"] == "multiply"].set_index("event")["period"]
    assert len(whole) == 2
    ours = parts[parts["kernel"].str.startswith("multiply")]
    assert ours.groupby("event")["period"].sum().to_dict() == whole.to_dict()
    assert (ours[ours["kernel"] == "multiply@serial.c:8-9"].set_index("event")["period"] > 0.6 * whole).all()
