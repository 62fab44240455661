"""Answers as objects, as a table and as text say the same."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.prediction import Prediction

FARAWAY = 2**30


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Three kernels, one of which has instructions at too few configurations, and an odd name."""
    made = Experiment.create(tmp_path_factory.mktemp("answers") / "e", "made-up", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        rows = [("op", 1.0 / ranks, 1e9 / ranks), ("halo", 0.1 + 0.01 * ranks, 1e7), ('a,"b"', 0.2, np.nan)]
        made.add(
            Run({"ranks": ranks}, 0, "made-up"),
            pd.DataFrame(rows, columns=["kernel", "time", "instructions"]).assign(rank=0),
        )
    return fit(made, platform=None)


@pytest.fixture(scope="module")
def prediction(model: Model) -> Prediction:
    return model.predict(ranks=[3, FARAWAY])


def test_answers_are_a_sequence(prediction: Prediction) -> None:
    answers = prediction.answers
    assert len(answers) == 2 * (4 + 3)
    every = list(answers)
    assert [a.configuration["ranks"] for a in every] == [3.0] * 7 + [float(FARAWAY)] * 7
    assert [(a.kernel, a.metric) for a in every[:7]] == [
        (None, "time"), ('a,"b"', "time"), ("halo", "time"), ("op", "time"),
        (None, "instructions"), ("halo", "instructions"), ("op", "instructions"),
    ]  # fmt: skip
    assert answers[-1] == every[-1] == answers[13]
    assert answers[2:4] == every[2:4]
    with pytest.raises(IndexError):
        answers[14]


def test_the_whole_is_the_sum_of_its_kernels(prediction: Prediction) -> None:
    first = list(prediction.answers)[:4]
    assert first[0].value == pytest.approx(sum(a.value for a in first[1:]))
    assert first[0].evidence.startswith("sum of 3 kernels: ")


def test_the_table_holds_the_same(prediction: Prediction) -> None:
    table = prediction.table()
    for row, answer in zip(table.to_dict("records"), prediction.answers, strict=True):
        assert row["ranks"] == answer.configuration["ranks"]
        assert (None if pd.isna(row["kernel"]) else row["kernel"]) == answer.kernel
        assert (row["metric"], row["evidence"]) == (answer.metric, answer.evidence)
        assert (row["value"], row["lower"], row["upper"]) == (answer.value, answer.lower, answer.upper)
        assert (row["status"] == "ok", row["reason"]) == (answer.ok, answer.reason)
    assert table["status"].tolist().count("ok") == int(prediction.answers.ok.sum()) > 0
    assert not prediction.answers.ok.all()


def test_plain_data_hold_the_same(prediction: Prediction) -> None:
    content = prediction.to_dict()
    for plain, answer in zip(content["predictions"], prediction.answers, strict=True):
        assert (plain["kernel"], plain["metric"], plain["status"] == "ok") == (answer.kernel, answer.metric, answer.ok)
        assert plain["configuration"] == answer.configuration
        assert [plain["value"], *plain["interval"]] == [answer.value, answer.lower, answer.upper]


def test_written_answers_read_back(
    model: Model, prediction: Prediction, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "m.json")
    question = ["predict", str(tmp_path / "m.json"), "--ranks", f"3,{FARAWAY}", "--format"]
    assert main([*question, "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert main([*question, "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(again["predictions"]) == len(prediction.answers)
    for row, plain, answer in zip(rows, again["predictions"], prediction.answers, strict=True):
        assert row["ranks"] == str(plain["configuration"]["ranks"]) == f"{answer.configuration['ranks']:.0f}"
        assert row["kernel"] == (plain["kernel"] or "") == (answer.kernel or "")
        assert row["reason"] == plain["reason"] == answer.reason
        if math.isfinite(answer.value):
            assert float(row["value"]) == plain["value"] == pytest.approx(answer.value, rel=1e-5)
        else:
            assert row["value"] == ""
            assert plain["value"] is None
