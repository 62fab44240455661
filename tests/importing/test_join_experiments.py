"""Experiments measured apart become one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run, read


def made(path: Path, *runs: Run, application: str = "app", parameters: tuple[str, ...] = ("ranks",)) -> Experiment:
    experiment = Experiment.create(path, application, parameters)
    for run in runs:
        table = pd.DataFrame({"kernel": ["k"], "rank": [0], "time": [run.configuration["ranks"] + 0.5]})
        experiment.add(run, table)
    return experiment


def at(ranks: float, started: str, repetition: int = 0) -> Run:
    return Run({"ranks": ranks}, repetition, "clock", started=started)


def test_runs_are_joined_and_the_same_run_is_taken_once(tmp_path: Path) -> None:
    made(tmp_path / "a", at(1, "monday"), at(2, "monday"))
    made(tmp_path / "b", at(2, "tuesday"), at(4, "tuesday"))
    for _ in range(2):
        assert main(["import", str(tmp_path / "a"), "-o", str(tmp_path / "c"), str(tmp_path / "b")]) == 0
        runs = read(tmp_path / "c").runs
        assert [(run.configuration["ranks"], run.repetition, run.started) for run in runs] == [
            (1, 0, "monday"),
            (2, 0, "monday"),
            (2, 1, "tuesday"),
            (4, 0, "tuesday"),
        ]
    counters = read(tmp_path / "c").counters(["time"])
    assert sorted(counters["time"]) == [1.5, 2.5, 2.5, 4.5]


def test_what_does_not_belong_together_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a", at(1, "x"))
    made(tmp_path / "other", at(1, "x"), application="another")
    made(tmp_path / "wide", Run({"ranks": 1, "size": 2}, 0, "clock"), parameters=("ranks", "size"))
    for name, what in (("other", "'another'"), ("wide", "ranks, size")):
        place = tmp_path / f"to-{name}"
        assert main(["import", "experiment", str(tmp_path / "a"), str(tmp_path / name), "-o", str(place)]) == 1
        assert what in capsys.readouterr().err
        assert not place.exists()
    assert main(["import", "experiment", str(tmp_path / "a")]) == 2
    assert "-o FOLDER" in capsys.readouterr().err
    assert main(["import", "experiment", str(tmp_path / "a"), "--kernel", "x", "-o", str(tmp_path / "n")]) == 2


def test_a_damaged_part_is_named_and_the_others_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a", at(1, "x"))
    made(tmp_path / "b", at(2, "x"))
    (tmp_path / "b" / "runs" / "ranks2-clock-r0" / "run.json").write_text("{")
    words = ["import", "experiment", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "c")]
    assert main([*words, "--strict"]) == 1
    assert main(words) == 0
    assert "run.json" in capsys.readouterr().err
    assert len(read(tmp_path / "c")) == 1
