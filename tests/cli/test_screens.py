"""What verbs print for people: it fits, ends with the next command, and says more when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run

LONG = "solver<matrix<double, layout_right>, preconditioner>::operator()(std::vector<double> const&)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("s")
    made = Experiment.create(place / "e", "heat", ["ranks", "size"])
    generator = np.random.default_rng(0)
    for ranks in (1, 2, 4, 8, 16):
        for size in (16, 24, 32):
            share = size**3 / ranks
            rows = [
                (LONG, 1e-6 * share * generator.uniform(0.99, 1.01), 30 * share),
                ("\x1b]0;owned\x07halo", 2e-6 * ranks * generator.uniform(0.99, 1.01), 7.0 * ranks),
            ]
            table = pd.DataFrame(
                [(k, -1, t, i) for k, t, i in rows], columns=["kernel", "rank", "time", "instructions"]
            )
            made.add(Run({"ranks": ranks, "size": size}, 0, "synthetic"), table)
    assert main(["fit", str(place / "e"), "-o", str(place / "m"), "--quiet"]) == 0
    return place


VERBS = (
    ("fit", "{e}", "-o", "{m}", "--force"),
    ("predict", "{m}", "--ranks", "32,64,128", "--size", "24"),
    ("diagnose", "{m}", "--ranks", "16,256", "--size", "24"),
    ("plan", "{e}", "--ranks", "256", "--size", "64"),
    ("compare", "{e}", "{e}"),
    ("check", "{e}", "--baseline", "{e}"),
)


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_screens_fit_and_end_with_the_next_command(
    folder: Path,
    words: Sequence[str],
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    capsys.readouterr()
    assert main([word.format(e=folder / "e", m=folder / "m") for word in words]) in (0, 3, 4)
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if str(folder) not in line and "ranksight " not in line]
    assert [line for line in lines if len(line) > columns] == []
    assert said.rstrip().splitlines()[-1].startswith("next: ranksight ")
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "solv" in said or "operator()" in said or words[0] == "plan"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_an_error_is_one_line_that_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "m\x1b]0;owned\x07\n\u2028" + "x" * 100
    (tmp_path / name).write_text("9" * 5000)
    for verb in (("predict", "--ranks", "2"), ("import",), ("fit",), ("predict", "--metric", "\x1b[31m" + "y" * 5000)):
        assert main([verb[0], str(tmp_path / name), *verb[1:]]) in (1, 2)
        said = capsys.readouterr().err
        assert said.startswith("ranksight: ")
        assert said.endswith("\n")
        assert len(said) < 1300
        assert not [letter for letter in said[:-1] if ord(letter) < 32 or letter == "\u2028"]


def test_a_full_disk_and_a_closed_output_are_reported(folder: Path) -> None:
    words = f"{sys.executable} -m ranksight predict {folder / 'm'} --ranks 32 --size 24"
    full = subprocess.run(f"{words} > /dev/full", shell=True, capture_output=True, text=True)
    assert full.returncode == 1
    assert full.stderr == "ranksight: the answer: No space left on device\n"
    closed = subprocess.run(f"{words} >&-", shell=True, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_verbose_says_what_is_read_and_written_and_leaves_the_answer_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", str(folder / "e"), "-o", str(tmp_path / "m"), "--format", "csv"]
    assert main(words) == 0
    plain = capsys.readouterr()
    assert plain.err == ""
    assert main([*words, "--force", "--verbose"]) == 0
    aloud = capsys.readouterr()
    assert aloud.out == plain.out
    for part in (f"read experiment {folder / 'e'}: 15 runs over ranks, size", "4 series of 15 configurations", "wrote"):
        assert part in aloud.err
    assert main([*words, "--force"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_taken_as_ctrl_c(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ranksight.cli import doctor

    ended = []

    def run(args: object) -> int:
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        finally:
            ended.append(True)
        return 0

    monkeypatch.setattr(doctor, "run", run)
    inherited = signal.signal(number, signal.SIG_DFL)  # nohup has tests ignore a hangup
    try:
        assert main(["doctor"]) == 130
        assert "cancelled" in capsys.readouterr().err
        assert ended == [True]
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, inherited)
