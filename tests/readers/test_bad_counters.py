"""One counter that wrapped, was not counted, or hardly, is left out with a note; the rest of its file is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading

DATA = Path(__file__).parent / "data"
LIKWID = """Region solve, Group 1: MEM
+-------------------+------------+------------+
|    Region Info    | HWThread 0 | HWThread 1 |
+-------------------+------------+------------+
| RDTSC Runtime [s] |      2.500 |      2.400 |
|     call count    |         10 |         10 |
+-------------------+------------+------------+
+-----------------------+---------+------------+------------+
|         Event         | Counter | HWThread 0 | HWThread 1 |
+-----------------------+---------+------------+------------+
|   INSTR_RETIRED_ANY   |  FIXC0  |       8000 |       9000 |
| CPU_CLK_UNHALTED_CORE |  FIXC1  |       4000 |       5000 |
|      CAS_COUNT_RD     | MBOX0C0 |         70 |          0 |
|      CAS_COUNT_RD     | MBOX1C0 |        {a} |          0 |
|      CAS_COUNT_WR     | MBOX0C1 |         30 |          0 |
|    L2_LINES_IN_ALL    |   PMC0  |        500 |        {b} |
+-----------------------+---------+------------+------------+
"""


def read(reader: str, path: Path) -> Reading:
    (reading,) = READERS[reader].read(path)
    assert reading.counters is not None
    return reading


def noted(reading: Reading, *words: str) -> bool:
    return any(all(word in note for word in words) for note in reading.notes)


def test_channels_of_likwid_that_are_nan_are_named(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(LIKWID.format(a="nan", b="600"))
    found = read("likwid", path)
    assert noted(found, "CAS_COUNT_RD is nan on MBOX1C0 (HWThread 0)", "no total")
    row = found.counters.set_index("rank")
    assert row["instructions"].tolist() == [8000, 9000]
    assert "bytes_mem_written" in row.columns
    assert np.isnan(row.loc[0].get("bytes_mem_read", np.nan))
    path.write_text(LIKWID.format(a="50", b="600"))
    whole = read("likwid", path)
    assert not noted(whole, "nan")
    assert whole.counters.set_index("rank").loc[0, "bytes_mem_read"] == 64 * 120


@pytest.mark.parametrize("value", ["18446744073709551000", "-400000000", "1e300", "inf"])
def test_a_counter_of_likwid_that_wrapped_is_left_out_alone(tmp_path: Path, value: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(LIKWID.format(a="50", b=value))
    found = read("likwid", path)
    assert noted(found, "L2_LINES_IN_ALL", "on rank 1 of solve", "no counter holds")
    row = found.counters.set_index("rank")
    assert row["L2_LINES_IN_ALL"].isna().tolist() == [False, True]
    assert row["instructions"].tolist() == [8000, 9000]
    assert not noted(found, "copy it again")


def test_a_time_that_no_clock_shows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(LIKWID.format(a="50", b="1").replace("2.400", "-2.40"))
    with pytest.raises(InputError, match=r"run\.txt:5: RDTSC Runtime \[s\] is -2\.4"):
        read("likwid", path)


def test_perf_stat_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "stat.csv"
    text = (DATA / "perf" / "stat.csv").read_text()
    assert "2000000000,,cycles" in text
    path.write_text(text.replace("2000000000,,cycles", "99999999999999999999,,cycles"))
    found = read("perf-stat", path)
    assert noted(found, "cycles is 1e+20", "left out")
    assert "cycles" not in found.counters.columns
    assert found.counters["instructions"].tolist() == [3e9]


@pytest.mark.parametrize(("share", "kept"), [("19.99", False), ("20.01", True)])
def test_multiplexing_below_a_fifth_is_left_out(tmp_path: Path, share: str, kept: bool) -> None:
    path = tmp_path / "stat.csv"
    path.write_text(f"1000,,instructions,50,{share},,\n700,,cycles,50,100.00,,\n")
    found = read("perf-stat", path)
    assert ("instructions" in found.counters.columns) is kept
    assert noted(found, "instructions was counted 20 % of the time and is left out") is not kept
    assert found.counters["cycles"].tolist() == [700]
    path.write_text("1000,,instructions,50,3.00,,\n")
    with pytest.raises(InputError, match=r"no event can be used; instructions was counted 3 %"):
        read("perf-stat", path)


def test_counters_of_papi_and_tau(tmp_path: Path) -> None:
    text = (DATA / "papi" / "rank_000000.json").read_text()
    path = tmp_path / "rank_000000.json"
    path.write_text(text.replace('"10000"', '"-1"', 1))
    found = read("papi", path)
    assert noted(found, "which no counter holds")
    assert found.counters["time"].notna().any()
    profile = tmp_path / "profile.0.0.0"
    rows = ['"main" 1 1 100 1500 0 ', '"solve" 3 0 18446744073709551615 1400 0 ']
    head = "2 templated_functions_MULTI_PAPI_TOT_INS\n# Name Calls Subrs Excl Incl ProfileCalls #\n"
    profile.write_text(head + "\n".join(rows) + "\n0 aggregates\n0 userevents\n")
    found = read("tau", profile)
    assert noted(found, "rank 0 of solve", "which no counter holds")
    values = found.counters.set_index("kernel")["instructions"]
    assert values["main"] == 100
    assert np.isnan(values["solve"])


@pytest.mark.parametrize("value", ["-4", "1e300"])
def test_events_of_vtune(tmp_path: Path, value: str) -> None:
    path = tmp_path / "hw_events.csv"
    path.write_text((DATA / "vtune" / "hw_events.csv").read_text().replace("\t4000000000\t", f"\t{value}\t", 1))
    found = read("vtune", path)
    assert noted(found, "INST_RETIRED", "no counter holds")
    assert found.counters["instructions"].isna().sum() == 1
