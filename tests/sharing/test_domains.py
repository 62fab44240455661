"""Ranks on domains, bandwidths of mixed traffic, and the law of contention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.model.series.domains import Domains
from ranksight.model.sharing.needs import contended
from ranksight.platforms import load

NODE = Domains(18, 4, 72)


@pytest.mark.parametrize(
    ("ranks", "compact", "scattered", "nodes"),
    [(1, 1, 1, 1), (4, 4, 1, 1), (5, 5, 2, 1), (18, 18, 5, 1), (19, 18, 5, 1), (72, 18, 18, 1), (73, 18, 18, 2)],
)
def test_the_fullest_domain(ranks, compact, scattered, nodes):
    at = np.array([float(ranks)])
    assert NODE.active(at).tolist() == [compact]
    assert NODE.placed("scattered", None).active(at).tolist() == [scattered]
    assert NODE.nodes(at).tolist() == [nodes]


def test_half_filled_nodes_and_more_ranks_than_cores():
    assert NODE.placed(None, 9).active(np.array([8.0, 100.0])).tolist() == [8, 9]
    assert NODE.placed("scattered", 8).active(np.array([100.0])).tolist() == [2]
    assert NODE.placed(None, 144).active(np.array([144.0])).tolist() == [36]


def test_bandwidth_of_mixed_traffic_lies_between_the_two_measured():
    node = Domains.of(load("icelake-8360y"))
    assert (node.cores, node.count, node.ranks_per_node) == (18, 4, 72)
    core, domain = node.bandwidths(np.array([1.0, 0.75, 0.5, 0.2]))
    assert domain[0] == pytest.approx(93.93e9)
    assert domain[2] == domain[3] == pytest.approx(74.73e9)
    # half of the bytes in equal streams, half of them read alone
    assert domain[1] == pytest.approx(1 / (0.5 / 93.93e9 + 0.5 / 74.73e9))
    assert core[0] == pytest.approx(15.37e9)


def test_a_node_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="placement"):
        Domains(18, 4, 72, "random")
    with pytest.raises(InputError, match="1 or more"):
        NODE.placed(None, 0)
    with pytest.raises(InputError, match="domain of 0 cores"):
        Domains.inferred(0)
    for damage in ({"cores": "x"}, {"domain": [1]}, {"domain": [-1, 2]}, {"core": [float("inf"), 1]}):
        with pytest.raises(InputError, match="damaged|fit together"):
            Domains.from_dict({**NODE.to_dict(), **damage})
    assert Domains.from_dict(NODE.to_dict()) == NODE


def test_the_law_in_its_closed_forms():
    one = np.array([1])
    assert contended(np.array([3.0]), np.array([1.0]), one, np.array([9.0]))[0] == 3.0
    # n = 2: core + u(1) p0 with u(1) = memory / core, p0 = penalty memory
    assert contended(np.array([4.0]), np.array([1.0]), np.array([2]), np.array([0.5]))[0] == pytest.approx(4.125)
    # without traffic nobody waits; saturated, time is what the interface needs for all
    assert contended(np.array([4.0]), np.array([0.0]), np.array([64]), np.array([1.0]))[0] == 4.0
    time, busy = contended(np.array([4.0]), np.array([1.0]), np.array([100]), np.array([0.5]))
    assert (time[0], busy[0]) == (100.0, 1.0)


@given(
    st.floats(0.1, 10),
    st.floats(0.0, 1.0),
    st.floats(0.0, 2.0),
    st.integers(1, 40),
)
def test_more_ranks_never_make_a_rank_faster(core, share, penalty, n):
    times = [
        contended(np.array([core]), np.array([core * share]), np.array([m]), np.array([penalty]))[0][0]
        for m in (n, n + 1)
    ]
    assert times[1] >= times[0]
    assert times[0] >= max(core, n * core * share) * (1 - 1e-12)
