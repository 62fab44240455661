"""LIKWID's output: values, units, ranks and threads, damaged files; real files against LIKWID's own statistics."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.experiment import read as read_experiment
from ranksight.core.reading import READERS, Reading

DATA = Path(__file__).parent / "data" / "likwid"
REGION = 'sweep<double, 3>(int, "x")'


def read(path: Path) -> Reading:
    (reading,) = READERS["likwid"].read(path)
    return reading


def cell(reading: Reading, kernel: str, rank: int, metric: str) -> float:
    table = reading.counters
    assert table is not None
    row = table[(table["kernel"] == kernel) & (table["rank"] == rank)]
    assert len(row) == 1
    return float(row[metric].iloc[0])


@pytest.mark.parametrize("name", ["regions.txt", "mpirun.csv", "groups.csv", "whole.txt", "failed.txt"])
def test_recognised(name: str) -> None:
    path = DATA / name
    assert READERS["likwid"].recognises(path, path.read_bytes()[:4096])


def test_recognised_behind_long_program_output(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("step\n" * 300_000 + (DATA / "whole.txt").read_text())
    assert READERS["likwid"].recognises(path, path.read_bytes()[:4096])
    path.write_text("step\n" * 300_000)
    assert not READERS["likwid"].recognises(path, path.read_bytes()[:4096])


def test_marker_regions_of_perfctr() -> None:
    reading = read(DATA / "regions.txt")
    assert set(reading.counters["kernel"]) == {REGION}
    assert cell(reading, REGION, 0, "instructions") == 4e9
    assert cell(reading, REGION, 1, "cycles") == 2.5e9
    assert np.isnan(cell(reading, REGION, 1, "reference_cycles"))
    assert cell(reading, REGION, 0, "time") == 1.5
    assert cell(reading, REGION, 0, "visits") == 10
    assert cell(reading, REGION, 0, "frequency") == pytest.approx(1.9995e9)
    assert cell(reading, REGION, 0, "bytes_mem_read") == 3_000_000 * 64
    assert cell(reading, REGION, 0, "bytes_mem_written") == 750_000 * 64
    assert cell(reading, REGION, 0, "bytes_mem") == 3_750_000 * 64
    assert cell(reading, REGION, 1, "bytes_mem_read") == 0
    assert reading.environment["CPU type"] == "Imaginary Lake processor"
    assert reading.provenance["bytes_mem_read"] == "derived from CAS_COUNT_RD x 64"
    assert any("hardware threads" in note for note in reading.notes)
    assert any("one core of a socket" in note for note in reading.notes)


def test_threads_of_a_rank_are_added_and_kept() -> None:
    reading = read(DATA / "mpirun.csv")
    kernel = "halo, update"
    assert reading.configuration == {"ranks": 2.0}
    assert reading.command == ("./heat", "--n", "64", "two words")
    assert cell(reading, kernel, 0, "instructions") == 3000
    assert cell(reading, kernel, 1, "cycles") == 700
    assert cell(reading, kernel, 0, "time") == 0.75
    assert cell(reading, kernel, 1, "flops_sp") == 3 + 4 + 4 * (30 + 40)
    assert cell(reading, kernel, 1, "OFFCORE_RESPONSE_0_OPTIONS") == 14
    threads = reading.tables["threads"]
    assert len(threads) == 4
    assert set(threads["thread"]) == {"n01:0", "n01:1", "n02:0", "n02:1"}


def test_groups_measured_one_after_another_are_scaled() -> None:
    reading = read(DATA / "groups.csv")
    assert cell(reading, WHOLE, 0, "time") == 4.0
    assert reading.wall_time == 4.0
    assert cell(reading, WHOLE, 0, "instructions") == 8000
    assert cell(reading, WHOLE, 0, "branches") == pytest.approx(600 * 4 / 3)
    assert cell(reading, WHOLE, 0, "bytes_l2") == pytest.approx(30 * 64 * 4)
    assert any("one after another" in note for note in reading.notes)


def test_whole_run_of_mpirun() -> None:
    reading = read(DATA / "whole.txt")
    assert set(reading.counters["kernel"]) == {WHOLE}
    assert reading.wall_time == 10.5
    assert list(reading.counters["instructions"]) == [100.0, 200.0]


TURBO = """step 1
Region: solve
Group: 1
+-----------------------+---------+---------+---------+
|         Event         | Counter | n01:0:0 | n02:1:4 |
+-----------------------+---------+---------+---------+
| INSTR_RETIRED_ANY     | FIXC0   | 1e10    | 1e10    |
| CPU_CLK_UNHALTED_CORE | FIXC1   | 3e10    | 1.5e10  |
+-----------------------+---------+---------+---------+

