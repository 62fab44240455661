"""Collective algorithms against the closed forms of the literature, their limits and their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.comm.costs.collective import COLLECTIVES, OPERATIONS, block, collective, operation_name
from ranksight.comm.costs.fabric import Fabric, ceil_log2, floor_log2
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.errors import InputError

A, G, Y = 2e-6, 1e-9, 3e-10
LINK = NetworkParameters.linear(A, G, reduction=Y)
FLAT = Fabric.flat(LINK)
NAMES = list(COLLECTIVES)

# p a power of two, log2 p = k; m as the operation's caller states it. Thakur, Rabenseifner and Gropp 2005 and the field's
# textbook forms; without gap and overhead a train of n messages is n messages.
CLOSED = {
    "barrier/dissemination": lambda p, k, m: k * A,
    "barrier/recursive_doubling": lambda p, k, m: k * A,
    "barrier/tree": lambda p, k, m: 2 * k * A,
    "barrier/linear": lambda p, k, m: 2 * (p - 1) * A,
    "barrier/double_ring": lambda p, k, m: 2 * p * A,
    "bcast/binomial": lambda p, k, m: k * (A + m * G),
    "bcast/linear": lambda p, k, m: (p - 1) * (A + m * G),
    "bcast/chain": lambda p, k, m: (p - 1) * (A + m * G),
    "bcast/scatter_ring": lambda p, k, m: (k + p - 1) * A + 2 * (p - 1) / p * m * G,
    "bcast/scatter_recursive_doubling": lambda p, k, m: 2 * k * A + 2 * (p - 1) / p * m * G,
    "reduce/binomial": lambda p, k, m: k * (A + m * G + m * Y),
    "reduce/linear": lambda p, k, m: (p - 1) * (A + m * G + m * Y),
    "reduce/rabenseifner": lambda p, k, m: 2 * k * A + 2 * (p - 1) / p * m * G + (p - 1) / p * m * Y,
    "allreduce/recursive_doubling": lambda p, k, m: k * (A + m * G + m * Y),
    "allreduce/ring": lambda p, k, m: 2 * (p - 1) * A + 2 * (p - 1) / p * m * G + (p - 1) / p * m * Y,
    "allreduce/rabenseifner": lambda p, k, m: 2 * k * A + 2 * (p - 1) / p * m * G + (p - 1) / p * m * Y,
    "allreduce/reduce_bcast": lambda p, k, m: k * (2 * A + 2 * m * G + m * Y),
    "allgather/ring": lambda p, k, m: (p - 1) * (A + m * G),
    "allgather/recursive_doubling": lambda p, k, m: k * A + (p - 1) * m * G,
    "allgather/bruck": lambda p, k, m: k * A + (p - 1) * m * G,
    "allgather/neighbor_exchange": lambda p, k, m: p / 2 * A + (p - 1) * m * G,
    "alltoall/pairwise": lambda p, k, m: (p - 1) * (A + m * G),
    "alltoall/bruck": lambda p, k, m: k * (A + p / 2 * m * G),
    "gather/binomial": lambda p, k, m: k * A + (p - 1) * m * G,
    "scatter/binomial_in_order": lambda p, k, m: k * (k + 1) / 2 * A + (2 * p - 2 - k) * m * G,
    "scatter/linear": lambda p, k, m: (p - 1) * (A + m * G),
    "gather/linear_sync": lambda p, k, m: (p - 1) * (2 * A + m * G),
    "reduce_scatter/recursive_halving": lambda p, k, m: k * A + (p - 1) * m * (G + Y),
    "reduce_scatter/recursive_doubling": lambda p, k, m: k * A + (p * k - (p - 1)) * m * (G + Y),
    "reduce_scatter/ring": lambda p, k, m: (p - 1) * (A + m * (G + Y)),
    "reduce_scatter/pairwise": lambda p, k, m: (p - 1) * (A + m * (G + Y)),
    "scan/recursive_doubling": lambda p, k, m: k * (A + m * G + 2 * m * Y),
    "scan/linear": lambda p, k, m: (p - 1) * (A + m * (G + Y)),
}


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_closed_form_on_powers_of_two(name: str) -> None:
    k = np.arange(1, 13)
    p, m = 2**k, np.array([[0.0], [8.0], [4096.0], [3e6]])
    expected = np.broadcast_to(CLOSED[name](p, k, m), (4, 12))
    np.testing.assert_allclose(COLLECTIVES[name](p, m, FLAT), expected, rtol=1e-12)


def test_numbers_of_ranks_that_are_no_power_of_two() -> None:
    p, m = np.array([3, 5, 6, 7, 12, 1000]), 1000.0
    step = A + m * G
    np.testing.assert_allclose(collective("bcast", "binomial")(p, m, FLAT), np.ceil(np.log2(p)) * step)
    np.testing.assert_allclose(
        collective("allreduce", "recursive_doubling")(p, m, FLAT),
        np.floor(np.log2(p)) * (step + m * Y) + 2 * step + m * Y,
    )
    np.testing.assert_allclose(collective("allgather", "bruck")(p, m, FLAT), np.ceil(np.log2(p)) * A + (p - 1) * m * G)
    np.testing.assert_allclose(collective("alltoall", "pairwise")(p, m, FLAT), (p - 1) * step)


def test_bruck_sends_each_block_once_a_set_bit_of_its_index() -> None:
    for p in (2, 3, 5, 6, 7, 11, 16, 37):
        bits = sum(index.bit_count() for index in range(p))
        expected = int(ceil_log2(p)) * A + bits * 100.0 * G
        assert collective("alltoall", "bruck")(p, 100.0, FLAT) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_one_rank_costs_nothing_and_two_cost_something(name: str) -> None:
    one, two = COLLECTIVES[name]([1, 2], 64.0, FLAT)
    assert one == 0.0
    assert two >= A * (1 - 1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None)
@given(
    st.integers(2, 5000),
    st.floats(0, 1e7),
    st.floats(1, 100),
    st.sampled_from([1, 2, 3, 16, 48]),
)
def test_more_bytes_never_cost_less(name: str, p: int, m: float, factor: float, per_node: int) -> None:
    fabric = Fabric(
        NetworkParameters.linear(3e-7, 1e-10, reduction=Y, gap=Piecewise((0,), (1e-7,), (1e-10,))), LINK, per_node
    )
    small, large = COLLECTIVES[name](p, [m, m * factor], fabric)
    assert 0 < small <= large * (1 + 1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("barrier")])
@settings(max_examples=6, deadline=None)
@given(st.integers(2, 3000), st.floats(1, 1e6), st.sampled_from([2, 3, 8]))
def test_sharing_the_links_of_nodes_never_helps(name: str, p: int, m: float, per_node: int) -> None:
    alone = NetworkParameters.linear(A, G, reduction=Y, contention=0.0)
    shared = NetworkParameters.linear(A, G, reduction=Y, contention=1.0)
    near = NetworkParameters.linear(A, G, reduction=Y)
    without = COLLECTIVES[name](p, m, Fabric(near, alone, per_node))
    assert COLLECTIVES[name](p, m, Fabric(near, shared, per_node)) >= without * (1 - 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_cost_what_their_elements_cost(name: str) -> None:
    fabric = Fabric(NetworkParameters.linear(3e-7, 1e-10), LINK, 6)
    p, m = np.array([1, 2, 3, 6, 7, 13, 48, 500])[:, None], np.array([0.0, 100.0, 1e5])
    together = COLLECTIVES[name](p, m, fabric)
    singly = [[float(COLLECTIVES[name](ranks, size, fabric)) for size in m] for ranks in p[:, 0]]
    np.testing.assert_allclose(together, singly, rtol=1e-12)


def test_logarithms_are_exact_at_and_around_powers_of_two() -> None:
    k = np.arange(1, 40)
    assert (ceil_log2(2**k) == k).all()
    assert (ceil_log2(2**k + 1) == k + 1).all()
    assert (floor_log2(2**k) == k).all()
    assert (floor_log2(2**k - 1) == k - 1).all()
    assert ceil_log2(1) == 0


def test_bad_ranks_and_sizes_are_refused() -> None:
    for ranks, size in ((0, 8), (2.5, 8), (4, -1), (4, np.nan), (np.inf, 8)):
        with pytest.raises(InputError):
            collective("bcast", "binomial")(ranks, size, FLAT)
    with pytest.raises(InputError, match="allreduce/ring"):
        collective("allreduce", "rings")


def test_names_of_operations() -> None:
    assert operation_name("MPI_Iallreduce") == "allreduce"
    assert operation_name("Allgather_start") == "allgather"
    assert operation_name("MPI_Ialltoallw") == "alltoallv"
    assert operation_name("MPI_Ibarrier") == "barrier"
    assert operation_name("PMPI_Bcast_c") == "bcast"
    assert operation_name("MPI_Isend") == "isend"
    assert {name.partition("/")[0] for name in COLLECTIVES} == set(OPERATIONS)


def test_bytes_handed_over_become_blocks() -> None:
    assert block("MPI_Alltoall", 8, 800.0) == 100.0
    assert block("allgather", 8, 800.0) == 800.0


def in_order(n: int, m: float, message, following) -> float:
    """The slowest path of an in-order binomial scatter, walked rank by rank."""
    sent = slowest = 0.0
    reach = 1
    while reach < n:
        child = min(reach, n - reach)
        slowest = max(slowest, sent + message(child * m) + in_order(child, m, message, following))
        sent += following(child * m)
        reach *= 2
    return slowest


@pytest.mark.parametrize("eager", [None, 1, 10_000])
def test_an_in_order_scatter_is_its_slowest_path(eager: int | None) -> None:
    link = NetworkParameters.linear(A, G, gap=Piecewise((0,), (1e-7,), (2e-10,)), eager_limit=eager)

    def message(size: float) -> float:
        return A + size * G

    def following(size: float) -> float:
        return message(size) if eager is not None and size >= eager else min(1e-7 + size * 2e-10, message(size))

    p = np.array([2, 3, 5, 8, 17, 24, 63, 64, 65, 1000])
    found = collective("scatter", "binomial_in_order")(p, 500.0, Fabric.flat(link))
    np.testing.assert_allclose(found, [in_order(int(n), 500.0, message, following) for n in p], rtol=1e-12)


def test_eager_sends_shorten_a_tree_that_is_not_full() -> None:
    link = NetworkParameters.linear(A, G, gap=Piecewise((0,), (1e-7,), (0.0,)), eager_limit=4096)
    found = collective("bcast", "binomial")([16, 24, 24], [8.0, 8.0, 4096.0], Fabric.flat(link))
    small, large = A + 8 * G, A + 4096 * G
    np.testing.assert_allclose(found, [4 * small, 4 * small + 1e-7, 5 * large])
