"""What `ranksight fit` and `predict` print where nothing more is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    lines = ["ranks,kernel,seconds,count"]
    for p in (2, 4, 8, 16, 32):
        lines += [f"{p},work,{8 / p},{800 / p}", f"{p},tree,0.25,100", *(f"{p},small{i},1e-6,0.1" for i in range(9))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    given = [str(folder / "t.csv"), "--parameter", "ranks", "--kernel", "kernel"]
    named = ["--metric", "time=seconds", "--metric", "instructions=count"]
    assert main(["import", "csv", *given, *named, "-o", str(folder / "e"), "--quiet"]) == 0
    return folder


def test_a_table_of_fit_begins_with_the_time_and_leaves_out_what_is_light(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", str(model / "e"), "-o", str(model / "m.json"), "--force"]) == 0
    said = capsys.readouterr().out
    assert said.index("time (s), shares of the program at ranks ") < said.index("instructions\n")
    assert "small" not in said
    assert "more; --format csv prints all" in said


def test_a_table_of_predict_holds_the_time_and_names_the_rest(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = model / "m2.json"
    assert main(["fit", str(model / "e"), "-o", str(file), "--quiet"]) == 0
    assert main(["predict", str(file), "--ranks", "64"]) == 0
    said = capsys.readouterr().out
    assert "ranks 64: time" in said
    assert "ranks 64: instructions" not in said
    assert "also modelled: instructions; --metric NAME or --metric all" in said
    assert "kernels of less than 0.5%; --format csv lists all" in said
    assert main(["predict", str(file), "--ranks", "64", "--metric", "all"]) == 0
    assert "ranks 64: instructions" in capsys.readouterr().out
    assert main(["predict", str(file), "--ranks", "64", "--format", "csv"]) == 0
    said = capsys.readouterr().out
    assert "small8,instructions" in said
