"""Kernels whose messages are operations of all ranks have nothing to do with the process grid of others."""

from __future__ import annotations

import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.experiment import Experiment, Run
from ranksight.model.assembly import fit
from ranksight.model.structure.structured import collective

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
    names = dict.fromkeys(("tally", "tally: Allreduce"), True) | dict.fromkeys(("lines", "lines: Allreduce"), False)
    assert collective(traced) == names


def test_a_sum_for_each_rank_is_met_exactly_next_to_a_halo(traced: Experiment) -> None:
    model = fit(traced)
    for answer in model.predict(ranks=[16, 4096], metrics=["messages", "bytes_sent"]).answers:
        if answer.kernel == "tally":
            true = tally(int(answer.configuration["ranks"]))[answer.metric == "bytes_sent"]
            assert answer.ok
            assert (answer.lower, answer.value, answer.upper) == pytest.approx((true,) * 3)
    known = model.functions.neighbours
    assert known is not None
    assert {kernel for kernel, _ in known.keys} == {"halo"}
