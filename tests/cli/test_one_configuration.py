"""One measured configuration is an answer where it was measured, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.reports.sweep import sweep
from ranksight.reports.unpredicted import next_run


def written(folder: Path) -> Experiment:
    experiment = Experiment.create(folder / "e", "made-up", ["ranks"])
    for repetition, seconds in enumerate((12.4, 12.5, 12.6)):
        table = pd.DataFrame({"kernel": [WHOLE], "rank": -1, "time": seconds})
        experiment.add(Run({"ranks": 4}, repetition=repetition, collector="x"), table)
    return experiment


def test_what_was_measured_is_predicted_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    model = str(tmp_path / "m.json")
    assert main(["fit", str(tmp_path / "e"), "-o", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, "--ranks", "4,8", "--format", "json"]) == 0
    here, there = json.loads(capsys.readouterr().out)["predictions"]
    assert here["status"] == "ok"
    lower, upper = here["interval"]
    assert 11 < lower < 12.4 < here["value"] < 12.6 < upper < 14
    assert there["status"] == "insufficient"
    assert "too few configurations" in there["reason"]
    assert main(["report", model, "-o", str(tmp_path / "m.html")]) == 0
    assert "measure at 4 ranks" not in capsys.readouterr().out


def test_the_next_run_is_not_one_that_was_made(tmp_path: Path) -> None:
    model = fit(written(tmp_path))
    assert next_run(sweep(model, to=4)) == "8 ranks"
    assert next_run(sweep(model, to=64)) == "8 ranks"
