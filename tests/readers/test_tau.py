"""TAU: folders of profiles, several metrics, call paths, damage; real files against TAU's own totals."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
import readings
from readings import cell

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data" / "tau"
ROOT = ".TAU application"
MAIN = f"{ROOT}->main [{{a.c}} {{1,1}}-{{9,2}}]"
LEAF = 'f<a, "b">(int)'
read = partial(readings.read, "tau")


def test_metrics_of_several_folders() -> None:
    assert [n for n in READERS if READERS[n].recognises(DATA, b"")] == ["tau"]
    reading = read(DATA)
    assert reading.configuration == {"ranks": 2.0}
    assert reading.command == ("./heat", "-n", "3")
    assert cell(reading, ROOT, "time") == pytest.approx(0.1)
    assert cell(reading, MAIN, "time", 1) == pytest.approx(0.201)
    assert cell(reading, MAIN, "instructions", 1) == 201 * 50
    assert cell(reading, f"{MAIN}->{LEAF}", "time") == pytest.approx(0.7)
    assert cell(reading, f"{MAIN}->{LEAF}", "visits") == 3
    # one call of f, 0.1 s, is in no recorded path
    assert cell(reading, LEAF, "time") == pytest.approx(0.1)
    assert cell(reading, LEAF, "visits") == 1
    assert reading.provenance["time"] == "measured (TIME)"
    assert any("user events" in note for note in reading.notes)


def test_total_is_the_sum_of_flat_functions() -> None:
    table = read(DATA).counters
    assert table[table["rank"] == 0]["time"].sum() == pytest.approx(1.1)


def test_samples_divide_the_time_of_their_timer(tmp_path: Path) -> None:
    root = '".TAU application" 1 1 1000 1500 0 GROUP="TAU_DEFAULT"'
    context = ".TAU application => [CONTEXT] .TAU application"
    rows = [
        root,
        '"MPI_Wait()" 5 0 500 500 0 GROUP="MPI"',
        '".TAU application => MPI_Wait()" 5 0 500 500 0 GROUP="TAU_CALLPATH|MPI"',
        '"[CONTEXT] .TAU application" 9 0 0 900 0 GROUP="TAU_SAMPLE_CONTEXT"',
        f'"{context}" 9 0 0 900 0 GROUP="TAU_SAMPLE_CONTEXT|TAU_CALLPATH"',
        '"[SUMMARY] f [{a.c}]" 9 0 600 600 0 GROUP="TAU_SAMPLE"',
        f'"{context} => [SUMMARY] f [{{a.c}}]" 6 0 600 600 0 GROUP="TAU_SAMPLE|TAU_CALLPATH"',
        '"[SAMPLE] f [{a.c} {7}]" 6 0 600 600 0 GROUP="TAU_SAMPLE"',
        f'"{context} => [SUMMARY] f [{{a.c}}] => [SAMPLE] f [{{a.c}} {{7}}]" 4 0 400 400 0 GROUP="TAU_SAMPLE|TAU_CALLPATH"',
        f'"{context} => [SUMMARY] f [{{a.c}}] => [SAMPLE] f [{{a.c}} {{8}}]" 2 0 200 200 0 GROUP="TAU_SAMPLE|TAU_CALLPATH"',
    ]
    head = f"{len(rows)} templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n"
    (tmp_path / "profile.0.0.0").write_text(head + "\n".join(rows) + "\n0 aggregates\n")
    reading = read(tmp_path)
    assert cell(reading, f"{ROOT}->f", "time") == pytest.approx(600e-6)
    assert cell(reading, ROOT, "time") == pytest.approx(400e-6)
    assert cell(reading, f"{ROOT}->MPI_Wait()", "time") == pytest.approx(500e-6)
    assert reading.counters["time"].sum() == pytest.approx(1500e-6)


def test_single_file_states_its_rank_only() -> None:
    reading = read(DATA / "MULTI__TIME" / "profile.1.0.0")
    assert reading.configuration == {}
    assert set(reading.counters["rank"]) == {1}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path / "run")
    return tmp_path / "run"


def test_rank_is_missing(copy: Path) -> None:
    shutil.copy(copy / "MULTI__TIME" / "profile.1.0.0", copy / "MULTI__TIME" / "profile.3.0.0")
    with pytest.raises(InputError, match=r"PAPI_TOT_INS of node 3, thread 0\.0 is missing"):
        read(copy)
    shutil.copy(copy / "MULTI__TIME" / "profile.1.0.0", copy / "MULTI__PAPI_TOT_INS" / "profile.3.0.0")
    shutil.rmtree(copy / "MULTI__PAPI_TOT_INS")
    with pytest.raises(InputError, match="rank 2 of 0 to 3 is missing"):
        read(copy)


def test_link_out_of_the_folder(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("secret")
    (copy / "MULTI__TIME" / "profile.2.0.0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link out of its folder"):
        read(copy)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("5 templated", "9 templated", r":10 breaks off|:8 is not a row|:\d+ is not a row"),
        ("5 templated_functions", "five functions", ":1 is not the head"),
        ("# Name Calls", "# Nom", ":2 does not name the columns"),
        ('" 1 1 200000', '" 1 1 two', ":4: 'two' of .* is not a number"),
        ('" 1 1 200000', '" 1 1 -2', ":4: .* is -2, which no counter holds"),
        ('" 1 1 200000', '" 1 1 1e300', r":4: .* is 1e\+300, which"),
        ('" 1 1 200000', '" 1 1 nan', ":4: .* is nan, which"),
        ('" 1 2 100000', '" 1', ":3 is not a row"),
        ('"main [{a.c} {1,1}-{9,2}]"', '".TAU application"', ":4 gives '.TAU application' a second time"),
    ],
)
def test_damage_is_named(copy: Path, old: str, new: str, says: str) -> None:
    path = copy / "MULTI__TIME" / "profile.0.0.0"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        read(copy)


def test_real_folder_agrees_with_taus_totals(shared: Path) -> None:
    folder = shared / "data" / "formats" / "tau" / "tau-cpi-mpi"
    assert READERS["tau"].recognises(folder, b"")
    reading = read(folder)
    assert reading.configuration == {"ranks": 4.0}
    for rank in range(4):
        lines = (folder / f"profile.{rank}.0.0").read_text().splitlines()
        whole = next(line for line in lines if line.startswith('".TAU application" '))
        mine = reading.counters[reading.counters["rank"] == rank]
        assert mine["time"].sum() == pytest.approx(float(whole.split()[5]) * 1e-6, rel=1e-12)
        flat = [line for line in lines if line.startswith('"') and "=>" not in line and "GROUP" in line]
        assert len(mine) == len(flat)
