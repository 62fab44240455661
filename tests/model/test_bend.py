"""Times whose growth bends: what lies ahead is open to the side where it may go."""

from __future__ import annotations

import numpy as np

from ranksight.model.fitting.fitting import fit_series
from ranksight.model.series.noise import locate
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.bend import bend

X = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


def _bend(values: np.ndarray, part: float = 1.0) -> np.ndarray:
    return bend(X[:, None], locate(values[None, :, None]), np.ones(1, dtype=bool), "time", np.array([part]))[0]


def test_slopes_of_a_parabola_in_logarithms() -> None:
    log, width = np.log(X), np.log(32.0)
    turn = 2 * 0.05 * width / np.sqrt(3)
    np.testing.assert_allclose(_bend(np.exp(-2 * log + 0.05 * log**2)), [turn, 0], atol=1e-9)
    np.testing.assert_allclose(_bend(np.exp(-0.3 * log - 0.05 * log**2)), [0, turn], atol=1e-9)
    np.testing.assert_allclose(_bend(np.exp(log - 0.05 * log**2), part=0.5), [turn / 2, 0], atol=1e-9)
    np.testing.assert_allclose(_bend(np.exp(log + 0.05 * log**2)), [0, 0], atol=1e-9)


def test_growth_that_ends_lies_within_the_interval() -> None:
    generator = np.random.default_rng(1)
    truth = 10 * (1 - np.exp(-np.append(X, 256.0) / 60))
    values = truth[None, :-1, None] * (1 + 0.005 * generator.normal(size=(1, 6, 3)))
    said = fit_series(Series(("ranks",), X[:, None], values, ("k",), ("time",))).predict(np.array([[256.0]]))
    assert said.lower[0, 0] < truth[-1] < said.upper[0, 0]


def test_growth_that_is_known_exactly_stays_so() -> None:
    values = np.repeat((1 + 0.5 * np.log2(X))[None, :, None], 3, axis=2)
    said = fit_series(Series(("ranks",), X[:, None], values, ("k",), ("time",))).predict(np.array([[1024.0]]))
    assert said.lower[0, 0] > 0.7 * said.value[0, 0]
