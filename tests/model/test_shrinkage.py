"""What series learn from each other, and what none may learn: cancelling terms, counts that caches decide."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.search import shrinkage
from ranksight.model.search.physics import cancelling
from ranksight.model.search.screening import Screened, evidence
from ranksight.model.series.noise import behaviour, locate
from ranksight.model.series.reducing import Series
from ranksight.model.spaces import SPACES
from ranksight.model.uncertainty import discrepancy

EDGES = np.array([30.0, 60.0, 90.0, 120.0])


def test_only_terms_larger_than_the_whole_cost() -> None:
    coefficients = np.array([[[0.3, 0.7], [1.0, 0.0], [8.0, -7.0]]])
    cost = cancelling(coefficients, [np.zeros((1, 3))] * 2)
    np.testing.assert_allclose(cost[0], [0.0, 0.0, 2 * np.log(8.0)])


@pytest.mark.parametrize("metric", ["bytes_mem", "loads"])
def test_counts_that_grow_in_steps_are_no_difference_of_huge_terms(metric: str) -> None:
    # The smallest edge fits a cache: from the next on the traffic is that of the volume.
    values = np.array([2.8e6, 7.0e7, 2.26e8, 5.36e8])
    series = Series(("edge",), EDGES[:, None], values[None, :, None], ("k",), (metric,))
    fitted = fit_series(series)
    largest = max(abs(c * np.prod(EDGES[-1] ** term[:, 0])) for c, term in fitted.leading(0))
    assert largest < 3 * values[-1]


def test_what_caches_serve_behaves_like_what_is_measured() -> None:
    assert behaviour("bytes_mem") == behaviour("loads_l2") == "other"
    assert behaviour("instructions") == "requirement"
    assert behaviour("time") == "time"


def _screened(values: np.ndarray, x: np.ndarray) -> tuple[Screened, np.ndarray, np.ndarray]:
    location = locate(values[:, :, None])
    problem, screened = SPACES["default"](1).screen(x[:, None], location, np.full(len(values), True), "time")
    base = discrepancy.configuration_variance(location, "time")
    score = evidence(screened, problem.count, base, np.full(len(values), 2.0))
    every, mine = shrinkage.shift(problem, screened, score)
    return screened, every, mine


def test_a_series_alone_shows_itself_nothing() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    screened, every, mine = _screened(10.0 / x[None], x)
    assert mine.shape == (1, len(screened.members))
    np.testing.assert_allclose(mine, 0.0, atol=1e-12)
    assert np.abs(every).max() > 0


def test_series_are_reported_by_the_others() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    falling = np.stack([10.0 * k / x for k in range(1, 20)])
    odd = (3.0 + 2.0 * x)[None]
    _, _, mine = _screened(np.concatenate([falling, odd]), x)
    # The odd one hears of falling alone; the falling ones hear of each other and of it.
    assert mine[-1].max() > mine[0].max() > 0
    many = np.repeat(falling, 12, axis=0)
    _, every, mine = _screened(many, x)
    assert len(many) > shrinkage.FEW
    assert every.shape == mine.shape == (1, mine.shape[1])


def test_others_that_fit_nothing_do_not_make_a_clean_series_vague() -> None:
    generator = np.random.default_rng(3)
    rough = np.exp(generator.normal(0, 1.5, (20, 4)).cumsum(axis=1)) * 1e6
    clean = 4.0 * EDGES**3
    values = np.concatenate([rough, clean[None]])[:, :, None]
    names = tuple(f"k{i}" for i in range(21))
    answer = fit_series(Series(("edge",), EDGES[:, None], values, names, ("bytes_mem",) * 21)).predict([[150.0]])
    assert answer.value[-1, 0] == pytest.approx(4.0 * 150.0**3, rel=0.1)


def test_first_values_of_another_regime_in_all_series_are_no_usual_scatter() -> None:
    generator = np.random.default_rng(1)
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    power = generator.uniform(0, 0.3, 20)[:, None]
    values = x**power * (1 + 0.01 * generator.standard_normal((20, 5)))
    values[:, 0] *= 2 * generator.uniform(0.9, 1.1, 20)
    kernels = tuple(f"k{at}" for at in range(20))
    answer = fit_series(Series(("size",), x[:, None], values[..., None], kernels, ("time",) * 20)).predict(
        np.array([[64.0]])
    )
    # Held against the scatter of all of them it is half as much again.
    assert np.median(answer.value[:, 0] / 64 ** power[:, 0]) < 1.35
