"""Real programs traced at a few numbers of ranks, their table predicted at one that was traced as well."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment
from ranksight.core.experiment import read as read_experiment
from ranksight.model.application.agreement import message_series
from ranksight.model.fit import fit
from ranksight.model.messages.fit_messages import fit_messages
from ranksight.model.messages.observations import OUTSIDE, TAGGED, with_tags

PROGRAMS = Path(__file__).parent / "programs"
KEYS = ["kernel", "rank", "operation", "comm_size", "size_class"]
LINKS = ["kernel", "operation", "rank", "peer"]
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def traced(name: str, collector: str, ranks: str, folder: Path) -> Experiment:
    """An experiment of one of the programs."""
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("mpicc and mpirun are not found")
    program = folder / name
    if not program.exists():
        source = PROGRAMS / f"{name}.c"
        done = subprocess.run(["mpicc", "-O2", "-g", "-o", str(program), str(source)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    target = folder / f"{name}-{ranks}.exp"
    words = ["measure", "--ranks", ranks, "--collector", collector, "--quiet", "-o", str(target), "--"]
    assert main([*words, "mpirun", "--oversubscribe", "-n", "{ranks}", str(program)]) == 0
    return read_experiment(target)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize(("name", "collector"), [("patterns", "pmpi"), ("phases", "pmpi-events")])
def test_the_predicted_table_is_that_of_the_trace(name: str, collector: str, tmp_path: Path) -> None:
    messages = fit_messages(traced(name, collector, "4,9,16,25", tmp_path))
    assert messages
    experiment = traced(name, collector, "36", tmp_path)
    (run,) = experiment.runs
    table = messages.predict(np.array([36.0]))
    assert [row.reason for row in table.rows if row.reason] == []

    wanted = experiment.table(run, "messages")
    assert wanted is not None
    wanted = wanted[(wanted["count"] > 0) & ~wanted["operation"].isin(list(OUTSIDE))].astype({"kernel": str})
    said = table.per_rank().groupby(KEYS)[["count", "bytes"]].sum().reset_index()
    both = wanted.merge(said, on=KEYS, how="outer", suffixes=("", "_said"), indicator=True)
    assert (both["_merge"] == "both").all(), both[both["_merge"] != "both"].head()
    np.testing.assert_allclose(both["count_said"], both["count"], rtol=1e-9)
    np.testing.assert_allclose(both["bytes_said"], both["bytes"], rtol=1e-3)

    peers = experiment.table(run, "peers")
    assert peers is not None
    peers = peers.astype({"kernel": str, "operation": str}).groupby(LINKS)[["count", "bytes"]].sum()
    links = table.partners().groupby(LINKS)[["count", "bytes"]].sum()
    assert set(peers.index) == set(links.index)
    np.testing.assert_allclose(links.loc[peers.index, "count"], peers["count"])


@pytest.mark.slow
@pytest.mark.mpi
def test_one_call_site_of_three_patterns_is_three_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = traced("phases", "pmpi-events", "4,9,16", tmp_path)
    model = tmp_path / "model.json"
    assert main(["fit", str(experiment.path), "-o", str(model), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), "--ranks", "64", "--messages"]) == 0
    said = capsys.readouterr().out
    assert "exchange Sendrecv tag 10: -x, +x, -y, +y on a 2-d grid\n" in said
    assert "exchange Sendrecv tag 20: row and column exchanged on a square grid\n" in said
    assert "exchange Sendrecv tag 30: rank + 1 (mod ranks)\n" in said
    for name, ranks, peers in (("corner", 4, 2), ("edge", 24, 3), ("interior", 36, 4)):
        line = next(line for line in said.splitlines() if f"{name} x{ranks}" in line and "Sendrecv " in line)
        assert line.split()[:3] == ["exchange", "Sendrecv", "10"]
        assert line.split()[-1] == str(peers)


@pytest.mark.slow
@pytest.mark.mpi
def test_a_periodic_halo_is_uncertain_until_a_run_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = traced("periodic", "pmpi", "16", tmp_path)
    (run,) = truth.runs
    counters = truth.table(run, "counters")
    assert counters is not None
    true = counters[counters["kernel"] == "exchange"][["messages", "bytes_sent"]].sum() / 16
    assert true["messages"] == 60

    def predicted(ranks: str) -> tuple[dict[str, list[float]], str]:
        experiment, model = traced("periodic", "pmpi", ranks, tmp_path), tmp_path / f"{ranks}.json"
        assert main(["fit", str(experiment.path), "-o", str(model), "--quiet"]) == 0
        capsys.readouterr()
        words = ["predict", str(model), "--ranks", "16", "--metric", "messages,bytes_sent", "--kernel", "exchange"]
        assert main(words) == 0
        note = " ".join(capsys.readouterr().out.split())
        assert main([*words, "--format", "csv"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("metric")
        return {name: table.loc[name, ["value", "lower", "upper"]].tolist() for name in table.index}, note

    few, note = predicted("1,2,4,8")
    for name, (value, low, high) in few.items():
        assert low * (1 - 1e-6) <= true[name] <= high * (1 + 1e-6)
        assert low <= value <= high
        assert high > 1.1 * low
    assert "trace 16 ranks to decide" in note  # a power of two, as those measured
    more, note = predicted("1,2,3,4,8")
    for name, ends in more.items():
        assert ends == pytest.approx([true[name]] * 3)
    assert "to decide" not in note


def peers_and_events() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two ranks that send each other messages of two tags from one place."""
    events = pd.DataFrame(
        {
            "kernel": "exchange",
            "rank": [0, 0, 0, 1, 1],
            "operation": "Send",
            "comm_size": 2,
            "peer": pd.array([None, 1, 1, 0, 0], dtype="Int32"),
            "bytes": [0, 8, 9, 8, 16],
            "tag": pd.array([None, 1, 2, 1, 2], dtype="Int32"),
        }
    )
    rows = {"rank": [0, 0, 1, 1], "size_class": [8, 16, 8, 16], "peer": [1, 1, 0, 0], "bytes": [8, 9, 8, 16]}
    peers = pd.DataFrame({"kernel": "exchange", "operation": "Send", "comm_size": 2, "count": 1, **rows})
    return peers, events


def test_events_give_messages_their_tags() -> None:
    peers, events = peers_and_events()
    found = with_tags(peers, events)
    assert found.sort_values(["rank", "tag"])["tag"].tolist() == [1, 2, 1, 2]
    assert found["bytes"].sum() == peers["bytes"].sum()
    assert set(events.columns) == TAGGED


def test_a_trace_that_was_cut_off_gives_none() -> None:
    peers, events = peers_and_events()
    assert "tag" not in with_tags(peers, events.iloc[:-1]).columns


@pytest.mark.slow
@pytest.mark.mpi
def test_steps_of_trees_are_predicted_from_all_numbers_of_ranks_up_to_eight(tmp_path: Path) -> None:
    model = fit(traced("trees", "pmpi", "1,2,3,4,5,6,7,8", tmp_path))
    held = message_series(traced("trees", "pmpi", "12,16,24", tmp_path))
    communication = model.equation.communication
    assert communication
    assert held is not None
    said = communication.functions.predict(held.points).value
    for at, key in enumerate(zip(held.kernels, held.metrics, strict=True)):
        # Nobody is beyond the largest power of two at 16 ranks.
        there = np.nan_to_num(held.values[at, :, 0])
        assert said[communication.functions.rows[key]] == pytest.approx(there, abs=1e-9), key
    assert {name.partition(":")[0] for name in held.kernels} >= {"every_tree", "doubling", "rounds", "rows"}
