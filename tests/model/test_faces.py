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
    assert law is not None
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
