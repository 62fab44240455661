"""Parts that begin late, and parts that have no answer, in the sum."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.application import whole
from ranksight.model.fit import model_of
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

RANKS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


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
