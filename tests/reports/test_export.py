"""What is exported is read again, by our own readers, by pandas and by the rules of each format."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run, read
from ranksight.core.names import cell
from ranksight.model.fitted_model import Model

ODD = 'op<int>::"run"\\_100%'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("export")
    made = Experiment.create(place / "e", "my app", ["ranks", "my-size"])
    for ranks in (1, 2, 4, 8):
        for size in (8, 16, 24):
            for repetition in range(2):
                rows = [
                    (ODD, 1e-3 * size**2 / ranks * (1 + 0.01 * repetition), 64.0 * size),
                    (WHOLE, 2.0 / ranks, np.nan),
                ]
                table = pd.DataFrame(
                    [(k, -1, t, b) for k, t, b in rows], columns=["kernel", "rank", "time", "bytes_sent"]
                )
                made.add(Run({"ranks": ranks, "my-size": size}, repetition, "made"), table)
    assert main(["fit", str(place / "e"), "-q"]) == 0
    return place


def exported(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["export", *words]) == 0
    return capsys.readouterr().out


def test_a_time_in_milliseconds_is_exported_as_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("ranks,kernel,time [ms]\n2,a,1234.56\n4,a,700.1\n8,a,9007199254740993\n")
    words = [
        "--parameter",
        "ranks",
        "--kernel",
        "kernel",
        "--metric",
        "time=time [ms]",
        "-o",
        str(tmp_path / "t.exp"),
        "-q",
    ]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *words]) == 0
    text = exported(tmp_path, capsys, "csv", str(tmp_path / "t.exp"))
    assert ",1.23456,s" in text
    assert ",0.7001,s" in text


def test_extra_p_s_lines_are_read_again(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    assert main(["export", "extrap", str(folder / "e"), "-o", str(file), "-q"]) == 0
    assert main(["import", "extrap", str(file), "-o", str(tmp_path / "again"), "-q"]) == 0
    before, after = read(folder / "e"), read(tmp_path / "again")
    assert set(after.parameters) == set(before.parameters)
    first, second = (
        each.counters().query("kernel == @ODD")["time"].sort_values().to_numpy() for each in (before, after)
    )
    assert second == pytest.approx(first)
    assert "main" in set(after.counters()["kernel"])


def test_extra_p_gets_functions_that_are_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Experiment.create(tmp_path / "e", "app", ["ranks"])
    for ranks in (1, 2, 4):
        rows = [("solve", 1.0 / ranks, 2.0), *([("halo", 0.1 * ranks, 3.0)] if ranks > 1 else [])]
        table = pd.DataFrame([(k, -1, t, c) for k, t, c in rows], columns=["kernel", "rank", "time", "cpi"])
        if ranks == 4:
            table = table.assign(instructions=7.0)
        made.add(Run({"ranks": ranks}, 0, "made"), table)
    assert main(["export", "extrap", str(made.path)]) == 0
    written, said = capsys.readouterr()
    assert "left out: cpi of halo, instructions of halo, instructions of solve" in said
    lines = [json.loads(line) for line in written.splitlines()]
    values = {(each["callpath"], each["metric"], each["params"]["ranks"]): each["value"] for each in lines}
    assert {key[:2] for key in values} == {("solve", "time"), ("halo", "time"), ("solve", "cpi")}
    assert [values["halo", "time", ranks] for ranks in (1, 2, 4)] == pytest.approx([0.0, 0.2, 0.4])
    assert main(["export", "extrap", str(made.path), "--metric", "instructions"]) == 1
    assert "every configuration" in capsys.readouterr().err


def test_tables_are_read_by_pandas(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(io.StringIO(exported(folder, capsys, "csv", str(folder / "e"))))
    assert list(table.columns) == ["ranks", "my-size", "kernel", "metric", "repetition", "value", "unit"]
    assert len(table) == 4 * 3 * 2 * 3
    name = cell(ODD)
    one = table[table["kernel"] == name].query(
        "ranks == 8 and `my-size` == 16 and metric == 'time' and repetition == 1"
    )
    assert one["value"].item() == pytest.approx(1e-3 * 256 / 8 * 1.01)
    assert one["unit"].item() == "s"
    file = tmp_path / "e.parquet"
    assert main(["export", "parquet", str(folder / "e"), "-o", str(file), "-q", "--metric", "bytes_sent"]) == 0
    assert set(pd.read_parquet(file)["metric"]) == {"bytes_sent"}


def test_openmetrics_keep_to_their_grammar(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = exported(folder, capsys, "openmetrics", str(folder / "e")).splitlines()
    assert lines[-1] == "# EOF"
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert families == ["ranksight_time_seconds", "ranksight_bytes_sent_bytes"]
    label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
    for line in lines:
        if not line.startswith("#"):
            assert re.fullmatch(rf"[a-z_]+\{{{label}(?:,{label})*\}} [-+0-9.e]+", line), line
    assert len([line for line in lines if line.startswith("ranksight_time_seconds{")]) == 2 * 12
    assert any('my_size="16"' in line and 'ranks="8"' in line for line in lines)


def test_latex_escapes_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in (folder / "e", folder / "e.model.json"):
        text = exported(folder, capsys, "latex", str(source), "--metric", "time")
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
        assert columns is not None
        assert {row.count(" & ") for row in rows if "cases" not in row} == {len(columns[1]) - 1}
        assert r"\_100\%" in text
        assert not re.search(r"(?<!\\)[%#]", text)
    assert Model.load(folder / "e.model.json").parameters == ("ranks", "my-size")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["export"], 2, "a format and what to export are needed"),
        (["export", "extra-p", "{e}"], 2, "did you mean extrap?"),
        (["export", "parquet", "{e}"], 2, "name a file with -o"),
        (["export", "extrap", "{e}.model.json"], 1, "a model holds no measurements"),
        (["export", "latex", "{e}.model.json", "--metric", "watts"], 1, "the model has no metric 'watts'"),
        (["export", "csv", "{e}", "--metric", "watts"], 1, "watts"),
        (["export", "csv", "{e}/none"], 1, "none"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    folder: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(e=folder / "e") for word in words]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--list-formats"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("extrap", "csv", "parquet", "openmetrics", "latex"))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Call paths at some of the configurations of a grid."""
    made = Experiment.create(tmp_path_factory.mktemp("paths") / "e", "paths", ["ranks", "size"])
    for ranks, size in ((1, 8), (2, 8), (2, 16)):
        for repetition in range(3):
            rows = [("main", 1.0, 5.0), ("main->solve->halo", 2.0 * size / ranks + repetition, np.nan)]
            table = pd.DataFrame([(k, -1, t, b) for k, t, b in rows], columns=["kernel", "rank", "time", "bytes_sent"])
            made.add(Run({"ranks": ranks, "size": size}, repetition, "made"), table)
    return made


