"""What loads wait at another clock, and what a domain needs for the ranks in it."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranksight.model.kernel_time.counted import BEYOND_L1, WAITING, Counted
from ranksight.model.quantity import Quantity

POINTS = np.array([[1.0], [6.0], [12.0]])
LOADS, LATENCIES = np.array([1e6, 1e5, 1e4, 1e3]), np.array([4.0, 14.0, 40.0, 200.0])


def stub(clocks: np.ndarray) -> tuple[Any, Quantity]:
    """A kernel whose caches serve :data:`LOADS` everywhere, and its clocks."""
    none = np.full((1, len(clocks)), 0.1)
    each = np.log(np.repeat(LOADS[:, None, None], len(clocks), axis=2))
    counted: Any = SimpleNamespace(
        kernels=("k",),
        caches=SimpleNamespace(doubt=0.0),
        latencies=LATENCIES,
        frequency=2e9,
        loads=lambda *_: (each, none, 2 * none),
    )
    counted.latencies_at = partial(Counted.latencies_at, counted)
    return counted, Quantity.exact(np.log(clocks)[None])


def test_cycles_of_loads_from_memory_go_with_the_clock_and_those_of_caches_do_not() -> None:
    clocks = np.array([1e9, 2e9, 4e9])
    counted, clock = stub(clocks)
    loads, cycles, memory, kinds = Counted._waiting(counted, POINTS, POINTS, clock, {})
    expected = np.repeat((LOADS * LATENCIES)[None], 3, axis=0)
    expected[:, 3] *= clocks / 2e9
    assert loads[0] == pytest.approx(np.repeat(LOADS[None], 3, axis=0))
    assert cycles[0] == pytest.approx(expected)
    assert np.exp(kinds[WAITING].centre[0]) == pytest.approx(expected.sum(axis=1))
    assert np.exp(kinds[BEYOND_L1].centre[0]) == pytest.approx(expected[:, 1:].sum(axis=1))
    assert memory is not None
    for known in (memory, kinds[WAITING]):  # as well as the loads are
        assert (known.down, known.up) == (pytest.approx(0.1), pytest.approx(0.2))


def test_loads_near_the_size_of_a_cache_elsewhere_wait_as_uncertainly_as_it_is_large() -> None:
    """A cache a quarter smaller serves half as much: the wait is as much longer; loads of memory stay as they were."""
    counted, clock = stub(np.full(3, 2e9))
    whole, none, twice = counted.loads()
    counted.caches.doubt = 0.25

    def loads(*at: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        factor = at[3] if len(at) > 3 else 1.0
        each = whole.copy()
        each[3, :, 1] += np.log(2.0) * (factor == pytest.approx(np.exp(-0.25)))
        return each, 0 * none, 0 * twice

    counted.loads = loads
    _, cycles, _, kinds = Counted._waiting(counted, POINTS, POINTS, clock, {})
    longer = np.log((cycles[0, 1].sum() + cycles[0, 1, 3]) / cycles[0, 1].sum())
    assert kinds[WAITING].up[0] == pytest.approx([0, longer, 0])
    assert kinds[WAITING].down[0] == pytest.approx([0, 0, 0])


def test_without_caches_loads_are_unknown() -> None:
    counted, clock = stub(np.full(3, 2e9))
    counted.caches = None
    loads, cycles, memory, kinds = Counted._waiting(counted, POINTS, POINTS, clock, {})
    assert np.isnan(loads).all()
    assert np.isnan(cycles).all()
    assert np.isnan(memory.centre).all()
    assert kinds == {}


@pytest.mark.parametrize("counted_bytes", [True, False])
def test_a_domain_needs_as_long_as_all_ranks_in_it_together(counted_bytes: bool) -> None:
    """2 GB a rank and 100 GB/s, 1.25 times of which were reached: by bytes, or by lines of 64 B that were loaded."""
    domains: Any = SimpleNamespace(
        limited=True, bandwidths=lambda share: (np.full(share.shape, 2e10), np.full(share.shape, 1e11))
    )
    counted: Any = SimpleNamespace(
        where=SimpleNamespace(domains=domains, active=lambda points: points[:, 0]), line=64.0, bandwidth=1.25
    )
    shape = (1, 3)
    total = Quantity.even(np.full(shape, np.log(1.5e9)), np.full(shape, 0.1))
    lines = Quantity.even(np.full(shape, np.log(2e9 / 64)), np.full(shape, 0.1))
    missing = Quantity.exact(np.full(shape, np.nan))
    written = Quantity.exact(np.full(shape, np.log(0.5e9)))
    works = {"bytes_mem_read": total, "bytes_mem_written": written}
    if not counted_bytes:
        works = {"bytes_mem_read": missing, "bytes_mem_written": missing}
    need = Counted.need(counted, lines, POINTS, works)
    assert np.exp(need.centre[0]) == pytest.approx(POINTS[:, 0] * 2e9 / 1e11 / 1.25)
    assert need.deviation == pytest.approx(0.1)
    assert np.isnan(Counted.need(counted, missing, POINTS, dict.fromkeys(works, missing)).centre).all()
