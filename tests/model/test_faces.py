"""Bytes and packing of halos go with the faces of the blocks, whose grid at other ranks is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.structure.gridlaw import Group, solve
from ranksight.model.structure.neighbourfit import fit_neighbours
from ranksight.model.structure.neighbours import Neighbours

GRID = Cartesian(2, (False, False))


def halo(p: int, n: int) -> pd.DataFrame:
    """Calls and bytes of every rank: four sends to each neighbour, of a row of its block."""
    x, y = GRID.extents(p)
    near = GRID.neighbours(p)
    sent = 32.0 * (near @ np.array([n / y, n / x]))
    return pd.DataFrame({"kernel": "halo", "rank": np.arange(p), "visits": 4.0 * near.sum(axis=1), "bytes_sent": sent})


def measured(path: Path, sizes: tuple[int, ...]) -> Experiment:
    experiment = Experiment.create(path, "halo", ["ranks", "size"])
    for p in (1, 2, 4, 8, 9):  # 3 x 3 ranks show that the domain ends
        for n in sizes:
            peers = pd.DataFrame(sorted(GRID.pairs(p)), columns=["rank", "peer"]).assign(operation="Isend")
            tables = {"peers": peers.assign(count=1, bytes=1)} if len(peers) else {}
            experiment.add(Run({"ranks": p, "size": n}, collector="counted"), halo(p, n), tables=tables)
    return experiment


@pytest.mark.parametrize("sizes", [(48,), (48, 64, 96)])
def test_bytes_of_a_halo_go_with_the_faces(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    # At 2, 4 and 8 ranks the mean is the same: 1 x 1, 2 x 1/2, 3/2 x 1/2 + 1/4 of an edge; at 16 it is 3/4 of that.
    assert [halo(p, 48)["bytes_sent"].mean() for p in (2, 4, 8)] == pytest.approx([1536.0] * 3)
    experiment = measured(tmp_path / "exp", sizes)
    names = {("halo", "visits"), ("halo", "bytes_sent")}
    law = fit_neighbours(experiment, names, lambda: experiment.tables("counters"))
    assert law
    assert law.grids == (GRID,)
    assert dict(zip(law.metrics, law.faces[:, 0].tolist(), strict=True)) == {"bytes_sent": True, "visits": False}
    row = law.metrics.index("bytes_sent")
    asked = [16, 32, 48, 256]
    for each in (law, Neighbours.from_dict(law.to_dict())):
        answer = each.predict(np.array([[p, 48.0] for p in asked]))
        assert answer.value[row] == pytest.approx([halo(p, 48)["bytes_sent"].mean() for p in asked], rel=1e-6)
        assert (answer.upper[row] < 1.1 * answer.lower[row]).all()
    assert "face_1" in law.formula(row)


def test_a_constant_that_one_size_alone_has_is_error(tmp_path: Path) -> None:
    ranks = (1, 2, 4, 6, 9)
    name = ("halo", "bytes_sent")

    def group(n: int, growth: float) -> Group:
        parts = [halo(p, n)["bytes_sent"].to_numpy() * (1 + growth * np.log2(p)) for p in ranks]
        return Group(ranks, [name], np.concatenate(parts)[None])

    alone = [solve([group(n, growth)], GRID, True).solved[0, 0, 0] for n, growth in ((48, 0.02), (96, -0.02))]
    assert sorted(value > 0 for value in alone) == [False, True]
    together = solve([group(48, 0.02), group(96, -0.02)], GRID, True)
    assert together.follows.all()
    assert together.solved[0, 0].tolist() == [0.0, 0.0]
    assert (together.solved[0, 1:3] > 0).all()


def test_faces_of_a_block_are_cut_along_the_other_sides() -> None:
    assert Cartesian(3, (True, True, True)).faces(12).tolist() == pytest.approx([1 / 4, 1 / 6, 1 / 6])


@pytest.mark.parametrize("most", [8, 16])
def test_a_row_of_ranks_may_have_no_more_slabs(tmp_path: Path, most: int) -> None:
    """Half of 16 planes are eight slabs: with 16 ranks a run shows that the domain has more."""
    chain = Cartesian(1, (False,))
    experiment = Experiment.create(tmp_path / "exp", "slabs", ["ranks", "size"])
    for p in sorted({2, 3, 4, 8, most}):
        for n in (16, 24):
            near = chain.sides(p).sum(axis=1)
            counted = pd.DataFrame({"kernel": "planes", "rank": np.arange(p), "visits": near})
            peers = pd.DataFrame(sorted(chain.pairs(p)), columns=["rank", "peer"]).assign(operation="Isend")
            experiment.add(Run({"ranks": p, "size": n}), counted, tables={"peers": peers.assign(count=1, bytes=1)})
    law = fit_neighbours(experiment, {("planes", "visits")}, lambda: experiment.tables("counters"))
    assert law
    said = law.predict(np.array([[12.0, 24.0], [13.0, 24.0], [24, 24], [28, 24]]))
    true = 2 * (1 - 1 / np.array([12.0, 13, 24, 28]))
    assert said.value[0] == pytest.approx(true)
    slabs = {8: np.array([12, 12, 12, 12]), 16: np.array([12, 13, 24, 24])}[most]
    assert said.lower[0] == pytest.approx(2 * (1 - 1 / slabs) * slabs / [12, 13, 24, 28])
    assert Neighbours.from_dict(law.to_dict()).predict(np.array([[28.0, 24.0]])).lower[0] == said.lower[0, 3:]


def test_what_one_rank_does_alone_is_a_mean_over_that_rank(tmp_path: Path) -> None:
    # Rank 0 of a chain is the one without a lower neighbour: a law of neighbours holds, over all ranks.
    chain = Cartesian(1, (False,))
    experiment = Experiment.create(tmp_path / "exp", "chain", ["ranks"])
    for p in (1, 2, 3, 4, 6, 8):
        rank = np.arange(p)
        step = pd.DataFrame({"kernel": "step", "rank": rank, "visits": 10.0, "instructions": 1e6})
        written = pd.DataFrame({"kernel": "write", "rank": [0], "visits": 5.0, "instructions": 2e5})
        peers = pd.DataFrame(sorted(chain.pairs(p)), columns=["rank", "peer"]).assign(operation="Isend")
        tables = {"peers": peers.assign(count=1, bytes=1)} if len(peers) else {}
        experiment.add(Run({"ranks": p}, collector="counted"), pd.concat([step, written]), tables=tables)
    answers = fit(experiment, platform=None).predict(ranks=[16, 64], metrics=["visits", "instructions"]).answers
    said = [(a.metric, a.value, a.ok) for a in answers if a.kernel == "write"]
    assert [value for name, value, _ in said if name == "visits"] == pytest.approx([5.0, 5.0])
    assert [value for name, value, _ in said if name == "instructions"] == pytest.approx([2e5, 2e5])
    assert all(ok for *_, ok in said)


def boxes(path: Path, sizes: tuple[int, ...]) -> Experiment:
    """A domain n by 2n that up to four ranks cut along its longer edge: eight alone have neighbours on the other."""
    experiment = Experiment.create(path, "boxes", ["ranks", "size"])
    for p in (1, 2, 4, 8):
        x, y = {1: (1, 1), 2: (1, 2), 4: (1, 4), 8: (2, 4)}[p]
        at = [(rank % x, rank // x) for rank in range(p)]
        for n in sizes:
            rows = []
            for rank, (i, j) in enumerate(at):
                for other, (k, m) in enumerate(at):
                    if abs(i - k) + abs(j - m) == 1:
                        kernel, length = ("sides", 2 * n // y) if j == m else ("ends", n // x)
                        rows.append((kernel, rank, "Isend", other, 4.0, 32.0 * length))
            peers = pd.DataFrame(rows, columns=["kernel", "rank", "operation", "peer", "count", "bytes"])
            peers = peers.astype({"rank": int, "peer": int, "count": float, "bytes": float})
            sums = peers.groupby(["kernel", "rank"])[["count", "bytes"]].sum().reset_index()
            counters = sums.rename(columns={"count": "messages", "bytes": "bytes_sent"})
            run = pd.DataFrame({"kernel": "main", "rank": np.arange(p), "messages": 0.0, "bytes_sent": 0.0})
            sent = sums.assign(operation="Isend", comm_size=p, size_class=64, seconds=1e-6, peers=1)
            tables = {"peers": peers, "messages": sent} if len(peers) else {"messages": sent}
            made = Run({"ranks": p, "size": n}, collector="pmpi")
            counted = pd.concat([run, counters], ignore_index=True).astype({"rank": int})
            experiment.add(made, counted, tables=tables)
    return experiment


def test_one_number_of_ranks_does_not_show_whether_messages_go_by_faces(tmp_path: Path) -> None:
    """Messages to the sides exist on eight ranks: on more their length may fall with the blocks, or stay."""
    experiment = boxes(tmp_path / "exp", (16, 24, 32))
    names = {("sides", "bytes_sent"), ("ends", "bytes_sent")}
    law = fit_neighbours(experiment, names, lambda: experiment.tables("counters"))
    assert law is not None
    row = law.kernels.index("sides")
    assert set(law.faces[row, law.weight[row] > 0].tolist()) == {False, True}
    asked = np.array([[32.0, 32.0]])  # 4 by 8 blocks
    for each in (law, Neighbours.from_dict(law.to_dict())):
        answer = each.predict(asked)
        by_face, by_length = 2 * (1 - 1 / 4) * 32 * 2 * 32 / 8, 2 * (1 - 1 / 4) * 32 * 2 * 32 / 4
        assert answer.lower[row, 0] <= by_face * (1 + 1e-9)
        assert answer.upper[row, 0] >= by_length * (1 - 1e-9)


def test_ranks_that_a_trace_does_not_list_sent_nothing(tmp_path: Path) -> None:
    """Counts of what kernels send are means over all ranks, zero where nobody sends: they add up to the program's."""
    experiment = boxes(tmp_path / "exp", (16, 24, 32))
    model = fit(experiment)
    answers = {(a.kernel, a.metric): a for a in model.predict(ranks=2, size=32, metrics=["bytes_sent"]).answers}
    assert answers["sides", "bytes_sent"].value == 0
    at_eight = model.predict(ranks=8, size=32, metrics=["messages", "bytes_sent"]).answers
    sent = {(a.kernel, a.metric): a.value for a in at_eight}
    assert sent["sides", "messages"] == pytest.approx(4.0)
    assert sent["sides", "bytes_sent"] == pytest.approx(32.0 * 2 * 32 / 4)
    for name in ("messages", "bytes_sent"):
        assert sent[None, name] == pytest.approx(sum(sent[kernel, name] for kernel in ("main", "sides", "ends")))
