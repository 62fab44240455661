"""Formulas as people read them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.counters.frames import from_frame
from ranksight.model.fit import fit
from ranksight.reports.formula import FUNCTIONS, identifier, latex, python, readable
from ranksight.reports.functions import far, functions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.331e+06 * ranks^(-1) * size^3 + 2000 * size^2", "1.33e6 · size³ / ranks + 2e3 · size²"),
        ("0.005184 * ranks^(-1) - 0.0001 * ranks^(1/2)", "0.00518 / ranks - 0.0001 · √ranks"),
        ("-3 * ranks^(-1/2) * size^(-2)", "-3 / (√ranks · size²)"),
        ("4e+05 * size^(3/2) * log2(ranks)^2", "4e5 · size^(3/2) · log2(ranks)²"),
        ("2 * 2^(ranks)", "2 · 2^ranks"),
        ("8 * ranks^(-1) above ranks = 16, 0.4567 below", "8 / ranks above ranks = 16, 0.457 below"),
        ("0.001981 at size = 12, 3e-05 at size = 24", "0.00198 at size = 12, 3e-5 at size = 24"),
        ("(12) + neighbours_1 * (3.21456 * size^2) on a 3-d grid", "12 + neighbours_1 · (3.21 · size²) on a 3-d grid"),
        (
            "(0) + neighbours_1 * (1.8e+04 at size = 8, 6e+04 at size = 16) on a 3-d grid (2 grids fit)",
            "neighbours_1 · (1.8e4 at size = 8, 6e4 at size = 16) on a 3-d grid (2 grids fit)",
        ),
        ("14256 + 9801 * (ranks - 1) (4 sums fit)", "1.43e4 + 9.8e3 · (ranks - 1) (4 sums fit)"),
        (
            "iterations * (9.5 + 1 * size^2); iterations: visits of a",
            "iterations · (9.5 + 1 · size²) (iterations: visits of a)",
        ),
        ("none", "none"),
    ],
)
def test_formulas_are_written_as_people_write_them(text: str, said: str) -> None:
    assert readable(text) == said


@pytest.mark.parametrize(("name", "counts"), [("size", False), ("time_steps", True)])
def test_two_values_of_a_parameter_are_no_growth_law(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, counts: bool
) -> None:
    lines = [f"ranks,{name},kernel,time"]
    lines += [f"{p},{n},solve,{3e-6 * n**3 / p + 1e-4 * p**0.5}" for p in (1, 2, 4, 8, 16) for n in (12, 24)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ["--parameter", "ranks", "--parameter", name, "--kernel", "kernel", "--metric", "time=time", "--quiet"]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *options, "-o", str(tmp_path / "e")]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"two values of {name} (12, 24): no growth law in {name}; measure a third" in said
    assert (f"or fit with --iterations {name} if it counts iterations" in said) == counts
    assert "0.00518 / ranks" in said
    assert "time (s)" in said
    # The line to try next asks for nothing that two values cannot answer.
    assert f"--ranks 32 --{name} 24" in said


def test_plain_values_have_their_unit() -> None:
    assert readable("0.001981 at size = 12, 3e-05 at size = 24", "s") == "1.98 ms at size = 12, 30 us at size = 24"
    assert readable("-0.5", "s") == "-500 ms"
    # A value next to a function of the same table keeps the unit of the heading.
    assert readable("8 * ranks^(-1) above ranks = 16, 0.4567 below", "s") == "8 / ranks above ranks = 16, 0.457 below"


@pytest.mark.parametrize(
    ("text", "at", "value"),
    [
        ("1.331e+06 * ranks^(-1) * size^3 + 2000 * size^2", (4, 10), 1.331e6 * 1000 / 4 + 2000 * 100),
        ("-3 * ranks^(-1/2) * size^(-2) + 7", (4, 10), 7 - 3 / 2 / 100),
        ("4 * size^(3/2) * log2(ranks)^2", (8, 4), 4 * 8 * 9),
        ("2 * 2^(ranks) - 2^((1/2) size)", (3, 4), 16 - 4),
        ("8 * ranks^(-1) above ranks = 16, 0.5 below", (32, 1), 0.25),
        ("8 * ranks^(-1) above ranks = 16, 0.5 below", (16, 1), 0.5),
        ("1 * ranks at size = 12, 3 at size = 24", (5, 12), 5),
        ("14256 + 9801 * (ranks - 1) (4 sums fit)", (5, 12), 14256 + 9801 * 4),
        ("3 * (2^floor(log2(ranks)) / ranks) + 2 * ceil(log2(ranks))", (5, 12), 3 * 4 / 5 + 6),
        ("7 * ([ranks > 1]) + 1 * size", (1, 12), 12),
        ("7 * ([ranks > 1]) + 1 * size", (2, 12), 19),
    ],
)
def test_python_computes_what_the_formula_says(text: str, at: tuple[float, float], value: float) -> None:
    found = eval(
        python(text, ("ranks", "size")),
        {name: getattr(math, name) for name in FUNCTIONS},
        dict(zip(("ranks", "size"), at, strict=True)),
    )
    assert found == pytest.approx(value)


def test_names_that_python_lacks_are_replaced() -> None:
    assert python("2 * my-size", ("my-size",)) == "2 * my_size"
    assert [identifier(name) for name in ("operator()<T>", "2d", "lambda", "::")] == [
        "operator_T",
        "_2d",
        "_lambda",
        "value",
    ]
    assert python("1 + neighbours_1 * (3) on a 3-d grid", ("ranks",)) == ""
    assert python("3 * (ones(ranks) / ranks)", ("ranks",)) == ""
    assert python("3 * (floor(log2(ranks)) 2^floor(log2(ranks)) / ranks)", ("ranks",)) == ""
    assert python("iterations * (9.5 + 1 * size^2); iterations: visits of a", ("size",)) == ""
    assert python("2 * __import__('os').getcwd()", ("ranks",)) == ""


def test_latex_is_balanced_and_complete() -> None:
    text = latex("1.331e+06 * ranks^(-1) * my_size^3 + 2 * log2(ranks)^2 above ranks = 16, 3 below")
    assert text.count("{") == text.count("}")
    assert r"\frac{1.33 \cdot 10^{6} \mathrm{my\_size}^{3}}{\mathrm{ranks}}" in text
    assert r"& \mathrm{ranks} > 16" in text
    assert r"& \mathrm{ranks} \leq 16" in text


def test_functions_are_printed_to_paste_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["ranks,kernel,time"]
    lines += [f"{p},{name},{3e-3 / p + 1e-4}" for p in (1, 2, 4, 8, 16) for name in ("so%lve", "so_lve")]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ["--parameter", "ranks", "--kernel", "kernel", "--metric", "time=time", "--quiet"]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *options, "-o", str(tmp_path / "e")]) == 0
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--formulas", "python"]) == 0
    made: dict[str, Any] = {}
    exec(capsys.readouterr().out, made)
    for name in ("time__so_lve", "time__so_lve_2"):
        assert made[name](4) == pytest.approx(3e-3 / 4 + 1e-4, rel=1e-2)
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "n.json"), "--formulas", "latex"]) == 0
    said = capsys.readouterr().out
    assert r"\mathrm{time}_{\text{so\%lve}}(\mathrm{ranks}) &= " in said


def test_printed_functions_of_counts_compute_them() -> None:
    """Sums over ranks are printed as products whose factors keep together."""
    ranks = np.array([2, 3, 5, 7, 11, 13])
    known = {"line": 4455 + 9801 * ranks, "ring": 1000 * (ranks - 1), "tree": 64 * np.ceil(np.log2(ranks)) + 3}
    table = pd.DataFrame([(k, p, n) for k, each in known.items() for p, n in zip(ranks, each, strict=True)],
                         columns=["kernel", "ranks", "bytes_sent"])  # fmt: skip
    model = fit(from_frame(table, kernel="kernel", metrics=["bytes_sent"]), platform=None)
    for row in functions(model):
        text = python(row["formula"], ("ranks",))
        found = [eval(text, {name: getattr(math, name) for name in FUNCTIONS}, {"ranks": int(p)}) for p in ranks]
        assert found == pytest.approx(known[row["kernel"]].tolist(), rel=1e-3), row["formula"]


def test_a_limit_of_a_parameter_has_a_form_in_every_notation() -> None:
    text = "2 * max(width, 0.01)^(-1) + 3 * min(ranks, 8)^2"
    assert readable(text) == "2 / max(width, 0.01) + 3 · min(ranks, 8)²"
    assert eval(python(text, ("width", "ranks")), {"width": 0.001, "ranks": 64}) == pytest.approx(2 / 0.01 + 3 * 8**2)
    assert "\\max\\left(\\mathrm{width}, 0.01\\right)" in latex(text)


def test_what_a_mesh_width_no_longer_changes_is_printed_as_it_is_predicted() -> None:
    """1 / max(width, w), w between two widths: terms of the inverse had no such form and became a power."""
    widths, random = np.repeat(2.0 ** -np.arange(4, 10), 3), np.random.default_rng(7)
    times = 1 / np.maximum(widths, 0.01) * (1 + 0.01 * random.standard_normal(len(widths)))
    model = fit(from_frame(pd.DataFrame({"width": widths, "time": times}), ["width"], metrics=["time"]), platform=None)
    (row,) = functions(model)
    assert row["formula"].count("max(width, ") == 2
    assert row["difference_from_predict"] < 0.25
    of_width = python(row["formula"], ("width",))
    for width in (2.0**-4, 2.0**-9, 2.0**-12):
        assert eval(of_width, {"width": width}) == pytest.approx(1 / max(width, 0.01), rel=0.05)


def test_no_difference_is_infinite_in_words() -> None:
    assert far(float("inf")) == "a factor of a million and more"
    assert far(1.5) == "a factor of 2.5"
