"""Counts that fall to the end of the runs: no function of nearly as many terms as values makes them grow again."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.search.basis import Basis
from ranksight.model.search.problem import pose
from ranksight.model.search.terms import ONE
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import Location
from ranksight.model.uncertainty.forecast import OK

RANKS = np.array([1.0, 2.0, 4.0, 8.0])
FAR = np.array([[16.0], [64.0], [1024.0]])


def counts(*rows: list[float], ranks: np.ndarray = RANKS) -> Series:
    """Instructions of kernels over ranks."""
    names = tuple(f"k{i}" for i in range(len(rows)))
    return Series(("ranks",), ranks[:, None], np.array(rows)[:, :, None], names, ("instructions",) * len(rows))


@pytest.mark.parametrize(
    "values",
    [
        [905.0, 905.0, 884.0, 761.0],
        [9050.0, 9049.0, 8840.0, 7610.0],
        [1000.0, 1001.0, 990.0, 905.0],
        [640.0, 620.0, 560.0, 380.0],
        [512.0, 256.0, 140.0, 110.0],
    ],
)
def test_a_count_that_falls_is_not_said_to_grow(values: list[float]) -> None:
    answer = fit_series(counts(values)).predict(FAR)
    assert (answer.value[0] <= max(values)).all()
    assert (answer.upper[0][answer.status[0] == OK] < 2 * max(values)).all()


def test_a_count_that_rises_at_the_end_may_grow() -> None:
    answer = fit_series(counts([101.0, 102.0, 104.0, 108.0], [118.0, 84.0, 90.0, 132.0])).predict(FAR)
    assert answer.value[0] == pytest.approx(100 + FAR[:, 0], rel=0.02)
    assert answer.value[1, 0] > 132


@pytest.mark.parametrize("way", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_the_rise_of_a_line_is_what_its_last_value_is_above_its_least(way: list[int]) -> None:
    values = np.array([[8.0, 4.0, 2.0, 1.0], [1.0, 2.0, 4.0, 8.0], [8.0, 2.0, 4.0, 4.0], [8.0, 2.0, 4.0, 0.0]])[:, way]
    present = np.array([[1.0] * 4, [1.0] * 4, [1.0] * 4, [1.0, 1.0, 1.0, 0.0]])[:, way]
    location = Location(values, np.ones_like(values), present, *np.full((3, 4), np.nan))
    points = RANKS[way, None]
    problem = pose(Basis.products((ONE,), points), points, location, np.ones(4, dtype=bool), "requirement")
    assert problem.rise[:, 0] == pytest.approx(np.log([1.0, 8.0, 2.0, 2.0]))
