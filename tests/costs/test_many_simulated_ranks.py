"""A prediction for 64 ranks against SimGrid's SMPI, where it is installed."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("smpicc") is None or shutil.which("smpirun") is None, reason="smpicc, smpirun not found"
    ),
]


def test_predicted_from_a_few_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Total within 10 %, time in MPI within 15 %, and the linked tracer counts what the program states."""
    monkeypatch.syspath_prepend(str(ROOT))
    simulator = importlib.import_module("benchmarks.simulator")
    simulator.prepare(tmp_path)
    machine = simulator.Machine(tmp_path, "slow", 64)
    traced = machine.run("weak", 8, "ompi").tables
    sends = traced.messages[traced.messages["operation"] == "Isend"]
    # Nine exchanges, 24 links of eight ranks, faces of 12 x 12 numbers.
    assert (sends["count"].sum(), sends["bytes"].sum()) == (9 * 24, 9 * 24 * 8 * 144)
    assert set(sends["kernel"]) == {"exchange_halo"}
    (row,) = simulator.compare(tmp_path, "slow", "mpich", "weak", (4, 8, 16, 27), (64,))
    assert abs(row["error %"]) < 10
    assert abs(row["error in MPI %"]) < 15
    sys.modules.pop("benchmarks.simulator", None)
