"""Exponents set free, against a function whose exponent is on no grid."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.errors import InputError, InsufficientError
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.fitting.polish import polish
from ranksight.model.series.series import Series


def _series(x: np.ndarray, values: np.ndarray) -> Series:
    return Series(("ranks",), x[:, None], values.reshape(1, len(x), -1), ("solve",), ("time",))


def test_exponent_between_the_grids_is_found_with_its_error() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    generator = np.random.default_rng(2)
    series = _series(x, (900 * x**-0.81 + 5) * (1 + 0.002 * generator.normal(size=8)))
    found = polish(fit_series(series, space="power"), series, 0)
    at = [n for n in found.names if n.startswith("b")]
    assert len(at) == 1
    place = found.names.index(at[0])
    assert found.values[place] == pytest.approx(-0.81, abs=0.01)
    assert 0 < found.errors[place] < 0.02
    assert np.diag(found.correlation) == pytest.approx(np.ones(len(found.names)))
    assert found.residual < 0.005


def test_too_few_points_and_another_series_are_refused() -> None:
    x = np.array([1.0, 2.0, 4.0])
    series = _series(x, 9 / x + 1)
    with pytest.raises(InsufficientError, match="do not determine"):
        polish(fit_series(series), series, 0)
    other = Series(("ranks",), x[:, None], series.values, ("other",), ("time",))
    with pytest.raises(InputError, match="not the one"):
        polish(fit_series(series), other, 0)
