"""Markdown tables as input: the model of the same table in a file of commas, cells with units, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.experiment import read
from ranksight.counters.readers._durations import seconds
from ranksight.counters.readers._valued_cells import valued

PAGE = """# Results of the new solver

Measured on *Tuesday*; see [the log](log.md).

| Nodes | Wall time | Efficiency | note |
|------:|:---------:|-----------:|------|
| 1     | 2:08.0    | 100 %      | a \\| b |
| 2     | **65.2 s** | 98.2 %    | |
| 4     | 33.1 s    | 96.7%      | |
| 8     | 16900 ms  | 94 %       | |

Thanks!
"""
OPTIONS = ("--parameter", "ranks=Nodes", "--metric", "time=Wall time")


def imported(folder: Path, page: str, *options: str) -> int:
    file = folder / "page.md"
    file.write_text(page)
    return main(["import", "markdown", str(file), "-o", str(folder / "made"), *options])


def test_a_posted_table_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, PAGE, *OPTIONS, "--metric", "efficiency=Efficiency") == 0
    experiment = read(tmp_path / "made")
    tables = [experiment.table(run, "counters") for run in experiment.runs]
    assert [run.configuration["ranks"] for run in experiment.runs] == [1, 2, 4, 8]
    assert [float(table["time"][0]) for table in tables if table is not None] == [128.0, 65.2, 33.1, 16.9]
    found = [float(table["efficiency"][0]) for table in tables if table is not None]
    assert found == pytest.approx([1, 0.982, 0.967, 0.94])
    assert "minutes and seconds" in "".join(capsys.readouterr())


def test_the_model_is_that_of_the_same_table_with_commas(tmp_path: Path) -> None:
    assert imported(tmp_path, PAGE, *OPTIONS) == 0
    table = tmp_path / "table.csv"
    table.write_text("n,t\n1,128\n2,65.2\n4,33.1\n8,16.9\n")
    words = ["--parameter", "ranks=n", "--metric", "time=t", "-o", str(tmp_path / "other")]
    assert main(["import", "csv", str(table), *words]) == 0
    found, other = (rs.fit(tmp_path / name).predict(ranks=[32, 64]).table() for name in ("made", "other"))
    pd.testing.assert_frame_equal(found, other)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("10.5 s", "10.5"),
        ("1:23", "83.0"),
        ("1:02:03.5", "3723.5"),
        ("95 %", "0.95"),
        ("3ms", "0.003"),
        ("2 min", "120.0"),
        ("1,234.5 s", "1234.5"),
        ("12", "12"),
        ("n/a", "n/a"),
        ("s", "s"),
        ("1:99", "159.0"),
        ("solve s", "solve s"),
        ("1h 2m 3s", "3723.0"),
        ("12.1 ± 0.2 s", "12.1"),
        ("12.1 +/- 0.2", "12.1"),
        ("95 ± 1 %", "0.95"),
        ("± 3", "± 3"),
    ],
)
def test_cells_are_numbers_with_units(cell: str, text: str) -> None:
    assert valued(cell)[0] == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("| 2     | **65.2 s**", "| 2     || **65.2 s**", "page.md:8: merged cells"),
        ("| 2     | **65.2 s**", "| ^^     | **65.2 s**", "page.md:8: merged cells"),
        ("| 2     | **65.2 s**", "|        | **65.2 s**", "page.md:8: the cell of column 'Nodes' is empty"),
        (" | 98.2 %    | |", " |", "page.md:8 has 2 cells"),
        ("33.1 s ", "33.1 ", "page.md:9: '33.1' states no unit"),
        ("33.1 s ", "fast  ", "'fast'"),
        ("Wall time", "Runtime", "no column 'Wall time'"),
        ("|------:|:---------:|-----------:|------|\n", "", "no table is in it"),
        (PAGE, "<table><tr><td colspan=2>1</td></tr></table>", "a table of HTML is not read"),
        ("Thanks!", PAGE, "has 2 tables"),
    ],
)
def test_what_is_no_plain_table_is_refused_in_one_line(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in PAGE
    assert imported(tmp_path, PAGE.replace(old, new), *OPTIONS) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_cells_without_a_unit_have_that_of_their_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "| 1 | 83,000 | 900 |\n| 2 | 0:42.5 | 450 |\n| 4 | 21.9 s | 230 |\n| 8 | 12100 ± 90 | 120 |\n"
    page = f"| MPI ranks | **wall time** [ms] | `solve` [ms] |\n|-|-|-|\n{rows}"
    assert imported(tmp_path, page) == 0
    notes = capsys.readouterr().err
    assert "its scatter is not" in notes
    assert "parameter ranks; time" in notes
    experiment = read(tmp_path / "made")
    assert experiment.parameters == ("ranks",)
    assert experiment.counters()["time"].tolist() == [83.0, 42.5, 21.9, 12.1]


def test_rows_of_several_cases_are_refused_as_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"| {p} | {t / p} s | {name} |\n" for p in (1, 2, 4) for name, t in (("cg", 8), ("mg", 4)))
    assert imported(tmp_path, f"| Nodes | Wall time | solver |\n|--|--|--|\n{rows}", *OPTIONS) == 1
    assert "rows of one configuration differ in 'solver'" in capsys.readouterr().err


def test_reshaping_is_for_files_of_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, PAGE, *OPTIONS, "--delimiter", ";") == 2
    assert "for csv" in capsys.readouterr().err


CELLS = [
    ("10 s", "5200 ms", "1:02", "2m3.5s"),
    ("10.0 +- 0.1 s", "5.1 ± 0.2 s", "2.6 s", "1.4s"),
    ("10", "5.2", "2.6", "1.4"),
]


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_cells_mean_the_same_whatever_separates_them(cells: tuple[str, ...], separator: str, tmp_path: Path) -> None:
    rows = [("ranks", "time"), *((str(2**at), cell) for at, cell in enumerate(cells))]
    (tmp_path / "t.csv").write_text("".join(f"{separator.join(row)}\n" for row in rows))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    (tmp_path / "t.md").write_text("\n".join([lines[0], "|---|---|", *lines[1:]]) + "\n")
    times = {}
    for name in ("t.csv", "t.md"):
        words = ["csv" if name == "t.csv" else "markdown", str(tmp_path / name), "-o", str(tmp_path / f"{name}.exp")]
        assert main(["import", *words, "--quiet"]) == 0
        made = read(tmp_path / f"{name}.exp")
        tables = [made.table(run, "counters") for run in made.runs]
        times[name] = [float(table["time"].iloc[0]) for table in tables if table is not None]
    values = [seconds(cell.split("+-")[0].split("±")[0]) for cell in cells]
    assert times["t.csv"] == times["t.md"] == pytest.approx(values)


def test_a_decimal_comma_holds_for_cells_with_units(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ranks;time\n1;10,5 s\n2;5,25 s\n4;2625,5 ms\n")
    assert main(["import", "csv", str(tmp_path / "t.csv"), "-o", str(tmp_path / "e"), "--quiet"]) == 0
    made = read(tmp_path / "e")
    tables = [made.table(run, "counters") for run in made.runs]
    assert [float(table["time"].iloc[0]) for table in tables if table is not None] == [10.5, 5.25, 2.6255]
