"""Times that have nearly stopped falling: at few ranks what they share may be full, at many it is not."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fitting.fitting import fit_series
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.plateau import plateau


def _law(ranks: np.ndarray, serial: float) -> np.ndarray:
    return serial + (1 - serial) / ranks


@pytest.mark.parametrize("serial", [0.0, 0.01, 0.3, 0.9])
def test_likely_as_the_serial_share_that_would_explain_it(serial: float) -> None:
    first, last = (np.full((1, 3), np.log(_law(np.array(p), serial))) for p in (8.0, 18.0))
    ranks = np.array([[18.0, 36.0, 72.0]])
    there = np.log(_law(ranks, serial)) - 1e-9
    found = plateau(8.0, 18.0, ranks, first, last, there, np.array([1e-4]))
    np.testing.assert_allclose(found.share, [[0, serial, serial]], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.centre[:, 1:], last[:, 1:] - np.log([[2, 4]]))


def test_what_rises_again_is_no_plateau() -> None:
    first, last = np.zeros((1, 2)), np.full((1, 2), np.log(0.8))
    there = last + np.array([[-0.1, 0.1]])
    found = plateau(8.0, 18.0, np.array([[36.0, 72.0]]), first, last, there, np.array([0.01]))
    assert found.share[0, 0] > 0.1
    assert found.share[0, 1] == 0


def test_what_does_not_fall_beyond_its_scatter_is_no_plateau() -> None:
    ranks = np.array([[72.0]])
    first = np.zeros((3, 1))
    last = np.log(np.array([[1.1], [1.0], [0.97]]))
    assert (plateau(8.0, 18.0, ranks, first, last, last - 0.1, np.full(3, 0.05)).share < 0.2).all()
    assert plateau(8.0, 18.0, ranks, first, last, last - 0.1, np.full(3, 0.05)).share[0, 0] == 0
    # The same fall is one where times scatter by a tenth of it.
    assert plateau(8.0, 18.0, ranks, first, last, last - 0.1, np.full(3, 0.003)).share[2, 0] > 0.6


def test_nothing_is_told_of_one_number_of_ranks_or_of_no_time() -> None:
    ranks = np.array([[1.0, 16.0]])
    for low, high, first in ((16.0, 16.0, 0.0), (8.0, 16.0, np.nan), (8.0, 16.0, np.inf)):
        last = np.zeros((1, 2))
        found = plateau(low, high, ranks, np.full((1, 2), first), last, last - 0.1, np.array([0.01]))
        assert (found.share == 0).all()
        assert np.isfinite(found.centre).all()


@pytest.mark.parametrize(("ranks", "full"), [((8, 10, 12, 14, 16, 18), True), ((800, 1000, 1200, 1400, 1800), False)])
def test_a_full_domain_is_possible_within_a_node_only(ranks: tuple[int, ...], full: bool) -> None:
    x = np.array(ranks, dtype=np.float64)
    # Most of the last time stands still.
    time = 0.85 + 0.15 * x[-1] / x
    series = Series(("ranks",), x[:, None], time[None, :, None], ("k",), ("time",))
    answer = fit_series(series).predict(np.array([[2 * x[-1]]]))
    assert (answer.lower[0, 0] < 0.55 * time[-1]) == full
    assert answer.upper[0, 0] > 0.95 * time[-1]
