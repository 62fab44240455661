"""Where means are made linear: near the values, whatever smoothing makes of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.model.process.fit_process import data_of, fit_process
from ranksight.model.series.noise import locate

X = np.array([[1.0], [4.0], [16.0], [64.0]])
GRID = np.array([(p, n) for p in (4, 8, 16, 32, 64) for n in (128, 192, 256)], dtype=float)


@pytest.mark.parametrize("law", [lambda p: 1 + 1e-4 * p**3, lambda p: 1 / p + 1e-4 * p**2])
def test_a_steep_bend_is_no_scatter(law: Callable[[np.ndarray], np.ndarray]) -> None:
    """Smoothing leaves it far from the values, where the law itself would seem to miss them."""
    times = law(X[:, 0])[None, :, None]
    assert data_of(X, locate(times, points=X)).apart.all()
    process = fit_process(X, locate(times, points=X), np.arange(1))
    assert process.scattered()[0] < 0.02
    far = np.array([[256.0]])
    np.testing.assert_allclose(np.exp(process.medians(far))[0], law(far[:, 0]), rtol=0.02)


def test_coordinates_that_act_together_are_no_scatter() -> None:
    p, n = GRID.T
    times = (1e-5 * p + 1e-4 + 2e-10 * n**3 / p)[None, :, None]
    assert data_of(GRID, locate(times, points=GRID)).apart.all()
    process = fit_process(GRID, locate(times, points=GRID), np.arange(1))
    assert process.scattered()[0] < 1e-3
    far = np.array([[512.0, 256.0]])
    truth = 1e-5 * 512 + 1e-4 + 2e-10 * 256**3 / 512
    assert np.exp(process.medians(far))[0, 0] == pytest.approx(truth, rel=1e-4)


def test_values_near_their_smoothed_ones_stay() -> None:
    times = (3 + 100 / X[:, 0])[None, :, None]
    data = data_of(X, locate(times, points=X))
    assert not data.apart.any()
    np.testing.assert_array_equal(fit_process(X, locate(times, points=X), np.arange(1)).centre, data.centre)
