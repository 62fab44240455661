"""A change of behaviour along one of two parameters, where the other changes nothing beyond the scatter."""

from __future__ import annotations

import json

import numpy as np

from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.unmoved import unmoved
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series

RANKS, SIZES = 2.0 ** np.arange(4), np.array([16.0, 24, 32, 48, 64, 96, 128, 192])
POINTS = np.array([[p, n] for p in RANKS for n in SIZES])
P, N = POINTS.T


def _scattered(exact: np.ndarray, points: np.ndarray = POINTS, seed: int = 0) -> Series:
    scatter = 1 + 0.01 * np.random.default_rng(seed).normal(size=(*exact.shape, 2))
    names = tuple(f"k{i}" for i in range(len(exact)))
    return Series(("ranks", "size"), points, exact[:, :, None] * scatter, names, ("time",) * len(exact))


def test_a_cache_that_is_outgrown_is_seen_next_to_ranks_that_change_nothing() -> None:
    cliff = np.where(N < 55, 1e-9, 4e-9) * N**3
    fitted = fit_varied(_scattered(np.stack([cliff, cliff / P, 1e-9 * N**3])))
    assert fitted.below_rows is not None
    assert fitted.below_rows.tolist() == [0]
    asked = np.array([[8.0, 256.0], [64.0, 256.0], [1.0, 32.0], [64.0, 24.0]])
    answer = fitted.predict(asked)
    truth = np.where(asked[:, 1] < 55, 1e-9, 4e-9) * asked[:, 1] ** 3
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.02)
    assert ((answer.lower[0] < truth) & (truth < answer.upper[0])).all()
    # Ranks that were not measured may change something yet.
    assert answer.upper[0, 1] / answer.lower[0, 1] > answer.upper[0, 0] / answer.lower[0, 0]
    assert "above size" in fitted.formula(0)
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.predict(asked).value, answer.value, rtol=1e-6)


def test_it_is_seen_next_to_a_first_parameter_of_one_value() -> None:
    here = POINTS[P == 1]
    fitted = fit_varied(_scattered(np.where(here[:, 1] < 55, 1e-9, 4e-9)[None] * here[:, 1] ** 3, here))
    np.testing.assert_allclose(fitted.predict(np.array([[1.0, 32.0]])).value, 1e-9 * 32**3, rtol=0.02)
    np.testing.assert_allclose(fitted.predict(np.array([[1.0, 256.0]])).value, 4e-9 * 256**3, rtol=0.02)


def test_weak_dependence_is_reported_from_none() -> None:
    count = 200
    weak = np.repeat((1e-9 * N**3 * P**0.03)[None], count, axis=0)
    where_small = np.repeat((1e-9 * N**3 + 1e-7 * np.log2(P))[None], count, axis=0)
    none = np.repeat((1e-9 * N**3)[None], count, axis=0)
    for exact, low, high in ((weak, 0.0, 0.01), (where_small, 0.0, 0.05), (none, 0.8, 1.0)):
        still, _ = unmoved(POINTS, _scattered(exact).values, 0)
        assert low <= still.mean() <= high
    still, error = unmoved(POINTS, _scattered(none).values, 1)
    assert not still.any()
    assert not error.any()


def test_what_is_never_above_zero_shows_nothing() -> None:
    assert not unmoved(POINTS, np.zeros((1, len(POINTS), 2)), 0)[0].any()
