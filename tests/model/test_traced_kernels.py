"""What traces show of messages: operations of all ranks go by no process grid, data may decide the partners."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.traced import read_called

GRID = Cartesian(3, (False, False, False))
COLUMNS = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]


def tally(p: int) -> tuple[float, float]:
    """Calls and bytes of a sum of five bytes for each rank, three times, and of eleven bytes."""
    return 4.0, 15.0 * p + 11


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    made = Experiment.create(tmp_path_factory.mktemp("together") / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8):
        pairs = sorted(GRID.pairs(p))
        near = GRID.neighbours(p).sum(axis=1)
        calls, volume = tally(p)
        rows: list[tuple[object, ...]] = [("tally", r, "Allreduce", p, 64, calls, volume, 1e-6, 0) for r in range(p)]
        rows += [("halo", r, "Isend", p, 1024, 2 * n, 2000.0 * n, 1e-6, n) for r, n in enumerate(near) if n]
        rows += [("lines", r, "Allreduce", min(p, 2), 64, 3, 24.0, 1e-6, 0) for r in range(p)]
        counted = pd.DataFrame(rows, columns=COLUMNS).groupby(["kernel", "rank"])[["count", "bytes"]].sum()
        counted = counted.reset_index().rename(columns={"count": "messages", "bytes": "bytes_sent"})
        peers = pd.DataFrame(pairs, columns=["rank", "peer"]).assign(kernel="halo", operation="Isend")
        tables = {"messages": pd.DataFrame(rows, columns=COLUMNS)}
        if pairs:
            tables["peers"] = peers.assign(count=2, bytes=2000)
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables=tables)
    return made


def test_kernels_of_collective_operations(traced: Experiment) -> None:
    called = read_called(traced)
    assert called.together == {"tally", "tally: Allreduce"}
    assert called.collective == called.together | {"lines", "lines: Allreduce"}


def test_a_sum_for_each_rank_is_met_exactly_next_to_a_halo(traced: Experiment) -> None:
    model = fit(traced)
    for answer in model.predict(ranks=[16, 4096], metrics=["messages", "bytes_sent"]).answers:
        if answer.kernel == "tally":
            true = tally(int(answer.configuration["ranks"]))[answer.metric == "bytes_sent"]
            assert answer.ok
            assert (answer.lower, answer.value, answer.upper) == pytest.approx((true,) * 3)
    known = model.functions.neighbours
    assert {kernel for kernel, _ in known.keys} == {"halo"}


def irregular(p: int) -> pd.DataFrame:
    """Halves of a matrix's band that blocks of rows share with the next one, each of a length of its own."""
    rows = [(a, b, 8.0 * (1000 + 37 * min(a, b) ** 2)) for a in range(p) for b in (a - 1, a + 1) if 0 <= b < p]
    return pd.DataFrame(rows, columns=["rank", "peer", "bytes"]).assign(kernel="spmv", operation="Isend", count=5)


def test_partners_that_data_decide_are_never_sure(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8):
        peers = irregular(p)
        sent = peers.groupby("rank").agg(messages=("count", "sum"), bytes_sent=("bytes", "sum"))
        counted = sent.reindex(range(p), fill_value=0.0).astype(float).reset_index().assign(kernel="spmv")
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"peers": peers} if len(peers) else {})
    called = read_called(made)
    assert not called.uneven
    assert (called.ranks, called.irregular) == (8, {"spmv", "spmv: Isend"})
    assert called.partners["spmv"] == pytest.approx(14 / 8)
    model = fit(made)
    for answer in model.predict(ranks=[8, 16, 64], metrics=["messages", "bytes_sent"]).answers:
        more = answer.configuration["ranks"] / 8
        if answer.kernel == "spmv" and more > 1:
            assert answer.upper >= 0.99 * more * answer.lower
            assert answer.ok == (more <= 4) or answer.metric == "bytes_sent"
    again = Functions.with_structures(model.fitted, model.functions.structures())
    assert again.irregular == model.functions.irregular
    with pytest.raises(InputError, match="irregular"):
        Functions.with_structures(model.fitted, {**model.functions.structures(), "irregular": [["none", "messages"]]})


