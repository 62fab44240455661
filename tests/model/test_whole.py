"""Sums over kernels."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.experiment import WHOLE
from ranksight.model.application import whole
from ranksight.model.learning import model_of
from ranksight.model.series.series import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast


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


def transposes() -> Series:
    """Messages and bytes of a program whose transposes send nothing on one rank, beside those of its set-up."""
    ranks = np.array([1.0, 2.0, 4.0, 8.0])
    sent = np.where(ranks > 1, 2.0**24 / ranks, np.nan)
    kernels = {
        ("transpose", "bytes_sent"): sent,
        ("setup", "bytes_sent"): np.full(4, 20.0),
        (WHOLE, "bytes_sent"): np.nan_to_num(sent) + 20,
        ("transpose", "messages"): np.array([np.nan, 6, 6, 6]),
        (WHOLE, "messages"): np.array([3.0, 9, 9, 9]),
        ("transpose", "mpi_time"): np.array([np.nan, 1, 1, 1]),
        (WHOLE, "mpi_time"): np.array([0.0, 1, 1, 1]),
    }
    names = list(kernels)
    values = np.stack([kernels[key] for key in names])[:, :, None]
    return Series(("ranks",), ranks[:, None], values, tuple(k for k, _ in names), tuple(m for _, m in names))


def test_a_count_that_is_the_sum_of_its_kernels_has_no_function_of_its_own() -> None:
    series = transposes()
    kept = whole.without_sums(series)
    # Messages that no kernel accounts for stay the program's own, and so do times.
    assert [m for k, m in zip(kept.kernels, kept.metrics, strict=True) if k == WHOLE] == ["messages", "mpi_time"]
    sent = next(a for a in model_of(kept, "ft").predict(ranks=64, metrics=["bytes_sent"]).answers if a.kernel is None)
    assert sent.value == pytest.approx(2**24 / 64 + 20, rel=1e-3)
    assert sent.status == forecast.OK
