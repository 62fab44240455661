"""Tables to paste: Markdown and LaTeX of verbs, with names that would break them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment
from ranksight.model.fitted_model import Model
from ranksight.reports.pasted import latex_text, markdown_text, pasted
from ranksight.reports.terminal import Cell, Table

PREAMBLE = "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}\\begin{document}\n"


@pytest.fixture(scope="module")
def file(model: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pasted") / "known.model.json"
    model.save(path)
    return str(path)


def rows_of(text: str) -> list[list[str]]:
    """Cells of a Markdown table's lines."""
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]


LINES = {
    "predict": ["--ranks", "64,128", "--size", "200"],
    "diagnose": ["--ranks", "64", "--size", "200"],
    "diagnose efficiencies": ["--ranks", "64", "--size", "200", "--table", "efficiencies"],
    "diagnose scaling": ["--ranks", "64", "--size", "200", "--table", "scaling"],
    "diagnose advice": ["--ranks", "64", "--size", "200", "--table", "advice"],
}


@pytest.mark.parametrize("verb", LINES)
def test_markdown_has_one_width_a_table_and_no_markup_of_names(
    verb: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([verb.split()[0], file, *LINES[verb], "--format", "markdown"])
    said = capsys.readouterr().out
    tables = [rows_of(part) for part in said.split("\n\n") if part.startswith("|")]
    assert tables
    for rows in tables:
        assert len({len(row) for row in rows}) == 1
        assert all(re.fullmatch(r" -{3}:? ", cell) for cell in rows[1])
    assert "<script" not in re.sub(r"\\.", "", said)
    assert verb == "diagnose efficiencies" or "steady" in said


@pytest.mark.parametrize("verb", LINES)
def test_latex_compiles(verb: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb.split()[0], file, *LINES[verb], "--format", "latex"])
    said = capsys.readouterr().out
    plain = re.sub(r"p\{[\d.]+\\linewidth\}", "p", said)
    for table in re.findall(r"\\begin\{tabular\}\{(.*?)\}(.*?)\\end\{tabular\}", plain, re.DOTALL):
        columns, body = table
        lines = [line for line in body.split("\n") if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(columns) - 1}
    compiled(said, tmp_path)


def compiled(text: str, folder: Path) -> str:
    """What pdflatex prints of a page with `text`; skips the test where there is none."""
    if (
        shutil.which("pdflatex") is None
        or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode
    ):
        pytest.skip("no pdflatex with booktabs is found")
    (folder / "page.tex").write_text(PREAMBLE + text + "\\end{document}\n")
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_a_row_may_begin_with_what_latex_takes_for_an_option(tmp_path: Path) -> None:
    names = ["[libc]", "[16.0, 16.0]", "*star", "*[x]", "(group)", "--option", "[]"]
    rows: list[list[str | Cell]] = [[name, "1"] for name in names]
    assert "page.pdf (1 page" in compiled(pasted([Table(["name:text", "value"], rows)], "latex"), tmp_path)


def test_long_texts_are_wrapped_to_the_line_of_a_page(tmp_path: Path) -> None:
    rows: list[list[str | Cell]] = [
        ["solve", "12 %", "halving its time saves 12 % of the program's " * 3] for _ in "ab"
    ]
    page = pasted([Table(["kernel:name", "saves", "what helps:text"], rows)], "latex")
    assert "p{" in page
    assert "Overfull" not in compiled(page, tmp_path)


def test_a_comparison_is_pasted(known: Experiment, capsys: pytest.CaptureFixture[str]) -> None:
    for how, sign in (("markdown", "| ---"), ("latex", "\\toprule")):
        main(["compare", str(known.path), str(known.path), "--format", how])
        assert sign in capsys.readouterr().out


@given(st.text(max_size=30))
def test_no_text_leaves_its_cell(text: str) -> None:
    page = pasted([Table(["name:text", "value"], [[text, "1"]])], "markdown")
    assert {len(row) for row in rows_of(page)} <= {1, 2}
    assert len(page.splitlines()) == 3
    plain = re.sub(r"-\{\}(?=-)|\$-\$(?=\d)|\\text\w+\{\}", "", latex_text(text))
    assert not re.search(r"(?<!\\)[_#%&${}~^]", plain)
    assert not re.search(r"(?<!\\)[<>\[\]`]", re.sub(r"\\\\", "", markdown_text(text)))
