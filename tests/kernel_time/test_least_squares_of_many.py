"""Least squares of many problems at once."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.resource import marquardt

X = np.linspace(0.0, 4.0, 9)
TRUE = np.array([[2.0, 0.5], [5.0, 1.5], [1.0, 0.1]])


def _residuals(point: np.ndarray, rows: np.ndarray) -> np.ndarray:
    amplitude, rate = point.T[:, :, None]
    return amplitude * np.exp(-rate * X) - TRUE[rows, :1] * np.exp(-TRUE[rows, 1:] * X)


@pytest.mark.parametrize("steps", [marquardt.STEPS, 0])
def test_parameters_are_found_together_and_alone_where_steps_do_not_settle(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marquardt, "STEPS", steps)
    low, high = np.zeros((3, 2)), np.tile([4.0, 3.0], (3, 1))
    found = marquardt.least_squares(_residuals, np.ones((3, 2)), low, high)
    assert found[[0, 2]] == pytest.approx(TRUE[[0, 2]], rel=1e-3)
    assert found[1, 0] == pytest.approx(4.0, rel=1e-3), "the limit holds"


def test_parameters_whose_sum_alone_is_determined_are_found_in_many_steps() -> None:
    """Every step is a good one, and the damping must not vanish between two columns that are the same."""
    found = marquardt.least_squares(
        lambda point, _: point.sum(axis=1, keepdims=True) - 150.0,
        np.zeros((1, 2)),
        np.zeros((1, 2)),
        np.full((1, 2), 1e3),
    )
    assert found.sum() == pytest.approx(150.0, rel=1e-3)
