"""Laws that turn into others beyond their runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.turns import Ahead, turn_of
from ranksight.core.experiment import WHOLE
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.process.covariance import SCATTER, Turn, beyond
from ranksight.model.process.fit_process import fit_process
from ranksight.model.process.posterior import turned
from ranksight.model.process.prevalence import learned
from ranksight.model.series.domains import Domains
from ranksight.model.series.noise import locate
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.mixture import Components, quantiles

X = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])


def _one(centre: np.ndarray, spread: np.ndarray) -> Components:
    """One component a point."""
    return Components(np.ones((1, len(centre))), centre[None], spread[None], np.full((1, len(centre)), 30.0))


def test_distance_is_that_to_the_nearest_run() -> None:
    runs = np.array([[0.0, 0.0], [2.0, 1.0]])
    asked = np.array([[1.0, 0.5], [3.0, 0.5], [5.0, 5.0], [-1.0, 1.0]])
    np.testing.assert_allclose(beyond(asked, runs), [0, 1, 5, 1])


def test_a_turn_widens_what_is_beyond_the_runs_alone() -> None:
    """99 % intervals at twice the largest value hold their slopes too."""
    times = (3 + 100 / X[:, 0])[None, :, None]
    process = fit_process(X, locate(times, points=X), np.arange(1))
    straight = process.components(np.array([[3.0], [32.0]]))
    assert len(straight.weight) == 2 * process.weight.shape[1]
    np.testing.assert_allclose(straight.weight.sum(axis=0), 1)
    half = process.weight.shape[1]
    np.testing.assert_array_equal(straight.weight[half:, :, 0], 0)
    wider = straight.spread[half:, 0, 1] ** 2 - straight.spread[:half, 0, 1] ** 2
    np.testing.assert_allclose(wider, (process.turn[0, 3] * np.log(2)) ** 2)
    last = process.straight(np.array([[16.0]])).centre[:, 0, 0]
    flatter = straight.centre[half:, 0, 1] - straight.centre[:half, 0, 1]
    np.testing.assert_allclose(flatter, process.turn[0, 2] * (last - straight.centre[:half, 0, 1]))
    assert len(process.components(np.array([[3.0]])).weight) == half


def test_whole_programs_that_were_run_on_several_nodes_turn_as_published_ones() -> None:
    scatter = np.exp(0.03 * np.random.default_rng(1).normal(size=(1, len(X), 1)))
    times = np.stack([3 + 100 / X[:, 0]] * 2)[:, :, None] * scatter
    series = Series(("ranks",), 4 * X, times, (WHOLE, "solve"), ("time", "time"))
    within, over = (fit_series(series, domains=Domains.inferred(4, ranks_per_node=n)) for n in (64, 16))
    assert (within.processes[0].turn == learned().turn).all()
    assert (over.processes[0].turn == [learned().whole_turn, learned().turn]).all()
    factors = []
    for fitted in (within, over):
        answer = fitted.predict(np.array([[256.0]]))
        factors.append(answer.upper[:, 0] / answer.lower[:, 0])
    assert factors[1][0] > 1.2 * factors[0][0]
    assert factors[1][1] == pytest.approx(factors[0][1])


def test_turns_move_no_median_of_an_even_law() -> None:
    even = Components(*(part[:, None] for part in _one(np.array([1.0, 2.0]), np.array([0.1, 0.2]))))
    away = np.array([0.7, 3.0])
    low, middle, high = quantiles(
        (0.005, 0.5, 0.995), *turned(even, even.centre, away, np.array([0.2]), Turn(0.2, 0.0, 0.5, 0.5))
    )[:, 0]
    np.testing.assert_allclose(middle, [1, 2], atol=1e-4)
    # Half a percent lies beyond 2.5 % of those that turn.
    np.testing.assert_allclose(high - middle, student.ppf(0.975, 30) * np.hypot([0.1, 0.2], 0.5 * away), rtol=0.03)
    np.testing.assert_allclose(middle - low, high - middle, rtol=1e-3)


@pytest.mark.parametrize("often", [0.2, 0.4])
def test_turns_are_learned_from_the_curves_that_show_them(often: float) -> None:
    """Those of runs that scatter by 6 % turn more often than those of 0.75 %."""
    generator = np.random.default_rng(3)
    distance = np.log(np.array([2.0, 4.0]))
    drawn = Turn(often, 0.7, 0.4, 0.5)
    curves = []
    for at in range(3000):
        scatter = 0.06 if at % 2 else 0.0075
        turns = generator.random() < drawn.probability(np.array(scatter))
        slope = -1.0 + turns * (0.4 + 0.5 * generator.normal())
        measured = slope * distance + 0.02 * generator.normal(size=2)
        parts = _one(-distance, np.full(2, 0.02))
        curves.append(Ahead("one", f"split {at % 4}", parts, np.zeros((1, 2)), scatter, distance, measured))
    turn = turn_of(curves, 3000)
    assert turn.often == pytest.approx(often, rel=0.2)
    assert turn.power == pytest.approx(0.7, abs=0.15)
    assert turn.flatter == pytest.approx(0.4, abs=0.1)
    assert turn.slope == pytest.approx(0.5, rel=0.2)


def test_odds_of_a_turn_grow_with_the_scatter() -> None:
    turn = Turn(0.2, 0.5, 0.0, 1.0)
    odds = 0.25 * np.sqrt(np.array([0.01, 0.1, 1.0, 4.0]))
    scatter = SCATTER * np.array([0.01, 0.1, 1.0, 4.0])
    odds[0] = odds[1]  # what is smaller counts as none
    np.testing.assert_allclose(turn.probability(scatter), odds / (1 + odds))


def test_the_table_says_how_often_laws_turn() -> None:
    turn = learned().turn
    assert 0 < turn.often < 0.5
    assert 0 < turn.power < 2
    assert 0 < turn.flatter < 1
    assert 0 < turn.slope < 1
