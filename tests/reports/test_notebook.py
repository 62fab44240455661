"""What a notebook shows of an experiment, a model and a prediction, and their tables."""

from __future__ import annotations

import re

import pytest

from ranksight.core.experiment import Experiment
from ranksight.core.html import table
from ranksight.model.model import Model

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'
ESCAPED = "foo&lt;bar&lt;int&gt;&gt;::operator()&lt;&quot;x&quot;&gt;&amp;&lt;script&gt;alert(1)&lt;/script&gt;"


def test_an_experiment_shows_its_configurations(known: Experiment) -> None:
    html = known._repr_html_()
    assert "known &lt;program&gt;: 10 runs" in html
    assert html.count("<tr>") == 11
    assert "<td>16</td><td>200</td><td>1</td><td>made-up</td><td></td>" in html


def test_a_model_shows_its_largest_functions(model: Model) -> None:
    html = model._repr_html_()
    assert ESCAPED in html
    assert "<script" not in html
    assert "9 functions of ranks, size" in html


def test_a_prediction_shows_values_and_intervals(model: Model) -> None:
    html = model.predict(ranks=[64, 128], size=200, metrics=["time"])._repr_html_()
    assert ESCAPED in html
    assert "8 predictions" in html
    assert re.search(r"<td>128</td><td>200</td><td>whole program</td><td>time</td><td>46\.\d ms</td>", html)


def test_what_a_prompt_shows_is_a_line(model: Model) -> None:
    assert repr(model) == "<Model known <program>: 9 functions of ranks, size; .table() shows them>"
    said = repr(model.predict(ranks=64, size=200, metrics=["time"]))
    assert said == "<Prediction known <program>: 4 predictions at ranks, size; .table() shows them>"
    assert repr(model.diagnose(ranks=64, size=200)) == "<Diagnosis known <program>: 3 kernels at 1 configuration>"


def test_many_rows_are_counted_and_control_characters_shown() -> None:
    html = table("c\x00", ["a"], [[i] for i in range(30)], most=5)
    assert html.count("<tr>") == 6
    assert "and 25 more" in html
    assert "c\ufffd" in html


def test_the_table_of_functions_has_its_columns(model: Model) -> None:
    shown = model.table()
    assert list(shown.columns) == [
        "kernel", "metric", "formula", "share", "error", "r2", "scatter", "points", "source", "status", "reason",
    ]  # fmt: skip
    time = shown[(shown["kernel"] == HOSTILE) & (shown["metric"] == "time")].iloc[0]
    assert "ranks" in time["formula"]
    assert time["status"] == "ok"
    # Its ten runs are at five numbers of ranks, and the size changes nothing.
    assert time["points"] == 5
    assert shown.groupby("metric")["share"].sum()["time"] == pytest.approx(1)
