"""One rule of the values measured decides what is suggested everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.core.valuerules import next_value


@pytest.mark.parametrize(
    ("measured", "least", "most", "wanted"),
    [
        ((1, 8, 27), 54, np.inf, 64),
        ((1, 2, 4, 8), 9, np.inf, 16),
        ((24, 48, 72), 144, np.inf, 144),
        ((24, 48, 72), 150, np.inf, 168),
        ((4, 9, 16), 32, np.inf, 36),
        ((1, 8, 27), 54, 64, 64),
        ((8, 27, 64), 128, 150, 125),  # the nearest below, where none is between
        ((8,), 16, np.inf, 16),
    ],
)
def test_the_next_value_follows_the_rule(measured: tuple[int, ...], least: float, most: float, wanted: float) -> None:
    assert next_value(measured, least, most) == wanted


def test_no_value_is_none() -> None:
    assert np.isnan(next_value((8, 27, 64), 70, 80))


@pytest.mark.parametrize(("ranks", "allowed"), [((1, 8, 27, 64), "cubes"), ((24, 48, 72, 96), "multiples")])
def test_fit_and_plan_suggest_what_the_program_runs_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ranks: tuple[int, ...], allowed: str
) -> None:
    made = Experiment.create(tmp_path / "c.exp", "code", ["ranks"])
    for p in ranks:
        for repetition in range(2):
            time = (30.0 / p + 0.05 * np.log2(p + 1)) * (1 + 0.03 * (repetition - 0.5))
            made.add(Run({"ranks": p}, repetition), pd.DataFrame({"kernel": ["k"], "rank": [-1], "time": [time]}))

    def follows(p: float) -> bool:
        return round(p ** (1 / 3)) ** 3 == p if allowed == "cubes" else p % 24 == 0

    model = str(tmp_path / "m.json")
    assert main(["fit", str(made.path), "-o", model]) == 0
    asked = capsys.readouterr().out.split("--ranks ")[-1].split()[0]
    assert follows(float(asked))
    assert float(asked) >= 2 * ranks[-1]
    main(["plan", str(made.path), "--ranks", "4096" if allowed == "cubes" else "9600", "--format", "json"])
    plan = json.loads(capsys.readouterr().out)
    assert all(follows(run["configuration"]["ranks"]) for run in plan["runs"])
