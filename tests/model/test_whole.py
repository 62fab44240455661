"""Sums over kernels."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.core.experiment import WHOLE
from ranksight.model.application import whole
from ranksight.model.fit import model_of
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast


@pytest.mark.parametrize(
    ("code", "share", "sufficient"),
    [
        (forecast.OK, 0.9, True),
        (forecast.FEW_POINTS, 0.9, False),
        (forecast.FEW_POINTS, 0.02, True),
        (forecast.NO_DATA, 0.9, False),
    ],
)
def test_a_sum_is_carried_by_its_parts(code: int, share: float, sufficient: bool) -> None:
    value = np.array([[10 * share], [10 * (1 - share)]])
    status = np.array([[code], [forecast.OK]])
    reason = np.array([["why" if code else ""], [""]], dtype=object)
    half = np.full((2, 1), 0.5)
    parts = Forecast(value, 0.95 * value, 1.05 * value, status, reason, half)
    said = whole.add(parts, np.array([0, 1]), np.array([share, 1 - share]), whole.NOISE)
    assert (said.status[0, 0] == forecast.OK) == sufficient
    if code != forecast.NO_DATA:
        assert said.value[0, 0] == pytest.approx(10)
        assert said.lower[0, 0] < 10 < said.upper[0, 0]
    if not sufficient:
        assert "90%" in said.reason[0, 0]


def test_a_sum_without_a_part_stays_so_however_narrow_it_is() -> None:
    codes = np.array([forecast.WIDE, forecast.NO_DATA, forecast.OK, forecast.OK, forecast.OK])
    low, high = np.array([9.0, 9.0, 9.0, 1.0, 0.0]), np.array([11.0, 11.0, 11.0, 9.0, 0.0])
    given = np.array(["a part is lost", "no data", "", "", ""], dtype=object)
    unknown = np.full((1, 5), np.nan)
    said = Forecast(unknown, low[None], high[None], codes[None], given[None], unknown).judged()
    (status,), (reason,) = said.status, said.reason
    assert status.tolist() == [forecast.WIDE, forecast.NO_DATA, forecast.OK, forecast.WIDE, forecast.OK]
    assert reason[:3].tolist() == ["a part is lost", "no data", ""]
    assert "factor of 9" in reason[3]


def transposes() -> Series:
    """Messages and bytes of a program whose transposes send nothing on one rank, and those of its set-up."""
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


def parts(half: float, code: int, form: float) -> Forecast:
    """A hundred parts of 1 each, with intervals of one half-width."""
    one = np.ones((100, 1))
    none = np.full(one.shape, "", dtype=object)
    return Forecast(one, one - half, one + half, np.full(one.shape, code), none, form * one)


@pytest.mark.parametrize(
    ("code", "form", "times"),
    [
        (forecast.OK, 0.0, 10),  # noise of a hundred parts goes by the root of their number
        (forecast.OK, 1.0, 100),  # form goes together
        (forecast.WIDE, 1.0, 100),  # what shows nothing by itself shows no more for being many
        (forecast.WIDE, 0.0, 10),
    ],
)
def test_noise_averages_out_over_kernels_and_form_does_not(code: int, form: float, times: float) -> None:
    said = whole.add(parts(0.2, code, form), np.arange(100), np.full(100, 0.01), 0.0)
    assert said.upper[0, 0] - said.value[0, 0] == pytest.approx(0.2 * times)
    assert said.value[0, 0] - said.lower[0, 0] == pytest.approx(0.2 * times)
    assert said.form[0, 0] == form


def test_the_share_of_the_form_grows_in_sums_where_noise_averages_out() -> None:
    said = whole.add(parts(0.2, forecast.OK, 0.5), np.arange(100), np.full(100, 0.01), 0.0)
    assert said.form[0, 0] == pytest.approx(100**2 / (100**2 + 100))


def test_many_kernels_of_one_form_are_no_surer_of_it_than_one() -> None:
    """Eight times beyond the runs, where no kernel answers by itself for it grows in another way than it did."""
    points = np.array([[p, s] for p in (1.0, 2, 4, 8, 16) for s in (16.0, 32, 64)])
    asked = np.array([[128.0, 64.0]])

    def time(at: np.ndarray) -> np.ndarray:
        ranks, size = at.T
        return 1e-5 * size**3 / ranks + 0.002 * np.log2(ranks) + 0.01

    inside = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scale = rng.uniform(0.1, 1.0, 150)[:, None, None]
        values = scale * time(points)[None, :, None] * np.exp(0.05 * rng.normal(size=(150, 15, 3)))
        kernels = tuple(f"kernel {k}" for k in range(150))
        model = model_of(Series(("ranks", "size"), points, values, kernels, ("time",) * 150), "many")
        answer = next(a for a in model.predict_at(asked).answers if a.kernel is None)
        inside.append(answer.lower <= scale.sum() * time(asked)[0] <= answer.upper)
    assert sum(inside) >= 5


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("form", [0.0, 0.5, 1.0])
def test_a_part_without_end_leaves_the_sum_without_one(noise: float, form: float) -> None:
    deviations, shares = np.array([[np.inf], [1.0]]), np.array([[form], [0.5]])
    of_noise, of_form = whole.apart(deviations, shares, noise)
    assert np.isinf(np.hypot(of_noise, of_form)).all()
    assert not np.isnan([of_noise, of_form]).any()
