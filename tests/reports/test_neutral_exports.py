"""Names that others chose neither steer a terminal nor become a formula in what is exported."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment
from ranksight.core.run import Run

NAMES = ["=HYPERLINK(1)", "@SUM(1)", "+1+cmd", "-2+3", "a\x1b[2Jb", "a\u202eb", "z\u200bero", "t\u2066x\u2069", "l\nm", 'q"\\',
         "\x9b31m", "\x07bell", "\ufeffmark"]  # fmt: skip
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
FORMULA = re.compile(r'(?:^|,)"?[=+@-](?![\d.])', re.MULTILINE)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Experiment.create(tmp_path_factory.mktemp("hostile") / "e", "hostile", ["ranks"])
    for ranks in (1, 2, 4, 8):
        made.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": NAMES, "rank": -1, "time": 8.0 / ranks}))
    return made.path


@pytest.mark.parametrize("form", ["csv", "latex", "openmetrics"])
def test_exports_hold_nothing_that_steers(experiment: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", form, str(experiment)]) == 0
    out = capsys.readouterr().out
    assert len(out) > 1000
    assert not STEERING.search(out)
    if form == "csv":
        assert not FORMULA.search(out)


def test_cells_lose_nothing(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every name is given back by undoing the spelling."""
    import io

    assert main(["export", "csv", str(experiment)]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))["kernel"].unique()
    restored = {re.sub(r"^'", "", text).encode("latin-1", "backslashreplace").decode("unicode_escape") for text in found}
    assert restored == set(NAMES)
