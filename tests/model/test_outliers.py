"""Outliers: a single repetition unlike all others is left out, and scatter of heavy tails stays."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.noise import CLOSEST, LEAST, locate, without_outliers
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK

RANKS = np.array([1.0, 2, 4, 8, 16])


def _left_out(values: np.ndarray) -> np.ndarray:
    return np.isnan(without_outliers(values))


def test_one_repetition_three_times_as_long_is_left_out_and_scatter_is_that_of_the_others() -> None:
    values = (8 / RANKS + 0.05)[None, :, None] * (1 + 0.01 * np.random.default_rng(0).normal(size=(1, 5, 5)))
    values[0, -1, 2] *= 3
    expected = np.zeros(values.shape, dtype=bool)
    expected[0, -1, 2] = True
    np.testing.assert_array_equal(_left_out(values), expected)
    place = locate(values)
    assert place.values[0, -1] == pytest.approx(8 / 16 + 0.05, rel=0.02)
    assert np.sqrt(place.variance[0]) == pytest.approx(0.01, rel=0.5)
    ahead = fit_series(Series(("ranks",), RANKS[:, None], values, ("",), ("time",))).predict(np.array([[64.0]]))
    assert ahead.lower[0, 0] < 8 / 64 + 0.05 < ahead.upper[0, 0]
    assert ahead.upper[0, 0] < 2.5 * ahead.lower[0, 0]


def test_one_of_three_repetitions_three_times_as_long_is_left_out_of_most_series() -> None:
    """Something ran during one of fifteen runs of a time that falls to a thirteenth: most series are known by a few
    per cent, as if that run were not there; the scatter of five times three runs does not show it in all."""
    truth = (32 / RANKS + 0.5)[None, :, None]
    values = truth * np.exp(0.02 * np.random.default_rng(4).normal(size=(200, 5, 3)))
    values[:, 2, 1] *= 3
    left_out = _left_out(values)
    assert left_out[:, 2, 1].mean() > 0.7
    assert left_out.sum() == left_out[:, 2, 1].sum()
    answer = fit_series(Series(("ranks",), RANKS[:, None], values[:1], ("",), ("time",))).predict(RANKS[:, None])
    assert left_out[0, 2, 1]
    assert (answer.status == OK).all()
    assert (answer.upper < 1.5 * answer.lower).all()


def test_variances_of_selected_repetitions_are_those_of_draws() -> None:
    for at, count in enumerate(range(LEAST, LEAST + CLOSEST.shape[1])):
        values = np.random.default_rng(count).normal(size=(20_000, count))
        off = np.abs(values - np.median(values, axis=1, keepdims=True))
        rest = np.where(off < off.max(axis=1, keepdims=True), values, np.nan)
        logs = np.log(np.nanvar(rest, axis=1, ddof=1))
        assert logs.mean() == pytest.approx(CLOSEST[0, at], abs=0.06)
        assert logs.var() == pytest.approx(CLOSEST[1, at], rel=0.06)


@pytest.mark.parametrize("shape", [(2000, 5, 3), (2000, 20, 3), (2000, 5, 4), (2000, 5, 5), (2000, 25, 5)])
def test_normal_scatter_loses_nothing(shape: tuple[int, int, int]) -> None:
    values = 1 + 0.02 * np.random.default_rng(1).normal(size=shape)
    assert _left_out(values).any(axis=(1, 2)).mean() < 0.01


def test_a_configuration_that_scatters_more_throughout_keeps_its_repetitions() -> None:
    wide = np.array([0.01, 0.01, 0.01, 0.01, 0.1])[:, None]
    values = 1 + wide * np.random.default_rng(2).normal(size=(2000, 5, 5))
    assert _left_out(values).any(axis=(1, 2)).mean() < 0.03


def test_where_many_are_unlike_the_others_all_stay() -> None:
    values = 1 + 0.01 * np.random.default_rng(3).normal(size=(1, 5, 5))
    values[0, :3, 0] = 3.0
    assert not _left_out(values).any()


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0, 1.0, 3.0], [1.0, 3.0, np.nan, np.nan, np.nan], [np.nan] * 5])
def test_too_little_to_show_leaves_all(values: list[float]) -> None:
    given = np.full((1, 5, 5), values)
    np.testing.assert_array_equal(without_outliers(given), given)
