"""``rs.import_`` makes the experiment that the verb makes of the same files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError, UsageError

TABLE = """
| Ranks | Part | Wall |
|---|---|---|
| 1 | solve | 1:23 |
| 1 | write | 10.5 s |
| 2 | solve | 41 s |
| 2 | write | 11 s |
"""


def test_the_function_and_the_verb_make_the_same_experiment(tmp_path: Path) -> None:
    (tmp_path / "posted.md").write_text(TABLE)
    words = ["--parameter", "ranks=Ranks", "--metric", "time=Wall", "--kernel", "Part", "--set", "size=30"]
    assert main(["import", "markdown", str(tmp_path / "posted.md"), *words, "-o", str(tmp_path / "verb.exp")]) == 0
    made = rs.import_(
        tmp_path / "posted.md",
        format="markdown",
        parameters={"ranks": "Ranks"},
        metrics={"time": "Wall"},
        kernel="Part",
        set={"size": 30},
    )
    pd.testing.assert_frame_equal(made.counters(), rs.read(tmp_path / "verb.exp").counters())
    assert made.counters()["time"].tolist() == [83.0, 10.5, 41.0, 11.0]
    assert made.application == "posted"
    assert [run.configuration for run in made.runs] == [{"ranks": 1, "size": 30}, {"ranks": 2, "size": 30}]


def test_a_temporary_experiment_ends_with_its_object_and_a_named_one_stays(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ranks,time\n1,4\n2,2\n4,1\n")
    asked = {"format": "csv", "parameters": ["ranks"], "metrics": ["time"]}
    kept = rs.import_(tmp_path / "t.csv", **asked, output=tmp_path / "t.exp")
    assert kept.path == tmp_path / "t.exp"
    short = rs.import_(tmp_path / "t.csv", **asked)
    folder = short.path
    assert folder.is_dir()
    del short
    assert not folder.exists()
    assert kept.path.is_dir()


def test_faults_are_those_of_the_verb(tmp_path: Path) -> None:
    (tmp_path / "merged.md").write_text(TABLE.replace("| 11 s |", "||"))
    with pytest.raises(InputError, match="merged cells"):
        rs.import_(
            tmp_path / "merged.md", format="markdown", parameters=["Ranks"], metrics={"time": "Wall"}, kernel="Part"
        )
    with pytest.raises(UsageError, match="colour"):
        rs.import_(tmp_path / "merged.md", colour="red")
