"""Changes at the last value measured: other regimes, and growth that ended."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.forecast import OK
from ranksight.model.uncertainty.lasting import Lasting
from ranksight.model.uncertainty.late import ending

X = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
AHEAD = np.array([[128.0], [256.0]])


def _fit(values: np.ndarray, x: np.ndarray = X) -> Fitted:
    """One series of two repetitions, a hundredth apart."""
    both = values[None, :, None] * np.array([0.995, 1.005])
    return fit_series(Series(("ranks",), x[:, None], both, ("k",), ("time",)))


def _ended(fitted: Fitted) -> float:
    assert fitted.lasting is not None
    return float(fitted.lasting.ended[0])


def test_after_an_end_values_are_as_the_last_one_and_only_ahead() -> None:
    logs = np.log([[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, np.nan]])
    axis = np.zeros(2, dtype=np.intp)
    known = Lasting(X[:, None], logs, np.zeros(2), np.ones((2, 1)), axis, np.array([0.25, 0.5]), np.zeros(2))
    said = ending(known, np.array([[16.0], [48.0], [128.0]]))
    np.testing.assert_allclose(said.share, [[0, 0, 0.25], [0, 0.5, 0.5]])
    np.testing.assert_allclose(np.exp(said.centre[:, -1]), [5.0, 4.0])


@pytest.mark.parametrize("factor", [1.6, 2.5])
def test_a_last_value_that_jumps_is_no_steep_growth(factor: float) -> None:
    law = 1 + X / 100
    values = np.where(X[-1] == X, factor, 1.0) * law
    said = _fit(values).predict(AHEAD)
    expected = 1 + AHEAD[:, 0] / 100
    for truth in (expected, factor * expected):
        assert ((said.status[0] != OK) | ((said.lower[0] <= truth) & (truth <= said.upper[0]))).all()


def test_growth_that_falls_short_may_have_ended() -> None:
    x = np.array([4.0, 8.0, 16.0, 32.0, 48.0, 64.0, 96.0])
    fitted = _fit(1 + np.minimum(x, 75.0) / 10, x)
    assert _ended(fitted) > 0.2
    said = fitted.predict(np.array([[192.0]]))
    assert said.lower[0, 0] < 1.05 * 8.5
    assert said.upper[0, 0] > 1 + 19.2


@pytest.mark.parametrize("power", [-1.0, 0.5, 1.0, 2.0])
def test_what_goes_on_as_it_was_has_not_ended(power: float) -> None:
    assert _ended(_fit(1 + 3 * (X / 4.0) ** power)) == 0


def test_plain_data_keep_ends() -> None:
    x = np.array([4.0, 8.0, 16.0, 32.0, 48.0, 64.0, 96.0])
    fitted = _fit(1 + np.minimum(x, 75.0) / 10, x)
    content = json.loads(json.dumps(fitted.to_dict()))
    np.testing.assert_allclose(Fitted.from_dict(content).predict(AHEAD).lower, fitted.predict(AHEAD).lower, rtol=1e-6)
    content["lasting"]["ended"] = [2.0]
    with pytest.raises(InputError, match="'lasting' does not fit together"):
        Fitted.from_dict(content)
