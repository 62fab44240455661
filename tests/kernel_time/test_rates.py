"""Rates over coordinates: slopes are found, exact rates are met, erratic ones stay near their last value."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.priors import REPEATED, UNSEEN
from ranksight.model.process.covariance import unseen

X = np.log(np.array([1.0, 2, 4, 8, 16, 32]))[:, None]
FAR = np.log(np.array([128.0, 512.0]))[:, None]


def rates(values: np.ndarray, error: float = 0.0) -> Rates:
    values = np.atleast_2d(values)
    return Rates(X, values, np.full(values.shape, error), ((True,),))


@pytest.mark.parametrize("slope", [-0.4, -0.1, 0.0, 0.25])
def test_a_power_law_goes_on(slope: float) -> None:
    mean, deviation = rates(0.7 + slope * X[:, 0]).at(FAR)
    assert mean[0] == pytest.approx(0.7 + slope * FAR[:, 0], abs=0.02)
    assert (deviation < 0.05).all()


def test_a_smooth_curve_is_met_at_the_runs() -> None:
    values = 0.3 * np.tanh(X[:, 0] - 1.5)
    mean, _ = rates(values).at(X)
    assert mean[0] == pytest.approx(values, abs=0.03)


def test_an_erratic_rate_has_an_interval_as_wide_as_its_changes() -> None:
    values = np.random.default_rng(1).normal(0, 0.3, (20, len(X)))
    mean, deviation = rates(values, 0.0).at(FAR)
    assert (deviation > 0.15).all()
    assert np.abs(mean).max() < 1.0


def test_intervals_cover_what_they_promise() -> None:
    """Noisy power laws: nine in ten of the true values inside, and intervals of a useful width."""
    generator = np.random.default_rng(5)
    slope = generator.normal(0, 0.2, 200)
    noise = 0.03
    measured = slope[:, None] * X[:, 0] + generator.normal(0, noise, (200, len(X)))
    mean, deviation = rates(measured, noise).at(FAR[:1])
    apart = np.abs(mean[:, 0] - slope * FAR[0, 0]) / deviation[:, 0]
    assert 0.8 <= (apart < 1.645).mean() <= 0.99
    assert np.median(deviation) < 6 * noise


def test_missing_values_change_nothing() -> None:
    full = rates(0.2 * X[:, 0])
    values = np.vstack([full.values[0], full.values[0]])
    values[1, 2] = np.nan
    mean, _ = rates(values).at(FAR)
    assert mean[1] == pytest.approx(mean[0], abs=0.02)


def test_what_no_run_shows_grows_with_the_distance() -> None:
    points = np.array([[0.0], [1.0], [4.0], [30.0]])
    found = unseen(points, np.array([[-1.0], [0.0]]))
    assert found[0] == pytest.approx(REPEATED)
    assert found[1] == pytest.approx(np.hypot(REPEATED, UNSEEN), rel=0.02)
    assert found[3] > 30 * UNSEEN


def test_plain_data_and_back() -> None:
    values = 0.2 * X[:, 0]
    values[1] = np.nan
    first = rates(values)
    again = Rates.from_dict(json.loads(json.dumps(first.to_dict())))
    assert again.at(FAR)[0] == pytest.approx(first.at(FAR)[0])
    with pytest.raises(InputError, match="rates"):
        Rates.from_dict({**first.to_dict(), "inputs": [[1.0]]})


@pytest.mark.parametrize("height", [-0.5, 1.5])
@pytest.mark.parametrize("middle", [10.5, 11.5])
def test_a_rate_between_two_constants_levels_off(height: float, middle: float) -> None:
    """Work per rank falls by 48 in the runs, amid which the rate changes, and by 16 beyond; a power law goes on."""

    def rate(u: np.ndarray) -> np.ndarray:
        return np.log(0.3 * (1 + height / (1 + np.exp(u - middle))))

    inputs = np.log(9e5 / np.array([1.0, 2, 4, 8, 12, 24, 48]))
    noise = np.random.default_rng(4).normal(0, 0.003, len(inputs))
    every = Rates(inputs[:, None], (rate(inputs) + noise)[None], np.full((1, len(inputs)), 0.003), ((True,),))
    steady = np.where(every.grid.knee > 0, 1e-12, every.grid.prior)
    without = replace(every, common=steady / steady.sum())
    far = np.array([[inputs.min() - np.log(16.0)]])
    mean, deviation = (part[0, 0] for part in every.at(far))
    other = without.at(far)[0][0, 0]
    expected = float(rate(far)[0, 0])
    assert abs(mean - expected) < 0.75 * abs(other - expected)
    assert abs(mean - expected) < 2 * deviation
