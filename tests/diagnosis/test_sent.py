"""The diagnosis of models of messages alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.sent import sent_only, sent_table
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

COLUMNS = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sent")
    made = Experiment.create(folder / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        rows = [("table", r, "Allgather", p, 64, 1.0, 8.0 * p, 1e-6, 0) for r in range(p)]
        rows += [("norm", r, "Allreduce", p, 64, 2.0, 16.0, 1e-6, 0) for r in range(p)]
        listed = pd.DataFrame(rows, columns=COLUMNS)
        counted = listed.groupby(["kernel", "rank"])[["count", "bytes"]].sum().reset_index()
        counted = counted.rename(columns={"count": "messages", "bytes": "bytes_sent"})
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"messages": listed})
    fit(made).save(folder / "m.json")
    return folder / "m.json"


def test_what_grows_faster_than_a_tree_is_named(traced: Path) -> None:
    model = Model.load(traced)
    assert sent_only(model)
    table = sent_table(model, np.array([[1024.0]])).set_index(["kernel", "metric"])
    assert table["verdict"].to_dict() == {
        ("table", "bytes_sent"): "grows",
        ("norm", "bytes_sent"): "scales",
        ("table", "messages"): "scales",
        ("norm", "messages"): "scales",
    }
    assert table.loc[("table", "bytes_sent"), "growth"] == pytest.approx(64)
    assert table.loc[("table", "bytes_sent"), "share"] == pytest.approx(8 * 1024 / (8 * 1024 + 16))


def test_the_verb_shows_it(traced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(traced), "--ranks", "1024"]) == 0
    shown = capsys.readouterr().out
    assert "grows faster than log(ranks): table Allgather" in shown
    assert "No time was measured" in shown
    assert main(["diagnose", str(traced), "--ranks", "64", "--format", "json"]) == 0
    assert {row["verdict"] for row in json.loads(capsys.readouterr().out)["sent"]} == {"grows", "scales"}
    assert main(["diagnose", str(traced), "--kernel", "norm", "--format", "csv"]) == 0
    assert "table" not in capsys.readouterr().out
    assert main(["diagnose", str(traced), "--kernel", "nothing"]) == 1
