"""Parts of a program that begin late, and parts that have no answer, in the sum."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.application import whole
from ranksight.model.fit import model_of
from ranksight.model.series.reducing import Series
from ranksight.model.structure.late import NOTHING_LATE, fit_late
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

RANKS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


def series(values: list[float], name: str = "time", worth: bool = False) -> Series:
    made = np.array(values)[None, :, None]
    drawn = np.full(made.shape, 1.0 if worth else np.nan)
    return Series(("ranks",), RANKS[: len(values), None], made, ("exchange",), (name,), worth=drawn)


def test_one_value_stands_where_it_was_measured_and_goes_either_way() -> None:
    law = fit_late(series([0, 0, 0, 0, 0, 3.0]))
    assert law
    said = law.predict(np.array([[32.0], [48.0], [64.0], [128.0], [1024.0]]))
    assert (said.value[0, 0], said.lower[0, 0], said.upper[0, 0]) == (0, 0, 0)
    assert said.lower[0, 1] == 0
    assert said.upper[0, 1] > 3.0
    assert said.value[0, 2] == pytest.approx(3.0, rel=1e-4)
    assert said.upper[0, 2] < 1.08 * 3.0
    assert said.lower[0, 3] == pytest.approx(1.5, rel=0.03)
    assert said.upper[0, 3] == pytest.approx(6.0, rel=0.03)
    assert said.status[0].tolist() == [forecast.OK, forecast.WIDE, forecast.OK, forecast.WIDE, forecast.WIDE]
    assert law.formula(0) == "0 up to ranks 32, 3 s at ranks 64"


@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.5])
def test_two_values_show_how_it_goes_on(slope: float) -> None:
    law = fit_late(series([0, 0, 0, 0, 2.0, 2.0 * 2**slope]))
    assert law
    said = law.predict(np.array([[128.0]]))
    assert said.value[0, 0] == pytest.approx(2.0 * 4**slope, rel=0.03)
    assert said.status[0, 0] == forecast.OK


@pytest.mark.parametrize(
    ("values", "name", "worth"),
    [
        ([0, 1, 1, 1, 1, 1], "time", False),  # one zero is no boundary, and five values are a function
        ([0, 0, 1, 0, 0, 1], "time", False),  # it comes and goes
        ([0, 0, 0, 0, 0, 64], "messages", False),  # counts have laws of their own
        ([0, 0, 0, 0, 0, 1], "time", True),  # no sample fell on it
    ],
)
def test_other_zeros_are_no_boundary(values: list[float], name: str, worth: bool) -> None:
    assert fit_late(series([float(value) for value in values], name, worth)) is NOTHING_LATE


def test_shares_are_those_of_the_largest_run() -> None:
    values = np.stack([64 / RANKS, np.r_[np.zeros(5), 3.0]])[:, :, None]
    made = Series(("ranks",), RANKS[:, None], values, ("solve", "exchange"), ("time", "time"))
    assert model_of(made, "late").shares == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("code", [forecast.NO_DATA, forecast.UNVARIED])
def test_a_part_without_an_answer_may_take_what_it_took(code: int) -> None:
    value = np.array([[np.nan], [6.0]])
    reason = np.array([["why"], [""]], dtype=object)
    parts = Forecast(value, value, value, np.array([[code], [forecast.OK]]), reason, np.ones((2, 1)))
    summed = whole.add(parts, np.array([0, 1]), np.array([0.25, 0.75]), 0.0)
    assert summed.value[0, 0] == pytest.approx(8.0)
    assert summed.lower[0, 0] == pytest.approx(6.0)
    assert summed.upper[0, 0] > 2 * 8.0 - 6.0
    assert summed.status[0, 0] == code
