"""perf stat: its three forms, intervals, tags of launchers, what was not counted; against the tool itself where it is."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading

DATA = Path(__file__).parent / "data" / "perf"


def read(path: Path) -> Reading:
    (reading,) = READERS["perf-stat"].read(path)
    return reading


def values(reading: Reading, rank: int = 0) -> dict[str, float]:
    row = reading.counters[reading.counters["rank"] == rank].iloc[0].to_dict()
    return {name: value for name, value in row.items() if name not in ("kernel", "rank")}


@pytest.mark.parametrize(
    "name", ["stat.txt", "stat.csv", "stat.json", "interval.txt", "interval.csv", "tagged.txt", "slurm.csv"]
)
def test_recognised_by_no_other_reader(name: str) -> None:
    path = DATA / name
    assert [n for n in READERS if READERS[n].recognises(path, path.read_bytes()[:4096])] == ["perf-stat"]


def test_text() -> None:
    reading = read(DATA / "stat.txt")
    got = values(reading)
    assert got["cpu_time"] == pytest.approx(1.2345)
    assert got["cycles"] == 2e9
    assert got["instructions"] == 3e9
    assert got["energy_package"] == 12.5
    assert got["bytes_mem_read"] == 5 * 2**20
    assert got["page-faults"] == 7
    assert got["time"] == reading.wall_time == 1.25
    assert "cache-misses" not in got
    assert reading.command == ("./heat", "-n", "3 4")
    assert any("not supported here: cache-misses" in note for note in reading.notes)
    assert any("not counted here: LLC-loads" in note for note in reading.notes)
    assert "counted 83.33 % of the time and scaled" in reading.provenance["cycles"]
    assert "66.67 %" in reading.provenance["instructions"]


def test_separated() -> None:
    reading = read(DATA / "stat.csv")
    got = values(reading)
    assert got["cpu_time"] == pytest.approx(1.2345)
    assert got["instructions"] == 3e9
    assert got["cpu/event=0xd0,umask=0x81/u"] == 500
    assert got["page-faults"] == 7
    assert "66.67 %" in reading.provenance["instructions"]
    assert any("LLC-loads" in note for note in reading.notes)


def test_json_and_hybrid_cores() -> None:
    got = values(read(DATA / "stat.json"))
    assert got["cpu_time"] == pytest.approx(1.2345)
    assert got["instructions"] == 4e9


@pytest.mark.parametrize("name", ["interval.txt", "interval.csv"])
def test_intervals_are_added(name: str) -> None:
    reading = read(DATA / name)
    assert values(reading)["cpu_time"] == pytest.approx(0.075)
    assert values(reading)["cycles"] == 150_000
    assert any("intervals added up (2 of them)" in note for note in reading.notes)


def test_tagged_output_of_ranks() -> None:
    reading = read(DATA / "tagged.txt")
    assert reading.configuration == {"ranks": 2.0}
    assert values(reading, 0) == {"instructions": 100.0, "time": 2.0}
    assert values(reading, 1) == {"instructions": 200.0, "time": 2.5}
    assert reading.wall_time == 2.5
    assert values(read(DATA / "slurm.csv"), 1) == {"instructions": 200.0}


def test_folder_with_one_file_a_rank(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"stat.{rank}").write_text((DATA / "stat.txt").read_text().replace("3,000,", f"{rank},000,"))
    assert READERS["perf-stat"].recognises(tmp_path, b"")
    reading = read(tmp_path)
    assert reading.configuration == {"ranks": 3.0}
    assert list(reading.counters["instructions"]) == [0.0, 1e9, 2e9]


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("stat.txt", "2,000,000,000 ", "2,0.0,00,000 ", r":7: .* of cycles is not a number"),
        ("stat.json", '"1234.500000"', '"12x"', r":2: '12x' of task-clock is not a number"),
        ("stat.json", '"1234.500000"', '"-4"', r":2: task-clock is -4, which no counter holds"),
        ("stat.json", '"event" : "task-clock"', '"event" : 7', ":2 names no event"),
        ("stat.json", '"task-clock", ', '"task-clock, ', ":2 is not valid JSON"),
        ("tagged.txt", "[1,1]", "[1,2]", None),
        ("slurm.csv", "1: 200", "2: 200", "rank 1 of 0 to 2 is missing"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, old: str, new: str, says: str | None) -> None:
    text = (DATA / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new) if says is None else text.replace(old, new, 1))
    with pytest.raises(InputError, match=says or "rank 1 of 0 to 2 is missing"):
        read(path)


def test_two_reports_and_none(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text((DATA / "stat.txt").read_text() * 2)
    with pytest.raises(InputError, match="a second report of perf stat begins"):
        read(path)
    path.write_text("hello\n")
    assert not READERS["perf-stat"].recognises(path, b"hello\n")
    with pytest.raises(InputError, match="holds no report of perf stat"):
        read(path)
    path.write_text(" Performance counter stats for 'x':\n\n   <not supported>      cycles\n")
    with pytest.raises(InputError, match=r"nothing was counted \(cycles\)"):
        read(path)


@pytest.mark.perf
@pytest.mark.parametrize("form", [[], ["-x,"], ["-x;"], ["-j"], ["-I", "10"], ["-I", "10", "-x,"], ["-A", "-a"]])
def test_the_tool_itself(tmp_path: Path, form: list[str]) -> None:
    path = tmp_path / "out"
    command = ["perf", "stat", *form, "-o", str(path), "-e", "task-clock,page-faults,cycles", "sleep", "0.05"]
    if "-j" in form:
        command[command.index("-o") : command.index("-o") + 2] = []
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    if done.returncode:
        pytest.skip(f"perf stat does not work here: {done.stderr[:200]}")
    if "-j" in form:
        path.write_text(done.stderr)
    assert READERS["perf-stat"].recognises(path, path.read_bytes()[:4096])
    got = values(read(path))
    assert got["page-faults"] > 0
    assert 0 < got["cpu_time"] < 60


def test_a_text_report_that_breaks_off(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "data" / "perf" / "stat.txt").read_text()
    lines = text.splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if "time elapsed" in line)
    path = tmp_path / "cut.txt"
    path.write_text("".join(lines[: end - 1]))
    with pytest.raises(InputError, match=rf"cut\.txt:{end}: the report breaks off before its time elapsed"):
        list(READERS["perf-stat"].read(path))


def test_rows_of_many_blanks_take_no_long_time(tmp_path: Path) -> None:
    """Every line as long as one may be; the time of a search that begins anew at each blank grows with the square."""
    path = tmp_path / "p.txt"
    blanks = " " * 4000
    lines = [f"{blanks}a{blanks}b", f"  12 a{blanks}b", f"  1{blanks}a", f"a{blanks}12 b"]
    path.write_text(
        " Performance counter stats for 'a':\n\n"
        + "\n".join(lines * 20)
        + "\n\n  100  cycles\n\n  1.5 seconds time elapsed\n"
    )
    start = time.process_time()
    (found,) = READERS["perf-stat"].read(path)
    assert time.process_time() - start < 5
    assert found.counters is not None
    assert found.counters["cycles"].tolist() == [100]


def test_rows_of_an_event_that_were_not_counted_are_noted_and_the_others_added(tmp_path: Path) -> None:
    path = tmp_path / "interval.txt"
    head = "#           time CPU             counts   unit events\n"
    rows = ["1.000265128 CPU0    3.000      cycles", "1.000265128 CPU1    2.345      cycles"]
    path.write_text(head + "".join(f"     {row}\n" for row in [*rows, "2.000265128 CPU0    <not counted>      cycles"]))
    reading = read(path)
    assert values(reading)["cycles"] == 5345
    assert "cycles was not counted in 1 of 3 rows: the others are added up" in reading.notes


def test_lines_among_rows_that_are_none_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "stat.txt"
    text = (DATA / "stat.txt").read_text()
    path.write_text(text.replace("     <not counted>      LLC", "   residual: 3.5\n     <not counted>      LLC"))
    assert "1 line among those of perf stat left out (line 10)" in read(path).notes
    assert not any("left out" in note for note in read(DATA / "stat.txt").notes)
