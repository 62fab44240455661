"""What is said of sums that are not the program's: kernels of some repetitions only, and kernels within kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.model.application.whole import overlap, sometimes
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


def test_the_largest_are_named_and_the_others_counted() -> None:
    # Of 100 s in three runs each: all but the first kernel are in one run of three.
    seconds = [70.0, 4.0, 8.0, 6.0, 2.0, 10.0]
    values = np.array([[[each] + [each if at == 0 else NAN] * 2] for at, each in enumerate(seconds)])
    names = ("main", "four", "eight", "six", "two", "ten")
    found = sometimes(Series(("ranks",), np.array([[1.0]]), values, names, ("time",) * 6))
    named = ", ".join(
        f"{name} (in 1 of 3 runs, {part}% of the time)" for name, part in (("ten", 10), ("eight", 8), ("six", 6))
    )
    assert found.endswith(f": {named} and 2 more")


def test_the_only_kernel_is_no_part_of_a_sum() -> None:
    values = np.array([[[1.0, NAN]], [[2.0, 2.0]]])
    assert not sometimes(Series(("ranks",), np.array([[1.0]]), values, ("solve", WHOLE), ("time", "time")))


def kernels_and_whole(*ratios: list[float], threads: float = 1.0) -> Series:
    """Kernels that take parts of a program of 10 s at two configurations, twice each."""
    values = np.array([*ratios, [1.0, 1.0]])[:, :, None] * 10 * np.ones(2)
    names = (*(f"k{at}" for at in range(len(ratios))), WHOLE)
    points = np.array([[1.0, threads], [2.0, threads]])
    return Series(("ranks", "threads"), points, values, names, ("time",) * len(names))


def test_kernels_that_hold_each_other_are_said_to() -> None:
    assert overlap(kernels_and_whole([0.5, 0.5], [0.5, 0.5])) == ""
    assert "1.5 times the program's" in overlap(kernels_and_whole([0.9, 0.9], [0.6, 0.6]))
    assert overlap(kernels_and_whole([0.9, 0.9], [0.6, 0.6], threads=2.0)) == ""
    assert overlap(kernels_and_whole()) == ""
    alone = kernels_and_whole([0.9, 0.9], [0.6, 0.6])
    assert overlap(alone.select(np.array([0, 1]))) == ""
    assert overlap(replace(alone, values=alone.values * [[[1]], [[1]], [[np.nan]]])) == ""


def test_no_kernel_takes_longer_than_the_program_everywhere() -> None:
    with pytest.raises(InputError, match="k1 takes longer"):
        overlap(kernels_and_whole([0.1, 0.1], [1.2, 1.3]))
    assert overlap(kernels_and_whole([0.1, 0.1], [1.2, 0.8])) == ""


def test_kernels_never_hold_more_than_a_tenth_of_the_time_without_a_word() -> None:
    assert overlap(kernels_and_whole([1.0, 1.0], [0.1, 0.1])) == ""
    assert overlap(kernels_and_whole([0.55, 0.55], [0.6, 0.6])) != ""
