"""The verb: what it writes, refuses and returns."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model import modelfile
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.fitted_model import Model
from ranksight.reports.answer import with_run


@pytest.fixture
def stored(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "known.model.json")
    return tmp_path / "known.model.json"


def test_it_writes_next_to_the_model_and_shows_where(
    stored: Path, known: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(stored), "--experiment", str(known.path), "--ranks", "64"]) == 0
    output = stored.with_name("known.html")
    said = capsys.readouterr().out
    assert "64 ranks, size 200" in said
    assert said.rstrip().splitlines()[-1].startswith(f"next: xdg-open {output}")
    assert all(len(line) <= 80 or str(output) in line for line in said.splitlines())
    assert output.read_text().startswith("<!doctype html>")
    assert output.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("parameter", ["nodes", "cells"])
def test_a_model_without_ranks_has_a_report(tmp_path: Path, parameter: str) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(f"{parameter},seconds\n" + "".join(f"{x},{40 / x + 1}\n" for x in (1, 2, 4, 8, 16)))
    words = ["--parameter", parameter, "--metric", "time=seconds", "-o", str(tmp_path / "runs.exp"), "-q"]
    assert main(["import", "csv", str(table), *words]) == 0
    assert main(["fit", str(tmp_path / "runs.exp"), "-o", str(tmp_path / "runs.model.json"), "-q"]) == 0
    assert main(["report", str(tmp_path / "runs.model.json"), "-q"]) == 0
    assert f"{parameter} 16" in (tmp_path / "runs.html").read_text()


def test_the_runs_of_the_model_are_shown_where_they_are_next_to_it(
    model: Model, known: Experiment, tmp_path: Path
) -> None:
    written = []
    for place in (tmp_path / "alone", tmp_path / "with runs"):
        place.mkdir()
        model.save(place / "known.exp.model.json")
        if place.name != "alone":
            shutil.copytree(known.path, place / "known.exp")
        assert main(["report", str(place / "known.exp.model.json"), "--ranks", "64", "--quiet"]) == 0
        written.append((place / "known.exp.html").read_text())
    lacking = "No experiment was given"
    assert lacking in written[0]
    assert lacking not in written[1]
    assert "used in the fit" in written[1]


def test_json_for_machines(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.html"
    words = ["report", str(stored), "-o", str(output), "--ranks=64", "--size", "100", "--format", "json"]
    assert main(words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["target"] == {"ranks": 64, "size": 100}
    assert printed["bytes"] == output.stat().st_size
    assert printed["sufficient"] is True


def test_what_is_there_is_kept_without_force(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.html"
    output.write_text("mine")
    assert main(["report", str(stored), "-o", str(output)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert main(["report", str(stored), "-o", str(output), "--force", "--quiet"]) == 0
    assert output.read_text() != "mine"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--ranks"], 2, "needs a value"),
        (["--ranks", "many"], 2, "not a list of numbers"),
        (["--ranks", "2", "--ranks", "3"], 2, "given twice"),
        (["--ranks", "2,3"], 2, "a report is of one target"),
        (["--level", "2"], 2, "not a probability"),
        (["surplus"], 2, "unrecognized arguments: surplus"),
        (["--threads", "4"], 1, "no parameter threads"),
        (["--along", "depth"], 1, "no parameter depth"),
        (["--platform", "no-such-machine"], 1, "no-such-machine"),
        (["--experiment", "nowhere"], 1, "no such folder"),
        (["-o", "/proc/none/r.html"], 1, "cannot write"),
    ],
)
def test_bad_input_is_reported(
    stored: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(stored), *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not stored.with_name("known.html").exists()


def test_a_folder_that_cannot_be_written(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        folder.rmdir()  # root writes anywhere; a folder that is not there it cannot
    assert main(["report", str(stored), "-o", str(folder / "r.html")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_one_run_is_named_where_evidence_is_missing() -> None:
    assert with_run("no measured values", "64 ranks") == "no measured values; measure at 64 ranks next"
    named = "size took two values only; measure a third to know its form"
    assert with_run(named, "64 ranks") == named


def test_insufficient_evidence_is_written_and_returned(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = modelfile.read(stored)
    content["structures"], content["equation"], content["observed"] = {}, Application().to_dict(), {}
    content["fitted"]["status"] = np.full_like(content["fitted"]["status"], 2)
    modelfile.write(stored, content, force=True)
    output = tmp_path / "r.html"
    assert main(["report", str(stored), "-o", str(output)]) == 4
    assert "Insufficient data for a prediction" in capsys.readouterr().out.replace("\n", " ")
    assert "Insufficient data for a prediction" in output.read_text()


def test_a_program_without_time_is_reported_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "nothing.exp")
    made = Experiment.create(tmp_path / "nothing.exp", "nothing", ["ranks"])
    for ranks in (1, 2, 4, 8):
        made.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": [WHOLE], "rank": [-1], "time": [0.0]}))
    assert main(["fit", folder, "--quiet"]) == 0
    assert main(["report", f"{folder}.model.json", "-o", str(tmp_path / "r.html")]) in (0, 4)
    assert "internal error" not in capsys.readouterr().err
    assert "every time is zero" in (tmp_path / "r.html").read_text()


def test_an_experiment_of_another_program_is_refused_or_reported(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model.load(stored)
    for name, application, parameters, code, said in (
        ("grid", model.application, ["threads"], 1, "is over threads, the model over"),
        ("other", "other", list(model.parameters), 0, f"is of 'other', the model of {model.application!r}"),
    ):
        experiment = Experiment.create(stored.parent / f"{name}.exp", application, parameters)
        table = pd.DataFrame({"kernel": ["k"], "rank": [-1], "time": [1.0]})
        experiment.add(Run(dict.fromkeys(parameters, 2.0), 0, "synthetic"), table)
        line = ["report", str(stored), "-o", str(stored.with_name("r.html")), "--experiment", str(experiment.path)]
        assert main([*line, "--quiet"]) == code
        assert said in capsys.readouterr().err
