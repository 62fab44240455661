"""The two-level network against an enumeration of who crosses a node's border."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.errors import InputError

# Inside costs 1 s a message, between nodes 1000 s plus 1 s a byte and pair: the time shows how many pairs crossed.
NEAR = NetworkParameters.linear(1.0, 0.0)
FAR = NetworkParameters.linear(1000.0, 1.0)


def crossings(p: int, k: int, partner) -> int:
    """Most pairs (rank, partner) that leave one node."""
    count = np.zeros(-(-p // k), dtype=int)
    for rank in range(p):
        to = partner(rank)
        if to < p and to // k != rank // k:
            count[rank // k] += 1
    return int(count.max())


def expected(crossing: int) -> float:
    return 1000.0 + crossing if crossing else 1.0


@pytest.mark.parametrize(("p", "k"), [(8, 8), (8, 4), (64, 8), (30, 6), (48, 16)])
def test_shift_counts_the_pairs_that_cross(p: int, k: int) -> None:
    fabric = Fabric(NEAR, FAR, k)
    for d in range(1, p):
        assert fabric.shift(np.array(p), 1.0, d) == expected(crossings(p, k, lambda r, d=d: (r + d) % p)), d


@pytest.mark.parametrize(("p", "k"), [(8, 8), (64, 8), (64, 4), (256, 16)])
def test_exchange_counts_the_pairs_that_cross(p: int, k: int) -> None:
    fabric = Fabric(NEAR, FAR, k)
    for d in (1 << j for j in range(int(np.log2(p)))):
        assert fabric.exchange(np.array(p), 1.0, d) == expected(crossings(p, k, lambda r, d=d: r ^ d)), d


@pytest.mark.parametrize(
    ("p", "k"), [(2, 1), (7, 1), (3, 8), (8, 8), (9, 8), (10, 8), (16, 8), (17, 8), (64, 8), (30, 6)]
)
def test_everyone_is_the_sum_of_all_shifts(p: int, k: int) -> None:
    fabric = Fabric(NEAR, FAR, k)
    total = sum(float(fabric.shift(np.array(p), 1.0, d)) for d in range(1, p))
    assert fabric.everyone(np.array(p), 1.0) == pytest.approx(total)


def test_a_node_without_bounds_costs_no_more_than_its_ranks() -> None:
    """Where no network between nodes is known, one node holds all ranks."""
    fabric = Fabric(NEAR, None, 1 << 30)
    assert fabric.everyone(np.array([1, 2, 1 << 20]), 1.0) == pytest.approx([0.0, 1.0, (1 << 20) - 1.0])


def test_a_tree_level_crosses_once() -> None:
    fabric = Fabric(NEAR, FAR, 4)
    assert fabric.level(np.array(16), 1.0, 4) == 1001.0
    assert fabric.level(np.array(16), 1.0, 2) == 1.0
    assert Fabric(NEAR, FAR, 6).level(np.array(12), 1.0, 4) == 1001.0


def test_a_train_of_messages_follows_loggp() -> None:
    link = NetworkParameters.linear(5e-6, 1e-9, gap=Piecewise((0,), (1e-6,), (1e-9,)))
    fabric = Fabric.flat(link)
    m, n = 1000.0, np.array([0, 1, 2, 10])
    train = np.where(n > 0, (n - 1) * (1e-6 + m * 1e-9) + 5e-6 + m * 1e-9, 0.0)
    np.testing.assert_allclose(fabric.fan(n + 1, m, n), train)
    without = Fabric.flat(NetworkParameters.linear(5e-6, 1e-9))
    np.testing.assert_allclose(without.fan(n + 1, m, n), n * (5e-6 + m * 1e-9))


def test_contention_scales_the_bytes_alone() -> None:
    link = NetworkParameters.linear(1e-6, 1e-9, contention=0.5)
    assert link.transfer_time(1000.0, 1) == pytest.approx(2e-6)
    assert link.transfer_time(1000.0, 2) == pytest.approx(2e-6)
    assert link.transfer_time(1000.0, 8) == pytest.approx(5e-6)


def test_messages_take_the_link_that_is_known() -> None:
    for only in (Fabric(NEAR, None, 4), Fabric(None, NEAR, 4)):
        assert only.near == only.far == NEAR
        np.testing.assert_array_equal(only.shift(np.array([4, 8]), 1.0, 1), [1.0, 1.0])
    with pytest.raises(InputError):
        Fabric(None, None)


def test_blocking_calls_wait_for_each_message_from_the_eager_limit_on() -> None:
    link = NetworkParameters.linear(5e-6, 1e-9, gap=Piecewise((0,), (1e-6,), (0.0,)), eager_limit=1000)
    fabric = Fabric.flat(link)
    ranks = np.array(11)
    assert fabric.fan(ranks, 999.0, 10, in_turn=True) == pytest.approx(9 * 1e-6 + 5.999e-6)
    assert fabric.fan(ranks, 1000.0, 10, in_turn=True) == pytest.approx(10 * 6e-6)
    assert fabric.fan(ranks, 1000.0, 10) == pytest.approx(9 * 1e-6 + 6e-6)


def test_a_ring_passes_blocks_on_as_they_come() -> None:
    near, far = NetworkParameters.linear(1.0, 0.0), NetworkParameters.linear(10.0, 0.0)
    ring = Fabric(near, far, 4).ring
    # Without a measured gap the slow links bound it; with one a block's own way does.
    assert ring(np.array(16), 1.0) == 15 * 10.0
    quick = NetworkParameters.linear(10.0, 0.0, gap=Piecewise((0,), (0.5,), (0.0,)))
    assert Fabric(near, quick, 4).ring(np.array(16), 1.0) == 4 * 10.0 + 11 * 1.0
    assert Fabric(near, quick, 4).ring(np.array(4), 1.0) == 3.0
    assert Fabric.flat(quick).ring(np.array(16), 1.0) == 150.0
    waits = NetworkParameters.linear(10.0, 0.0, gap=Piecewise((0,), (0.5,), (0.0,)), eager_limit=1)
    assert Fabric(near, waits, 4).ring(np.array(16), 1.0) == 150.0
