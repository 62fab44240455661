"""The time of predicted message tables on a network, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.model.messages.table import MessageTable, Row
from ranksight.model.messages.times import times_of_volumes

ALPHA, BETA, GAP = 5e-6, 1e-9, 1e-6
LINK = NetworkParameters.linear(ALPHA, BETA, gap=Piecewise((0,), (GAP,), (BETA,)))
FLAT = Fabric.flat(LINK)


def row(
    operation: str,
    count: list[float],
    size: float,
    targets: list[list[int]] | None = None,
    comm: int = 0,
    kernel: str = "k",
) -> Row:
    ranks = len(count)
    calls = np.array(count, dtype=float)
    links = np.array([r * ranks + t for r, each in enumerate(targets or []) for t in each], dtype=np.int64)
    each = np.array([count[r] / len(t) for r, t in enumerate(targets or []) for _ in t])
    return Row(
        kernel,
        operation,
        comm,
        0,
        calls,
        calls * size,
        calls * size,
        2 * calls * size,
        links,
        each,
        each * size,
        0.0,
        "",
        "",
    )


def operation_times(
    table: MessageTable, fabric: Fabric, choice: str = "openmpi-5.0", volume: str = "bytes"
) -> dict[tuple[str, str], float]:
    return times_of_volumes([(table, volume)], fabric, choice)[0]


def table(*rows: Row) -> MessageTable:
    return MessageTable({"ranks": len(rows[0].count)}, len(rows[0].count), rows)


def test_blocking_messages_follow_each_other() -> None:
    times = operation_times(table(row("Send", [3, 3], 1000, [[1], [0]])), FLAT)
    assert times == {("k", "Send"): pytest.approx(3 * (ALPHA + 1000 * BETA))}


def test_messages_completed_together_are_in_flight_together() -> None:
    """A line of three: the middle rank sends two messages a round, the ends one."""
    sends = row("Isend", [4, 8, 4], 1000, [[1], [0, 2], [1]])
    together = table(sends, row("Waitall", [4, 4, 4], 0))
    train = 4 * (GAP + 1000 * BETA + ALPHA + 1000 * BETA)
    assert operation_times(together, FLAT)["k", "Isend"] == pytest.approx(train)
    one_by_one = table(sends, row("Wait", [8, 16, 8], 0))
    assert operation_times(one_by_one, FLAT)["k", "Isend"] == pytest.approx(8 * (ALPHA + 1000 * BETA))
    elsewhere = table(sends, row("Waitall", [4, 4, 4], 0, kernel="other"))
    assert operation_times(elsewhere, FLAT)["k", "Isend"] == pytest.approx(8 * (ALPHA + 1000 * BETA))


def test_sizes_of_one_train() -> None:
    small, large = row("Isend", [2, 2], 10, [[1], [0]]), row("Isend", [2, 2], 5000, [[1], [0]])
    times = operation_times(table(small, large, row("Waitall", [2, 2], 0)), FLAT)
    assert times["k", "Isend"] == pytest.approx(2 * (GAP + 10 * BETA + ALPHA + 5000 * BETA))


@pytest.mark.parametrize("choice", ["openmpi-4.1", "openmpi-5.0", "mpich"])
def test_collectives_cost_what_the_library_chooses(choice: str) -> None:
    times = operation_times(table(row("Allreduce", [5.0] * 256, 8, comm=256)), FLAT, choice)
    assert times["k", "Allreduce"] == pytest.approx(5 * float(cost("allreduce", 256, 8, FLAT, choice)))


def test_a_reduce_and_broadcast_take_the_library_s_own() -> None:
    """Open MPI at 256 ranks: eight rounds of a binomial reduce, four of a broadcast with radix four."""
    both = float(cost("reduce", 256, 8, FLAT, "openmpi-4.1")) + float(cost("bcast", 256, 8, FLAT, "openmpi-4.1"))
    assert float(cost("allreduce", 256, 8, FLAT, "openmpi-4.1")) == pytest.approx(both)
    hop = ALPHA + 8 * BETA
    assert both == pytest.approx(8 * hop + 4 * (hop + 2 * (GAP + 8 * BETA)))


def test_blocks_of_an_alltoall() -> None:
    """Message tables hold what a rank hands over: all blocks."""
    times = operation_times(table(row("Alltoall", [1.0] * 4, 4 * 100, comm=4)), FLAT)
    assert times["k", "Alltoall"] == pytest.approx(float(cost("alltoall", 4, 100, FLAT)))


def test_the_slowest_rank_is_reported() -> None:
    uneven = table(row("Send", [1, 9, 1], 100, [[1], [2], [0]]), row("Allreduce", [1, 1, 1], 8, comm=3))
    times = operation_times(uneven, FLAT)
    assert times["k", "Send"] == pytest.approx(9 * (ALPHA + 100 * BETA))
    assert set(times) == {("k", "Send"), ("k", "Allreduce")}
    assert operation_times(uneven, FLAT, volume="high")["k", "Send"] == pytest.approx(9 * (ALPHA + 200 * BETA))


def test_neighbours_on_the_same_node_are_near() -> None:
    near = NetworkParameters.linear(1e-7, 1e-10)
    fabric = Fabric(near, LINK, 2)
    ring = row("Send", [1.0] * 4, 1000, [[1], [2], [3], [0]])
    assert operation_times(table(ring), fabric)["k", "Send"] == pytest.approx(ALPHA + 1000 * BETA)
    pairs = row("Send", [1.0] * 4, 1000, [[1], [0], [3], [2]])
    assert operation_times(table(pairs), fabric)["k", "Send"] == pytest.approx(1e-7 + 1000 * 1e-10)
    assert operation_times(table(row("File_open", [1, 1], 0)), FLAT) == {}
