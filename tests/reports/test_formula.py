"""Formulas as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.cli import main
from ranksight.reports.formula import readable


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.331e+06 * ranks^(-1) * size^3 + 2000 * size^2", "1.33e6 · size³ / ranks + 2e3 · size²"),
        ("0.005184 * ranks^(-1) - 0.0001 * ranks^(1/2)", "0.00518 / ranks - 0.0001 · √ranks"),
        ("-3 * ranks^(-1/2) * size^(-2)", "-3 / (√ranks · size²)"),
        ("4e+05 * size^(3/2) * log2(ranks)^2", "4e5 · size^(3/2) · log2(ranks)²"),
        ("2 * 2^(ranks)", "2 · 2^(ranks)"),
        ("8 * ranks^(-1) above ranks = 16, 0.4567 below", "8 / ranks above ranks = 16, 0.457 below"),
        ("0.001981 at size = 12, 3e-05 at size = 24", "0.00198 at size = 12, 3e-5 at size = 24"),
        ("(12) + neighbours_1 * (3.21456 * size^2) on a 3-d grid", "(12) + neighbours_1 · (3.21 · size²) on a 3-d grid"),
        ("none", "none"),
    ],
)
def test_formulas_are_written_as_people_write_them(text: str, said: str) -> None:
    assert readable(text) == said


def test_two_values_of_a_parameter_are_no_growth_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["ranks,size,kernel,time"]
    lines += [f"{p},{n},solve,{3e-6 * n**3 / p + 1e-4 * p**0.5}" for p in (1, 2, 4, 8, 16) for n in (12, 24)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    given = ["--parameter", "ranks", "--parameter", "size", "--kernel", "kernel", "--metric", "time=time", "--quiet"]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *given, "-o", str(tmp_path / "e")]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "two values of size (12, 24): no growth law in size; measure a third" in said
    assert "0.00518 / ranks" in said
