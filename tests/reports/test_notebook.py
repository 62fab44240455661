"""What a notebook shows of an experiment, a model and a prediction, and their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import pyplot

import ranksight as rs
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.html import table
from ranksight.counters.frames import from_dict
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'
ESCAPED = "foo&lt;bar&lt;int&gt;&gt;::operator()&lt;&quot;x&quot;&gt;&amp;&lt;script&gt;alert(1)&lt;/script&gt;"


def test_an_experiment_shows_its_configurations(known: Experiment) -> None:
    html = known._repr_html_()
    assert "known &lt;program&gt;: 10 runs" in html
    assert html.count("<tr>") == 11
    assert "<td>16</td><td>200</td><td>1</td><td>made-up</td><td>20 ms</td><td>3.2 ms</td>" in html
    assert html.index("time of steady") < html.index(f"time of {ESCAPED}")


def test_a_model_shows_its_largest_functions(model: Model) -> None:
    html = model._repr_html_()
    assert ESCAPED in html
    assert "<script" not in html
    assert "9 functions of ranks, size" in html
    # Times first, the largest first.
    assert html.index("<td>steady</td><td>time</td>") < html.index("<td>instructions</td>")


def test_a_function_that_misses_by_much_is_not_ok() -> None:
    """In the table as in the notebook: one kernel halves exactly, the other jumps about."""
    ranks = [1, 2, 4, 8, 16, 32]
    cells = {
        "ranks": [*ranks, *ranks],
        "kernel": ["steady"] * 6 + ["jumping"] * 6,
        "time": [8 / p for p in ranks] + [3.3, 0.5, 2.9, 0.2, 1.7, 0.1],
    }
    model = assemble(from_dict(cells, kernel="kernel", time="time"))[0]
    table = model.table().set_index("kernel")
    assert table.loc["jumping", "error"] > 0.25
    assert table["status"].to_dict() == {"steady": "ok", "jumping": "inexact"}
    assert "25%" in table.loc["jumping", "reason"]
    assert "<td>inexact</td>" in model._repr_html_()


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


def test_a_validation_shows_the_program_then_the_largest_times(model: Model, known: Experiment) -> None:
    found = rs.validate(model, known)
    html = found._repr_html_()
    assert "measured values" in repr(found)
    metrics = re.findall(r"<td>(time|instructions|\w+_sent|messages)</td>", html)
    assert metrics == sorted(metrics, key=lambda name: name != "time")
    assert "</table>" in html
    with pytest.raises(InputError, match="give it first"):
        rs.validate(known, model)  # type: ignore[arg-type]


def test_measured_times_of_the_program_are_held_against_the_sum_of_kernels(tmp_path: Path) -> None:
    rows = [(p, kernel, seconds) for p in (1, 2, 4, 8, 16) for kernel, seconds in (("a", 8 / p), ("b", 0.1))]
    frame = pd.DataFrame(rows, columns=["ranks", "kernel", "time"])
    model = rs.fit(rs.from_frame(frame, parameters=["ranks"], kernel="kernel", time="time"))
    table = rs.validate(model, rs.from_dict({"ranks": [32, 64], "time": [0.35, 0.225]}, time="time")).table
    whole = [model.predict(ranks=p, metrics="time").answers[0] for p in (32, 64)]
    assert table["predicted"].tolist() == pytest.approx([answer.value for answer in whole])
    other = rs.from_dict({"ranks": [32, 64], "visits": [7.0, 5.0]}, time=None, metrics=["visits"])
    with pytest.raises(InputError, match="no kernel and metric of the model"):
        rs.validate(model, other)


def test_columns_without_content_are_not_shown(model: Model) -> None:
    assert '<th scope="col">note</th>' not in model.predict(ranks=64, size=200, metrics=["time"])._repr_html_()


def test_a_diagnosis_shows_verdicts(model: Model) -> None:
    html = model.diagnose(ranks=[64, 128], size=200)._repr_html_()
    assert "at ranks 128, size 200" in html
    assert html.count("<tr>") == 4
    assert ESCAPED in html


@pytest.fixture
def shown() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("shown")
def test_plots_appear_without_asking_for_a_figure(model: Model, known: Experiment, tmp_path: Path) -> None:
    """Each method makes a figure of pyplot, which notebooks show, and returns its axes."""
    predicted = model.predict(ranks=[32, 64, 128], size=200, metrics=["time"])
    made = [model.plot(to=128, experiment=known), predicted.plot(), known.plot(), known.plot("time", HOSTILE)]
    assert [ax.figure.number for ax in made] == [1, 2, 3, 4]
    assert made[0].get_xlabel() == made[1].get_xlabel() == "ranks"
    whole = predicted.table().query("kernel.isna()")
    assert made[1].get_lines()[0].get_ydata() == pytest.approx(whole["value"])
    assert HOSTILE in made[3].get_ylabel()
    assert made[2].get_ylabel() == "time, sum of kernels"
    for ax in made:
        ax.figure.savefig(tmp_path / "p.png")
    mine = pyplot.figure().add_subplot()
    assert predicted.plot(ax=mine) is mine


@pytest.mark.usefixtures("shown")
def test_plots_of_what_is_not_there(model: Model, known: Experiment) -> None:
    with pytest.raises(InputError, match="has no metric 'tiem'; did you mean time"):
        known.plot("tiem")
    with pytest.raises(InputError, match="no kernel 'nobody'"):
        known.plot("time", "nobody")
    with pytest.raises(InputError, match="no parameter nodes"):
        model.plot(along="nodes")


def test_a_model_is_loaded_from_its_file(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.json")
    loaded, kept = (each.predict(ranks=64, size=200).table() for each in (rs.load(tmp_path / "m.json"), model))
    assert loaded["value"].to_numpy() == pytest.approx(kept["value"].to_numpy())


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
