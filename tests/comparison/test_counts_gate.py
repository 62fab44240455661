"""A threshold is for counts as well: they show what the noise of times hides."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.history.following import history
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run, read


def experiment(place: Path, solve: float = 1.0, tiny: float = 1.0, messages: bool = True, seed: int = 0) -> Path:
    """Kernels whose times scatter by 5 % and do not change; counts of two of them by these factors."""
    found = Experiment.create(place, "demo", ["ranks"])
    generator = np.random.default_rng(seed)
    for ranks in (2, 4, 8):
        for repetition in range(3):
            rows = [("solve", solve * 4e9, 2.0), ("copy", 1e9, 0.5), ("tiny", tiny * 1e6, 0.001)]
            table = pd.DataFrame(
                [(k, -1, i / ranks, t / ranks * generator.uniform(0.95, 1.05)) for k, i, t in rows],
                columns=["kernel", "rank", "instructions", "time"],
            )
            if messages:
                table["visits"] = 10.0
            found.add(Run({"ranks": ranks}, repetition, "synthetic", started=f"2026-03-{seed + 1:02d}T10:00:00"), table)
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counts")
    experiment(folder / "old.exp")
    experiment(folder / "new.exp", solve=1.5, seed=1)
    experiment(folder / "tiny.exp", tiny=3.0, seed=2)
    experiment(folder / "bare.exp", messages=False, seed=3)
    return folder


def compared(place: Path, *words: str) -> int:
    return main(["compare", str(place / "old.exp"), *(str(place / w) if w.endswith(".exp") else w for w in words)])


def test_a_kernel_with_more_instructions_fails_a_build(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(place, "new.exp", "--threshold", "20", "--quiet") == 3
    assert "solve: instructions +50 % at ranks 8" in capsys.readouterr().out
    assert compared(place, "new.exp", "--threshold", "60") == 0
    assert compared(place, "new.exp", "--threshold", "20", "--metric", "instructions") == 3
    assert compared(place, "new.exp", "--threshold", "20", "--metric", "time") == 0
    assert compared(place, "new.exp", "--threshold", "20", "--metric", "visits") == 0
    capsys.readouterr()
    assert compared(place, "new.exp", "--threshold", "20", "--format", "json") == 3
    grown = json.loads(capsys.readouterr().out)["slower_than_threshold"]
    assert {(each["kernel"], each["metric"]) for each in grown} >= {("solve", "instructions")}
    assert "time" not in {each["metric"] for each in grown}


def test_small_kernels_do_not_count(place: Path) -> None:
    assert compared(place, "tiny.exp", "--threshold", "20") == 0
    assert compared(place, "tiny.exp", "--threshold", "20", "--share", "0") == 3


def test_a_metric_that_one_side_lacks_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(place, "bare.exp", "--threshold", "20", "--metric", "visits") == 1
    assert "bare has no metric 'visits'; both have instructions, time" in capsys.readouterr().err
    assert compared(place, "bare.exp", "--threshold", "20", "--metric", "cycles") == 1
    assert compared(place, "bare.exp", "--threshold", "20") == 0


def test_a_history_draws_the_metric_that_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [experiment(tmp_path / f"n{at}.exp", solve=1.5 if at > 3 else 1.0, seed=at) for at in range(7)]
    found = history([(path.name, read(path)) for path in folders])
    assert found.drawn == ("time", "instructions")
    line = ["history", *map(str, folders)]
    assert main([*line, "-o", str(tmp_path / "h.html")]) == 0
    said = capsys.readouterr().out
    assert "instructions at ranks 8" in said
    assert "instructions of the program over 7 experiments" in (tmp_path / "h.html").read_text()
    assert main([*line, "--threshold", "20", "--quiet"]) == 0
    assert main([*line, "--threshold", "20", "--metric", "instructions", "--quiet"]) == 3
    assert "solve: instructions +50 %" in capsys.readouterr().out
