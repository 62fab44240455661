"""Waiting separated from transfer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.comm.waiting import split
from ranksight.core.errors import InputError
from ranksight.core.experiment import MESSAGE_COLUMNS


def table(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(MESSAGE_COLUMNS))


def test_the_last_rank_waits_for_nobody() -> None:
    # Rank 2 comes last each time: its 0.3 s are the operation's own, of which the network explains 0.1 s.
    messages = table([("f", rank, "Allreduce", 3, 8, 10, 80, t, 0) for rank, t in enumerate((1.3, 0.9, 0.3))])
    parts = split(messages, [0.1, 0.1, 0.1])
    np.testing.assert_allclose(parts["waiting"], [1.0, 0.6, 0.0])
    np.testing.assert_allclose(parts["transfer"], 0.1)
    np.testing.assert_allclose(parts["rest"], 0.2)
    np.testing.assert_allclose(parts[["transfer", "waiting", "rest"]].sum(axis=1), parts["seconds"])


def test_an_operation_without_a_cost_is_rest() -> None:
    parts = split(
        table([("f", 0, "Comm_dup", 2, 0, 1, 0, 1.0, 0), ("f", 1, "Comm_dup", 2, 0, 1, 0, 3.0, 0)]), [np.nan] * 2
    )
    assert parts["rest"].tolist() == [1.0, 1.0]
    assert parts["waiting"].tolist() == [0.0, 2.0]
    assert parts["transfer"].tolist() == [0.0, 0.0]


def test_size_classes_of_a_rank_are_one_operation_and_kernels_are_not() -> None:
    messages = table(
        [
            ("f", 0, "Bcast", 2, 8, 1, 8, 1.0, 0),
            ("f", 0, "Bcast", 2, 64, 1, 64, 2.0, 0),
            ("f", 1, "Bcast", 2, 8, 1, 8, 0.5, 0),
            ("f", 1, "Bcast", 2, 64, 1, 64, 0.5, 0),
            ("g", 0, "Bcast", 2, 8, 1, 8, 7.0, 0),
        ]
    )
    parts = split(messages).set_index(["kernel", "rank"])
    assert parts.loc[("f", 0), "waiting"] == pytest.approx(2.0)
    assert parts.loc[("f", 1), "waiting"] == 0.0
    assert parts.loc[("g", 0), "waiting"] == 0.0
    assert parts.loc[("g", 0), "transfer"] == 7.0


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=20), st.floats(0, 1e3))
def test_parts_always_sum_to_the_time_and_none_is_negative(times: list[float], own: float) -> None:
    messages = table([("f", rank, "Barrier", len(times), 0, 1, 0, t, 0) for rank, t in enumerate(times)])
    parts = split(messages, [own] * len(times))
    assert (parts[["transfer", "waiting", "rest"]].to_numpy() >= 0).all()
    np.testing.assert_allclose(parts[["transfer", "waiting", "rest"]].sum(axis=1), parts["seconds"], rtol=1e-9)


def test_tables_reduced_over_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="reduced over ranks"):
        split(table([("f", -1, "Barrier", 4, 0, 1, 0, 1.0, 0)]))
