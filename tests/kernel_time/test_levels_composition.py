"""Loads by level as one composition: shares move at known capacities, and the sum stays the loads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from ranksight.model.kernel_time.composition import Caches, _Refinement, fit_compositions

LATENCIES = np.array([4.0, 12.0, 53.0, 230.0])
CACHES = Caches(np.array([32e3, 256e3, 30e6]), np.array([1.0, 1.0, 12.0]), LATENCIES)
STREAM, BYTES = 0.3, 24.0


def loads(x: np.ndarray) -> np.ndarray:
    """Loads per unit of work, of which a stream is served as its working set grows past the capacities."""
    past = 1 / (1 + (CACHES.sizes / CACHES.shared_by / (BYTES * x[:, None])) ** 3)
    share = np.stack([1 - past[:, 0], past[:, 0] - past[:, 1], past[:, 1] - past[:, 2], past[:, 2]])
    return np.array([0.2, 0.01, 0.001, 0.0])[:, None] + STREAM * share


@pytest.mark.parametrize("largest", [7e5, 2e6])
def test_levels_move_where_the_working_set_meets_a_capacity(largest: float) -> None:
    x = largest / np.array([1.0, 2, 4, 8, 12, 24, 48])
    active = np.full(len(x), 12.0)
    (held,) = fit_compositions(loads(x)[None], np.log(x), CACHES.capacities(active), LATENCIES)
    further = largest / np.array([96.0, 384.0, 768.0])
    said = held.per_work(np.log(further), CACHES.capacities(np.full(3, 12.0)))[0]
    true = loads(further)
    assert LATENCIES @ said == pytest.approx(LATENCIES @ true, rel=0.05)
    assert said.sum(axis=0) == pytest.approx(true.sum(axis=0), rel=0.02)


def test_the_capacity_of_a_shared_cache_goes_with_the_ranks_at_work() -> None:
    even, working = CACHES.capacities(np.array([1.0, 3.0, 12.0, 24.0]))
    assert even[2] == pytest.approx([2.5e6] * 4)
    assert working[2] == pytest.approx([30e6, 10e6, 2.5e6, 2.5e6])


def test_kernels_fitted_together_are_those_fitted_alone_by_scipy() -> None:
    # Marquardt's steps for all at once end where a bounded least-squares fit of each kernel does.
    x = np.log(2e6 / np.array([1.0, 2, 4, 8, 12, 24, 48]))
    capacities = CACHES.capacities(np.full(len(x), 12.0))
    noise = np.random.default_rng(7).normal(0, 0.03, (20, 4, len(x)))
    many = loads(np.exp(x)) * np.exp(noise)
    together = fit_compositions(many, x, capacities, LATENCIES)
    for one, held in zip(many, together, strict=True):
        (alone,) = fit_compositions(one[None], x, capacities, LATENCIES)
        assert held.per_work(x, capacities) == pytest.approx(alone.per_work(x, capacities), rel=1e-6)
    squares = (LATENCIES[:, None] / (LATENCIES @ many)[:, None]) ** 2
    refinement, rows = _Refinement(many, squares, x, capacities[0]), np.arange(len(many))
    start = np.array([[np.log(BYTES) + 0.4, 2.0]]) + np.zeros((len(many), 1))
    found = (refinement.at(refinement.best(start), rows)[2] ** 2).sum(axis=1)
    for at in rows:
        limits = (start[at, 0] - 2.0, 0.5), (start[at, 0] + 2.0, 16.0)
        alone = optimize.least_squares(
            lambda point, at=at: refinement.at(point[None], rows[at : at + 1])[2][0], start[at], bounds=limits
        )
        assert found[at] <= 2 * alone.cost * (1 + 1e-6)
