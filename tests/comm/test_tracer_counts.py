"""Counts, bytes and peers of every family of operations against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.comm.tracer.tables import TraceTables
from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE

pytestmark = pytest.mark.mpi
P, D, F, I = 4, 8, 4, 4  # ranks; sizes of double, float, int

Table = dict[tuple[str, str], tuple[int, int]]


def expected(r: int) -> Table:
    """(kernel, operation) -> calls that move data, bytes, on rank `r`."""
    root, even = r == 0, r % 2 == 0
    upto = sum(range(1, P + 1))
    table: Table = {
        ("blocking", "Send" if even else "Ssend"): (1, 5 * D),
        ("blocking", "Recv"): (1, 5 * D),
        ("blocking", "Sendrecv"): (1, 3 * I),
        ("blocking", "Sendrecv_recv"): (1, 3 * I),
        ("blocking", "Sendrecv_replace"): (1, 7),
        ("blocking", "Sendrecv_replace_recv"): (1, 7),
        ("nonblocking", "Irecv"): (5, (300 + 3 * 9) * D),
        ("nonblocking", "Isend"): (5, (300 + 3 * 9) * D),
        ("nonblocking", "Wait"): (2, 0),
        ("nonblocking", "Waitall"): (1, 0),
        ("nonblocking", "Waitany"): (2, 0),
        ("tested", "Irecv"): (4, (11 + 12 + 13 + 14) * F),
        ("tested", "Isend"): (4, (11 + 12 + 13 + 14) * F),
        ("persistent", "Send_init"): (1, 0),
        ("persistent", "Recv_init"): (1, 0),
        ("persistent", "Send_start"): (6, 6 * 33 * D),
        ("persistent", "Recv_start"): (6, 6 * 33 * D),
        ("persistent", "Start"): (4, 0),
        ("persistent", "Startall"): (4, 0),
        ("nowhere", "Send"): (0, 0),
        ("nowhere", "Recv"): (0, 0),
        ("nowhere", "Isend"): (0, 0),
        ("nowhere", "Irecv"): (0, 0),
        ("probed", "Isend"): (2, 35 * I),
        ("probed", "Mprobe"): (2, 0),
        ("probed", "Mrecv"): (1, 17 * I),
        ("probed", "Imrecv"): (1, 18 * I),
        ("datatypes", "Sendrecv"): (1, 3 * 10 * D),
        ("datatypes", "Sendrecv_recv"): (1, 3 * 10 * D),
        ("datatypes", "Bcast"): (1, 2 * 2 * 10 * D),
        ("collectives", "Barrier"): (1, 0),
        ("collectives", "Bcast"): (1, 6 * D),
        ("collectives", "Reduce"): (1, 7 * D),
        ("collectives", "Allreduce"): (1, 8 * D),
        ("collectives", "Scan"): (1, 9 * D),
        ("collectives", "Exscan"): (1, 10 * D),
        ("collectives", "Reduce_scatter"): (1, upto * D),
        ("collectives", "Reduce_scatter_block"): (1, 2 * P * D),
        ("collectives", "Gather"): (1, 3 * D),
        ("collectives", "Gatherv"): (1, (r + 1) * D),
        ("collectives", "Scatter"): (1, 4 * D * (P if root else 1)),
        ("collectives", "Scatterv"): (1, D * (upto if root else r + 1)),
        ("collectives", "Allgather"): (1, 5 * D),
        ("collectives", "Allgatherv"): (1, (r + 1) * D),
        ("collectives", "Alltoall"): (1, 6 * D * P),
        ("collectives", "Alltoallv"): (1, D * sum(r + i for i in range(P))),
        ("alltoallw", "Alltoallw"): (1, 2 * (P // 2) * (D + I)),
        ("in_place", "Allreduce"): (1, 8 * D),
        ("in_place", "Reduce"): (1, 7 * D),
        ("in_place", "Gather"): (1, 3 * D),
        ("in_place", "Scatter"): (1, 4 * D * (P if root else 1)),
        ("in_place", "Allgather"): (1, 5 * D),
        ("in_place", "Allgatherv"): (1, (r + 1) * D),
        ("in_place", "Alltoall"): (1, 6 * D * P),
        ("nonblocking_collectives", "Ibarrier"): (1, 0),
        ("nonblocking_collectives", "Ibcast"): (1, 6 * D),
        ("nonblocking_collectives", "Iallreduce"): (1, 8 * D),
        ("nonblocking_collectives", "Ialltoall"): (1, 6 * D * P),
        ("communicators", "Allreduce"): (20, 20 * D),
        ("communicators", "Sendrecv"): (10, 10 * D),
        ("communicators", "Sendrecv_recv"): (10, 10 * D),
        ("communicators", "Comm_split"): (20, 0),
        ("communicators", "Comm_free"): (21, 0),
        ("across", "Bcast"): (1, 4 * D if r == 0 or not even else 0),
        ("across", "Allgather"): (1, 2 * D),
        ("across", "Alltoall"): (1, 3 * D * P // 2),
        ("across", "Gather"): (1, 0 if even else 5 * D),
        ("across", "Recv" if even else "Send"): (1, 6 * D),
        ("neighbourhood", "Neighbor_alltoall"): (1, 3 * D * (1 if r in (0, P - 1) else 2)),
        ("neighbourhood", "Neighbor_allgather"): (1, 4 * D * (1 if r in (0, P - 1) else 2)),
        ("neighbourhood", "Neighbor_alltoallv"): (1, 7 * D),
        ("one_sided", "Put"): (1, 8 * D),
        ("one_sided", "Accumulate"): (1, 4 * D),
        ("one_sided", "Get"): (1, D),
        ("one_sided", "Fetch_and_op"): (1, D),
        ("one_sided", "Win_fence"): (4, 0),
        ("files", "File_write_at"): (1, 10),
        ("files", "File_read_at_all"): (1, 10),
        ("files", "File_open"): (1, 0),
    }
    return table


@pytest.fixture(scope="module", params=["", ".mpich", "_abi"], ids=["mpi", "mpich", "abi"])
def tables(tracing, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> TraceTables:
    suffix, mpirun = tracing.mpi(request.param)
    folder = tmp_path_factory.mktemp("families")
    program = tracing.compile("families.c", wrapper=f"mpicc{suffix}")
    return tracing.tables(tracing.launch(program, P, str(folder / "io.dat"), mpirun=mpirun), folder)


@pytest.mark.parametrize("rank", range(P))
def test_counts_and_bytes_of_every_family(tables: TraceTables, rank: int) -> None:
    mine = tables.messages[tables.messages["rank"] == rank]
    found = {
        (str(kernel), str(operation)): (int(row["count"]), int(row["bytes"]))
        for (kernel, operation), row in mine.groupby(["kernel", "operation"], observed=True)[["count", "bytes"]]
        .sum()
        .iterrows()
    }
    wanted = expected(rank)
    assert {key: found.get(key) for key in wanted} == wanted
    # Nothing else moves bytes.
    assert {key for key, (_, moved) in found.items() if moved} <= set(wanted)


def test_what_is_sent_is_received(tables: TraceTables) -> None:
    total = tables.messages.groupby("kind", observed=True)[["count", "bytes"]].sum()
    pairs = tables.messages[tables.messages["kind"].isin(["s", "r"])]
    sent, got = (pairs[pairs["kind"] == kind] for kind in ("s", "r"))
    assert sent["bytes"].sum() == got["bytes"].sum() == total.loc["r", "bytes"]
    assert sent["count"].sum() == got["count"].sum()


def test_classes_hold_their_bytes(tables: TraceTables) -> None:
    moved = tables.messages[(tables.messages["bytes"] > 0) & (tables.messages["count"] == 1)]
    assert len(moved) > 100
    assert (moved["bytes"] <= moved["size_class"]).all()
    assert (2 * moved["bytes"] > moved["size_class"]).all()
    still = tables.messages[tables.messages["size_class"] == 0]
    assert (still["bytes"] == 0).all()


def test_communicator_sizes_follow_reused_handles(tables: TraceTables) -> None:
    sums = tables.messages[
        (tables.messages["kernel"] == "communicators") & (tables.messages["operation"] == "Allreduce")
    ]
    assert sorted(zip(sums["comm_size"], sums["count"], strict=True)) == [(2, 10)] * P + [(4, 10)] * P


def test_peers_are_ranks_of_the_world(tables: TraceTables) -> None:
    for rank in range(P):
        mine = (
            tables.peers[tables.peers["rank"] == rank]
            .groupby(["operation", "peer"], observed=True)[["count", "bytes"]]
            .sum()
        )
        assert mine.loc[("Put", (rank + 1) % P), "bytes"] == 8 * D
        # The halves are reversed and of two ranks each: the partner there is two away.
        assert mine.loc[("Sendrecv", (rank + 2) % P), "count"] == 10
        if rank % 2:
            assert mine.loc[("Send", rank - 1), "bytes"] == 6 * D  # across the intercommunicator
        neighbours = {rank - 1, rank + 1} & set(range(P))
        assert set(mine.loc["Neighbor_alltoall"].index) == neighbours
    row = tables.messages[(tables.messages["operation"] == "Neighbor_alltoallv") & (tables.messages["rank"] == 1)]
    assert row["peers"].tolist() == [2]


def test_counters_sum_what_the_table_says(tables: TraceTables) -> None:
    counters = tables.counters
    whole = counters[counters["kernel"] == WHOLE].set_index("rank")
    kernels = counters[counters["kernel"] != WHOLE].groupby("rank")[["messages", "bytes_sent", "mpi_time"]].sum()
    np.testing.assert_array_equal(whole["messages"], kernels["messages"])
    np.testing.assert_array_equal(whole["bytes_sent"], kernels["bytes_sent"])
    np.testing.assert_allclose(whole["mpi_time"], kernels["mpi_time"], rtol=1e-4)
    np.testing.assert_allclose(whole["wall_time"], whole["compute_time"] + whole["mpi_time"], rtol=1e-9)
    assert (whole["compute_cpu_time"] > 0).all()
    assert (whole["memory_peak"] >= whole["memory_pss"]).all()
    assert (whole["memory_pss"] > 1e5).all()
    assert tables.messages.columns[: len(MESSAGE_COLUMNS)].tolist() == list(MESSAGE_COLUMNS)
    assert not counters.duplicated(["kernel", "rank"]).any()
