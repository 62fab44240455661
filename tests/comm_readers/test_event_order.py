"""The order of calls that readers of traces keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.core import limits
from ranksight.core.reading import READERS


def rank(number: int, steps: int, flops: float) -> str:
    lines = [f"{number} init"]
    for _ in range(steps):
        lines += [
            f"{number} compute {flops:g}",
            f"{number} send {1 - number} 0 100 1",
            f"{number} recv {1 - number} 0 100 1",
        ]
        lines += [f"{number} compute 50", f"{number} compute 25", f"{number} allreduce 1 0"]
    return "\n".join([*lines, f"{number} compute 7", f"{number} finalize"]) + "\n"


def test_smpi_keeps_the_order_and_the_computation_between_calls(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(rank(0, 3, 1000) + rank(1, 3, 2000))
    (reading,) = READERS["smpi"].read(tmp_path / "t.txt")
    events = reading.tables["events"]
    mine = events[events["rank"] == 1]
    assert mine["operation"].astype(str).tolist() == ["Send", "Recv", "Allreduce"] * 3 + ["Finalize"]
    assert mine["flops"].tolist() == [2000, 0, 75] * 3 + [7]
    assert mine["bytes"].tolist() == [400, 400, 1] * 3 + [0]
    assert "begin" not in events
    assert reading.counters is not None
    assert reading.counters["flops"].tolist() == [3 * 1075 + 7, 3 * 2075 + 7]


def test_too_many_calls_are_only_summed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EVENTS_ORDERED", 10)
    (tmp_path / "t.txt").write_text(rank(0, 30, 1000) + rank(1, 30, 2000))
    (reading,) = READERS["smpi"].read(tmp_path / "t.txt")
    assert "events" not in reading.tables
    assert any("order is not kept" in note for note in reading.notes)
    assert reading.messages is not None
    assert reading.messages["count"].sum() == 180


def test_otf2_keeps_times_and_instructions(shared: Path) -> None:
    pytest.importorskip("otf2")
    (reading,) = READERS["otf2"].read(shared / "data" / "formats" / "otf2" / "ping-pong-otf2-papi")
    events = reading.tables["events"]
    assert (events["begin"] <= events["end"]).all()
    for _, mine in events.groupby("rank"):
        assert (mine["begin"].to_numpy()[1:] >= mine["end"].to_numpy()[:-1]).all()
    assert {"Send", "Recv"} <= set(events["operation"].astype(str))
    assert reading.counters is not None
    inside = (events["end"] - events["begin"]).groupby(events["rank"]).sum()
    assert inside.tolist() == pytest.approx(reading.counters["mpi_time"].tolist())


def test_phases_of_an_imported_trace(tmp_path: Path) -> None:
    from ranksight.cli import main

    for p in (2, 4):
        text = ""
        for number in range(p):
            lines = [f"{number} init"]
            for _ in range(10):
                lines += [f"{number} compute {1e6 / p:g}", f"{number} alltoall 10 10", f"{number} compute {4e5 / p:g}"]
                lines += [f"{number} allreduce 1 0"]
            text += "\n".join([*lines, f"{number} finalize"]) + "\n"
        (tmp_path / f"p{p}.txt").write_text(text)
    files = [str(tmp_path / f"p{p}.txt") for p in (2, 4)]
    assert main(["import", *files, "-o", str(tmp_path / "e"), "--quiet"]) == 0
    from ranksight.analysis.phases.analysis import analyse
    from ranksight.core.experiment import read
    from ranksight.platforms import load

    analysis = analyse(read(tmp_path / "e"), load("generic"))
    assert analysis.clock == "simulated"
    assert analysis.phases[0].label == "(whole program) Alltoall Allreduce"
    assert analysis.phases[0].weight.formula == "10"
    assert float(analysis.phases[0].computation(8)) == pytest.approx(1.4e6 / 8 / 2.5e9)