def test_call_trees_are_in_hatchet_s_form(paths: Experiment, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(exported(paths.path, capsys, "hatchet", str(paths.path)))
    profile = next(each for each in content["profiles"] if each["configuration"] == {"ranks": 2, "size": 16})
    (main_node,) = profile["graph"]
    assert main_node["metrics"] == {"time": 1.0, "bytes_sent": 5.0}
    (solve,) = main_node["children"]
    assert solve["frame"]["name"] == "solve"
    assert solve["metrics"]["time"] == 0
    assert solve["children"][0]["metrics"]["time"] == 17


def test_hatchet_takes_them(paths: Experiment) -> None:
    pytest.importorskip("hatchet")
    frame = rs.to_hatchet(paths, ranks=2, size=16)
    assert sorted(frame.dataframe["name"]) == ["halo", "main", "solve"]
    assert frame.dataframe["time"].sum() == 18
    with pytest.raises(InputError, match="no run at ranks 4, size 16"):
        rs.to_hatchet(paths, ranks=4, size=16)


def test_xarray_takes_the_grid(paths: Experiment, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    data = rs.to_xarray(paths)
    halo = data["time"].sel(kernel="main->solve->halo")
    assert halo.sel(ranks=2, size=16).values.tolist() == [16, 17, 18]
    assert np.isnan(halo.sel(ranks=1, size=16)).all()
    assert data["time"].attrs["units"] == "s"
    assert main(["export", "netcdf", str(paths.path), "-o", str(tmp_path / "e.nc"), "-q"]) == 0
    with xarray.open_dataset(tmp_path / "e.nc", engine="scipy") as again:
        assert float(again["time"].sum()) == float(data["time"].sum())


def test_a_package_that_is_missing_is_named(
    paths: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    assert main(["export", "netcdf", str(paths.path), "-o", str(tmp_path / "e.nc")]) == 1
    assert "pip install 'ranksight[xarray]'" in capsys.readouterr().err
    assert main(["export", "netcdf", str(paths.path)]) == 2
    assert "netcdf is not text" in capsys.readouterr().err
