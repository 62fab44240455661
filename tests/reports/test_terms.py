"""The terms of the equation and T_others, in what `predict`, `diagnose` and the report show."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest

from ranksight.cli import main
from ranksight.model.application.breakdown import BLOCKING
from ranksight.model.application.breakdown import CLOCK as CLOCK_TERM
from ranksight.model.fitted_model import Model
from ranksight.platforms import load
from ranksight.reports.equation_terms import number
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.palette import DARK, NAMES, PARTS
from ranksight.reports.sweep import sweep

RANKS = (1, 2, 4, 8, 12, 24, 48)
MACHINE = "haswell-e5-2680v3"
CLOCK = 2.4e9


def others(ranks: float) -> float:
    """Seconds outside of kernels."""
    return 0.02 + 0.002 * ranks


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two kernels whose CPI, BF_mem and clock are known, and of a program with T_others."""
    folder, platform = tmp_path_factory.mktemp("terms"), load(MACHINE)
    latencies = [*(cache.latency for cache in platform.caches[:3]), platform.memory.latency * platform.frequency]
    lines = ["ranks,kernel,i,c,s,l1,l2,l3,mem,time"]
    for p in RANKS:
        whole = 0.0
        for kernel, size, cpi, blocking in (("solve", 4e9, 0.9, 0.3), ("assemble", 2e9, 0.5, 0.6)):
            i = size / p
            loads = i * np.array([0.25, 0.02, 0.004, 0.0005])
            stalls = blocking * float(loads @ latencies)
            cycles = cpi * i + stalls
            whole += cycles / CLOCK
            counted = ",".join(f"{x:.10g}" for x in (i, cycles, stalls, *loads, cycles / CLOCK))
            lines.append(f"{p},{kernel},{counted}")
        lines.append(f"{p},(whole),,,,,,,,{whole + others(p):.10g}")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    names = {"instructions": "i", "cycles": "c", "stall_cycles": "s", "time": "time"}
    names |= {"loads_l1": "l1", "loads_l2": "l2", "loads_l3": "l3", "loads_mem": "mem"}
    metrics = [word for name, column in names.items() for word in ("--metric", f"{name}={column}")]
    given = [str(folder / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--total", "(whole)"]
    assert main(["import", "csv", *given, *metrics, "-o", str(folder / "e"), "--quiet"]) == 0
    fit = ["fit", str(folder / "e"), "--platform", MACHINE, "-o", str(folder / "m.json"), "--quiet"]
    assert main(fit) == 0
    return folder / "m.json"


def test_the_terms_are_those_of_the_program(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(file), "--ranks", "96,192", "--terms", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["terms"]
    found = {(row["kernel"], row["term"], row["configuration"]["ranks"]): row for row in rows}
    assert found["solve", "cpi_exec", 192]["value"] == pytest.approx(0.9, rel=0.02)
    assert found["assemble", "bf_mem", 192]["value"] == pytest.approx(0.6, rel=0.02)
    assert found["solve", "clock", 96]["value"] == pytest.approx(CLOCK, rel=0.02)
    rest = found[None, "t_others", 192]
    assert rest["lower"] <= others(192) <= rest["upper"]
    assert all(row["lower"] is None or 0 <= row["lower"] <= row["value"] <= row["upper"] for row in rows)
    assert main(["predict", str(file), "--ranks", "96,192", "--terms", "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(line["value"]) for line in lines] == [row["value"] for row in rows]
    assert main(["predict", str(file), "--ranks", "96,192", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["terms"] == rows


def test_tables_show_the_terms_and_what_lies_outside_of_kernels(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(file), "--ranks", "96,192"]) == 0
    said = capsys.readouterr().out
    assert said.count(f"({NAMES['others']})") == 2
    assert "CPI_exec" in said
    assert "T_others" in said
    assert "(imbalance)" not in said, "ranks were even: what is outside of kernels is no imbalance"
    assert main(["predict", str(file), "--ranks", "192", "--kernel", "solve", "--terms"]) == 0
    said = capsys.readouterr().out
    assert "solve" in said
    assert "assemble" not in said
    assert main(["diagnose", str(file), "--ranks", "192"]) == 0
    said = capsys.readouterr().out
    assert said.index("CPI_exec") < said.index("T_others")


@pytest.mark.parametrize("how", ["csv", "markdown"])
def test_configurations_are_columns_of_their_parameters(
    how: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["diagnose", str(file), "--table", "terms", "--format", how])
    head, *rows = capsys.readouterr().out.splitlines()
    assert ("configuration" in head, "ranks" in head) == (False, True)
    assert rows
    assert not any("{" in row for row in rows)


def test_rounding_is_no_ratio() -> None:
    assert number(BLOCKING, 4e-17) == number(BLOCKING, 0.0) != number(BLOCKING, 4e-3)
    assert number(CLOCK_TERM, 2.4e9) != number(CLOCK_TERM, 0.0)


def test_terms_without_a_time_are_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(file), "--ranks", "96", "--terms", "--metric", "time"]) == 2
    assert "--terms and --metric exclude each other" in capsys.readouterr().err


def test_the_report_predicts_what_predict_does(file: Path) -> None:
    model = Model.load(file)
    asked = sweep(model, to=192)
    (whole,) = [a for a in model.predict(ranks=192, metrics="time").answers if a.kernel is None]
    assert asked.total.value[0, -1] == pytest.approx(whole.value)
    parts = sum(part[-1] for part in asked.breakdown.parts.values())
    assert parts == pytest.approx(whole.value, rel=1e-6)


def test_the_report_has_the_terms_and_the_part_outside_of_kernels(file: Path) -> None:
    text = render(Context(Model.load(file), sweep(Model.load(file), to=192)))
    for name in ("cpi_exec", "bf_mem", "clock", "t_others"):
        assert f'data-figure="term-{name}"' in text
    assert text.count(NAMES["others"]) > 2
    assert 'id="terms-table"' in text


def test_every_part_has_a_name_and_a_colour_of_its_own() -> None:
    assert list(PARTS) == list(NAMES)
    assert len(set(PARTS.values())) == len(PARTS)
    assert PARTS["others"].upper() in DARK


def test_what_rounding_leaves_of_zero_is_zero(file: Path) -> None:
    said = Model.load(file).predict(ranks=96).terms
    assert said is not None
    assert said.terms.kernels
    blocking = dataclasses.replace(
        said.terms.blocking, value=np.full((2, 1), 7.61e-17), lower=np.full((2, 1), -1e-17), upper=np.full((2, 1), 0.1)
    )
    terms = dataclasses.replace(said.terms, blocking=blocking)
    # The report's pages of kernels have it too, and had -1e-17.
    negative = dataclasses.replace(blocking, value=np.full((2, 1), -1e-17))
    assert not dataclasses.replace(terms, blocking=negative).shown_blocking.value.any()
    rows = dataclasses.replace(said, terms=terms).rows()
    assert [(row["value"], row["lower"], row["upper"]) for row in rows if row["term"] == "bf_mem"] == [(0, 0, 0.1)] * 2


def test_no_interval_of_a_share_ends_beyond_what_a_share_can_be(file: Path) -> None:
    model = Model.load(file)
    terms = sweep(model, to=48).breakdown.terms
    assert terms.kernels
    blocking = terms.blocking
    wide = dataclasses.replace(
        terms, blocking=dataclasses.replace(blocking, lower=blocking.lower - 2, upper=blocking.upper + 13_700)
    )
    assert np.array_equal(wide.shown_blocking.value, blocking.value)
    assert wide.shown_blocking.lower.min() == 0
    assert (wide.shown_blocking.upper == 1).all()
    # Stalls of other causes are a part of some values, which stay what they are.
    other = dataclasses.replace(wide, blocking=dataclasses.replace(wide.blocking, value=blocking.value + 7))
    assert np.array_equal(other.shown_blocking.upper, other.blocking.value)
    narrow = dataclasses.replace(
        terms, blocking=dataclasses.replace(blocking, lower=blocking.value, upper=blocking.value)
    )
    assert np.array_equal(narrow.shown_blocking.upper, blocking.value)
