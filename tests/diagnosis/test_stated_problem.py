"""A problem stated by its work per rank is diagnosed over the ranks that the runs' own parameters give it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

WORK = "4*n^2/ranks"
CLOCK = 2e9


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel that is divided and one with a part that is not, on one problem of 4,096 cells; memory serves one load
    in a hundred."""
    folder = tmp_path_factory.mktemp("stated")
    experiment = Experiment.create(folder / "e", "made-up", ["ranks", "n"])
    for ranks in (8, 16, 32, 64, 128):
        cells = 4 * 32**2 / ranks
        counts = {"divided": 3e5 * cells, "repeated": 4e4 * cells + 6e5}
        rows = [
            {"kernel": name, "rank": 0, "instructions": i, "time": i / CLOCK, "loads": 0.3 * i, "loads_mem": 0.003 * i}
            for name, i in counts.items()
        ]
        experiment.add(Run({"ranks": ranks, "n": 32}, collector="x"), pd.DataFrame(rows))
    fit(experiment, work=WORK, platform=None).save(folder / "m.json")
    return folder / "m.json"


def test_more_ranks_divide_the_problem_that_was_asked_for(stated: Path) -> None:
    model = Model.load(stated)
    divided = model.diagnose(ranks=[8, 512], n=32)
    assert divided.strong
    table = divided.scaling().set_index("kernel")
    assert table["verdict"].to_dict() == {"divided": "scales", "repeated": "saturates"}
    # 4e4 * 8 + 6e5 instructions are left of 4e4 * 512 + 6e5.
    assert table.loc["repeated", "last"] == pytest.approx(9.2e5 / CLOCK, rel=0.02)
    # The work of a rank, where that was asked for, stays.
    assert not model.diagnose(ranks=[8, 512], work_per_rank=8).strong


def test_a_problem_larger_in_all_is_another_though_a_rank_has_as_much(stated: Path) -> None:
    model = Model.load(stated)

    def notes(**values: float) -> list[str]:
        return [each for each in model.predict(**values).notes if each.startswith("E, loads")]

    assert notes(ranks=64, n=32) == notes(ranks=512, n=32) == []
    assert "trust the sum of the kernels" in notes(ranks=512, n=64)[0]


def test_ranks_alone_ask_for_the_problem_of_the_runs(stated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(stated), "--ranks", "512"]) in (0, 4)
    text = capsys.readouterr().out
    assert "ranks 512, work_per_rank 8:" in text
    assert "strong scaling" in text
