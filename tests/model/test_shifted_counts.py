"""Exact counts of powers of a parameter and a shift: points of elements by order, cells with ghosts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.core.arrays import Array
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.terms import SHIFTED, SHIFTS, values
from ranksight.model.series.reducing import Series
from ranksight.reports.formula import python

Law = Callable[[Array], Array]


def _fit(x: Array, counts: Array) -> Fitted:
    return fit_series(Series(("order",), x[:, None], counts[None, :, None], ("k",), ("instructions",)))


@pytest.mark.parametrize(
    ("measured", "law"),
    [
        ((1, 2, 3, 4), lambda x: 3 * (x + 1) ** 3),
        ((2, 3, 4, 5, 7), lambda x: 120 * (x + 1) ** 4 + 60 * (x + 1) ** 3),
        ((30, 60, 90, 120), lambda x: 5 * (x + 1) ** 3 + 1234),
        ((10, 20, 30, 40), lambda x: 23 * (x - 2) ** 3 + 12345),
        ((16, 24, 32, 48), lambda x: 7 * (x + 2) ** 2),
    ],
)
def test_few_counts_show_a_shifted_power(measured: tuple[float, ...], law: Law) -> None:
    """Four whole numbers on a cubic were 24 % too low at twice the order, outside of their interval."""
    x, asked = np.array(measured, dtype=np.float64), 4.0 * measured[-1]
    fitted = _fit(x, law(x))
    answer = fitted.predict(np.array([[asked]]))
    assert answer.value[0, 0] == pytest.approx(law(np.array(asked)), rel=1e-6)
    assert answer.upper[0, 0] < 1.02 * answer.lower[0, 0]
    assert eval(python(fitted.formula(0), ("order",)), {"order": asked}) == pytest.approx(
        law(np.array(asked)), rel=1e-2
    )


@pytest.mark.parametrize("law", [lambda x: 7 * x**3, lambda x: 7 * x**3 + 100 * x**2, lambda x: 3 * x**2 + 8.0])
def test_powers_without_a_shift_stay_what_they_are(law: Law) -> None:
    x = np.array([10.0, 20, 30, 40])
    answer = _fit(x, law(x)).predict(np.array([[160.0]]))
    assert answer.value[0, 0] == pytest.approx(law(np.array(160.0)), rel=1e-6)


def test_a_shift_below_zero_has_no_value() -> None:
    at = values(np.array(SHIFTED)[:, None], np.array([[1.0], [5.0]]))
    for (shift, power), of_term in zip(SHIFTS, at, strict=True):
        assert np.isnan(of_term[0]) == (shift < -1)
        assert of_term[1] == pytest.approx((5 + shift) ** power)
