"""What residuals hold beyond noise."""

from __future__ import annotations

import numpy as np

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series


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
