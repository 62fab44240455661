"""Plateaus of latency curves, and the working sets and numbers of cores that are measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.platforms.calibration.bandwidth import cache_working_set, core_counts
from ranksight.platforms.calibration.latency import working_sets
from ranksight.platforms.calibration.plateaus import Plateau, assign, find_plateaus

KI, MI = 1 << 10, 1 << 20


def curve(sizes: Sequence[int], capacities: Sequence[int], levels: Sequence[float]) -> list[float]:
    """Latency of a working set w: what fits level 1 is served there, the next part by level 2, and so on."""
    bounds = [0, *capacities, 1 << 60]
    found = []
    for size in sizes:
        parts = [max(0, min(size, high) - low) for low, high in itertools.pairwise(bounds)]
        found.append(sum(part * level for part, level in zip(parts, levels, strict=True)) / size)
    return found


def step(sizes: Sequence[int], capacities: Sequence[int], levels: Sequence[float]) -> list[float]:
    """Latency that jumps where a working set outgrows a level, as cyclic accesses under least recently used do."""
    return [levels[sum(size > capacity for capacity in capacities)] for size in sizes]


CAPACITIES, LEVELS = (32 * KI, 1 * MI, 32 * MI), (1.1e-9, 3.9e-9, 13e-9, 120e-9)


def test_plateaus_of_a_stepped_curve() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, step(sizes, CAPACITIES, LEVELS)), CAPACITIES)
    assert [plateau.latency for plateau in found if plateau] == pytest.approx(LEVELS, rel=1e-12)
    assert [plateau.last for plateau in found[:3] if plateau] == list(CAPACITIES)


def test_glitches_and_noise_leave_the_plateaus_where_they_are() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    values = np.array(step(sizes, CAPACITIES, LEVELS)) * np.random.default_rng(1).lognormal(0, 0.02, len(sizes))
    values[[3, 20, 30]] *= 4
    found = assign(find_plateaus(sizes, values.tolist()), CAPACITIES)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(LEVELS, rel=0.03)


def test_a_curve_that_mixes_levels_still_shows_each() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, curve(sizes, CAPACITIES, (1.0, 4.0, 14.0, 60.0))), CAPACITIES)
    assert found[0] is not None
    assert found[0].latency == pytest.approx(1.0)
    assert found[3] is not None
    assert found[3].latency == pytest.approx(60, rel=0.3)


def test_a_cache_of_which_others_have_the_larger_part() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    seen = step(sizes, (32 * KI, 1 * MI, 5 * MI), LEVELS)
    found = assign(find_plateaus(sizes, seen), CAPACITIES)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(LEVELS)
    assert found[2] is not None
    assert found[2].last < 6 * MI


def test_a_level_without_plateau_is_not_invented() -> None:
    sizes = working_sets(CAPACITIES, 4, 1 << 40)
    found = assign(find_plateaus(sizes, step(sizes, (32 * KI, 1 * MI), (1e-9, 4e-9, 9e-8))), CAPACITIES)
    assert [plateau is not None for plateau in found] == [True, True, False, True]
    assert find_plateaus(sizes[:2], [1.0, 1.0]) == ()
    rising = [float(size) for size in sizes]
    assert find_plateaus(sizes, rising) == ()


@given(
    st.lists(st.floats(1.5, 8), min_size=2, max_size=4),
    st.lists(st.integers(2, 5), min_size=4, max_size=4),
    st.integers(3, 6),
)
def test_any_staircase_is_found(factors: list[float], octaves: list[int], per_octave: int) -> None:
    capacities = [16 * KI << sum(octaves[: place + 1]) for place in range(len(factors))]
    levels = [1e-9 * math.prod(factors[:place]) for place in range(len(factors) + 1)]
    sizes = working_sets(capacities, per_octave, 1 << 50)
    found = assign(find_plateaus(sizes, step(sizes, capacities, levels)), capacities)
    assert [plateau.latency if plateau else 0 for plateau in found] == pytest.approx(levels)


def test_overlap_is_in_doublings() -> None:
    assert Plateau(4.0, 64.0, 1.0).overlap(16.0, 1024.0) == 2
    assert Plateau(4.0, 8.0, 1.0).overlap(16.0, 1024.0) == 0


def test_working_sets_reach_from_small_to_beyond_the_last_cache() -> None:
    sizes = working_sets((32 * KI, 1 * MI), 4, 1 << 40)
    assert sizes[0] == 4 * KI
    assert sizes[-1] == 8 * MI
    assert list(sizes) == sorted(set(sizes))
    assert working_sets((32 * KI, 1 * MI), 2, 64 * KI)[-1] == 64 * KI


@pytest.mark.parametrize(("most", "points"), [(1, 12), (2, 12), (18, 12), (64, 4), (96, 12)])
def test_core_counts_go_from_one_to_all(most: int, points: int) -> None:
    counts = core_counts(most, points)
    assert (counts[0], counts[-1]) == (1, most)
    assert len(counts) <= points
    assert list(counts) == sorted(set(counts))


def test_working_set_of_a_cache_lies_between_it_and_the_one_above() -> None:
    assert cache_working_set(0, 32 * KI) == 16 * KI
    assert cache_working_set(32 * KI, 2 * MI) == 256 * KI
    assert cache_working_set(1 * MI, int(1.4 * MI)) is None
