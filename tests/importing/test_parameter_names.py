"""Names of parameters: every verb can be asked for them, and no column of an answer has the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.cli.options import options
from ranksight.core.errors import InputError
from ranksight.core.run import TAKEN


def test_a_parameter_that_no_verb_could_be_asked_for_is_refused_and_another_name_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{ranks},{level},{2.0**level / ranks}" for ranks in (1, 2, 4) for level in (3, 4, 5)]
    table, experiment = tmp_path / "amr.csv", str(tmp_path / "amr.exp")
    table.write_text("\n".join(["ranks,level,time", *rows]) + "\n")
    asked = ["import", "csv", str(table), "--parameter", "ranks", "--metric", "time", "-o", experiment]
    assert main([*asked, "--parameter", "level"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "parameter level has the name of an option" in said
    assert "--parameter run_level=level" in said
    assert main([*asked, "--parameter", "run_level=level"]) == 0
    columns = {"level": [1, 2, 3], "ranks": [1, 2, 4], "time": [3.0, 2.0, 1.0]}
    with pytest.raises(InputError, match="parameter level"):
        rs.from_dict(columns, ["ranks", "level"], time="time")


def test_names_of_options_and_columns_are_taken() -> None:
    verbs = ("predict", "diagnose", "plan")
    named = {name[2:] for verb in verbs for name in options(verb)[2] if name.startswith("--")}
    assert {name for name in named if "-" not in name} <= TAKEN
    model = rs.fit(rs.from_dict({"ranks": [1, 2, 4, 8], "time": [8.1, 4.1, 2.1, 1.1]}, time="time"))
    answer = model.predict(ranks=16).table()
    assert set(answer) - {"ranks"} <= TAKEN


def test_ranks_on_a_node_may_be_a_parameter_and_its_option_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"nodes": [1, 2, 4] * 3, "ranks_per_node": [4] * 3 + [8] * 3 + [16] * 3}
    times = [100 / nodes / ranks + 1 for nodes, ranks in zip(*columns.values(), strict=True)]
    model, page = tmp_path / "m", str(tmp_path / "page.html")
    rs.fit(rs.from_dict({**columns, "time": times}, list(columns), time="time")).save(model)
    said = []
    for option in ("--ranks-per-node", "--ranks_per_node"):
        assert main(["predict", str(model), "--nodes", "8", option, "16", "--format", "csv"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert main(["report", str(model), "--nodes", "8", "--ranks-per-node", "16", "-o", page]) == 0
    both = ["--ranks-per-node", "16", "--ranks_per_node", "8"]
    assert main(["predict", str(model), "--nodes", "8", *both]) == 2
    assert "one parameter" in capsys.readouterr().err
