"""Programs that measure themselves: the table they write becomes counters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import read

PROGRAM = """
import os, sys
p = float(sys.argv[1])
with open(os.environ["RANKSIGHT_TABLE"], "w") as file:
    file.write({text!r}.replace("P", str(p)))
"""


def measured(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str], ranks: str = "1,2,4"
) -> tuple[int, str, Path]:
    program = folder / "program.py"
    program.write_text(PROGRAM.format(text=text) if text else "")
    out = folder / "e"
    words = ["--ranks", ranks, "--reps", "2", "--collector", "table", "--quiet", "-o", str(out)]
    code = main(["measure", *words, "--", sys.executable, str(program), "{ranks}"])
    return code, capsys.readouterr().err, out


def test_the_table_becomes_counters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "kernel,time,memory_allocated\nBarrier,P,\nComm_dup,,64\n"
    code, _, folder = measured(tmp_path, text, capsys)
    assert code == 0
    experiment = read(folder)
    assert len(experiment) == 6
    table = experiment.counters()
    times = table[table["kernel"] == "Barrier"]["time"]
    assert sorted(times) == [1, 1, 2, 2, 4, 4]
    assert set(table[table["kernel"] == "Comm_dup"]["memory_allocated"]) == {64.0}
    assert experiment.runs[0].provenance["time"] == "measured by the program"


def test_ranks_are_distinguished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "kernel,rank,time\nsolve,0,P\nsolve,1,3\n"
    code, _, folder = measured(tmp_path, text, capsys, ranks="2,4")
    assert code == 0
    assert set(read(folder).counters()["rank"]) == {0, 1}


def test_a_rank_that_was_not_started_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = measured(tmp_path, "kernel,rank,time\nsolve,0,P\nsolve,1,3\n", capsys)
    assert code == 1
    assert "holds rank 1, of a run of 1 rank" in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "wrote no table"),
        ("time\n3\n", "the columns time"),
        ("kernel\nBarrier\n", "the columns kernel"),
        ("kernel,time\nBarrier,1\nBarrier,2\n", "names a kernel twice"),
        ("kernel,time\nBarrier,fast\n", "'fast' in column 'time' is not a number"),
        ("kernel,time\nBarrier,1,2\n", ":2"),
    ],
)
def test_what_is_no_table_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, part: str
) -> None:
    code, err, folder = measured(tmp_path, text, capsys)
    assert code == 1
    assert part in err
    assert len(read(folder)) == 0
