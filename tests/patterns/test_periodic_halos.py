"""Halos whose process grid few ranks do not decide: every grid that fits is in the interval, and a run decides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.dims import dims_create
from ranksight.core.experiment import Experiment, Run
from ranksight.model.structure.neighbourfit import fit_neighbours
from ranksight.model.structure.neighbours import Neighbours
from ranksight.model.uncertainty.forecast import OK

STEPS, POINTS = 10, 48
NAMES = {("halo", "messages"), ("halo", "bytes_sent")}
Sends = Callable[[int], list[tuple[int, int, float]]]


def exchange(
    periodic: Sequence[bool],
    itself: bool = False,
    once: bool = False,
    edges: tuple[float, ...] = (),
    last: bool = False,
) -> Sends:
    """Messages of one step of a halo exchange as (sender, receiver, bytes), rank by rank as the program sends them.

    `itself`: a rank sends to itself in a periodic dimension of one; `once`: what goes to one rank goes in one message;
    `edges`: of the domain, which then decide how it is cut, in the `last` of the ways that are as good or in the first.
    """
    size = np.prod(edges) / np.array(edges) if edges else np.ones(len(periodic))

    def sends(ranks: int) -> list[tuple[int, int, float]]:
        extents = least_cut(ranks, edges, last) if edges else dims_create(ranks, len(periodic))
        found: list[tuple[int, int, float]] = []
        for place in itertools.product(*map(range, extents)):
            mine: list[tuple[int, float]] = []
            for d, way in itertools.product(range(len(extents)), (-1, 1)):
                there = [at + way * (e == d) for e, at in enumerate(place)]
                if not (periodic[d] or 0 <= there[d] < extents[d]) or (extents[d] == 1 and not itself):
                    continue
                there[d] %= extents[d]
                face = 8.0 * POINTS ** (len(extents) - 1) / np.prod([n for e, n in enumerate(extents) if e != d])
                face *= size[d]
                mine.append((int(np.ravel_multi_index(there, extents)), float(face)))
            if once:
                mine = [(peer, sum(size for other, size in mine if other == peer)) for peer in {p for p, _ in mine}]
            rank = int(np.ravel_multi_index(place, extents))
            found += [(rank, peer, size) for peer, size in mine]
        return found

    return sends


def least_cut(ranks: int, edges: tuple[float, ...], last: bool = False) -> tuple[int, ...]:
    """The process grid on which blocks have the least surface, the first or the last of those that are as good."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    ways = [way for way in itertools.product(divisors, repeat=len(edges)) if math.prod(way) == ranks]
    sides = [np.array(edges) / way for way in ways]
    pairs = sorted(zip(ways, sides, strict=True), key=lambda each: each[0], reverse=last)
    return min(pairs, key=lambda each: round(float((1 / each[1]).sum()), 9))[0]


def means(sends: Sends, ranks: int) -> dict[str, float]:
    each = sends(ranks)
    return {"messages": STEPS * len(each) / ranks, "bytes_sent": STEPS * sum(size for *_, size in each) / ranks}


def law_of(path: Path, sends: Sends, ranks: Sequence[int], steps: int = STEPS) -> Neighbours | None:
    experiment = Experiment.create(path / "e", "halo", ["ranks"])
    for p in ranks:
        sent = pd.DataFrame(sends(p), columns=["rank", "peer", "bytes"]).assign(operation="Isend", count=1)
        each = sent.groupby("rank")[["count", "bytes"]].sum().reindex(range(p), fill_value=0) * steps
        table = each.rename(columns={"count": "messages", "bytes": "bytes_sent"}).astype(float).reset_index()
        experiment.add(Run({"ranks": p}, collector="pmpi"), table.assign(kernel="halo"), tables={"peers": sent})
    return fit_neighbours(experiment, NAMES, lambda: experiment.tables("counters"))


