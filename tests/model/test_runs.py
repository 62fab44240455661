"""Times at configurations that were measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE, Experiment, Run
from ranksight.model.application.measured import calls
from ranksight.model.application.runs import Runs
from ranksight.model.fit import fit
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

RANKS = (1, 2, 4, 8, 16, 32)


def law(value: float, factor: float) -> Forecast:
    middle = np.full((1, 2), value)
    return Forecast.settled(middle, middle / factor, middle * factor)


def runs(*repetitions: float) -> Runs:
    series = Series(("ranks",), np.array([[8.0], [16.0]]), np.array([[repetitions, repetitions]]), ("k",), ("time",))
    return Runs.of(series)


def met(given: Runs, said: Forecast) -> tuple[float, float, float]:
    found = given.met(said, np.array([[8.0], [9.0]]), {"k": 0})
    assert found.value[0, 1] == said.value[0, 1]
    return float(found.value[0, 0]), float(found.lower[0, 0]), float(found.upper[0, 0])


def test_a_law_that_misses_a_run_gives_way_to_it() -> None:
    value, low, high = met(runs(1.98, 2.0, 2.02), law(1.0, 1.02))
    assert value == pytest.approx(2.0, rel=0.002)
    assert low < 1.98
    assert high > 2.02
    assert high / low < 1.1


def test_a_law_that_agrees_is_worth_as_much_as_it_is_sure() -> None:
    sure, doubtful = (met(runs(0.95, 1.0, 1.05), law(1.02, factor))[0] for factor in (1.005, 1.5))
    assert sure == pytest.approx(1.02, rel=0.01)
    assert doubtful == pytest.approx(1.0, rel=0.005)


def test_what_has_no_law_is_what_was_measured() -> None:
    nothing = np.full((1, 2), np.nan)
    status, reason = np.full((1, 2), forecast.NO_DATA), np.full((1, 2), "why", dtype=object)
    given = Forecast(nothing, nothing, nothing, status, reason, nothing)
    found = runs(2.0, 2.1, 2.2).met(given, np.array([[16.0], [32.0]]), {"k": 0})
    assert found.value[0, 0] == pytest.approx(2.1)
    assert found.status[0].tolist() == [forecast.OK, forecast.NO_DATA]


def test_the_program_at_a_measured_configuration_is_what_it_took(tmp_path: Path) -> None:
    """One kernel is slower at 16 ranks than any function of the others has it."""
    noise = np.random.default_rng(1)
    experiment = Experiment.create(tmp_path / "e", "p", ["ranks"])
    walls: dict[int, list[float]] = {ranks: [] for ranks in RANKS}
    for ranks in RANKS:
        for repetition in range(3):
            a, b = np.array([8 / ranks * (1.15 if ranks == 16 else 1), 0.2]) * noise.lognormal(0, 0.005, 2)
            table = pd.DataFrame({"kernel": [WHOLE, "a", "b"], "rank": -1, "time": [a + b, a, b]})
            experiment.add(Run({"ranks": ranks}, repetition=repetition), table)
            walls[ranks].append(a + b)
    total = fit(experiment, ["time"]).breakdown(np.array(RANKS, dtype=float)[:, None]).total
    medians = [np.median(each) for each in walls.values()]
    np.testing.assert_allclose(total.value[0], medians, rtol=0.01)
    assert (total.lower[0] < medians).all()
    assert (total.upper[0] > medians).all()


def test_runs_without_a_message_in_their_table_have_no_calls(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "quiet", ["ranks"])
    for ranks in (2, 4):
        counters = pd.DataFrame({"kernel": WHOLE, "rank": range(ranks), "time": 1.0})
        none = {name: np.zeros(0) for name in MESSAGE_COLUMNS} | {
            name: np.zeros(0, dtype=str) for name in ("kernel", "operation")
        }
        made.add(Run({"ranks": float(ranks)}), counters, pd.DataFrame(none))
    assert calls(made) == {}
