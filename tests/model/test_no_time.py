"""Times that are none, and times beyond all clocks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.core.units import format_si


def fitted(folder: Path, times: dict[int, list[float]]) -> str:
    """A model of two kernels with these times."""
    experiment = Experiment.create(folder / "e", "app", ["ranks"])
    for ranks, time in times.items():
        experiment.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": ["a", "b"], "rank": [0, 0], "time": time}))
    main(["fit", str(folder / "e"), "-o", str(folder / "m.json"), "--quiet"])
    return str(folder / "m.json")


def test_a_program_of_no_time_is_not_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path, {ranks: [0.0, 0.0] for ranks in (2, 4, 8, 16)})
    assert main(["predict", model, "--ranks", "64"]) == 4
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert "every time is zero" in printed


def test_a_kernel_of_no_time_is_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path, {ranks: [0.0, float(ranks)] for ranks in (2, 4, 8, 16)})
    assert main(["predict", model, "--ranks", "64"]) == 0
    assert "every time is zero" not in capsys.readouterr().out


def test_times_beyond_all_clocks_are_short() -> None:
    assert format_si(1.234e297, "s") == "1.23e+297 s"
    assert format_si(1.234e14, "s") == "1.23e+14 s"
    assert format_si(1.234e8, "s") == "123,000,000 s"