def test_drawn_partners_are_those_to_whom_all_send_as_much(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    pairs = [(r, (r + step) % 8, 100.0 + 7 * r if step == 1 else 300.0 - 7 * r) for r in range(8) for step in (1, 3)]
    peers = pd.DataFrame(pairs, columns=["rank", "peer", "bytes"]).assign(operation="Isend", count=1)
    rows = [
        (kernel, r, "Isend", 8, 64, 2.0, 400.0 + (kernel == "matrix") * r, 1e-6, 2)
        for kernel in ("ring", "matrix")
        for r in range(8)
    ]
    tables = {"peers": pd.concat([peers.assign(kernel=kernel) for kernel in ("ring", "matrix")])}
    made.add(Run({"ranks": 8}, 0, "pmpi"), tables={"messages": pd.DataFrame(rows, columns=COLUMNS), **tables})
    called = read_called(made)
    assert called.drawn == {"ring", "ring: Isend"}
    assert called.irregular == {"matrix", "matrix: Isend"}


def test_partners_on_a_grid_of_several_sides_are_within_reach_along_each(tmp_path: Path) -> None:
    """Particles decide every length, and blocks who gets them: 64 ranks have twice as many along each side as 8."""
    grid = Cartesian(3, (True, True, True))
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8):
        pairs = pd.DataFrame(sorted(grid.pairs(p)), columns=["rank", "peer"])
        lengths = [1e4 / p ** (2 / 3) + 13 * (min(a, b) ** 2 + 3 * max(a, b)) for a, b in pairs.to_numpy()]
        peers = pairs.assign(kernel="exchange", operation="Isend", count=10, bytes=lengths)
        sent = peers.groupby("rank").agg(messages=("count", "sum"), bytes_sent=("bytes", "sum"))
        counted = sent.reindex(range(p), fill_value=0.0).astype(float).reset_index().assign(kernel="exchange")
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"peers": peers} if len(peers) else {})
    model = fit(made)
    assert ("exchange", "messages") in model.functions.irregular
    answers = {each.metric: each for each in model.predict(ranks=64, metrics=["messages", "bytes_sent"]).answers}
    assert answers["messages"].lower <= 60 <= answers["messages"].upper <= 2 * 60
    assert answers["messages"].ok


def test_parts_of_a_mesh_share_its_data(tmp_path: Path) -> None:
    """Nearest parts, as a partitioner cuts them, send lengths of their own; no rule says which parts are nearest."""
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8):
        drawn = np.random.default_rng(p)
        place = drawn.random((p, 3))
        apart = np.linalg.norm(place[:, None] - place, axis=2) + 9 * np.eye(p)
        close = np.argsort(apart, axis=1)[:, : min(p - 1, 4)]
        links = sorted({pair for a in range(p) for b in close[a] for pair in ((a, int(b)), (int(b), a))})
        peers = pd.DataFrame(links, columns=["rank", "peer"]).assign(kernel="spmv", operation="Isend", count=5)
        peers["bytes"] = 1e6 / p**2 * (1 + drawn.random(len(peers)))
        sent = peers.groupby("rank").agg(messages=("count", "sum"), bytes_sent=("bytes", "sum"))
        counted = sent.reindex(range(p), fill_value=0.0).astype(float).reset_index().assign(kernel="spmv")
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"peers": peers} if len(peers) else {})
    last = counted[["messages", "bytes_sent"]].mean()
    model = fit(made)
    assert set(model.functions.placed) == {("spmv", "messages"), ("spmv", "bytes_sent")}
    again = Functions.with_structures(model.fitted, model.functions.structures())
    assert again.placed == model.functions.placed
    answers = {each.metric: each for each in model.predict(ranks=16, metrics=["messages", "bytes_sent"]).answers}
    calls, volume = answers["messages"], answers["bytes_sent"]
    assert calls.lower <= last["messages"] * (1 + 1e-9) < calls.value < 2 * last["messages"] <= calls.upper * (1 + 1e-9)
    assert volume.lower <= last["bytes_sent"] / 2 < volume.value < last["bytes_sent"] <= volume.upper * (1 + 1e-9)


def test_ranks_that_a_law_leaves_out_open_it_no_further(tmp_path: Path) -> None:
    """Slabs thinner than a cut-off send on to the next ones: on 5 and 7 ranks, which cut one side, and no loop does."""
    grid = Cartesian(3, (True, True, True))
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in range(1, 9):
        pairs = pd.DataFrame(sorted(grid.pairs(p)), columns=["rank", "peer"])
        lengths = [1e4 / p ** (2 / 3) + 13 * (min(a, b) ** 2 + 3 * max(a, b)) for a, b in pairs.to_numpy()]
        across = (pairs["rank"] // 2 != pairs["peer"] // 2) | (p % 2 > 0)
        count = np.where(across & (p % 4 > 0) & (p > 2), 5, 10)
        count[::3] += 10 * (p in (5, 7))
        peers = pairs.assign(kernel="exchange", operation="Isend", count=count, bytes=lengths)
        sent = peers.groupby("rank").agg(messages=("count", "sum"), bytes_sent=("bytes", "sum"))
        counted = sent.reindex(range(p), fill_value=0.0).astype(float).reset_index().assign(kernel="exchange")
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"peers": peers} if len(peers) else {})
    model = fit(made)
    assert ("exchange", "messages") in model.functions.irregular
    assert model.functions.iterations is None
    answer = model.predict(ranks=32, metrics=["messages"]).answers[0]
    assert answer.ok
    assert (answer.lower, answer.value, answer.upper) == pytest.approx((30, 30, 60))


def test_what_all_ranks_have_the_same_of(tmp_path: Path, traced: Experiment) -> None:
    equal = read_called(traced).even
    assert {("tally", "messages"), ("tally: Allreduce", "bytes_sent"), ("halo: Isend", "messages")} <= equal
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in (1, 2, 4):
        rows = [("tree", r, "Send", p, 8, bin(r).count("1"), 8.0 * bin(r).count("1"), 1e-6, 1) for r in range(1, p)]
        rows += [("first", 0, "Allreduce", 1, 8, 3, 24.0, 1e-6, 0)]
        made.add(Run({"ranks": p}, 0, "pmpi"), messages=pd.DataFrame(rows, columns=COLUMNS))
    assert read_called(made).even == frozenset()
