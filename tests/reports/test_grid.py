"""The grid of a model: interpolation of known functions, and what it says of its own misses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.energy.prices import Prices
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.reports.grid import CLOSE, grid, interpolated
from ranksight.reports.html.context import Context
from ranksight.reports.html.sections import ask
from ranksight.reports.sweep import sweep


@given(st.floats(-3, 3), st.floats(-3, 3), st.lists(st.floats(0.1, 2), min_size=2, max_size=9))
def test_lines_and_parabolas_are_met_exactly(slope: float, bend: float, steps: list[float]) -> None:
    nodes = np.cumsum([0.0, *steps])
    at = np.linspace(nodes[0], nodes[-1], 17)

    def line(x: np.ndarray) -> np.ndarray:
        return 1 + slope * x + bend * x**2

    found = interpolated(nodes, np.array([line(nodes), slope * nodes]), at)
    assert found[0] == pytest.approx(line(at), abs=1e-8 * (1 + abs(bend)) * (1 + nodes[-1] ** 2))
    assert found[1] == pytest.approx(slope * at, abs=1e-9)


def test_a_missing_neighbour_spoils_no_interval() -> None:
    nodes = np.arange(5.0)
    found = interpolated(nodes, np.array([np.nan, 1.0, 2.0, 3.0, np.nan]), np.array([0.5, 1.5, 2.5, 3.5]))
    assert found[1:3] == pytest.approx([1.5, 2.5])
    assert np.isnan(found[[0, 3]]).all()


def test_answers_between_the_values_are_the_models_or_marked(model: Model) -> None:
    asked = sweep(model, to=256)
    made = grid(asked)
    assert made is not None
    assert list(made.axes) == ["ranks", "size"]
    assert {1, 16, 256} <= set(made.axes["ranks"])
    assert {100, 200} <= set(made.axes["size"])
    assert made.missed["size"].max() < 0.01
    assert (made.loose["ranks"] >= 0).all()
    random = np.random.default_rng(5)
    ranks = np.round(np.exp(random.uniform(0, np.log(256), 50)))
    sizes = np.round(np.exp(random.uniform(np.log(100), np.log(400), 50)))
    truth = model.whole_time(*model.ask(np.column_stack([ranks, sizes]))).value[0]
    times = np.log(made.answers.time).reshape(made.shape)
    logs = {name: np.log(values) for name, values in made.axes.items()}
    marked = 0
    for p, n, true in zip(ranks, sizes, truth, strict=True):
        line = interpolated(logs["size"], times, np.log([n]))[:, 0]
        time = float(np.exp(interpolated(logs["ranks"], line, np.log([p])))[0])
        cells = [
            0.0 if x in made.axes[name] else made.missed[name][np.searchsorted(made.axes[name], x) - 1]
            for name, x in (("ranks", p), ("size", n))
        ]
        marked += sum(cells) > 0.01
        assert sum(cells) > 0.01 or time == pytest.approx(true, rel=0.01)
    assert marked < 25


def test_steps_are_bracketed_and_smooth_functions_need_few_values(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "smooth", ["nodes"])
    for nodes in (1, 2, 4, 8, 16):
        experiment.add(
            Run({"nodes": nodes}, collector="x"), pd.DataFrame({"kernel": "a", "rank": -1, "time": [8 / nodes + 1]})
        )
    made = grid(sweep(assemble(experiment)[0]))
    assert made is not None
    assert len(made.axes["nodes"]) < 40
    assert np.nanmax(made.missed["nodes"]) <= CLOSE
    assert made.answers.reason[0] == ""


def test_a_server_answers_as_predict_and_refuses_what_cannot_be_asked(model: Model) -> None:
    context = Context(model, sweep(model, to=256), live=True)
    found = ask.live_answer(context, {"ranks": 48, "size": 130})
    table = model.predict(ranks=48, size=130, metrics="time").table()
    whole = table[table["kernel"].isna() | (table["kernel"] == "(whole program)")].iloc[0]
    assert found["time"] == pytest.approx(whole["value"], rel=1e-12)
    assert found["low"] == pytest.approx(whole["lower"], rel=1e-12)
    assert sum(found["parts"]) == pytest.approx(found["time"], rel=0.05)
    assert len(found["kernels"]) == 3
    for values in (
        {"ranks": 1.5, "size": 100},
        {"ranks": 8, "size": -1},
        {"ranks": 8},
        {"ranks": 8, "size": float("inf")},
        {"ranks": 8, "depth": 2},
    ):
        with pytest.raises(InputError):
            ask.live_answer(context, values)


def test_charges_are_shown_by_their_unit(model: Model) -> None:
    context = Context(model, sweep(model, to=64), prices=Prices("EUR", core_hour=360.0))
    data = ask.build(context)
    assert data is not None
    assert data["data"]["charges"] == ["EUR"]
