"""Ranks that share a node's adapter: who waits for whom, against small cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.patterns.distances import Shift
from ranksight.comm.patterns.rule import Rule
from ranksight.comm.patterns.steps import Step
from ranksight.core.errors import InputError
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.network import Network
from ranksight.model.messages.table import MessageTable, Row
from ranksight.model.messages.times import gone_through, sharing_pairs, times_of_volumes

G, ALPHA, SIZE = 1e-9, 1e-6, 1e6
FAR = NetworkParameters.linear(ALPHA, G)
NEAR = NetworkParameters.linear(0.0, 0.0)


def time(rules: list[Rule], ranks: int, fabric: Fabric, operation: str = "Send") -> float:
    """Seconds of one message of a million bytes along each rule."""
    links = np.sort(np.concatenate([rule.links(ranks).codes(ranks) for rule in rules]))
    one = np.ones(len(links))
    count = np.bincount(links // ranks, minlength=ranks).astype(float)
    volume = count * SIZE
    row = Row("k", operation, ranks, 1 << 20, count, volume, volume, volume, links, one, one * SIZE, 0.0, "", "")
    table = MessageTable({"ranks": ranks}, ranks, (row,))
    return times_of_volumes([(table, "bytes")], fabric, "openmpi-5.0")[0]["k", operation]


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e9)), min_size=1, max_size=20))
def test_what_has_gone_through_is_the_sum_of_the_smaller(members: list[tuple[int, float]]) -> None:
    group = np.array([g for g, _ in members])
    volume = np.array([b for _, b in members])
    wanted = [sum(min(b, c) for h, c in members if h == g) for g, b in members]
    np.testing.assert_allclose(gone_through(group, volume), wanted, rtol=1e-9, atol=1e-3)


def pairs(links: list[tuple[int, int]], volume: list[float], per_node: int) -> NDArray[np.float64]:
    source, target = np.array(links).T
    return sharing_pairs(source, source // per_node, target // per_node, np.array(volume))


def test_senders_of_a_node_share_its_way_out() -> None:
    np.testing.assert_allclose(pairs([(0, 4), (1, 5), (2, 6), (3, 7)], [1, 1, 1, 1], 4), 4)
    # The one with little is done when all have had as much; the one with most waits for everything.
    np.testing.assert_allclose(pairs([(0, 4), (1, 9)], [1, 3], 4), [2, 4 / 3])


def test_senders_to_a_node_share_its_way_in() -> None:
    np.testing.assert_allclose(pairs([(1, 0), (2, 0), (3, 0), (4, 0)], [1, 1, 1, 1], 1), 4)


def test_two_way_traffic_shares_nothing() -> None:
    np.testing.assert_allclose(pairs([(0, 1), (1, 0)], [1, 1], 1), 1)


@pytest.mark.parametrize(("per_node", "distribution", "shared"), [(1, "block", 1), (8, "block", 1), (8, "cyclic", 8)])
def test_a_ring_on_nodes(per_node: int, distribution: str, shared: int) -> None:
    """In blocks one rank of a node sends out; where nodes take turns all do."""
    fabric = Fabric(NEAR, FAR, per_node, distribution)
    assert time([Shift(1)], 64, fabric) == pytest.approx(ALPHA + shared * SIZE * G)


def test_a_wide_adapter_carries_several_streams() -> None:
    """Four streams fill it: eight take twice as long as one, four as long."""
    wide = NetworkParameters.linear(ALPHA, G, node_bandwidth=4 / G)
    far_ring: list[Rule] = [Shift(8)]
    assert time(far_ring, 64, Fabric(NEAR, wide, 8)) == pytest.approx(ALPHA + 2 * SIZE * G)
    assert time([Shift(4)], 64, Fabric(NEAR, wide, 4)) == pytest.approx(ALPHA + SIZE * G)


def test_planes_of_a_grid_leave_the_node() -> None:
    """8 ranks a node of a 4 x 4 x 4 grid: along x all leave it, along z none."""
    fabric = Fabric(NEAR, FAR, 8)
    assert time([Step((1, 0, 0), True, False, True)], 64, fabric) == pytest.approx(ALPHA + 8 * SIZE * G)
    assert time([Step((0, 0, 1), True, False, True)], 64, fabric) == 0.0


def test_a_train_s_bytes_occupy_the_link() -> None:
    """A gap larger than s G is what others wait for, without the sender's own overhead."""
    link = NetworkParameters.linear(ALPHA, G, gap=Piecewise((0,), (2e-7,), (3 * G,)))
    assert float(link.spacing(SIZE, 1)) == pytest.approx(ALPHA + SIZE * G)  # never more than one after the other
    assert float(link.transfer_time(SIZE, 1)) == pytest.approx(ALPHA + SIZE * G)
    assert float(link.transfer_time(SIZE, 4)) == pytest.approx(ALPHA + SIZE * G + (12 - 3) * SIZE * G)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_senseless_bandwidths_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="node_bandwidth"):
        NetworkParameters.linear(ALPHA, G, node_bandwidth=value)


def test_the_bandwidth_survives_its_file() -> None:
    link = NetworkParameters.linear(ALPHA, G, node_bandwidth=25e9)
    assert NetworkParameters.from_dict(link.to_dict()) == link


def test_unknown_distributions_are_refused() -> None:
    with pytest.raises(InputError, match="no distribution is named 'heap'"):
        Fabric(NEAR, FAR, 2, "heap")


@pytest.mark.parametrize("ranks", [16, 24])
@pytest.mark.parametrize("distance", [1, 2, 4, 8])
def test_a_step_with_nodes_in_turn(ranks: int, distance: int) -> None:
    """Counted rank by rank: all leave the node, or none where the distance is a multiple of the nodes."""
    fabric = Fabric(NetworkParameters.linear(ALPHA / 10, 0.0), FAR, 4, "cyclic")
    nodes = ranks // 4
    leaving = sum((rank + distance) % ranks % nodes != 0 for rank in range(0, ranks, nodes))
    wanted = ALPHA / 10 if leaving == 0 else ALPHA + leaving * SIZE * G
    assert float(fabric.shift(np.array(ranks), SIZE, distance)) == pytest.approx(wanted)


def test_a_model_places_its_ranks_or_says_why_not() -> None:
    table = {"inter": FAR.to_dict(), "intra": NEAR.to_dict()}
    placed = Application(network=Network(table, 4)).placed(None, 8, "cyclic").network
    assert placed is not None
    assert (placed.fabric().ranks_per_node, placed.fabric().distribution) == (8, "cyclic")
    assert Network.from_dict(placed.to_dict()) == placed
    with pytest.raises(InputError, match="knows no network between nodes"):
        Application(network=Network({"intra": NEAR.to_dict()}, 4)).placed(None, None, "cyclic")
    with pytest.raises(InputError, match="knows no network between nodes"):
        Application().placed(None, None, "cyclic")
