"""Functions of work per rank, and parameters that varied together only."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.kernel_time.where import work_per_rank
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast

RANKS = (1.0, 2.0, 4.0, 8.0, 16.0)
ASKED = np.array([[64.0, 64.0], [64.0, 128.0], [128.0, 96.0]])


def _fit(points: np.ndarray, values: np.ndarray, metric: str = "instructions") -> Fitted:
    return fit_varied(Series(("ranks", "size"), points, values[None, :, None], ("k",), (metric,)))


def _share(points: np.ndarray) -> np.ndarray:
    x: np.ndarray = points[:, 1] ** 3 / points[:, 0]
    return 2e5 + 3 * x + 40 * x ** (2 / 3)


def test_two_sizes_show_volume_and_surface_of_a_share() -> None:
    # Of the size alone two values show one way of growing; the shares of the domain take ten values.
    points = np.array([(p, n) for p in RANKS for n in (32.0, 64.0)])
    said = _fit(points, _share(points)).predict(ASKED)
    assert (said.status == forecast.OK).all()
    np.testing.assert_allclose(said.value[0], _share(ASKED), rtol=1e-3)


def test_few_runs_of_any_ranks_and_sizes_show_it() -> None:
    points = np.array([(1.0, 16.0), (2.0, 48.0), (4.0, 24.0), (8.0, 64.0), (16.0, 32.0), (4.0, 48.0)])
    scattered = _share(points) * np.exp(0.01 * np.array([1, -1, 1, -1, -1, 1]))
    said = _fit(points, scattered, "time").predict(ASKED)
    np.testing.assert_allclose(said.value[0], _share(ASKED), rtol=0.1)


def test_what_does_not_follow_the_share_is_unknown_by_it() -> None:
    points = np.array([(p, n) for p in RANKS for n in (32.0, 64.0)])
    said = _fit(points, points[:, 1] ** 2 * np.sqrt(points[:, 0])).predict(ASKED)
    np.testing.assert_allclose(said.value[0], ASKED[:, 1] ** 2 * np.sqrt(ASKED[:, 0]), rtol=1e-3)


def test_weak_scaling_does_not_show_another_size() -> None:
    points = np.array([(p**2, 16.0 * p) for p in RANKS])
    fitted = _fit(points, np.full(5, 1e6))
    for held in (fitted, Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))):
        said = held.predict(np.array([(1024.0, 512.0), (1024.0, 500.0), (1024.0, 1024.0), (64.0, 64.0)]))
        assert said.status[0].tolist() == [forecast.OK, forecast.OK, forecast.UNVARIED, forecast.UNVARIED]
        assert "ranks and size varied together only" in said.reason[0, 2]
        assert said.value[0, 0] == pytest.approx(1e6)


def test_sizes_rounded_next_to_weak_scaling_leave_doubt_of_others() -> None:
    points = np.array([(1.0, 16.0), (2.0, 20.0), (4.0, 25.0), (8.0, 32.0), (16.0, 40.0), (32.0, 51.0)])
    noise = np.exp(0.02 * np.array([1, -1, 1, 1, -1, -1]))
    said = _fit(points, 1e-3 * noise, "time").predict(np.array([(64.0, 64.0), (64.0, 256.0)]))
    assert said.status[0, 0] == forecast.OK
    assert said.status[0, 1] == forecast.DISAGREE


def test_a_change_of_behaviour_next_to_a_parameter_that_did_not_vary_is_kept() -> None:
    x = 2.0 ** np.arange(1, 10)
    fitted = _fit(np.stack([x, np.full(9, 8.0)], axis=1), np.where(x < 48, 1000 / x, 20 + x**1.2), "time")
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert "above ranks" in again.formula(0)
    np.testing.assert_allclose(again.predict(np.array([[4.0, 8.0]])).value, 250.0, rtol=1e-6)


@pytest.mark.parametrize(("slope", "power"), [(-1.0, -1.0), (-0.2, -1.0), (-0.02, 0.0), (0.0, 0.0), (0.5, 0.0)])
def test_times_that_fall_with_the_ranks_are_of_divided_work(slope: float, power: float) -> None:
    """Ranks that share memory make a time fall less than the work, not the other way round."""
    ranks, sizes = (each.ravel() for each in np.meshgrid([8.0, 10, 12, 18], [64.0, 96]))
    times = sizes**3 * ranks**slope
    series = Series(("ranks", "size"), np.stack([ranks, sizes], axis=1), times[None, :, None], ("k",), ("time",))
    np.testing.assert_array_equal(work_per_rank(series).powers, [power, 3])
