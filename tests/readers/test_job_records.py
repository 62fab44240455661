"""What users have who measured nothing else: tables of sacct, and plain logs of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import read
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_reader, read_or_error
from ranksight.counters.readers._durations import seconds
from ranksight.counters.readers.log_pattern import Log, Pattern, read_log

TABLE = """JobID|JobName|NTasks|NNodes|AllocCPUS|Elapsed|State|MaxRSS
100|heat_n64||1|4|00:01:40|COMPLETED|
100.batch|batch|1|1|4|00:01:40|COMPLETED|1000K
100.extern|extern|1|1|4|00:01:40|COMPLETED|
100.0|heat|4|1|4|00:01:30|COMPLETED|2000K
101|heat_n64||2|8|1-00:00:50|COMPLETED|
101.0|heat|8|2|8|1-00:00:45|COMPLETED|1.5M
101.1|heat|8|2|8|00:00:44|COMPLETED|1.5M
102|heat_n64||4|16|00:00:25|TIMEOUT|
102.0|heat|16|4|16|00:00:22|CANCELLED by 12|1500K
"""
COLUMNS = """JobID           JobName  Partition    Account  AllocCPUS    Elapsed      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- ---------- --------
1234            heat n8       work       proj        128   00:10:00  COMPLETED      0:0
1234.batch        batch                  proj        128   00:10:00  COMPLETED      0:0
1235            heat n9       work       proj         64   00:20:00 CANCELLED+      0:0
"""


def times(readings: list[Reading]) -> list[tuple[float, float]]:
    """Ranks and time of each."""
    return [
        (each.configuration.get("ranks", 0.0), float(each.counters["time"].iloc[0]))
        for each in readings
        if each.counters is not None
    ]


@pytest.mark.parametrize("delimiter", ["|", ",", ";"])
@pytest.mark.parametrize("end", ["", "|"])
def test_steps_are_runs(tmp_path: Path, delimiter: str, end: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(TABLE.replace("\n", f"{end}\n").replace("|", delimiter))
    assert [name for name in READERS if READERS[name].recognises(path, path.read_bytes()[:4096])] == ["sacct"]
    found = list(READERS["sacct"].read(path))
    assert times(found) == [(4, 90.0), (8, 86445.0), (8, 44.0)]
    assert any("102.0 CANCELLED by 12" in note for note in found[0].notes)
    assert found[0].counters is not None
    assert found[0].counters["memory_peak"].tolist() == [2000 * 1024]


def test_columns_of_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(COLUMNS)
    assert [name for name in READERS if READERS[name].recognises(path, path.read_bytes()[:4096])] == ["sacct"]
    (found,) = READERS["sacct"].read(path)
    assert times([found]) == [(128, 600.0)]
    assert found.assumed == {"ranks"}
    assert any("1235 CANCELLED+" in note for note in found.notes)
    words = ["--set", "ranks=64", "--parameter", r"size=n(\d+)$", "-o", str(tmp_path / "e"), "--quiet"]
    assert main(["import", str(path), *words]) == 0
    assert read(tmp_path / "e").runs[0].configuration == {"ranks": 64, "size": 8}


def test_columns_are_parameters_and_ranks_of_srun_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(TABLE)
    assert main(["import", str(path), "--parameter", "nodes=NNodes", "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert {tuple(run.configuration.values()) for run in read(tmp_path / "e").runs} == {(4, 1), (8, 2)}
    assert main(["import", "sacct", str(path), "--set", "ranks=64", "-o", str(tmp_path / "f")]) == 1
    assert "records ranks = 4, and --set states 64" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace("Elapsed", "Start"), r":1: the table has no column Elapsed; print it with 'sacct"),
        (TABLE.replace("|1-00:00:45|", "|soon|"), r":7: 'soon' of Elapsed is not a time"),
        (TABLE.replace("101.0|heat|8", "101.0|heat"), ":7 has 7 fields, the head 8"),
        (TABLE.replace("101.0|", "x|"), ":7: 'x' is not the number of a job"),
        (TABLE.replace("COMPLETED", "FAILED"), r"no run that completed: 100\.0 FAILED"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(READERS["sacct"].read(path))


@pytest.mark.parametrize("text", [TABLE, COLUMNS])
def test_the_reader_keeps_the_contract(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    check_reader(READERS["sacct"], path)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("12.5", 12.5), ("12.5 s", 12.5), ("300ms", 0.3), ("300 ms", 0.3), ("2 min", 120), ("1m2.5s", 62.5),
        ("5 min 3.2 s", 303.2), ("1h 2m 3s", 3723), ("2h 3m", 7380), ("1 hour 1 minute", 3660), ("0:12.34", 12.34),
        ("1:02:03", 3723), ("2-01:00:00", 176400), ("1e3 us", 1e-3), ("7 Seconds", 7), ("1.5e-2", 0.015),
    ],
)  # fmt: skip
def test_times_as_people_write_them(text: str, wanted: float) -> None:
    assert seconds(text) == pytest.approx(wanted)


@pytest.mark.parametrize("text", ["", "soon", "-3", "-3 s", "nan", "inf", "1:2:3:4", "3 apples", "1-05:00:00:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError):
        seconds(text)


def log_of(tmp_path: Path, text: str, time: str, **parameters: str) -> list[Reading]:
    path = tmp_path / "job.out"
    path.write_text(text, encoding="utf-8")
    patterns = {name: Pattern(name, source) for name, source in parameters.items()}
    return list(read_log(path, Log(Pattern("time", time), patterns)))


@pytest.mark.parametrize(
    ("line", "pattern", "wanted"),
    [
        ("Elapsed: 12.5", "Elapsed: {time}", 12.5),
        ("  Elapsed:\t 12.5 sec.", "Elapsed: {time}", 12.5),
        ("Elapsed: 12.5, of 3 steps", "Elapsed: {time}", 12.5),
        ("[info] Elapsed: 300 ms (5 steps)", "Elapsed: {time}", 0.3),
        ("Elapsed: 300 ms (5 steps)", "Elapsed: {time} ms", 0.3),
        ("Elapsed: 12.5 s 5 steps", "Elapsed: {time}", 12.5),
        ("real\t1m23.456s", "real {time}", 83.456),
        ("0:12.34elapsed 99%CPU", "{time}elapsed", 12.34),
        ("Loop time of 12.5 on 4 procs", "Loop time of {time} on", 12.5),
        ("total (s) = 1.25E+01;", "total (s) = {time}", 12.5),
        ("Elapsed: 1.234,5 s", "Elapsed: {time}", 1234.5),
        ("time 3 days", "time {time}", 3.0),
    ],
)
def test_the_time_stands_where_the_pattern_says(tmp_path: Path, line: str, pattern: str, wanted: float) -> None:
    found = log_of(tmp_path, f"start\n{line}\nend\n", pattern)
    assert [time for _, time in times(found)] == [pytest.approx(wanted)]
    assert found[0].configuration == {}


def test_one_log_of_several_runs(tmp_path: Path) -> None:
    text = "".join(f"run on {p} ranks\nsize=64\nElapsed: {100 / p} s\n" for p in (1, 2, 4))
    found = log_of(tmp_path, text, "Elapsed: {time}", ranks="run on {ranks} ranks", size="size={n}")
    assert times(found) == [(1, 100), (2, 50), (4, 25)]
    assert [each.configuration["size"] for each in found] == [64, 64, 64]
    assert "3 lines state the time (line 3, 6, 9): each became a run" in found[0].notes[0]
    behind = log_of(tmp_path, "Elapsed: 3 s\non 8 ranks\n", "Elapsed: {time}", ranks="on {p} ranks")
    assert times(behind) == [(8, 3)]


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("Killed\n", "Elapsed: {time}", r"no line matches 'Elapsed: \{time\}'; the run failed"),
        ("Elapsed: 1,500 s\n", "Elapsed: {time}", r"'1,500' is 1500 or 1\.500"),
        ("Elapsed: 1,5 s\nElapsed: 2.5 s\n", "Elapsed: {time}", "two decimal marks"),
        ("Elapsed: 1.5.5 s\n", "Elapsed: {time}", r":1: '1\.5\.5 s' is not a time"),
        ("Elapsed: 3 s\n", "Elapsed", "does not say where its value stands"),
        ("Elapsed: 3 s\n", "{time}", "does not say where its value stands"),
        ("Elapsed: 3 s\n", "{time} {time}", "does not say where its value stands"),
    ],
)
def test_logs_that_say_nothing(tmp_path: Path, text: str, pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        log_of(tmp_path, text, pattern)
    with pytest.raises(InputError, match="no line matches 'p = {p}'; give --set ranks=VALUE"):
        log_of(tmp_path, "Elapsed: 3 s\n", "Elapsed: {time}", ranks="p = {p}")


def test_a_folder_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for ranks in (1, 2, 4, 8):
        end = "Elapsed: 0.0 s" if ranks == 4 else "Killed" if ranks == 8 else f"Elapsed: {8 / ranks} s"
        (folder / f"p{ranks}.out").write_text(f"hello\n{end}\n")
    words = ["--time", "Elapsed: {time}", "--parameter", r"ranks=p(\d+)", "-o", str(tmp_path / "e")]
    assert main(["import", "log", str(folder), *words]) == 0
    said = capsys.readouterr()
    assert "2 read, 2 skipped" in said.out
    assert "p8.out: no line matches" in said.err
    assert "p4.out: the whole program takes 0 s at ranks = 4" in said.err
    assert {run.configuration["ranks"] for run in read(tmp_path / "e").runs} == {1, 2}
    assert main(["import", "log", str(folder), "-o", str(tmp_path / "f")]) == 2
    assert main(["import", str(folder), *words]) == 2


def test_patterns_take_a_time_that_grows_with_the_line(tmp_path: Path) -> None:
    """Lines that nearly match everywhere."""
    for line in (
        "1" * 4096,
        "Elapsed:" * 500,
        "Elapsed: " + " " * 4000,
        "1 s " * 1000,
        "1:" * 2000,
        "Elapsed: 1,2" * 300,
    ):
        path = tmp_path / "job.out"
        path.write_text(f"{line}\n" * 200 + "Elapsed: 12.5 s\n")
        log = Log(Pattern("time", "Elapsed: {time} s"), {})

        class Named:
            text = "logs"

            def recognises(self, path: Path, head: bytes) -> bool:
                return False

            def read(self, path: Path, log: Log = log) -> object:
                return read_log(path, log)

        read_or_error(Named(), path)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [["--delimiter", ";"], ["--kernel", "k"], ["--decimal", ","]])
def test_options_of_tables_are_not_for_logs(tmp_path: Path, option: list[str]) -> None:
    path = tmp_path / "p2.out"
    path.write_text("Elapsed: 3 s\n")
    words = ["--time", "Elapsed: {time}", "--set", "ranks=2", "-o", str(tmp_path / "e")]
    assert main(["import", "log", str(path), *words, *option]) == 2
    assert main(["import", "log", str(path), *words]) == 0
