"""Network parameters as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.errors import InputError

TRANSFER = Piecewise((0, 1000, 5000), (1e-6, 2e-6, -4e-6), (1e-9, 5e-10, 3e-9))
FULL = NetworkParameters(
    TRANSFER,
    Piecewise((0,), (2e-7,), (0.0,)),
    None,
    latency=5e-7,
    gap=Piecewise((0,), (1e-7,), (5e-10,)),
    reduction=1e-10,
    contention=0.5,
    eager_limit=5000,
    intervals={"latency": (4e-7, 6e-7)},
    notes=("measured on two nodes",),
)


def test_pieces_apply_from_their_first_size() -> None:
    np.testing.assert_allclose(TRANSFER([0, 999, 1000, 4999, 5000]), [1e-6, 1.999e-6, 2.5e-6, 4.4995e-6, 1.1e-5])
    np.testing.assert_array_equal(TRANSFER.slope([10, 1000, 1e9]), [1e-9, 5e-10, 3e-9])


def test_plain_data_round_trip() -> None:
    assert NetworkParameters.from_dict(FULL.to_dict()) == FULL
    assert "receive_overhead" not in FULL.to_dict()


def test_a_number_is_a_constant_overhead() -> None:
    content = {"transfer": TRANSFER.to_dict(), "send_overhead": 1e-7}
    parameters = NetworkParameters.from_dict(content)
    assert parameters.send_overhead is not None
    assert parameters.send_overhead(1e6) == 1e-7


@pytest.mark.parametrize(
    "change",
    [
        {"transfer": 3.0e-6, "latncy": 1.0},
        {"transfer": {"from": [0, 10], "alpha": [1e-6], "beta": [0.0]}},
        {"transfer": {"from": [5], "alpha": [1e-6], "beta": [0.0]}},
        {"transfer": {"from": [0], "alpha": [-1e-6], "beta": [0.0]}},
        {"transfer": {"from": [0], "alpha": [1e-6], "beta": [-1e-9]}},
        {"transfer": {"from": [0], "alpha": ["1"], "beta": [0.0]}},
        {"transfer": {"from": [0], "alpha": [math.nan], "beta": [0.0]}},
        {"transfer": 1e-6, "latency": -1e-6},
        {"transfer": 1e-6, "latency": True},
        {"transfer": 1e-6, "contention": 2},
        {"transfer": 1e-6, "intervals": {"latency": [2, 1]}},
        {"transfer": 1e-6, "notes": "one"},
        {"latency": 1e-6},
    ],
)
def test_senseless_tables_are_refused_by_place(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"here\.toml: inter"):
        NetworkParameters.from_dict(change, "here.toml: inter")


def test_spacing_lies_between_the_gap_and_the_whole_message() -> None:
    size = np.array([0.0, 100, 2000, 1e5])
    assert (FULL.spacing(size) <= FULL.transfer_time(size)).all()
    assert (FULL.spacing(size) >= 1e-7).all()
    np.testing.assert_allclose(FULL.spacing(0.0), 2e-7)
