"""The discrepancy: what residuals hold beyond noise, shared by the series of an experiment."""

from __future__ import annotations

import numpy as np

from ranksight.model import priors
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.discrepancy import SCALES, scale


def _experiment(series: int, discrepancy: float, noise: float, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations learned from series of 3 residual degrees of freedom, and the law."""
    generator = np.random.default_rng(seed)
    total = np.hypot(noise, discrepancy)
    ratio = generator.chisquare(4, series) / 4 * (total / noise) ** 2
    return scale(ratio, np.full(series, 4.0), np.full(series, noise**2), np.full(series, 20.0), None)


def test_many_clean_series_have_none() -> None:
    found, _ = _experiment(1000, 0.0, 0.02)
    assert found.max() < 0.01
    assert np.median(found) < 0.006


def test_noise_is_no_discrepancy_however_large() -> None:
    loud, _ = _experiment(1000, 0.0, 0.1)
    assert np.median(loud) < 0.03


def test_what_exceeds_the_noise_is_found() -> None:
    found, law = _experiment(1000, 0.06, 0.01)
    assert 0.045 < np.median(found) < 0.075
    assert law @ SCALES > 0.04


def test_one_series_stays_near_the_prior() -> None:
    free = scale(np.ones(1), np.ones(1), np.full(1, 0.01**2), np.full(1, 10.0), None)[0]
    expected = scale(np.ones(1), np.full(1, 12.0), np.full(1, 0.01**2), np.full(1, 40.0), None)[0]
    assert 0.3 * priors.DISCREPANCY < free[0] < 3 * priors.DISCREPANCY
    assert expected[0] < free[0]


def test_without_repetitions_residuals_are_discrepancy() -> None:
    # Residuals of a hundredth: all of it may be discrepancy, and no more than that.
    found, _ = scale(np.array([1.0, 1e-8]), np.full(2, 9.0), np.full(2, 1e-4), np.zeros(2), None)
    assert 0.004 < found[0] < 0.02
    assert found[1] < 0.002


def test_three_values_that_a_form_meets_leave_room_for_another() -> None:
    """Repetitions that agree say nothing of the form: two coefficients meet three values of most curves."""
    generator = np.random.default_rng(8)
    x = np.array([2.0, 4.0, 8.0])
    shape = generator.uniform(0.2, 1.2, (300, 1)), generator.uniform(0.01, 0.5, (300, 1))

    def truth(at: np.ndarray) -> np.ndarray:
        return np.exp(shape[0] * np.log(at) + shape[1] * np.log(at) ** 2 / 2)

    values = truth(x)[:, :, None] * np.exp(0.003 * generator.normal(size=(300, 3, 3)))
    fitted = fit_series(Series(("p",), x[:, None], values, tuple(f"k{i}" for i in range(300)), ("time",) * 300))
    answer = fitted.predict(np.array([[16.0]]))
    there = truth(np.array([16.0]))[:, 0]
    inside = (answer.lower[:, 0] <= there) & (there <= answer.upper[:, 0])
    assert inside[answer.status[:, 0] == 0].mean() > 0.75
