"""GPTL's timing files and PAPI's high-level output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from readings import cell, read

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data"
SOLVE = 'solve<a, "b">'


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("gptl", "gptl/timing.000000"),
        ("gptl", "gptl/timing.summary"),
        ("gptl", "gptl/timing_stats"),
        ("papi", "papi/rank_000000.json"),
        ("papi", "papi/old_hl.json"),
    ],
)
def test_recognised_by_one_reader(reader: str, name: str) -> None:
    path = DATA / name
    assert [n for n in READERS if READERS[n].recognises(path, path.read_bytes()[:4096])] == [reader]


def test_gptl_is_made_exclusive() -> None:
    reading = read("gptl", DATA / "gptl" / "timing.000000")
    # halo, 2.5 s, is called 8 times by solve and twice by main
    assert cell(reading, "main", "time") == pytest.approx(10 - 6 - 0.5 - 0.25 - 2 / 10 * 2.5)
    assert cell(reading, "solve", "time") == pytest.approx(6 - 8 / 10 * 2.5)
    assert cell(reading, "halo", "time") == 2.5
    assert cell(reading, "io, last", "visits") == 2
    assert cell(reading, "step 2 of it", "time") == 0.25
    assert cell(reading, "main", "time_inclusive") == 10
    assert cell(reading, "solve", "instructions") == pytest.approx(600_000 - 0.8 * 50_000)
    assert reading.counters["time"].sum() == pytest.approx(10.0)


def test_gptl_parents_without_counts(tmp_path: Path) -> None:
    """Without the parents' shares a timer's time is all its first caller's."""
    path = tmp_path / "timing.000000"
    path.write_text((DATA / "gptl" / "timing.000000").read_text().replace("       2 main", "       E main"))
    reading = read("gptl", path)
    assert cell(reading, "main", "time") == pytest.approx(10 - 6 - 0.5 - 0.25)
    assert cell(reading, "solve", "time") == pytest.approx(6 - 2.5)


def test_gptl_folder_of_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        shutil.copy(DATA / "gptl" / f"timing.00000{rank}", tmp_path)
    (tmp_path / "timing_stats").write_text("not a rank's")
    assert READERS["gptl"].recognises(tmp_path, b"")
    reading = read("gptl", tmp_path)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "main", "time_inclusive", 1) == 12
    shutil.move(tmp_path / "timing.000001", tmp_path / "timing.000002")
    with pytest.raises(InputError, match="rank 1 of 0 to 2 is missing"):
        read("gptl", tmp_path)


def test_gptl_summaries() -> None:
    own = read("gptl", DATA / "gptl" / "timing.summary")
    assert own.configuration == {"ranks": 8.0}
    assert cell(own, "total", "time_inclusive", ALL_RANKS) == 9.001
    assert cell(own, "halo", "visits", ALL_RANKS) == 10
    assert cell(own, "halo", "time_inclusive_mean", ALL_RANKS) == 5.5
    other = read("gptl", DATA / "gptl" / "timing_stats")
    assert other.configuration == {"ranks": 4.0}
    assert cell(other, "CPL:RUN LOOP", "time_inclusive", ALL_RANKS) == 101.5
    assert cell(other, "prim_main_loop", "time_inclusive_mean", ALL_RANKS) == 50
    assert any("include what timers call" in note for note in own.notes)


def test_papi_regions() -> None:
    assert not READERS["papi"].recognises(DATA / "papi", b"")  # one of its files is of no rank
    reading = read("papi", DATA / "papi" / "rank_000000.json")
    assert cell(reading, SOLVE, "time") == pytest.approx(1.0)
    assert cell(reading, SOLVE, "instructions") == 8000
    assert cell(reading, f"{SOLVE}->halo", "visits") == 2
    assert cell(reading, f"{SOLVE}->halo", "cycles") == 1000
    assert cell(reading, SOLVE, "reference_cycles") == 2000
    assert any("rapl:::TEMP" in note for note in reading.notes)
    old = read("papi", DATA / "papi" / "old_hl.json")
    assert cell(old, "computation", "visits") == 3
    assert cell(old, "computation", "instructions") == 2_917_520_595


def test_papi_folder(tmp_path: Path) -> None:
    for rank in range(2):
        shutil.copy(DATA / "papi" / f"rank_00000{rank}.json", tmp_path)
    assert READERS["papi"].recognises(tmp_path, b"")
    reading = read("papi", tmp_path)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, SOLVE, "instructions", 1) == 18_000


@pytest.mark.parametrize(
    ("reader", "name", "old", "new", "says"),
    [
        ("gptl", "gptl/timing.000000", "6.000    2.000", "6.0x0    2.000", r"timing\.000000:7"),
        ("gptl", "gptl/timing.000000", "  6.000  ", " -6.000  ", ":7: time is -6, which no counter holds"),
        ("gptl", "gptl/timing.000000", "  6.000  ", " 1e300  ", r":7: time is 1e\+300, which no counter holds"),
        ("gptl", "gptl/timing.000000", "    solve ", "  main   ", ":7 gives the timer 'main' a second time"),
        ("gptl", "gptl/timing.000000", "Called  Recurse     Wall", "What", ":5 does not name GPTL's columns"),
        ("gptl", "gptl/timing.summary", "9.001 (", "9.0.01 (", ":5: '9.0.01' of total is not a number"),
        ("gptl", "gptl/timing.summary", "halo ", "total ", ":6 gives the timer 'total' a second time"),
        ("papi", "papi/rank_000000.json", '"10000"', '"ten"', "'ten' of PAPI_TOT_INS of .* is not a number"),
        ("papi", "papi/rank_000000.json", '"10000"', "null", "'None' of PAPI_TOT_INS of .* is not a number"),
        ("papi", "papi/rank_000000.json", '"10000",', '"10000"', r"rank_000000\.json:14 is not valid JSON"),
        ("papi", "papi/rank_000000.json", '"threads"', '"thread"', "has no threads"),
        ("papi", "papi/rank_000000.json", '"parent_region_id":"-1"', '"parent_region_id":"1"', "nested more than"),
    ],
)
def test_damage_is_named(tmp_path: Path, reader: str, name: str, old: str, new: str, says: str) -> None:
    text = (DATA / name).read_text()
    assert old in text
    path = tmp_path / Path(name).name
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        read(reader, path)


def test_gptl_truncation_is_never_silent(tmp_path: Path) -> None:
    text = (DATA / "gptl" / "timing.000000").read_text()
    path = tmp_path / "timing.000000"
    for end in range(0, text.index("Overhead sum"), 11):
        path.write_text(text[:end])
        with pytest.raises(InputError, match=r"timing\.000000"):
            read("gptl", path)
