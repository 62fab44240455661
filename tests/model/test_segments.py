"""Changes of behaviour: found where they are, and not where there are none."""

from __future__ import annotations

import json

import numpy as np

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series


def _series(x: np.ndarray, exact: np.ndarray, noise: float, repetitions: int = 3) -> Series:
    scatter = 1 + noise * np.random.default_rng(4).uniform(-1, 1, size=(*exact.shape, repetitions))
    names = tuple(f"k{i}" for i in range(len(exact)))
    return Series(("ranks",), x[:, None], exact[:, :, None] * scatter, names, ("time",) * len(exact))


def test_both_sides_are_modelled_and_the_right_one_goes_on() -> None:
    x = 2.0 ** np.arange(1, 11)
    exact = np.stack([np.where(x < 50, 100 / x + 1, 40 + 0.5 * x), np.where(x < 100, 1e-6, 5e-6) * x, 3 + 2 * x**0.5])
    fitted = fit_series(_series(x, exact, 0.03))
    assert fitted.below
    assert 32 < fitted.breaks[0] < 64
    assert 64 < fitted.breaks[1] < 128
    assert np.isnan(fitted.breaks[2])
    answer = fitted.predict(np.array([[16.0], [4096.0]]))
    np.testing.assert_allclose(answer.value[:2, 0], [100 / 16 + 1, 16e-6], rtol=0.05)
    np.testing.assert_allclose(answer.value[:2, 1], [40 + 2048, 5e-6 * 4096], rtol=0.1)
    assert "above ranks" in fitted.formula(0)
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.predict(np.array([[16.0], [4096.0]])).value, answer.value, rtol=1e-3)


def test_false_alarms_on_smooth_series_are_rare() -> None:
    generator = np.random.default_rng(11)
    alarms = []
    for x in (2.0 ** np.arange(2, 12), np.arange(8.0, 88.0, 8.0)):
        powers = generator.choice([-1.0, -0.5, 0.25, 0.5, 1.0, 1.5, 2.0], size=(300, 2, 1))
        coefficients = generator.uniform(0.01, 1000, size=(300, 3, 1))
        exact = coefficients[:, 0] + (coefficients[:, 1:] * (x / x[0]) ** powers).sum(axis=1)
        for noise in (0.02, 0.1):
            breaks = fit_series(_series(x, exact, noise), intervals=False).breaks
            alarms.append(float((~np.isnan(breaks)).mean()))
    assert np.mean(alarms) < 0.02
