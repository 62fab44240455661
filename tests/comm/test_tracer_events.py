"""The event trace: what each rank did in order, and that sends and receives match."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.comm.tracer.events import tabulate_events
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate

pytestmark = pytest.mark.mpi
P = 2


def test_events_are_the_table_in_order(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "failed")
    done = tracing.run(launch, tmp_path, RANKSIGHT_TRACE_EVENTS="1000")
    assert done.returncode == 0, done.stderr
    traces, _ = read_folder(tmp_path, P)
    tables, events = tabulate(traces), tabulate_events(traces)
    calls, transfers = events[events["peer"].isna()], events[events["peer"].notna()]
    for rank in range(P):
        mine = calls[calls["rank"] == rank]
        assert (mine["begin"] <= mine["end"]).all()
        assert (mine["begin"].iloc[1:].to_numpy() >= mine["end"].iloc[:-1].to_numpy()).all()
        names = mine["operation"].tolist()
        assert names[:2] == ["Comm_rank", "Comm_size"]
        assert names.count("Sendrecv") == 20
        assert names.count("Send") == 1  # the call that failed is an event, without a transfer
        table = tables.messages[(tables.messages["rank"] == rank) & (tables.messages["operation"] != "Init")]
        assert mine["end"].sum() - mine["begin"].sum() == pytest.approx(table["seconds"].sum(), rel=1e-3)
        moved = transfers[transfers["rank"] == rank]
        assert moved["operation"].tolist() == ["Sendrecv", "Sendrecv_recv"] * 20
        assert set(moved["peer"]) == {1 - rank}
        assert set(moved["tag"]) == {0}
        assert set(moved["bytes"]) == {8}
        # A message arrives after it was sent: one clock serves both ranks.
        sent = mine[mine["operation"] == "Sendrecv"]["begin"].to_numpy()
        arrived = transfers[(transfers["rank"] == 1 - rank) & (transfers["operation"] == "Sendrecv_recv")][
            "end"
        ].to_numpy()
        assert (arrived > sent - 1e-4).all()


def test_the_trace_stays_within_its_bound(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), 1, "nothing")
    assert tracing.run(launch, tmp_path, RANKSIGHT_TRACE_EVENTS="7").returncode == 0
    traces, _ = read_folder(tmp_path, 1)
    assert len(tabulate_events(traces)) == 7
    tables = tabulate(traces)
    assert "found no place in a full table of events" in tables.notes[0]
    assert tables.messages.set_index("operation").loc["Sendrecv", "count"] == 10


def test_the_collector_asks_for_events(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "nothing")
    collector = COLLECTORS["pmpi-events"]
    assert not collector.default
    assert COLLECTORS["pmpi"].default
    (step,) = collector.steps(launch, tmp_path)
    assert any(word.startswith("RANKSIGHT_TRACE_EVENTS=") for word in step.command)
    import subprocess

    subprocess.run(step.command, check=True, capture_output=True, timeout=60)
    reading = collector.collect(launch, tmp_path)
    assert len(reading.tables["events"]) > P * 30
    assert reading.messages is not None
