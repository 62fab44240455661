"""What extrapolation must not do: lose huge and tiny values, explode from jitter, forget that scaling may stop."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fit import model_of
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def _series(values: np.ndarray, metric: str = "time") -> Series:
    return Series(("ranks",), X[: len(values), None], np.asarray(values)[None, :, None], ("k",), (metric,))


@pytest.mark.parametrize("metric", ["time", "loads"])
@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_huge_and_tiny_values_are_as_good_as_others(size: float, metric: str) -> None:
    values = np.array([1.0, 2.0, 4.1, 8.0, 16.2])
    plain = fit_series(_series(values, metric)).predict(np.array([[24.0]]))
    scaled = fit_series(_series(size * values, metric)).predict(np.array([[24.0]]))
    assert scaled.status[0, 0] == 0
    for name in ("value", "lower", "upper"):
        np.testing.assert_allclose(getattr(scaled, name) / size, getattr(plain, name), rtol=1e-6)


def test_value_lies_between_its_ends() -> None:
    generator = np.random.default_rng(3)
    exact = np.stack([3 + 5 * X, np.full(5, 7.0), 100 / X, X**1.5])
    values = np.concatenate([exact, exact * generator.uniform(0.8, 1.2, exact.shape)])
    series = Series(("ranks",), X[:, None], values[:, :, None], tuple("abcdefgh"), ("loads",) * 8)
    answer = fit_series(series).predict(np.array([[3.0], [64.0], [1e4]]))
    known = np.isfinite(answer.value)
    assert known.any()
    assert (answer.lower < answer.value)[known].all()
    assert (answer.value < answer.upper)[known].all()


@pytest.mark.parametrize("scatter", [0.003, 0.01, 0.03])
def test_jitter_of_a_count_is_not_growth(scatter: float) -> None:
    generator = np.random.default_rng(5)
    said = []
    for _ in range(20):
        values = 1000 * (1 + scatter * generator.standard_normal(5))
        answer = fit_series(_series(values, "loads")).predict(np.array([[256.0]]))
        said.append(answer.value[0, 0] / 1000)
        inside = answer.lower[0, 0] <= 1000 <= answer.upper[0, 0]
        assert inside or answer.status[0, 0] != 0 or abs(said[-1] - 1) < 0.5
    assert abs(np.median(said) - 1) < 0.02
    assert max(said) < 2


def test_count_that_is_flat_over_two_parameters_stays_near_the_data() -> None:
    points = np.array([[r, s] for r in (1.0, 2.0, 4.0, 8.0) for s in (8.0, 16.0)])
    values = np.array([1555.2, 1586.9, 1586.9, 1613.6, 1555.2, 1586.9, 1645.6, 1678.4])
    fitted = fit_series(Series(("ranks", "size"), points, values[None, :, None], ("k",), ("loads",)))
    answer = fitted.predict(np.array([[1024.0, 16.0]]))
    assert 1400 < answer.value[0, 0] < 1900
    assert "ranks" not in fitted.formula(0)


def test_work_with_a_serial_part_goes_on() -> None:
    x = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 18.0])
    missed = 1 + 0.015 * np.array([0, 1, -1, -1, 1, 1, -1, -1, 1])
    asked = np.array([[36.0], [72.0]])
    on = 25 / asked[:, 0] + 4
    for time in (25 / x + 4, (25 / x + 4) * missed):
        series = Series(("ranks",), x[:, None], time[None, :, None], ("k",), ("time",))
        answer = fit_series(series).predict(asked)
        assert (answer.upper[0] > on).all()
        np.testing.assert_allclose(answer.value[0], on, rtol=0.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[0.0, 0, 0, 0, 5], [0.0, 0, 0, 0, 0], [5.0, 0, 0, 0, 0], [1.0, 0, 2, 0, 4]])
@pytest.mark.parametrize("metric", ["time", "loads"])
def test_zeros_are_answered_without_a_fault(values: list[float], metric: str) -> None:
    answer = fit_series(_series(np.array(values), metric)).predict(np.array([[64.0]]))
    assert np.isfinite(answer.value[0, 0]) or answer.reason[0, 0]


def test_what_is_nothing_on_one_rank_does_not_hide_the_program_there() -> None:
    """Messages take no time on one rank: terms that cancel there are known to be small, however far off in logarithms."""
    points = np.array([[p, n] for p in (1.0, 2, 4, 8, 16) for n in (32.0, 48, 64, 96)])
    ranks, size = points.T
    own = 1.6e-7 * size**3 / ranks
    sent = np.where(ranks > 1, 1e-5 * np.log2(ranks) + 2.4e-8 * (size**3 / ranks) ** (2 / 3), 0.0)
    scatter = np.random.default_rng(1).lognormal(0, 0.03, (2, len(points), 3))
    values = np.stack([own, sent])[:, :, None] * scatter
    model = model_of(Series(("ranks", "size"), points, values, ("stencil", "halo"), ("time",) * 2), "made")
    whole = next(answer for answer in model.predict(ranks=1, size=64).answers if answer.kernel is None)
    assert whole.ok
    assert whole.upper < 1.2 * 1.6e-7 * 64**3
