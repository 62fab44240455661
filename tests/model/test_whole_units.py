"""Work in whole units: the busiest rank's share, staircases, and what is said of uneven rank counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.structure.wholeunits import WholeUnits

PARAMETERS = ("ranks", "size")
ELEMENTS = WholeUnits.read("elements=6*size^2", PARAMETERS)


def stairs(ranks: int, size: int) -> float:
    """Seconds of a program whose busiest rank works on whole elements."""
    return 2e-3 * np.ceil(6 * size**2 / ranks) + 1e-3


def write(path: Path, ranks: tuple[int, ...], sizes: tuple[int, ...] = (8,)) -> Experiment:
    experiment = Experiment.create(path, "stairs", ["ranks", "size"])
    for p in ranks:
        for n in sizes:
            units = 6 * n**2
            most, least = -(-units // p), units // p
            full = units - least * p if most > least else p
            share = np.where(np.arange(p) < full, most, least).astype(float)
            table = pd.DataFrame({"kernel": "solve", "rank": np.arange(p), "time": 2e-3 * share + 1e-3})
            table["instructions"] = 1e6 * share
            experiment.add(Run({"ranks": p, "size": n}, collector="made-up"), table)
    return experiment


def test_papers_grid():
    """HOMME at ne = 32 on 36 and 120 ranks, which 6 n^2 leaves out (Ding et al. 2018)."""
    points = np.array([[96.0, 32.0], [36.0, 32.0], [120.0, 32.0], [6144.0, 32.0], [9000.0, 32.0]])
    assert ELEMENTS.count(points, PARAMETERS).tolist() == [6144.0] * 5
    assert ELEMENTS.busiest(points, PARAMETERS).tolist() == [64.0, 171.0, 52.0, 1.0, 1.0]
    assert ELEMENTS.even(points, PARAMETERS)[:, 0] == pytest.approx([96, 6144 / 171, 6144 / 52, 6144, 6144])
    assert ELEMENTS.unevenness(points, PARAMETERS) == pytest.approx(
        [1, 171 * 36 / 6144, 52 * 120 / 6144, 1, 9000 / 6144]
    )
    assert ELEMENTS.remark(points[0], PARAMETERS) == ""
    assert "46%" in ELEMENTS.remark(points[4], PARAMETERS)


@given(st.integers(1, 5000), st.integers(1, 60))
def test_no_rank_has_less_than_its_even_share(ranks, size):
    at = np.array([[float(ranks), float(size)]])
    busiest, units = ELEMENTS.busiest(at, PARAMETERS)[0], 6 * size**2
    assert busiest == -(-units // ranks)
    assert 1 <= ELEMENTS.even(at, PARAMETERS)[0, 0] <= min(ranks, units) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("elements=6*depth^2", "is of depth"),
        ("elements=6*ranks", "is of ranks"),
        ("elements=6**size", "in '6\\*\\*size'"),
        ("elements=__import__('os')", "is not understood"),
        ("", "in ''"),
    ],
)
def test_formulas_that_are_none(text, said):
    with pytest.raises(InputError, match=said):
        WholeUnits.read(text, PARAMETERS)


def test_fewer_units_than_one():
    units = WholeUnits.read("size-10", PARAMETERS)
    with pytest.raises(InputError, match="is -2 at ranks = 4, size = 8"):
        units.count(np.array([[4.0, 8.0]]), PARAMETERS)


def test_stairs_are_predicted_and_not_smoothed_over(tmp_path):
    experiment = write(tmp_path / "e", (4, 6, 8, 10, 12, 16, 20, 24, 28, 32))
    model = fit(experiment, platform=None, units="elements=6*size^2")
    plain = fit(experiment, platform=None)
    # 384 elements: 130 to 191 ranks all have 3 on the busiest
    found = {}
    for ranks in (64, 96, 100, 130, 150, 191, 192):
        (answer,) = (a for a in model.predict(ranks=ranks, size=8, metrics=["time"]).answers if a.kernel == "solve")
        assert answer.lower < stairs(ranks, 8) < answer.upper, ranks
        found[ranks] = answer.value
    assert found[96] == pytest.approx(found[100], rel=1e-12)
    assert found[130] == pytest.approx(found[150], rel=1e-12) == found[191] == pytest.approx(stairs(150, 8), rel=0.12)
    assert found[192] < 0.75 * found[191]  # one rank more, a stair down
    (smooth,) = (a for a in plain.predict(ranks=191, size=8, metrics=["time"]).answers if a.kernel == "solve")
    assert smooth.value < 0.85 * stairs(191, 8)
    # means over ranks have no stairs
    (mean,) = (a for a in model.predict(ranks=191, size=8, metrics=["instructions"]).answers if a.kernel == "solve")
    assert mean.value == pytest.approx(1e6 * 384 / 191, rel=0.02)
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json").predict(ranks=150, size=8, metrics=["time"])
    assert again.answers[-1].value == pytest.approx(stairs(150, 8), rel=0.12)


def test_uneven_counts_are_reported(tmp_path, capsys):
    write(tmp_path / "e", (4, 6, 8, 12, 16, 24, 32))
    model = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "e"), "-o", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), "--ranks", "150", "--metric", "time", "--units", "elements=6*size^2"]) == 0
    printed = capsys.readouterr().out
    assert "note: 384 elements do not divide by 150 ranks: the busiest has 3, 17%" in printed
    assert main(["predict", str(model), "--ranks", "96", "--units", "e=6*size^2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


@pytest.mark.parametrize("ranks", ["0", "-4", "2.5", "0.5"])
def test_impossible_ranks(tmp_path, capsys, ranks):
    write(tmp_path / "e", (4, 6, 8, 12, 16))
    model = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "e"), "-o", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), f"--ranks={ranks}"]) == 1
    assert "whole numbers of ranks" in capsys.readouterr().err


def test_a_damaged_file_is_refused(tmp_path):
    fit(write(tmp_path / "e", (4, 6, 8, 12, 16)), platform=None, units="elements=6*size^2").save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    for damage in (
        {"units": {"name": "x", "text": "6*depth"}},
        {"busiest": ["cycles"]},
        {"fitted": {}},
        {"units": None},
    ):
        broken = {**content, "staircase": {**content["staircase"], **damage}}
        modelfile.write(tmp_path / "b.json", broken, force=True)
        with pytest.raises(InputError):
            Model.load(tmp_path / "b.json").predict(ranks=8, size=8)
