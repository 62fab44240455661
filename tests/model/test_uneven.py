"""One prime number of ranks among the runs does not decide what others take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ranksight.model.series.reducing import Series
from ranksight.model.structure.rank_notes import without_uneven

METRICS = ("time", "instructions", "flops_dp", "messages")


def measured(ranks: Sequence[int], waiting: float, at: int, sizes: Sequence[float] = (1.0,)) -> Series:
    """Divided work; on `at` ranks `waiting` as long on top, in which instructions spin."""
    points = np.array([(p, n) for n in sizes for p in ranks], dtype=float)
    p, n = points.T
    longer = 1 + waiting * (p == at)
    values = np.stack([8 * n / p * longer, 3e9 * n / p * longer, 1e9 * n / p, 40 * p * longer])
    return Series(("ranks", "size"), points, values[:, :, None], ("k",) * 4, METRICS)


@pytest.mark.parametrize("sizes", [(1.0,), (1.0, 2.0)])
@pytest.mark.parametrize("at", [11, 13])
def test_a_prime_number_of_ranks_that_waits_is_left_out(at: int, sizes: Sequence[float]) -> None:
    given = measured((1, 2, 4, 8, at, 16), 0.9, at, sizes)
    found, note = without_uneven(given)
    missing = np.isnan(found.values[..., 0])
    assert missing[:2, given.points[:, 0] == at].all()
    assert missing.sum() == 2 * len(sizes)
    assert f"ranks {at}" in note


@pytest.mark.parametrize(
    ("ranks", "waiting", "at"),
    [
        ((1, 2, 4, 8, 12, 16), 0.9, 12),  # divides evenly
        ((1, 2, 4, 8, 13, 16), 0.05, 13),  # hardly longer
        ((1, 2, 4, 8, 13, 26, 52), 0.9, 13),  # nodes of 13 cores
        ((1, 2, 13), 0.9, 13),  # nothing to compare with
        ((1, 2, 4, 8, 61), 0.9, 61),  # far beyond the others
    ],
)
def test_other_runs_are_kept(ranks: tuple[int, ...], waiting: float, at: int) -> None:
    given = measured(ranks, waiting, at)
    found, note = without_uneven(given)
    assert found is given
    assert not note


def test_a_domain_that_fills_is_no_waiting() -> None:
    """13 cores share a bandwidth that eight use up: times stay as they are, and rise by no run."""
    ranks = np.array([1, 2, 4, 8, 13.0])
    values = np.stack([8 / np.minimum(ranks, 8), 3e9 / ranks])
    given = Series(("ranks",), ranks[:, None], values[:, :, None], ("k",) * 2, METRICS[:2])
    assert without_uneven(given)[0] is given