def said(law: Neighbours, name: str, ranks: int) -> tuple[float, float, float, int]:
    answer, row = law.predict(np.array([[float(ranks)]])), law.metrics.index(name)
    return answer.value[row, 0], answer.lower[row, 0], answer.upper[row, 0], int(answer.status[row, 0])


PROGRAMS = {
    "ends": exchange((False,) * 3),
    "periodic": exchange((True,) * 3),
    "periodic, sends to itself": exchange((True,) * 3, itself=True),
    "periodic, one message to each other rank": exchange((True,) * 3, once=True),
    "plane that ends": exchange((False,) * 2),
    "periodic plane": exchange((True,) * 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_eight_ranks_do_not_decide_is_in_the_interval(tmp_path: Path, name: str) -> None:
    law = law_of(tmp_path, PROGRAMS[name], (1, 2, 4, 8))
    assert law
    # What is sent both ways whoever is there is the same number of messages at any number of ranks.
    assert set(law.metrics) == {"bytes_sent", *(["messages"] if "itself" not in name else [])}
    for p, what in itertools.product((16, 27, 64), law.metrics):
        true, (value, low, high, status) = means(PROGRAMS[name], p)[what], said(law, what, p)
        if status == OK:
            assert low * (1 - 1e-6) <= true <= high * (1 + 1e-6), (p, what)
            assert low <= value <= high
    for p, what in itertools.product((2, 4, 8), law.metrics):
        assert said(law, what, p)[:3] == pytest.approx([means(PROGRAMS[name], p)[what]] * 3)


def test_a_saturated_fit_has_no_interval_of_no_width(tmp_path: Path) -> None:
    law = law_of(tmp_path, PROGRAMS["periodic"], (1, 2, 4, 8))
    assert law
    for p, what in itertools.product((16, 64), ("messages", "bytes_sent")):
        _, low, high, _ = said(law, what, p)
        assert high > 1.1 * low, (p, what)
    assert "-" not in "".join(law.formula(i) for i in range(len(law.metrics))).replace("3-d", "")


@pytest.mark.parametrize(("asked", "run"), [(64, 64), (27, 16), (16, 16)])
def test_the_run_that_decides_is_named(tmp_path: Path, asked: int, run: int) -> None:
    """It follows the rule of the ranks measured, powers of two here: a program may refuse 3 or 27."""
    law = law_of(tmp_path, PROGRAMS["periodic"], (1, 2, 4, 8))
    assert law
    assert f"trace {run} ranks to decide" in law.remark(np.array([[float(asked)]]))
    assert "of halo are uncertain" in law.remark(np.array([[float(asked)]]))
    assert law.remark(np.array([[8.0]])) == ""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ranks", [(1, 2, 4, 8, 27), (1, 2, 4, 9, 12, 27)])
def test_counts_are_exact_where_a_run_decides(tmp_path: Path, name: str, ranks: tuple[int, ...]) -> None:
    law = law_of(tmp_path, PROGRAMS[name], ranks)
    assert law
    for p, what in itertools.product((16, 64, 96, 125), law.metrics):
        assert said(law, what, p)[:3] == pytest.approx([means(PROGRAMS[name], p)[what]] * 3), (p, what)
    assert law.remark(np.array([[64.0]])) == ""


@pytest.mark.parametrize("once", [False, True])
def test_a_ring_is_decided_by_eight_ranks(tmp_path: Path, once: bool) -> None:
    ring = exchange((True,), once=once)
    law = law_of(tmp_path, ring, (1, 2, 4, 8))
    assert law
    for p in (3, 5, 16, 100):
        assert said(law, "messages", p)[:3] == pytest.approx([means(ring, p)["messages"]] * 3)


def test_a_channel_is_periodic_in_some_dimensions(tmp_path: Path) -> None:
    channel = exchange((True, False, False))
    law = law_of(tmp_path, channel, (1, 2, 4, 8, 27))
    assert law
    assert law.grid.periodic == (True, False, False)
    for p in (16, 48, 64):
        assert said(law, "messages", p)[:3] == pytest.approx([means(channel, p)["messages"]] * 3)


def test_an_odd_number_of_messages_was_not_sent_both_ways(tmp_path: Path) -> None:
    def thrice(ranks: int) -> list[tuple[int, int, float]]:
        return [one for one in exchange((False,))(ranks) for _ in range(3)]

    # With ten steps thirty messages may be fifteen each way; with one step three may not.
    fitting = []
    for steps in (STEPS, 1):
        law = law_of(tmp_path / str(steps), thrice, (1, 2), steps)
        assert law
        weight = law.weight[law.metrics.index("messages")]
        fitting.append({grid for grid, each in zip(law.grids, weight.tolist(), strict=True) if each > 0})
    both = Cartesian(1, (True,))
    assert both in fitting[0]
    assert both not in fitting[1]
    assert Cartesian(1, (False,)) in fitting[0] & fitting[1]


def test_a_part_of_the_dimensions_that_is_decided_leaves_the_others_open(tmp_path: Path) -> None:
    """Twelve ranks are 3 x 2 x 2: they decide the first dimension only."""
    channel = exchange((True, False, False))
    law = law_of(tmp_path, channel, (1, 2, 4, 8, 12))
    assert law
    _, low, high, _ = said(law, "messages", 64)
    assert low < means(channel, 64)["messages"] <= high
    assert said(law, "messages", 16)[:3] == pytest.approx([means(channel, 16)["messages"]] * 3)


def test_bytes_that_vary_over_the_ranks_follow_the_faces(tmp_path: Path) -> None:
    """As where ranks have unlike numbers of atoms: messages are exact, bytes of a rank are off by up to a tenth."""
    periodic = exchange((True, True, True))

    def uneven(ranks: int) -> list[tuple[int, int, float]]:
        return [(rank, peer, size * (1 + 0.1 * np.sin(7.0 * rank + ranks))) for rank, peer, size in periodic(ranks)]

    law = law_of(tmp_path, uneven, (1, 2, 3, 4, 6, 8, 12, 18))
    assert law
    for p in (32, 64):
        value, low, high, _ = said(law, "bytes_sent", p)
        true = means(uneven, p)["bytes_sent"]
        assert value == pytest.approx(true, rel=0.1)
        assert low <= true <= high
        assert low < 0.95 * value
    narrow, wide = (said(law, "bytes_sent", p) for p in (18, 144))
    assert wide[2] / wide[0] > narrow[2] / narrow[0]


def test_one_cost_in_all_directions_is_likelier_than_several(tmp_path: Path) -> None:
    """Six ranks show one dimension; on a grid that ends in the others they would cost twice as much there."""
    law = law_of(tmp_path, PROGRAMS["periodic"], (1, 2, 3, 4, 6, 8))
    assert law
    weight = dict(zip(law.grids, law.weight[law.metrics.index("messages")].tolist(), strict=True))
    assert weight[Cartesian(3, (True, True, True))] > 50 * weight[Cartesian(3, (True, False, False))] > 0
    assert said(law, "messages", 64)[:3] == pytest.approx([means(PROGRAMS["periodic"], 64)["messages"]] * 3)


def test_other_messages_of_the_same_operation_hide_no_grid(tmp_path: Path) -> None:
    """A halo, and another kernel whose ranks send to the first one by the same operation."""
    sends = PROGRAMS["periodic"]
    experiment = Experiment.create(tmp_path / "e", "halo", ["ranks"])
    for p in (1, 2, 4, 8, 27):
        halo = pd.DataFrame(sends(p), columns=["rank", "peer", "bytes"]).assign(kernel="halo", count=1)
        gather = pd.DataFrame({"rank": range(1, p), "peer": 0, "bytes": 8.0, "kernel": "gather", "count": 1})
        peers = pd.concat([halo, gather]).assign(operation="Isend")
        each = halo.groupby("rank")["count"].sum().reindex(range(p), fill_value=0).astype(float)
        table = each.rename("messages").reset_index().assign(kernel="halo")
        experiment.add(Run({"ranks": p}, collector="pmpi"), table, tables={"peers": peers})
    law = fit_neighbours(experiment, {("halo", "messages")}, lambda: experiment.tables("counters"))
    assert law
    assert [(grid.dimensions, grid.periodic) for grid in law.grids] == [(3, (True, True, True))]
    assert said(law, "messages", 64)[0] == pytest.approx(6)


def test_laws_come_back_from_plain_data(tmp_path: Path) -> None:
    law = law_of(tmp_path, PROGRAMS["periodic"], (1, 2, 4, 8))
    assert law
    again = Neighbours.from_dict(law.to_dict())
    points = np.array([[16.0], [27.0], [64.0]])
    for end in ("value", "lower", "upper"):
        np.testing.assert_allclose(getattr(again.predict(points), end), getattr(law.predict(points), end))
    assert again.remark(points) == law.remark(points)


@pytest.mark.parametrize("edges", [(3.0, 1.0, 1.0), (1.0, 1.0, 2.5), (4.0, 1.0)])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_long_domain_is_cut_as_its_edges_have_it(edges: tuple[float, ...], periodic: bool, tmp_path: Path) -> None:
    sends = exchange((periodic,) * len(edges), edges=edges)
    law = law_of(tmp_path, sends, range(1, 9))
    assert law
    again = Neighbours.from_dict(law.to_dict())
    for ranks in (12, 16, 24, 32):
        for name, true in means(sends, ranks).items():
            _, lower, upper, status = said(again, name, ranks)
            assert status == OK
            assert lower * (1 - 1e-6) <= true <= upper * (1 + 1e-6)
            if len(edges) == 3:  # a plane may be one of three dimensions that is not cut yet
                assert upper <= 2 * lower


BOX, PLATE = (2.0, 1.5, 1.0), (4.0, 3.0)
"""A box that two, four and eight ranks cut as they cut the plate."""


@pytest.mark.parametrize("ranks", [(1, 2, 4, 8), (1, 2, 3, 4, 6, 8), (2, 4, 8, 9)])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_box_that_is_cut_as_a_plane_is_in_the_interval(tmp_path: Path, periodic: bool, ranks: Sequence[int]) -> None:
    sends = exchange((periodic,) * 3, edges=BOX, last=True)
    assert [least_cut(p, BOX, last=True) for p in (2, 4, 8)] == [(2, 1, 1), (2, 2, 1), (4, 2, 1)]
    law = law_of(tmp_path, sends, ranks)
    assert law
    assert {grid.dimensions for grid in law.grids} == {2, 3}
    for p, name in itertools.product((16, 27, 32, 64), law.metrics):
        true, (value, low, high, status) = means(sends, p)[name], said(law, name, p)
        assert status == OK
        assert low * (1 - 1e-6) <= true <= high * (1 + 1e-6), (p, name)
        assert low <= value <= high
    assert "to decide" in law.remark(np.array([[27.0]]))


@pytest.mark.parametrize("decided", [(12,), (16,), (9, 12)])
@pytest.mark.parametrize("edges", [BOX, PLATE])
def test_a_run_that_cuts_a_box_otherwise_than_a_plane_decides(
    tmp_path: Path, edges: tuple[float, ...], decided: tuple[int, ...]
) -> None:
    sends = exchange((True,) * len(edges), edges=edges, last=True)
    law = law_of(tmp_path, sends, (1, 2, 4, 8, *decided))
    assert law
    assert {grid.dimensions for grid in law.grids} == {len(edges)}
    for p in (27, 32, 64):
        messages = means(sends, p)["messages"]
        assert said(law, "messages", p)[:3] == pytest.approx([messages] * 3)


def test_a_square_plane_is_no_flat_box(tmp_path: Path) -> None:
    """Boxes of less than half the height would be cut so as well, and are few."""
    law = law_of(tmp_path, exchange((True, True)), (1, 2, 4, 8))
    assert law
    assert {grid.dimensions for grid in law.grids} == {2}
