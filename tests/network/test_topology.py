"""Shapes of networks: cuts by closed forms, fair shares, what a file may say, and how predictions follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.topology.described import from_dict, load, names, to_dict
from ranksight.comm.topology.places import read_places
from ranksight.comm.topology.shape import Routes, Topology
from ranksight.comm.topology.sharing import fair_rates, shared_seconds
from ranksight.core.errors import InputError
from ranksight.model.messages.table import MessageTable, Row
from ranksight.model.messages.times import times_of_volumes

RATE = 2e9
LINK = NetworkParameters.linear(1e-6, 1 / RATE)
TREE = {"kind": "fat tree", "source": "here", "nodes_per_switch": 8, "nodes": 64, "link_bandwidth": RATE}


def tree(taper: float) -> Topology:
    return Topology("fat tree", (8, 64), RATE, ((taper, taper),))


@pytest.mark.parametrize("taper", [1.0, 2.0, 4.0])
def test_all_of_a_switch_share_its_way_up(taper):
    ranks = np.arange(64)
    routes = tree(taper).routes(ranks, (ranks + 8) % 64)
    assert shared_seconds(routes, np.full(64, 4e9), np.full(64, RATE)) == pytest.approx(np.full(64, 2 * taper))


def test_two_of_a_switch_pass_a_tapered_one_unhindered():
    source = np.array([0, 1])
    seconds = shared_seconds(tree(4.0).routes(source, source + 8), np.full(2, 4e9), np.full(2, RATE))
    assert seconds == pytest.approx([2.0, 2.0])


def test_dragonfly_between_two_groups_depends_on_the_routing():
    ranks = np.arange(16)  # 2 x 2 nodes a group, 4 groups
    for routing, slower in (("adaptive", 1.0), ("minimal", 3.0)):
        shape = Topology("dragonfly", (2, 2, 4), RATE, ((1.0, 1.0),), routing=routing)
        seconds = shared_seconds(shape.routes(ranks, (ranks + 4) % 16), np.full(16, RATE), np.full(16, RATE))
        assert seconds == pytest.approx(np.full(16, slower))
    unknown = Topology("dragonfly", (2, 2, 4), RATE)
    assert unknown.uncertain
    assert unknown.at("slow").hops(np.array([0]), np.array([15])).tolist() == [3]


def test_torus_goes_the_shorter_way_and_loads_every_link_on_it():
    shape = Topology("torus", (8,), RATE)
    assert shape.hops(np.array([0, 0, 0]), np.array([1, 4, 7])).tolist() == [0, 3, 0]
    ranks = np.arange(8)
    # Every message over 3 links the same way: 3 messages on each link.
    seconds = shared_seconds(shape.routes(ranks, (ranks + 3) % 8), np.full(8, RATE), np.full(8, RATE))
    assert seconds == pytest.approx(np.full(8, 3.0))


def test_torus_opposite_shift_crosses_the_bisection():
    shape = Topology("torus", (4, 4), RATE)
    ranks = np.arange(16)
    seconds = shared_seconds(shape.routes(ranks, (ranks + 8) % 16), np.full(16, RATE), np.full(16, RATE))
    assert seconds.max() == pytest.approx(2.0)  # two steps along the first dimension, all one way


def test_fair_rates_fill_what_others_leave():
    routes = Routes(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), np.array([1.0, 10.0]))
    assert fair_rates(routes, np.full(3, np.inf)) == pytest.approx([0.5, 0.5, 9.5])


def test_rates_rise_when_others_end():
    routes = Routes(np.array([0, 1]), np.array([0, 0]), np.array([1.0]))
    assert shared_seconds(routes, np.array([1.0, 3.0]), np.full(2, np.inf)) == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize("messages", [40, 400])
def test_all_of_many_messages_on_a_link_end_when_the_bytes_before_them_have_passed(messages):
    volume = np.arange(1.0, messages + 1)
    routes = Routes(np.arange(messages), np.zeros(messages, dtype=np.int64), np.array([1.0]))
    # While k are left, each has a k-th of the link.
    ends = np.cumsum(messages - np.arange(messages))
    seconds = shared_seconds(routes, volume, np.full(messages, np.inf))
    assert seconds == pytest.approx(ends, abs=0.03 * ends[-1])


def test_a_link_that_messages_come_to_one_after_the_other_stays_busy():
    """Each comes before the one before it has passed: those that wait come upon ever more others."""
    messages = 100
    routes = Routes(np.arange(messages), np.zeros(messages, dtype=np.int64), np.array([1.0]))
    begin = 0.7 * np.arange(messages)
    seconds = shared_seconds(routes, np.ones(messages), np.ones(messages), begin)
    assert (begin + seconds).max() == pytest.approx(messages, rel=0.05)
    # Where each has passed before the next comes, none waits.
    assert shared_seconds(routes, np.ones(messages), np.ones(messages), 2 * begin) == pytest.approx(np.ones(messages))


def test_messages_that_nothing_bounds_arrive_when_they_begin():
    nothing = np.zeros(0, dtype=np.int64)
    routes = Routes(nothing, nothing, np.zeros(0))
    assert shared_seconds(routes, np.full(2, 2048.0), np.full(2, np.inf)) == pytest.approx([0.0, 0.0])
    begin = np.array([0.0, 3.0])
    assert shared_seconds(routes, np.full(2, 2048.0), np.full(2, np.inf), begin) == pytest.approx([0.0, 0.0])


def test_messages_apart_in_time_do_not_share():
    routes = Routes(np.arange(4), np.zeros(4, dtype=np.int64), np.array([1.0]))
    seconds = shared_seconds(routes, np.ones(4), np.ones(4), np.array([0.0, 5.0, 0.5, 5.25]))
    # Alone until the second begins, then half of the link each until one ends.
    assert seconds == pytest.approx([1.5, 1.75, 1.5, 1.75])


def test_messages_that_begin_as_others_end_have_the_link_alone():
    """Also where rounding has them begin a moment before, and where a link takes more of them than their bytes."""
    routes = Routes(np.arange(4), np.array([0, 0, 1, 1]), np.array([1.0, 2.0]), np.array([1.0, 1.0, 4.0, 4.0]))
    begin = 0.1 + np.array([0.0, 1.0 - 1e-12, 0.0, 2.0 - 1e-12])
    seconds = shared_seconds(routes, np.ones(4), np.full(4, 1.0), begin)
    assert seconds == pytest.approx([1.0, 1.0, 2.0, 2.0], rel=1e-9)


def test_a_small_change_of_when_messages_begin_changes_their_times_as_little():
    routes = Routes(np.arange(40), np.zeros(40, dtype=np.int64), np.array([1.0]))
    begin = np.random.default_rng(3).uniform(0, 20, 40)
    one, other = (shared_seconds(routes, np.ones(40), np.ones(40), begin * factor) for factor in (1.0, 1.0001))
    assert np.abs(one - other).max() < 0.05
    assert abs(one.mean() - other.mean()) < 0.01


def test_rates_by_round_trips_are_in_proportion_to_their_inverse():
    routes = Routes(np.array([0, 1, 2]), np.zeros(3, dtype=np.int64), np.array([6.0]))
    trip = np.array([1.0, 2.0, 2.0])
    assert fair_rates(routes, np.full(3, np.inf), 1 / trip) == pytest.approx([3.0, 1.5, 1.5])
    # What one cannot take goes to the others.
    assert fair_rates(routes, np.array([1.0, np.inf, np.inf]), 1 / trip) == pytest.approx([1.0, 2.5, 2.5])


def test_routers_of_a_dragonfly_that_have_the_link_to_a_group_need_no_further_hop():
    shape = Topology("dragonfly", (2, 4, 5), RATE)
    # Group 0 has its link to group 1 on router 0, and that to group 4 on router 3; group 1 has that to group 0 on 0.
    source, target = np.array([0, 6, 0, 6, 0]), np.array([8, 8, 14, 14, 1])
    assert shape.hops(source, target).tolist() == [1, 2, 2, 3, 0]
    assert shape.hops(target, source).tolist() == [1, 2, 2, 3, 0]


@pytest.mark.parametrize("taper", [1.0, 2.0, 4.0])
def test_long_all_to_all_is_bound_by_the_cut(taper):
    size, ranks = 1e6, 64
    fabric = Fabric(None, LINK, 1, topology=tree(taper))
    bound = (ranks - 8) * size * taper / RATE  # what a switch's nodes send up
    for algorithm in ("pairwise", "linear"):
        seconds = float(cost("alltoall", ranks, size, fabric, {"alltoall": algorithm}))
        flat = float(cost("alltoall", ranks, size, LINK, {"alltoall": algorithm}))
        assert seconds == pytest.approx(max(bound, flat), rel=0.06)


def test_no_taper_changes_nothing():
    fabric = Fabric(None, LINK, 1, topology=tree(1.0))
    for operation in ("allreduce", "bcast", "alltoall", "allgather", "barrier"):
        for size in (8.0, 1e5):
            assert cost(operation, 64, size, fabric) == pytest.approx(cost(operation, 64, size, LINK), rel=1e-6)


@pytest.mark.parametrize(("distribution", "apart"), [("block", 1.0), ("cyclic", 8.0)])
def test_distribution_decides_what_crosses_switches(distribution, apart):
    """What the other distribution keeps inside nodes, or half of it inside switches, this one sends over the cut."""
    ranks, taper = 128, 8.0
    source = np.arange(ranks)
    target = (source + 64) % ranks if distribution == "block" else (source + 8) % ranks
    codes = np.sort(source * ranks + target)
    ones = np.ones(ranks)
    volume = ones * 1e6
    row = Row("ring", "MPI_Send", 0, 1 << 20, ones, volume, volume, volume, codes, ones, volume, 0, "", "")
    fabric = Fabric(LINK, LINK, 2, distribution, tree(taper))
    table = MessageTable({"ranks": ranks}, ranks, (row,))
    (found,) = times_of_volumes([(table, "bytes")], fabric, "openmpi-5.0")
    # 16 ranks of a switch all send up over what one node's link carries.
    assert found["ring", "MPI_Send"] == pytest.approx(1e-6 + 16 * 1e6 / RATE, rel=0.02)
    other = Fabric(LINK, LINK, 2, {"block": "cyclic", "cyclic": "block"}[distribution], tree(taper))
    (found,) = times_of_volumes([(table, "bytes")], other, "openmpi-5.0")
    assert found["ring", "MPI_Send"] == pytest.approx(1e-6 + apart * 1e6 / RATE, rel=0.02)


def test_latency_of_switches_and_message_rate_act():
    far = Topology("fat tree", (8, 64), RATE, ((1.0, 1.0),), hop_latency=1e-6, message_rate=1e5)
    fabric = Fabric(None, LINK, 1, topology=far)
    barrier = [float(cost("barrier", 64, 0, on, {"barrier": "dissemination"})) for on in (fabric, LINK)]
    assert barrier[0] - barrier[1] == pytest.approx(6 * 2e-6)  # six rounds, two switches more
    assert float(fabric.far.spacing(0.0, 1)) == pytest.approx(1e-5)


def test_a_message_that_waits_for_its_receiver_crosses_switches_three_times():
    measured = Piecewise((0, 1000), (1e-6, 5e-6), (0.0, 0.0))
    sizes, link = np.array([10.0, 2000.0]), NetworkParameters.linear(1e-6, 1 / RATE, eager_limit=1000)
    for hop_latency, seconds in ((1e-6, [2e-6, 6e-6]), (measured, [2e-6, 10e-6])):
        shape = Topology("fat tree", (8, 64), RATE, ((1.0, 1.0),), hop_latency=hop_latency)
        assert from_dict(to_dict(shape)).hop_latency == hop_latency
        assert Fabric(None, link, 1, topology=shape).switching(sizes, 2) == pytest.approx(seconds)


def test_unknown_taper_is_an_interval():
    plain = from_dict(TREE)
    fabric = Fabric(None, LINK, 1, topology=plain)
    low, middle, high = (float(cost("alltoall", 64, 1e6, fabric.at(end))) for end in ("fast", "middle", "slow"))
    assert low < middle < high
    assert not from_dict({**TREE, "taper": 2}).uncertain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "star"}, "kind"),
        ({"taper": 0}, "taper"),
        ({"taper": {"at_least": 4, "at_most": 2}}, "without bandwidth"),
        ({"taper": [1, 2]}, "2 tapers for 1 cuts"),
        ({"link_bandwidth": 0}, "link_bandwidth"),
        ({"link_bandwidth": True}, "link_bandwidth"),
        ({"nodes": 60}, "whole number"),
        ({"nodes": -1}, "nodes"),
        ({"source": ""}, "source"),
        ({"colour": 1}, "colour"),
        ({"adapters": 1.5}, "adapters"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(change, words):
    with pytest.raises(InputError, match=words):
        from_dict({**TREE, **change})


def test_ranks_that_it_cannot_hold_are_refused():
    fabric = Fabric(LINK, LINK, 4, topology=tree(1.0))
    with pytest.raises(InputError, match="holds 64 nodes"):
        cost("allreduce", 512, 8, fabric)


@pytest.mark.parametrize("name", names())
def test_systems_that_ship_are_read_and_written(name):
    shape = load(name)
    again = from_dict(to_dict(shape))
    assert (again.extents, again.node_bandwidth, again.routing) == (shape.extents, shape.node_bandwidth, shape.routing)
    assert again.text == shape.text


@pytest.mark.parametrize(
    ("text", "words"),
    [("0 0\n1 0\n0 1\n", "rank 0 is placed twice"), ("0 0\n2 1\n", "rank 1"), ("0 a\n", "RANK NODE"), ("", "rank 0")],
)
def test_a_placement_file_names_each_rank_once(tmp_path: Path, text, words):
    path = tmp_path / "places"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_places(path)


def test_a_placement_file_is_read(tmp_path: Path):
    path = tmp_path / "places"
    path.write_text("# by hand\n1 3\n0 5  # first\n")
    assert read_places(path).tolist() == [5, 3]


def test_messages_inside_a_node_share_its_memory_where_that_is_known():
    memory = NetworkParameters.linear(1e-6, 1 / RATE, node_bandwidth=2 * RATE)
    shift = [float(Fabric(near, LINK, 8).shift(np.array(8), 1e6, 1)) for near in (LINK, memory)]
    assert shift == pytest.approx([1e-6 + 1e6 / RATE, 1e-6 + 4e6 / RATE])
