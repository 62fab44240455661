"""Kernels of some repetitions only are named where they weigh."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.application.others import sometimes
from ranksight.model.series.reducing import Series

NAN = np.nan


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([[1.0, 1.0, 1.0], [1.0, 1.0, NAN]], ""),
        ([[NAN, NAN, NAN], [1.0, 1.0, NAN]], ""),
        ([[1.0, 1.0, 1.0], [NAN, 1.0, NAN]], "check (in 1 of 2 runs, 10% of the time)"),
        ([[NAN, 3.0, 3.0], [1.0, 1.0, NAN]], "check (in 2 of 3 runs, 25% of the time)"),
        ([[1.0, 1.0, 1.0], [NAN, 0.01, NAN]], ""),
    ],
)
def test_a_kernel_of_some_repetitions_is_named(second: list[list[float]], said: str) -> None:
    # The second configuration ran twice.
    values = np.array([[[9.0, 9.0, 9.0], [9.0, 9.0, NAN]], second])
    found = sometimes(Series(("ranks",), np.array([[1.0], [2.0]]), values, ("solve", "check"), ("time", "time")))
    assert found.endswith(said)
    assert bool(found) == bool(said)