+----------------------+---------+---------+
|        Metric        | n01:0:0 | n02:1:4 |
+----------------------+---------+---------+
| Runtime (RDTSC) [s]  | 10      | 10      |
| Runtime unhalted [s] | 15      | 7.5     |
| Clock [MHz]          | 3000    | 3000    |
+----------------------+---------+---------+
"""


def test_time_outside_of_unhalted_cycles(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(TURBO)
    reading = read(path)
    assert list(reading.counters["runtime_unhalted"]) == [15.0, 7.5], (
        "at the nominal clock: more than the time in turbo"
    )
    assert list(reading.counters["time_halted"]) == [0.0, 5.0]
    assert any("25% of the time passed while cores were halted" in note for note in reading.notes)
    assert dict(reading.tables["hosts"].to_numpy().tolist()) == {0: "n01", 1: "n02"}
    path.write_text(TURBO.replace("| Clock [MHz]          | 3000    | 3000    |\n", ""))
    assert "time_halted" not in read(path).counters


def test_region_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text((DATA / "regions.txt").read_text().replace(f"Region {REGION},", "Region ,"))
    assert set(read(path).counters["kernel"]) == {"(unnamed)"}


def test_folder_with_one_file_a_rank(tmp_path: Path) -> None:
    text = (DATA / "groups.csv").read_text()
    for rank in range(3):
        (tmp_path / f"out_{rank}_n01.csv").write_text(text.replace("6000", str(6000 + rank)))
    assert READERS["likwid"].recognises(tmp_path, b"")
    reading = read(tmp_path)
    assert reading.configuration == {"ranks": 3.0}
    assert list(reading.counters["instructions"]) == [8000.0, 8001.0, 8002.0]
    assert len(reading.source) == 3


def test_folder_with_a_rank_missing(tmp_path: Path) -> None:
    for rank in (0, 2):
        (tmp_path / f"out.rank{rank}.csv").write_text((DATA / "groups.csv").read_text())
    with pytest.raises(InputError, match="rank 1 of 0 to 2 is missing"):
        read(tmp_path)


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "out_0.csv").write_text((DATA / "groups.csv").read_text())
    (tmp_path / "secret").write_text("x")
    (folder / "out_1.csv").symlink_to(tmp_path / "secret")
    assert not READERS["likwid"].recognises(folder, b"")
    with pytest.raises(InputError, match="is a link out of its folder"):
        read(folder)


def test_runs_side_by_side_are_not_ranks(tmp_path: Path) -> None:
    for name, sample in (("out_{}.txt", "whole.txt"), ("run{}.csv", "groups.csv")):
        folder = tmp_path / sample
        folder.mkdir()
        for number in range(2):
            (folder / name.format(number)).write_text((DATA / sample).read_text())
        assert not READERS["likwid"].recognises(folder, b"")


def test_access_error_is_reported() -> None:
    with pytest.raises(InputError, match=r"failed\.txt holds no table of LIKWID; line 2 says: ERROR"):
        read(DATA / "failed.txt")


def damaged(name: str, change: str, into: str) -> str:
    text = (DATA / name).read_text()
    assert change in text
    return text.replace(change, into, 1)


BRANCHES = """TABLE,Group 1 Raw,BRANCH,3
Event,Counter,HWThread 5
INSTR_RETIRED_ANY,FIXC0,6000
BR_INST_RETIRED_ALL_BRANCHES,PMC0,600
BR_MISP_RETIRED_ALL_BRANCHES,PMC1,6
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            damaged("regions.txt", "4000000000 |", "4x00000000 |"),
            r":22: '4x00000000' of INSTR_RETIRED_ANY is not a number",
        ),
        (damaged("mpirun.csv", "CTR,4,4,5,5", "CTR,4,4"), r":6 has 2 values in a table of 4 columns"),
        ((DATA / "mpirun.csv").read_text().replace("n02:1:", "n02:2:"), r":4: rank 1 of 0 to 2 is missing"),
        (damaged("mpirun.csv", "n02:1:0", "what"), r"column 'what' is neither"),
        (damaged("mpirun.csv", "FLOPS_SP,6", "FLOPS_SP,9"), r":12: the table of line 4 ends before its 9 rows"),
        (
            damaged("groups.csv", BRANCHES, BRANCHES * 2),
            r":10: events of the whole run, group 1, are on line 5 already",
        ),
        (
            (DATA / "groups.csv").read_text() + (DATA / "groups.csv").read_text().replace("HWThread 5", "HWThread 6"),
            r":29: tables of other hardware threads follow those of line 5",
        ),
        (damaged("groups.csv", "Group 1 Raw,BRANCH,3", "Group 1 Raw,BRA"), r":5 is not a complete table header"),
        ("", "is empty"),
        ("\x00\x01\x02" * 100, "not text"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read(path)


@pytest.mark.parametrize("name", ["regions.txt", "mpirun.csv", "groups.csv", "whole.txt"])
def test_runs_appended_to_one_file_are_split(tmp_path: Path, name: str) -> None:
    text = (DATA / name).read_text()
    whole = read(DATA / name)
    path = tmp_path / name
    path.write_text("".join(f"Running problem size {size}^3 per domain\n{text}\nElapsed: 3\n" for size in (30, 60, 90)))
    readings = list(READERS["likwid"].read(path))
    assert [reading.environment["problem_size"] for reading in readings] == ["30", "60", "90"]
    for reading in readings:
        pd.testing.assert_frame_equal(reading.counters, whole.counters)
        assert reading.command == whole.command
        assert any("3 runs" in note for note in reading.notes)


def test_a_run_may_begin_with_a_region_that_others_lack(tmp_path: Path) -> None:
    text = (DATA / "mpirun.csv").read_text()
    at = text.index("TABLE,")
    tables = text[at:]
    path = tmp_path / "runs.csv"
    path.write_text(text + text[:at] + tables.replace("Region halo, update", "Region first") + tables)
    one, other = READERS["likwid"].read(path)
    pd.testing.assert_frame_equal(one.counters, read(DATA / "mpirun.csv").counters)
    assert set(other.counters["kernel"]) == {"first", *one.counters["kernel"]}


def test_appended_runs_are_imported_by_their_problem_size(tmp_path: Path) -> None:
    text = (DATA / "mpirun.csv").read_text()
    path = tmp_path / "sizes.csv"
    path.write_text("".join(f"Running problem size {size}^3\n{text}\n" for size in (30, 60, 30)))
    words = ["import", "likwid", str(path), "--parameter", "size=problem_size", "-o", str(tmp_path / "e")]
    assert main(words) == 0
    runs = read_experiment(tmp_path / "e").runs
    assert [(run.configuration["size"], run.repetition) for run in runs] == [(30, 0), (30, 1), (60, 0)]


@pytest.mark.parametrize("name", ["regions.txt", "mpirun.csv"])
def test_truncation_is_never_silent(tmp_path: Path, name: str) -> None:
    """A file cut inside a table is refused; one cut between tables has lost whole tables, never cells."""
    text = (DATA / name).read_text()
    whole = read(DATA / name).counters
    path = tmp_path / name
    for end in range(0, len(text), 7):
        path.write_text(text[:end])
        try:
            got = read(path).counters
        except InputError:
            continue
        for metric in set(got) - {"kernel", "rank", "time", "frequency", "cpi", "bytes_mem"}:
            pd.testing.assert_series_equal(got[metric], whole[metric])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(("größe 3\n" + (DATA / "whole.txt").read_text()).encode(encoding))
    assert READERS["likwid"].recognises(path, path.read_bytes()[:4096])
    assert list(read(path).counters["instructions"]) == [100.0, 200.0]


# ---- real files -----------------------------------------------------------------------------------------------------

COLUMNS = {
    "INSTR_RETIRED_ANY": ("instructions", 1.0),
    "CPU_CLK_UNHALTED_CORE": ("cycles", 1.0),
    "CPU_CLK_UNHALTED_REF": ("reference_cycles", 1.0),
    "TOPDOWN_SLOTS": ("TOPDOWN_SLOTS", 1.0),
    "Region calls": ("visits", 1.0),
    "L2_LINES_IN_ALL": ("L2_LINES_IN_ALL", 1.0),
    "PWR_PKG_ENERGY": ("energy_package", 1.0),
    "Runtime (RDTSC) [s]": ("time", 1.0),
    "FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE": ("FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE", 1.0),
    "Memory read data volume [GBytes]": ("bytes_mem_read", 1e9),
    "Memory write data volume [GBytes]": ("bytes_mem_written", 1e9),
    "Memory data volume [GBytes]": ("bytes_mem", 1e9),
    "L2 data volume [GBytes]": ("bytes_l2", 1e9),
    "L3 data volume [GBytes]": ("bytes_l3", 1e9),
}
"""Rows of LIKWID's statistics, the metric each is, and its unit."""


def statistics(path: Path) -> dict[tuple[str, str], float]:
    """Sums that LIKWID printed itself: (region, row) -> sum; read without the reader's help."""
    sums: dict[tuple[str, str], float] = {}
    region = WHOLE
    for line in path.read_text().splitlines():
        found = re.match(r"TABLE,Region (.*),Group", line)
        if found:
            region = found[1]
        fields = [field.strip() for field in re.split(r"[|,]", line.strip("|"))]
        if fields[0].endswith(" STAT"):
            values = [field for field in fields[1:] if re.fullmatch(r"[0-9.e+]+", field)]
            name = fields[0].removesuffix(" STAT")
            if name in COLUMNS:
                sums[region, name] = sums.get((region, name), 0.0) + float(values[0])
    return sums


def test_real_files_agree_with_likwids_statistics(shared: Path) -> None:
    files = sorted((shared / "data" / "counters").rglob("*.txt")) + sorted(
        (shared / "data" / "counters").rglob("*.csv")
    )
    assert len(files) > 140
    compared, failed = 0, []
    for path in files:
        assert READERS["likwid"].recognises(path, path.read_bytes()[:4096]), path
        try:
            reading = read(path)
        except InputError as error:
            failed.append(str(error))
            continue
        sums = reading.counters.drop(columns="rank").groupby("kernel").sum()
        for (region, name), total in statistics(path).items():
            metric, unit = COLUMNS[name]
            digits = 0.00005 * unit * (1 + reading.configuration["ranks"])
            assert sums.loc[region, metric] == pytest.approx(total * unit, rel=2e-5, abs=digits), (path, region, name)
            compared += 1
    assert compared > 1500
    assert len(failed) == 1
    assert "clvleaf-FritzRank27" in failed[0]


def test_real_flops_agree_with_likwids_rate(shared: Path) -> None:
    """DP [MFLOP/s] x runtime is the flops that are summed here from scalar and packed instructions."""
    path = shared / "data" / "counters" / "lulesh_likwid_icelake" / "ranks" / "MEM_DP_8.csv"
    table = read(path).counters
    lines = path.read_text().splitlines()
    kernels = list(dict.fromkeys(table["kernel"]))
    rates = [line.split(",")[1:9] for line in lines if line.startswith("DP [MFLOP/s],")]
    rate = np.array(rates, dtype=float).ravel() * 1e6
    assert len(rate) == 8 * len(kernels)
    seconds = table["time"].to_numpy()
    rounding = 5e-5 * rate + 50.0 * seconds  # both are printed with four digits after the point
    assert (np.abs(rate * seconds - table["flops_dp"]) <= rounding + 1e-4 * table["flops_dp"]).all()


@pytest.mark.parametrize("group", ["MEM_DP"])
def test_hundred_files_within_three_seconds(shared: Path, group: str) -> None:
    """The goal is 3 s on any machine in use; here it takes about half a second, so a slow machine passes too."""
    files = sorted((shared / "data" / "counters" / "spechpc_likwid_icelake").rglob("*.txt"))[:100]
    begin = time.process_time()
    done = 0
    for path in files:
        try:
            read(path)
            done += 1
        except InputError:
            continue
    assert done >= 99
    assert time.process_time() - begin < 3.0
