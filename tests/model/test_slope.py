"""Changes of slope beyond the runs: how likely, where, and what growth comes after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranksight.model import priors
from ranksight.model.fitting.changing import changes
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.slope import Change, filled, turned, with_changes

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def _changes(
    name: str, values: np.ndarray, asked: list[float], kernel: str = "k", x: np.ndarray = RANKS
) -> Change | None:
    fitted = fit_series(Series((name,), x[:, None], values[None, :, None], (kernel,), ("time",)))
    return changes(replace(fitted, pace=np.ones(1)), np.array(asked)[:, None])


def test_probability_of_a_change_follows_the_rule_of_succession() -> None:
    found = _changes("nodes", 10 / RANKS, [16.0, 32.0, 64.0, 256.0])
    assert found is not None
    # Ideal scaling over four doublings: one doubling ahead has the odds 1 to 4, four of them 1 to 1.
    np.testing.assert_allclose(found.share[:, 0].sum(axis=0), [0, 1 / 5, 1 / 3, 1 / 2], atol=1e-3)


def test_over_whole_nodes_the_time_stays_from_any_place_ahead() -> None:
    found = _changes("nodes", 10 / RANKS, [256.0])
    assert found is not None
    places = np.array(priors.SLOPE_PLACES)
    np.testing.assert_allclose(found.centre[1:, 0, 0], np.log(10 / 16) - places * np.log(16), atol=1e-3)
    np.testing.assert_allclose(found.spread[1:, 0, 0], priors.SLOPE_AFTER["divided"][1] * (1 - places) * np.log(16))


def test_within_a_node_the_next_ranks_bring_the_change() -> None:
    found = _changes("ranks", 10 / RANKS, [128.0], x=2 * RANKS)
    assert found is not None
    mean, deviation = priors.SLOPE_AFTER["node"]
    np.testing.assert_allclose(found.centre[1:, 0, 0], np.log(10 / 16) + mean * np.log(4), atol=1e-3)
    np.testing.assert_allclose(found.spread[1:, 0, 0], deviation * np.log(4))


def test_growth_along_ranks_may_end_but_not_that_of_sizes_or_calls() -> None:
    growing = 1 + RANKS
    found = _changes("ranks", growing, [64.0])
    assert found is not None
    np.testing.assert_allclose(found.centre[1:, 0, 0], np.log(17), atol=1e-2)
    assert _changes("size", growing, [64.0]) is None
    assert _changes("ranks", growing, [64.0], kernel="MPI_Allreduce") is None


def test_a_full_memory_domain_may_be_followed_by_another() -> None:
    x = np.array([1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 18.0])
    found = _changes("ranks", np.fmax(10 / x, 2.0), [36.0], x=x)
    assert found is not None
    assert found.share.sum() > 0.15
    # A time that rises again is held by messages, which more ranks do not divide.
    assert _changes("ranks", 10 / x + 0.2 * x, [36.0], kernel="MPI_Allreduce", x=x) is None


def test_within_what_was_measured_nothing_changes() -> None:
    assert _changes("ranks", 10 / RANKS, [2.0, 16.0]) is None


def test_times_inside_the_measured_range_have_no_change_along_two_parameters() -> None:
    points = np.array([(p, n) for p in (4.0, 8, 16, 32) for n in (16.0, 32, 64)])
    values = 1e-4 * points[:, 1] ** 3 / points[:, 0]
    fitted = fit_series(Series(("nodes", "size"), points, values[None, :, None], ("k",), ("time",)))
    assert changes(fitted, np.array([[256.0, 128.0]])) is None  # the work of a rank is one of those measured
    assert changes(fitted, np.array([[256.0, 16.0]])) is not None


def test_turned_is_the_change_of_slope_over_the_range() -> None:
    from ranksight.model.series.noise import locate

    x = np.log(RANKS)
    values = np.exp(np.stack([-x, -x + x**2 / (2 * np.log(16))]))[:, :, None]
    found = turned(RANKS[:, None], locate(values), np.ones(2, dtype=bool), "time")
    np.testing.assert_allclose(found, [0, 1], atol=1e-9)


def _fitted_times(ranks: np.ndarray, times: np.ndarray, kernel: str = "k") -> Fitted:
    return fit_series(Series(("ranks",), ranks[:, None], times[None, :, None], (kernel,), ("time",)))


@pytest.mark.parametrize(
    ("name", "law", "kept"),
    [
        ("strong", lambda p: 10 / p + 3, lambda last, ahead: last / ahead),
        ("weak", lambda p: 10 + 3 * np.sqrt(p), lambda last, ahead: last),
    ],
)
def test_a_node_measured_from_one_rank_on_may_be_full(
    name: str, law: Callable[[Any], Any], kept: Callable[[float, float], float]
) -> None:
    ranks = np.array([1.0, 2, 4, 8, 16])
    fitted = _fitted_times(ranks, law(ranks))
    change = changes(replace(fitted, pace=np.ones(1)), np.array([[64.0]]))
    assert change is not None
    assert change.share[0, 0, 0] == pytest.approx(priors.FULL_NODE)
    none = changes(replace(fitted, pace=np.full(1, 0.01)), np.array([[64.0]]))
    assert none is None or none.share[0, 0, 0] == 0
    np.testing.assert_allclose(np.exp(change.centre[0, 0, 0]), kept(law(16.0), 4.0), rtol=0.02)
    answer = replace(fitted, pace=np.ones(1)).predict([[64.0]], level=0.9)
    assert answer.lower[0, 0] < kept(law(16.0), 4.0) < answer.upper[0, 0]


def test_scatter_of_repetitions_is_no_sign_of_a_full_domain() -> None:
    """Work with a serial part whose repetitions differ by as much as its function misses them: the function goes on."""
    ranks, noise = np.array([1.0, 2, 4, 8, 16]), np.random.default_rng(3)
    times = (95 / ranks + 5)[None, :, None] * np.exp(0.02 * noise.standard_normal((24, 5, 5)))
    kernels, at = tuple(f"k{number}" for number in range(24)), np.array([[64.0]])
    once, repeated = (
        fit_series(Series(("ranks",), ranks[:, None], some, kernels, ("time",) * 24))
        for some in (times[:, :, :1], times)
    )
    unknown, known = changes(once, at), changes(repeated, at)
    assert unknown is not None
    np.testing.assert_allclose(unknown.share[0, :, 0], priors.FULL_NODE)
    assert known is None or known.share[0, :, 0].mean() < 0.2
    answer, truth = repeated.predict(at, level=0.9), 95 / 64 + 5
    assert ((answer.lower < truth) & (truth < answer.upper)).mean() > 0.85
    np.testing.assert_allclose(np.median(answer.value), truth, rtol=0.05)


def test_a_described_domain_is_full_with_as_many_ranks_as_it_has_cores() -> None:
    ranks = np.array([2.0, 4, 8, 16])
    fitted = replace(_fitted_times(ranks, 10 / ranks + 3), filling=32, pace=np.ones(1))
    inside, beyond = (changes(fitted, np.array([[float(p)]])) for p in (32, 128))
    assert beyond is not None
    assert inside is None or inside.share[0, 0, 0] == 0
    assert beyond.share[0, 0, 0] == pytest.approx(priors.FULL_NODE)
    np.testing.assert_allclose(np.exp(beyond.centre[0, 0, 0]), (10 / 32 + 3) / 4, rtol=0.02)


@pytest.mark.parametrize(
    ("high", "fills", "within"), [(4, 0.5, 1.0), (16, 1.0, 1.0), (45.25, 1.0, 0.5), (128, 1.0, 0.0), (256, 0.0, 0.0)]
)
def test_more_ranks_fill_a_domain_and_leave_it(high: float, fills: float, within: float) -> None:
    """Runs from two ranks on show a full domain only as long as they lie within it."""
    assert filled(1, high) == pytest.approx(priors.FULL_NODE * fills, abs=1e-3)
    assert filled(2, high) == pytest.approx(priors.FULL_NODE * fills * within, abs=1e-3)


@pytest.mark.parametrize(
    ("ranks", "kernel"),
    [
        ([2.0, 4, 8, 16, 32], "k"),
        ([1.0, 4, 16, 64, 256], "k"),
        ([1.0, 2, 4, 8, 16], "MPI_Allreduce"),
    ],
)
def test_runs_without_one_rank_or_over_nodes_and_messages_fill_no_domain(ranks: list[float], kernel: str) -> None:
    x = np.array(ranks)
    change = changes(_fitted_times(x, 10 + 3 * np.sqrt(x), kernel), np.array([[4 * x[-1]]]))
    assert change is None or not change.share[0].any()


def test_mixtures_keep_their_total_with_changes() -> None:
    one = np.ones((2, 1, 1))
    share, centre, spread, freedom = with_changes(
        (0.5 * one, 0 * one, 0.1 * one, 4 * one),
        Change(0.1 * np.ones((3, 1, 1)), np.ones((3, 1, 1)), np.ones((3, 1, 1))),
    )
    assert share.sum() == pytest.approx(1)
    np.testing.assert_allclose(share.ravel(), [0.35, 0.35, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(spread.ravel()[2:], np.sqrt(1 + 0.01))
    assert centre.shape == freedom.shape == (5, 1, 1)


def test_numbers_of_nodes_that_divide_worse_than_those_measured_have_room_upwards() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    series = Series(("nodes",), x[:, None], (10 / x + 1)[None, :, None], ("k",), ("time",))
    fitted = Fitted.from_dict(fit_series(series).to_dict())
    even, uneven = fitted.predict(np.array([[16.0]])), fitted.predict(np.array([[17.0]]))

    def reach(of: Forecast, end: str) -> float:
        return abs(float(np.log(getattr(of, end) / of.value)[0, 0]))

    assert reach(uneven, "upper") > reach(even, "upper") + 0.05
    assert reach(uneven, "lower") == pytest.approx(reach(even, "lower"), rel=0.1)
    instructions = fit_series(replace(series, metrics=("instructions",))).predict(np.array([[17.0]]))
    assert reach(instructions, "upper") < 0.01
    # Runs on 13 nodes show what 26 take, and threes divide as well as twos.
    x = np.array([1.0, 2.0, 4.0, 13.0])
    known = fit_series(replace(series, points=x[:, None], values=(10 / x + 1)[None, :, None]))
    assert reach(known.predict(np.array([[26.0]])), "upper") < reach(uneven, "upper")
    assert reach(fitted.predict(np.array([[18.0]])), "upper") < reach(even, "upper") + 0.02


def test_scatter_does_not_rule_out_a_domain_that_fills() -> None:
    """Eight cores, four of which fill the interface; the ranks beyond bring other domains, and times fall with them."""
    generator, p = np.random.default_rng(5), np.arange(1.0, 9.0)

    def time(ranks: np.ndarray) -> np.ndarray:
        inside = np.minimum(ranks, 8.0)
        return np.sqrt(inside**-2.0 + 4.0**-2.0) * inside / ranks

    asked, sure = np.array([16.0, 32.0]), []
    for _ in range(12):
        values = time(p)[None, :, None] * np.exp(0.02 * generator.normal(size=(1, 8, 3)))
        answer = fit_series(Series(("ranks",), p[:, None], values, ("k",), ("time",))).predict(asked[:, None])
        sure.append((answer.status == 0) & ((time(asked) < answer.lower) | (time(asked) > answer.upper)))
    assert np.mean(sure) < 0.1
