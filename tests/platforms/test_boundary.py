"""The end of the last cache on latency curves of known capacity: kinds of replacement, noise, page tables, cut curves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ranksight.platforms.calibration.boundary import Boundary, find_boundary
from ranksight.platforms.calibration.latency import working_sets
from ranksight.platforms.calibration.plateaus import assign, find_plateaus

Array = NDArray[np.float64]
KI, MI = 1 << 10, 1 << 20
PRIVATE = (48 * KI, 2 * MI)
NEAR, FAR = 25e-9, 80e-9
STEP = 2 ** (1 / 4)


def oldest_out(w: Array, capacity: float) -> Array:
    """Misses of what is gone through again and again where the least recently used line is thrown out."""
    return (w > capacity).astype(float)


def any_out(w: Array, capacity: float) -> Array:
    """Where lines are thrown out at random: m = 1 - exp(-m w / C)."""
    m = np.ones_like(w)
    for _ in range(300):
        m = 1 - np.exp(-m * w / capacity)
    return np.where(w > capacity, m, 0.0)


def best_out(w: Array, capacity: float) -> Array:
    """The least that can be."""
    return np.maximum(0.0, 1 - capacity / w)


HALVES = {oldest_out: 1.0, any_out: 2 * np.log(2), best_out: 2.0}
"""Working set over capacity at which half of the loads miss."""


def seen(
    capacity: float,
    law: Callable[[Array, float], Array] = oldest_out,
    nominal: float = 480 * MI,
    noise: float = 0.0,
    pages: float = 1.0,
    far: float = FAR,
    largest: int = 1 << 40,
    seed: int = 1,
) -> Boundary:
    """What is found on a curve of three levels; `pages` is what translations add beyond 8 MiB."""
    caches = (*PRIVATE, int(nominal))
    sizes = working_sets(caches, 4, largest)
    w = np.array(sizes, dtype=float)
    t = np.where(w > PRIVATE[0], 4e-9, 1.3e-9)
    t = np.where(w > PRIVATE[1], NEAR + law(w, capacity) * (far - NEAR), t)
    t = t * np.where(w > 8 * MI, pages, 1.0)
    rng = np.random.default_rng(seed)
    # Others only slow a load down.
    times = [each * np.exp(np.abs(noise * rng.standard_normal(15))) for each in t]
    levels = assign(find_plateaus(sizes, [float(np.median(each)) for each in times]), caches)
    return find_boundary(sizes, times, levels[-2], levels[-1], nominal)


@pytest.mark.parametrize("law", HALVES)
@pytest.mark.parametrize("capacity", [6 * MI, 26 * MI, 40 * MI, 110 * MI])
def test_a_planted_boundary_is_found(law: Callable[[Array, float], Array], capacity: int) -> None:
    found = seen(capacity, law)
    assert found.sure
    assert found.seen(480 * MI) == pytest.approx(found.size, rel=1e-3)
    assert HALVES[law] * capacity / STEP <= found.size <= HALVES[law] * capacity * STEP
    assert found.low <= STEP**0.5 * 10 / 9 * capacity
    assert found.low <= found.size <= found.high


@settings(deadline=None, max_examples=40)
@given(st.floats(6, 180), st.floats(0, 0.2), st.floats(1.8, 6), st.integers(0, 2**31))
def test_noise_moves_it_by_no_more_than_a_step(capacity: float, noise: float, ratio: float, seed: int) -> None:
    found = seen(capacity * MI, noise=noise, far=ratio * NEAR, seed=seed)
    assert found.sure
    assert capacity * MI / STEP**1.5 <= found.size <= capacity * MI * STEP**1.5
    assert found.low <= capacity * MI * STEP
    assert found.high >= capacity * MI / STEP


def test_waiting_for_translations_is_not_the_end_of_a_cache() -> None:
    plain, slowed = seen(60 * MI), seen(60 * MI, pages=1.2)
    assert slowed.sure
    assert slowed.size == pytest.approx(plain.size, rel=0.2)
    # Without any other boundary the step of the translations is not taken for one.
    alone = seen(1 << 45, pages=1.4)
    assert alone.seen(480 * MI) == 480 * MI


def test_single_slow_points_are_passed_over() -> None:
    caches = (*PRIVATE, 480 * MI)
    sizes = working_sets(caches, 4, 1 << 40)
    w = np.array(sizes, dtype=float)
    t = np.select([w <= PRIVATE[0], w <= PRIVATE[1], w <= 40 * MI], [1.3e-9, 4e-9, NEAR], FAR)
    t[[int(np.searchsorted(w, 10 * MI)), int(np.searchsorted(w, 20 * MI))]] = 2 * FAR
    levels = assign(find_plateaus(sizes, t.tolist()), caches)
    found = find_boundary(sizes, [np.full(3, each) for each in t], levels[-2], levels[-1], 480 * MI)
    assert 40 * MI / STEP <= found.size <= 40 * MI * STEP


def test_a_curve_that_is_not_whole_is_not_believed() -> None:
    cut = seen(40 * MI, largest=300 * MI)
    assert not cut.sure
    assert "ends at" in cut.doubt
    assert cut.size == 480 * MI
    # Memory is hardly seen behind a boundary near the end.
    assert not seen(900 * MI).sure
    without = seen(2 * MI)
    assert "no plateau of it" in without.doubt
    flat = seen(40 * MI, far=1.4 * NEAR)
    assert "1.4 times" in flat.doubt
    assert flat.seen(480 * MI) == 480 * MI


@pytest.mark.parametrize("law", [oldest_out, any_out])
def test_a_cache_that_is_there_whole_is_not_called_smaller(law: Callable[[Array, float], Array]) -> None:
    found = seen(54 * MI, law, nominal=54 * MI, noise=0.1)
    assert found.sure
    assert found.seen(54 * MI) == 54 * MI
