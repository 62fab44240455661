"""Messages and collectives on nodes against sums written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.comm.costs import trees
from ranksight.comm.costs.collective import collective
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise

ALPHA, G = 2e-6, 1e-9
NEAR = NetworkParameters.linear(5e-7, 2e-10)
"""Pairs inside a node do not slow each other down."""
FAR = NetworkParameters.linear(ALPHA, G, reduction=3e-10)
SIZE = 40_000.0


def fabric(k: int, distribution: str = "block") -> Fabric:
    return Fabric(NEAR, FAR, k, distribution)


@pytest.mark.parametrize(("p", "k"), [(6, 2), (8, 4), (15, 5), (64, 8)])
def test_rings_of_ranks_dealt_in_turn_cross_a_border_in_every_step(p: int, k: int) -> None:
    """All k ranks of a node send at once to the next node: each block keeps the link k times as long."""
    step = ALPHA + k * G * SIZE
    assert float(fabric(k, "cyclic").ring(np.array(p), SIZE)) == pytest.approx((p - 1) * step)
    assert float(collective("allgather", "ring")(p, SIZE, fabric(k, "cyclic"))) == pytest.approx((p - 1) * step)


def test_distances_that_are_multiples_of_the_nodes_stay_inside_where_ranks_are_dealt_in_turn() -> None:
    dealt = fabric(4, "cyclic")
    inside = 5e-7 + 2e-10 * SIZE
    assert float(dealt.shift(np.array(12), SIZE, 3)) == pytest.approx(inside)
    assert float(dealt.shift(np.array(12), SIZE, 4)) == pytest.approx(ALPHA + 4 * G * SIZE)
    # Eleven partners: three (at distances 3, 6 and 9) on the own node, eight on others.
    every = 3 * inside + 8 * (ALPHA + 4 * G * SIZE)
    assert float(dealt.everyone(np.array(12), SIZE)) == pytest.approx(every)


def test_an_exchange_at_half_a_node_crosses_no_border() -> None:
    blocks = fabric(8)
    assert float(blocks.exchange(np.array(64), SIZE, 4)) == pytest.approx(5e-7 + 2e-10 * SIZE)
    assert float(blocks.exchange(np.array(64), SIZE, 8)) == pytest.approx(ALPHA + 8 * G * SIZE)


def test_a_ring_in_blocks_crosses_each_border_once() -> None:
    far = NetworkParameters.linear(1e-4, 0.0, gap=Piecewise((0,), (1e-9,), (0.0,)))
    ring = Fabric(NEAR, far, 4).ring(np.array(12), SIZE)
    assert float(ring) == pytest.approx(3 * 1e-4 + 8 * (5e-7 + 2e-10 * SIZE))


@pytest.mark.parametrize("p", [2, 4, 16])
def test_collectives_on_one_level(p: int) -> None:
    flat, ranks, size = Fabric.flat(FAR), np.array(p), np.array(SIZE)
    rounds, y = int(np.log2(p)), 3e-10

    def cost(operation: str, kind: str) -> float:
        return float(collective(operation, kind)(p, SIZE, flat))

    assert cost("allreduce", "recursive_doubling") == pytest.approx(rounds * (ALPHA + (G + y) * SIZE))
    around = 2 * (p - 1) * ALPHA + 2 * (p - 1) / p * SIZE * G + (p - 1) / p * y * SIZE
    assert cost("allreduce", "ring") == pytest.approx(around)
    halves = 2 * rounds * ALPHA + 2 * (p - 1) / p * SIZE * G + (p - 1) / p * y * SIZE
    assert cost("allreduce", "rabenseifner") == pytest.approx(halves)
    blocks = rounds * ALPHA + (p - 1) * (G + y) * SIZE
    assert cost("reduce_scatter", "recursive_halving") == pytest.approx(blocks)
    assert float(trees.binomial(ranks, size, flat, y)) == pytest.approx(rounds * (ALPHA + (G + y) * SIZE))


def test_a_chain_passes_the_vector_from_rank_to_rank() -> None:
    found = trees.chain(np.array(5), np.array(SIZE), Fabric.flat(FAR), 3e-10)
    assert float(found) == pytest.approx(4 * (ALPHA + (G + 3e-10) * SIZE))
    found = trees.chain(np.array(12), np.array(SIZE), fabric(4))
    assert float(found) == pytest.approx(2 * (ALPHA + G * SIZE) + 9 * (5e-7 + 2e-10 * SIZE))


def test_pieces_of_a_function_of_size_begin_at_their_first_byte() -> None:
    function = Piecewise((0, 1024), (1e-6, 5e-6), (0.0, 1e-9))
    assert function([0, 1023, 1024, 2048]) == pytest.approx([1e-6, 1e-6, 5e-6 + 1024e-9, 5e-6 + 2048e-9])


def test_pairs_share_the_bandwidth_of_a_node() -> None:
    """Each stream of 1 GB/s takes half of the node's 2 GB/s: four at once take twice as long on the wire."""
    link = NetworkParameters.linear(ALPHA, G, node_bandwidth=2e9)
    assert link.transfer_time(SIZE, [1, 2, 4]) == pytest.approx(
        [ALPHA + G * SIZE, ALPHA + G * SIZE, ALPHA + 2 * G * SIZE]
    )
    train = NetworkParameters.linear(ALPHA, G, gap=Piecewise((0,), (1e-7,), (G,)))
    assert float(train.spacing(SIZE)) == pytest.approx(1e-7 + G * SIZE)
