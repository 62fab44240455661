"""Parameters computed from those of the runs: fitted, kept, and asked in either."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.structure.coordinates import Coordinates
from ranksight.reports.validation import validate

BOXES = (
    (1, 16, 16, 16), (2, 16, 32, 16), (4, 32, 32, 16), (8, 32, 32, 32), (2, 32, 32, 32), (4, 16, 16, 32),
    (8, 16, 32, 16), (1, 32, 16, 16), (16, 64, 32, 32), (1, 16, 16, 32),
)  # fmt: skip
FORMULA = "nx*ny*nz/ranks"


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    made = Experiment.create(tmp_path_factory.mktemp("boxes") / "box.exp", "box", ["ranks", "nx", "ny", "nz"])
    for p, nx, ny, nz in BOXES:
        x = nx * ny * nz / p
        run = {"ranks": p, "nx": nx, "ny": ny, "nz": nz}
        table = pd.DataFrame(
            {"kernel": ["op", "sync"], "rank": -1, "instructions": [30 * x + 100, 50 * np.log2(2 * p)]}
        )
        made.add(Run(run, collector="counts"), table)
        times = pd.DataFrame({"kernel": ["op"], "rank": -1, "time": [1e-6 * x]})
        made.add(Run(run, collector="clock"), times)
    return made


def test_functions_are_of_what_is_computed_and_asked_in_either(boxes: Experiment, tmp_path: Path) -> None:
    fit(boxes, derive={"x": FORMULA}).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    assert model.parameters == ("ranks", "x")
    for asked in ({"ranks": 64, "nx": 64, "ny": 64, "nz": 64}, {"ranks": 64, "x": 4096}):
        answers = model.predict(metrics=["instructions"], **asked).answers
        value = {answer.kernel: answer.value for answer in answers}
        assert value["op"] == pytest.approx(30 * 4096 + 100, rel=1e-6)
        assert value["sync"] == pytest.approx(50 * 7, rel=1e-6)


def test_runs_of_the_same_value_are_repetitions_and_passes_stay_together(boxes: Experiment) -> None:
    coordinates = Coordinates.of(boxes, [f"x={FORMULA}"])
    assert coordinates
    view = coordinates.view(boxes)
    same = [run for run in view.runs if dict(run.configuration) == {"ranks": 1, "x": 8192}]
    # Two boxes, each counted and timed.
    assert sorted((run.repetition, run.collector) for run in same) == [
        (0, "clock"), (0, "counts"), (1, "clock"), (1, "counts"),
    ]  # fmt: skip
    assert len(view) == len(boxes)
    assert coordinates.view(view) is view


def test_experiments_over_the_parameters_of_the_runs_check_the_model(boxes: Experiment) -> None:
    table = validate(fit(boxes, derive={"x": FORMULA}), boxes).table
    counts = table[table["metric"] == "instructions"]
    np.testing.assert_allclose(counts["predicted"], counts["measured"], rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x=size^3/ranks", "is of size"),
        ("x=nx*", "expected a name or a number, found the end"),
        ("nx=ny*2", "cannot name"),
        ("x y=ny*2", "cannot name"),
        ("x", "names no formula"),
        ("x=1+2", "is of no parameter"),
        ("x=nx-nx", "is 0 at ranks = 1"),
        ('x=__import__("os")', "expected a sign, found '('"),
        ("x=nx^999^9", "is inf"),
    ],
)
def test_formulas_that_cannot_be_are_refused_in_a_line(
    boxes: Experiment, given: str, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["fit", str(boxes.path), "--derive", given, "-o", str(tmp_path / "m.json")]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not (tmp_path / "m.json").exists()


def test_a_damaged_description_is_refused(boxes: Experiment, tmp_path: Path) -> None:
    fit(boxes, derive={"x": FORMULA}).save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    for broken in ({"given": ["ranks"]}, {**content["coordinates"], "formulas": {"y": "nx"}}):
        content["coordinates"] = broken
        modelfile.write(tmp_path / "m.json", content, force=True)
        with pytest.raises(InputError, match="coordinates"):
            Model.load(tmp_path / "m.json").predict(ranks=4, x=3)


def test_the_verbs_take_the_parameters_of_the_runs(
    boxes: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "m.json")
    assert main(["fit", str(boxes.path), "--derive", f"x={FORMULA}", "-o", model, "--quiet"]) == 0
    asked = ["--ranks", "64", "--nx", "64", "--ny", "64", "--nz", "64"]
    assert main(["predict", model, *asked, "--metric", "time"]) == 0
    assert f"x is {FORMULA}" in capsys.readouterr().out
    assert main(["report", model, "--experiment", str(boxes.path), "-o", str(tmp_path / "r.html"), *asked]) == 0
    assert "x 4,096" in capsys.readouterr().out
    assert main(["diagnose", model, *asked]) == 4  # nothing shows what its time is spent on
    assert "ranks 64, x 4096" in capsys.readouterr().out
    assert main(["plan", model, *asked]) == 0
    assert "ranksight measure" not in capsys.readouterr().out
