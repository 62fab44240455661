"""Waiting from matched events."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.matched import COLUMNS, waiting
from ranksight.core.errors import InputError

NONE = None


def events(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    """Rows (rank, operation, comm_size, begin, end, bytes, peer, tag) as the tracer gives them."""
    table = pd.DataFrame([(rank, 0, "f", *rest) for rank, *rest in rows], columns=list(COLUMNS))
    return table.astype({"peer": "Int32", "tag": "Int32"})


def of(table: pd.DataFrame, rank: int, operation: str, column: str) -> float:
    found = table[(table["rank"] == rank) & (table["operation"] == operation)]
    assert len(found) == 1
    return float(found[column].iloc[0])


def test_a_receiver_waits_for_a_late_sender() -> None:
    found = waiting(
        events(
            [
                (0, "Send", 2, 3.0, 3.1, 0, NONE, NONE),
                (0, "Send", 2, 3.1, 3.1, 8, 1, 7),
                (1, "Recv", 2, 1.0, 3.5, 0, NONE, NONE),
                (1, "Recv", 2, 3.5, 3.5, 8, 0, 7),
            ]
        )
    )
    assert found.unmatched == 0
    assert of(found.calls, 1, "Recv", "late_sender") == pytest.approx(2.0)
    assert of(found.calls, 1, "Recv", "seconds") == pytest.approx(2.5)
    assert of(found.calls, 0, "Send", "late_receiver") == 0.0


def test_a_blocking_sender_waits_for_a_late_receiver() -> None:
    found = waiting(
        events(
            [
                (0, "Send", 2, 1.0, 4.2, 0, NONE, NONE),
                (0, "Send", 2, 4.2, 4.2, 8, 1, 7),
                (1, "Recv", 2, 4.0, 4.5, 0, NONE, NONE),
                (1, "Recv", 2, 4.5, 4.5, 8, 0, 7),
            ]
        )
    )
    assert of(found.calls, 0, "Send", "late_receiver") == pytest.approx(3.0)
    assert of(found.calls, 1, "Recv", "late_sender") == 0.0


def test_waitall_waits_for_the_last_of_its_messages_and_order_matches_them() -> None:
    found = waiting(
        events(
            [
                (0, "Isend", 2, 1.0, 1.1, 0, NONE, NONE),
                (0, "Isend", 2, 1.1, 1.1, 8, 1, 7),
                (0, "Isend", 2, 5.0, 5.1, 0, NONE, NONE),
                (0, "Isend", 2, 5.1, 5.1, 8, 1, 7),
                (1, "Irecv", 2, 0.0, 0.1, 0, NONE, NONE),
                (1, "Irecv", 2, 0.1, 0.2, 0, NONE, NONE),
                (1, "Waitall", 0, 2.0, 5.5, 0, NONE, NONE),
                (1, "Irecv", 2, 5.5, 5.5, 8, 0, 7),
                (1, "Irecv", 2, 5.5, 5.5, 8, 0, 7),
            ]
        )
    )
    assert of(found.calls, 1, "Waitall", "late_sender") == pytest.approx(3.0)
    assert of(found.calls, 1, "Irecv", "late_sender") == 0.0
    assert of(found.calls, 1, "Irecv", "calls") == 2


def test_a_collective_waits_for_the_last_to_enter() -> None:
    found = waiting(
        events([(rank, "Allreduce", 3, begin, 4.0, 8, NONE, NONE) for rank, begin in enumerate((1.0, 3.0, 2.0))])
    ).calls
    np.testing.assert_allclose(found.sort_values("rank")["collective"], [2.0, 0.0, 1.0])
    part = waiting(events([(rank, "Allreduce", 2, float(rank), 4.0, 8, NONE, NONE) for rank in range(3)])).calls
    assert part["collective"].sum() == 0.0
    begun = waiting(events([(rank, "Iallreduce", 3, float(rank), 4.0, 8, NONE, NONE) for rank in range(3)])).calls
    assert begun["collective"].sum() == 0.0


def test_what_has_no_partner_is_counted() -> None:
    found = waiting(
        events(
            [
                (0, "Send", 2, 1.0, 2.0, 0, NONE, NONE),
                (0, "Send", 2, 2.0, 2.0, 8, 1, 7),
                (1, "Barrier", 2, 1, 2, 0, NONE, NONE),
            ]
        )
    )
    assert found.unmatched == 1


def test_waiting_never_exceeds_the_time_in_the_call() -> None:
    rng = np.random.default_rng(5)
    rows: list[tuple[object, ...]] = []
    for step in range(200):
        at = rng.uniform(step, step + 0.5, 2)
        for rank in range(2):
            end = at.max() + rng.uniform(0, 0.1)
            name = "Send" if rank == 0 else "Recv"
            rows += [(rank, name, 2, at[rank], end, 0, NONE, NONE), (rank, name, 2, end, end, 8, 1 - rank, step % 3)]
    found = waiting(events(rows))
    assert found.unmatched == 0
    waits = found.calls[["late_sender", "late_receiver", "collective"]].sum(axis=1)
    assert (waits <= found.calls["seconds"] + 1e-9).all()
    assert waits.sum() == pytest.approx(sum(abs(rows[i][3] - rows[i + 2][3]) for i in range(0, len(rows), 4)))


def test_broken_tables_are_refused() -> None:
    good = events([(0, "Send", 2, 1.0, 2.0, 0, NONE, NONE), (0, "Send", 2, 2.0, 2.0, 8, 1, 7)])
    with pytest.raises(InputError, match="tag"):
        waiting(good.drop(columns="tag"))
    with pytest.raises(InputError, match="its call is missing"):
        waiting(good.iloc[1:])
    with pytest.raises(InputError, match="ends before"):
        waiting(good.assign(end=0.0))
