"""Sums over kernels."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model import forecast, whole
from ranksight.model.forecast import Forecast


@pytest.mark.parametrize(
    ("code", "share", "carried"),
    [
        (forecast.OK, 0.9, True),
        (forecast.FEW_POINTS, 0.9, False),
        (forecast.FEW_POINTS, 0.02, True),
        (forecast.NO_DATA, 0.9, False),
    ],
)
def test_a_sum_is_carried_by_its_parts(code: int, share: float, carried: bool) -> None:
    value = np.array([[10 * share], [10 * (1 - share)]])
    status = np.array([[code], [forecast.OK]])
    reason = np.array([["why" if code else ""], [""]], dtype=object)
    half = np.full((2, 1), 0.5)
    parts = Forecast(value, 0.95 * value, 1.05 * value, status, reason, half, half, 0.9)
    total, low, high, codes, reasons = whole.add(parts, np.array([0, 1]), np.array([share, 1 - share]), 0.5)
    assert (codes[0] == forecast.OK) == carried
    if code != forecast.NO_DATA:
        assert total[0] == pytest.approx(10)
        assert low[0] < 10 < high[0]
    if not carried:
        assert "90%" in reasons[0]


def test_a_sum_without_a_part_stays_so_however_narrow_it_is() -> None:
    codes = np.array([forecast.WIDE, forecast.NO_DATA, forecast.OK, forecast.OK, forecast.OK])
    low, high = np.array([9.0, 9.0, 9.0, 1.0, 0.0]), np.array([11.0, 11.0, 11.0, 9.0, 0.0])
    status, reason = whole.judged(low, high, codes, ["a part is lost", "no data", "", "", ""])
    assert status.tolist() == [forecast.WIDE, forecast.NO_DATA, forecast.OK, forecast.WIDE, forecast.OK]
    assert reason[:3].tolist() == ["a part is lost", "no data", ""]
    assert "factor of 9" in reason[3]
