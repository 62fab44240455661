"""Changes of slope beyond the runs: how likely, where, and what growth comes after them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.model import priors
from ranksight.model.fitting.changing import changes
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series
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
    np.testing.assert_allclose(found.centre[:, 0, 0], np.log(10 / 16) - places * np.log(16), atol=1e-3)
    np.testing.assert_allclose(found.spread[:, 0, 0], priors.SLOPE_AFTER["divided"][1] * (1 - places) * np.log(16))


def test_within_a_node_the_next_ranks_bring_the_change() -> None:
    found = _changes("ranks", 10 / RANKS, [128.0], x=2 * RANKS)
    assert found is not None
    mean, deviation = priors.SLOPE_AFTER["node"]
    np.testing.assert_allclose(found.centre[:, 0, 0], np.log(10 / 16) + mean * np.log(4), atol=1e-3)
    np.testing.assert_allclose(found.spread[:, 0, 0], deviation * np.log(4))


def test_growth_along_ranks_may_end_but_not_that_of_sizes_or_calls() -> None:
    growing = 1 + RANKS
    found = _changes("ranks", growing, [64.0])
    assert found is not None
    np.testing.assert_allclose(found.centre[:, 0, 0], np.log(17), atol=1e-2)
    assert _changes("size", growing, [64.0]) is None
    assert _changes("ranks", growing, [64.0], kernel="MPI_Allreduce") is None


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
    ("high", "fills", "within"), [(4, 0.5, 1.0), (16, 1.0, 1.0), (45.25, 1.0, 0.5), (128, 1.0, 0.0), (256, 0.0, 0.0)]
)
def test_more_ranks_fill_a_domain_and_leave_it(high: float, fills: float, within: float) -> None:
    """Runs from two ranks on show a full domain only as long as they lie within it."""
    assert filled(1, high) == pytest.approx(priors.FULL_NODE * fills, abs=1e-3)
    assert filled(2, high) == pytest.approx(priors.FULL_NODE * fills * within, abs=1e-3)


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
