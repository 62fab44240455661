"""Loops that iterate until they converge: what an iteration does follows the ranks, how often it iterates has a doubt of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.experiment import Run
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series
from ranksight.model.structure.loops import Iterations, find_iterations
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

RANKS, SIZES = (1, 2, 4, 8), (16, 24, 32)
TURNS = (14, 18, 25, 15, 19, 27, 15, 20, 26, 16, 19, 25)
POINTS = np.array([(p, size) for p in RANKS for size in SIZES], dtype=float)


def series(**rows: np.ndarray) -> Series:
    kernels, metrics = zip(*(name.split("__") for name in rows), strict=True)
    values = np.array(list(rows.values()), dtype=float)[:, :, None]
    return Series(("ranks", "size"), POINTS, values, kernels, metrics)


def found(given: Series) -> Iterations | None:
    return find_iterations(given, (), np.full(len(given), 0.05))


def test_calls_are_affine_functions_of_the_turns():
    n = np.array(TURNS)
    iterations = found(
        series(dot__visits=2 * n + 1, multiply__visits=n, start__visits=0 * n + 7, multiply__loads=n * 5.5)
    )
    assert iterations is not None
    assert iterations.counted == (("dot", "visits"),)
    assert iterations.keys == (("multiply", "visits"), ("multiply", "loads"))
    assert iterations.line == pytest.approx(np.array([[-0.5, 0.5], [-0.5, 0.5]]))


def test_messages_between_pairs_are_a_multiple_of_the_turns_at_every_number_of_ranks():
    n, partners = np.array(TURNS), np.repeat([0.0, 1.0, 2.0, 3.0], 3)
    sums = series(dot__messages=2 * n + 1, halo__messages=n * partners, halo__bytes_sent=n * partners * POINTS[:, 1])
    iterations = found(sums)
    assert iterations is not None
    assert iterations.keys == (("halo", "messages"), ("halo", "bytes_sent"))
    per_call = iterations.per_call(sums)
    assert per_call.values[0, :, 0] == pytest.approx(partners)
    assert per_call.values[1, :, 0] == pytest.approx(partners * POINTS[:, 1])


@pytest.mark.parametrize("calls", [np.full(12, 20.0), np.array(TURNS) + 0.5, np.repeat([1.0, 2.0, 3.0, 4.0], 3)])
def test_what_nothing_follows_is_no_count_of_turns(calls):
    assert found(series(dot__visits=calls, other__visits=np.array(TURNS)[::-1] ** 2)) is None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("iterations")
    rows = ["ranks,size,kernel,visits,instructions"]
    for (p, size), n in zip(POINTS.astype(int).tolist(), TURNS, strict=True):
        cells = size**3 // p
        rows.append(f"{p},{size},multiply,{n},{n * (7 * cells + 40)}")
        rows.append(f"{p},{size},dot,{2 * n + 1},{(2 * n + 1) * (3 * cells + 11)}")
        rows.append(f"{p},{size},update,{3 * n + 1},{(3 * n + 1) * 5 * cells}")
    table: Path = folder / "runs.csv"
    table.write_text("\n".join(rows), encoding="utf-8")
    words = ["import", "csv", str(table), "--parameter", "ranks", "--parameter", "size", "-q"]
    assert main([*words, "-o", str(folder / "runs.exp")]) == 0
    model = rs.fit(str(folder / "runs.exp"))
    model.save(folder / "runs.model.json")
    return Model.load(folder / "runs.model.json")


def test_what_a_call_does_is_exact_and_the_turns_are_shared(model):
    at = np.array([[64.0, 32.0], [16.0, 64.0]])
    answer, rows = model.functions.predict(at), model.functions.rows
    cells = at[:, 1] ** 3 / at[:, 0]
    for kernel, each in (("multiply", 7 * cells + 40), ("dot", 3 * cells + 11), ("update", 5 * cells)):
        per_call = answer.value[rows[kernel, "instructions"]] / answer.value[rows[kernel, "visits"]]
        assert per_call == pytest.approx(each, rel=0.01)
    visits = answer.value[rows["multiply", "visits"]]
    assert answer.value[rows["update", "visits"]] == pytest.approx(3 * visits + 1)


def test_turns_are_doubted_the_more_the_farther_they_go_on(model):
    sizes = np.array([[8.0, 32.0], [8.0, 48.0], [8.0, 96.0]])
    answer = model.functions.predict(sizes)
    row = model.functions.rows["update", "instructions"]
    factors = answer.upper[row] / answer.lower[row]
    assert (np.diff(factors) > 0).all()
    assert factors[0] < 1.5
    # Power laws between none and twice the slope measured.
    slope = abs(model.functions.iterations.slopes[0, 1])
    assert factors[2] >= 3 ** (2 * slope) * 0.99


def test_the_printed_function_names_the_turns(model):
    row = model.functions.rows["multiply", "instructions"]
    assert "iterations: visits of " in model.functions.formula(row)


def test_calls_that_follow_no_others_are_counted_by_themselves():
    calls = np.array(TURNS) // 5
    iterations = found(series(report__messages=calls, report__bytes_sent=calls * 8 * POINTS[:, 1]))
    assert iterations is not None
    assert iterations.counted == (("report", "messages"),)
    assert iterations.keys == (("report", "bytes_sent"),)


def reported() -> tuple[Series, Iterations]:
    calls = np.array(TURNS) // 5
    given = series(report__messages=calls, report__bytes_sent=calls * 8 * POINTS[:, 1])
    iterations = found(given)
    assert iterations is not None
    return given, iterations


def test_as_often_as_nobody_knows_is_no_number():
    _, iterations = reported()
    each, count = Forecast.settled(*np.full((3, 1, 2), 8.0)), Forecast.settled(*np.full((3, 1, 2), np.nan))
    count.status[:] = forecast.NOT_POSITIVE
    answer = iterations.times(each, count)
    assert np.isnan(answer.value).all()
    assert (answer.status == forecast.NOT_POSITIVE).all()


def test_tables_without_what_is_called_stay_as_they_are():
    given, iterations = reported()
    run = Run({"ranks": 2, "size": 16}, 0, "pmpi")
    table = pd.DataFrame({"kernel": ["other", "another"], "rank": [0, 1], "bytes_sent": [8.0, 16.0]})
    ((_, divided),) = iterations.tables(lambda: iter([(run, table)]), given)()
    assert divided["bytes_sent"].tolist() == [8.0, 16.0]


def test_what_nobody_counted_calls_of_is_as_open_as_the_turns():
    _, iterations = reported()
    at = np.array([[8.0, 32.0], [8.0, 64.0]])
    opened = iterations.opened(Forecast.settled(*np.full((3, 1, 2), 100.0)), at)
    slope = abs(iterations.slopes[0, 1])
    assert opened.lower[0] == pytest.approx([100.0, 100 / 2**slope])
    assert opened.upper[0] == pytest.approx([100.0, 100 * 2**slope])


def test_messages_in_all_but_one_iteration_go_by_them() -> None:
    """Sums over pairs of ranks: every step of a tree in each second iteration but the first, as the ranks have steps."""
    iterations = {16: 9.0, 24: 13.0, 32: 17.0, 40: 23.0, 48: 29.0}
    points = np.array([(p, size) for p in (2, 4, 8) for size in iterations], dtype=float)
    count = np.array([iterations[int(size)] for size in points[:, 1]])
    values = np.stack([count, (count - 1) / 2 * np.log2(points[:, 0])])
    series = Series(("ranks", "size"), points, values[:, :, None], ("dot", "tree"), ("messages",) * 2)
    found = find_iterations(series, (), np.zeros(2))
    assert found is not None
    assert (found.keys, found.counted) == ((("tree", "messages"),), (("dot", "messages"),))
    assert found.line == pytest.approx(np.array([[-0.5, 0.5]]))
    assert found.per_call(series).values[0, :, 0] == pytest.approx(np.log2(points[:, 0]))
