"""Wait states and load balance of runs made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.advice import late_or_in_turn
from ranksight.analysis.diagnosis.balance import busiest_ranks, observe_balance
from ranksight.analysis.diagnosis.waits import observe_waits, table
from ranksight.comm.waiting import shares_cores
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run

RANKS = 8


def messages(kernel: str, operation: str, seconds: np.ndarray, count: int = 50) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kernel": kernel, "rank": np.arange(RANKS), "operation": operation, "comm_size": RANKS, "size_class": 8,
            "count": count, "bytes": 8 * count, "seconds": seconds, "peers": 1,
        }
    )  # fmt: skip


def measured(path: Path, kinds: dict[str, tuple[str, np.ndarray]], cores: str, repetitions: int = 4) -> Experiment:
    experiment = Experiment.create(path, "waits", ["ranks"])
    rng = np.random.default_rng(3)
    for at in range(repetitions):
        rows = [
            messages(kernel, operation, seconds + 2e-4 * rng.uniform(size=RANKS))
            for kernel, (operation, seconds) in kinds.items()
        ]
        run = Run({"ranks": RANKS}, at, "pmpi", environment={"cores": cores}, wall_time=0.1)
        experiment.add(run, messages=pd.concat(rows))
    return experiment


LATE = np.where(np.arange(RANKS) == 5, 0.0, 0.02)
KINDS = {
    "chain": ("Recv", 4e-3 * np.arange(RANKS)),
    "even": ("Waitall", np.full(RANKS, 0.01)),
    "reduce": ("Allreduce", LATE),
    "light": ("Recv", 1e-5 * np.arange(RANKS)),
}


def test_a_chain_and_a_late_rank_are_named_and_what_is_even_is_not(tmp_path: Path) -> None:
    found = table(observe_waits(measured(tmp_path / "e", KINDS, cores="64"))).set_index("kernel")
    assert found["state"].to_dict() == {"chain": "serialisation", "even": "", "reduce": "late arrival", "light": ""}
    assert found.loc["reduce", "late"] == 5
    assert found.loc["chain", "order"] > 0.95
    # Seven of eight ranks wait 20 ms of the run's 100 ms for the eighth.
    assert found.loc["reduce", "part"] == pytest.approx(0.175, rel=0.02)


def test_on_shared_cores_late_arrival_is_unknown_but_a_chain_is(tmp_path: Path) -> None:
    found = table(observe_waits(measured(tmp_path / "e", KINDS, cores="2"))).set_index("kernel")
    assert found["state"].to_dict() == {"chain": "serialisation", "even": "", "reduce": "undetermined", "light": ""}


@pytest.mark.parametrize(("took", "shared"), [(0.0102, False), (0.03, True)])
def test_ranks_that_others_hinder_share_cores(took: float, shared: bool) -> None:
    """A run with a core a rank whose stretches between MPI calls took three times their processor time."""
    run = Run({"ranks": 2}, environment={"cores": "2"})
    counters = pd.DataFrame({"compute_time": [took, 0.01], "compute_cpu_time": [0.01, 0.01]})
    assert shares_cores(run, counters) == shared
    assert not shares_cores(run, counters[["compute_time"]])
    assert not shares_cores(run, None)
    in_all = pd.DataFrame({"wall_time": [took, 0.03], "cpu_time": [took, 0.03]})
    assert not shares_cores(run, in_all)
    assert shares_cores(run, in_all.assign(cpu_time=0.005))
    assert shares_cores(Run({"ranks": 4}, environment={"cores": "2"}), None)


def test_a_single_repetition_names_no_late_rank(tmp_path: Path) -> None:
    found = table(observe_waits(measured(tmp_path / "e", KINDS, cores="64", repetitions=1))).set_index("kernel")
    assert found.loc["reduce", "state"] == ""


def test_balance_is_reported_by_what_is_counted_and_not_by_samples(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "balance", ["ranks"])
    work = np.r_[np.full(7, 1e6), 2e6]
    counted = pd.DataFrame({"kernel": "solve", "rank": np.arange(RANKS), "instructions": work})
    once = pd.DataFrame({"kernel": ["write"], "rank": [0], "instructions": [5e5]})
    experiment.add(Run({"ranks": RANKS}, collector="callgrind"), pd.concat([counted, once]))
    sampled = counted.rename(columns={"instructions": "time"}).assign(time=np.r_[3.0, np.full(7, 1.0)])
    experiment.add(Run({"ranks": RANKS}, collector="perf-clock", provenance={"time": "sampled, n = 9"}), sampled)
    found = observe_balance(experiment)
    assert found["configurations"] == [[RANKS]]
    solve = {"metric": "instructions", "ratio": [pytest.approx(16 / 9)], "having": [RANKS], "busiest": [7]}
    assert found["kernels"]["solve"] == solve
    assert found["kernels"]["write"]["ratio"] == [pytest.approx(8)]


def test_a_time_of_all_ranks_next_to_does_not_hide_their_balance(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "balance", ["ranks"])
    counted = pd.DataFrame({"kernel": "solve", "rank": np.arange(4), "instructions": [1e6, 1e6, 1e6, 2e6]})
    wall = pd.DataFrame({"kernel": [WHOLE], "rank": [ALL_RANKS], "time": [3.0]})
    experiment.add(Run({"ranks": 4}), pd.concat([counted, wall], ignore_index=True))
    found = observe_balance(experiment)["kernels"]
    assert found.keys() == {"solve"}
    assert found["solve"]["ratio"] == [pytest.approx(8 / 5)]


def test_a_rank_that_is_late_as_it_has_most_is_reported_as_imbalance_alone(tmp_path: Path) -> None:
    """Rank 1 of 2 and rank 3 of 4 have most and come last; rank 0 comes last where it has no more than others."""
    experiment = Experiment.create(tmp_path / "e", "late", ["ranks"])
    for p in (2, 4):
        work = np.linspace(1e6, 2e6, p)
        uneven = pd.DataFrame({"kernel": "solve", "rank": np.arange(p), "instructions": work})
        even = uneven.assign(kernel="even", instructions=1e6)
        experiment.add(Run({"ranks": p}, collector="callgrind"), pd.concat([uneven, even]))
    busiest = busiest_ranks(observe_balance(experiment), ["solve"])
    assert busiest == {((2.0,), 1), ((4.0,), 3)}

    def row(p: float, kernel: str, late: int) -> dict[str, object]:
        expected = {"configuration": [p], "ranks": p, "kernel": kernel, "late": late, "state": "late arrival"}
        return {**expected, "operation": "Allreduce", "part": 0.2}

    waits = pd.DataFrame([row(2.0, "reduce", 1), row(4.0, "reduce", 3), row(2.0, "gather", 0), row(4.0, "scatter", 1)])
    assert {kernel for _, kernel, _, _ in late_or_in_turn(waits, busiest)} == {"gather", "scatter"}
    assert late_or_in_turn(waits.iloc[:0], busiest) == []


def test_with_an_event_trace_waiting_is_what_matched_messages_show(tmp_path: Path) -> None:
    """Rank 0 sends 30 ms after rank 1 began to receive, which takes 40 ms in all: 30 ms of it are waiting."""
    events = pd.DataFrame(
        [
            (0, 0, "work", "Send", 2, 0.03, 0.031, 0, None, None),
            (0, 0, "work", "Send", 2, 0.031, 0.031, 8, 1, 7),
            (1, 0, "work", "Recv", 2, 0.0, 0.04, 0, None, None),
            (1, 0, "work", "Recv", 2, 0.04, 0.04, 8, 0, 7),
        ],
        columns=["rank", "thread", "kernel", "operation", "comm_size", "begin", "end", "bytes", "peer", "tag"],
    ).astype({"peer": "Int32", "tag": "Int32"})
    rows = [("work", 0, "Send", 2, 8, 1, 8, 0.001, 1), ("work", 1, "Recv", 2, 8, 1, 8, 0.04, 1)]
    names = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]
    experiment = Experiment.create(tmp_path / "e", "waits", ["ranks"])
    run = Run({"ranks": 2}, collector="pmpi-events", environment={"cores": "8"}, wall_time=0.1)
    experiment.add(run, messages=pd.DataFrame(rows, columns=names), tables={"events": events})
    found = {row["operation"]: row for row in observe_waits(experiment)}
    assert found["Recv"]["waiting"] == pytest.approx(0.03 / 2)  # a mean over two ranks
    assert found["Recv"]["part"] == pytest.approx(0.15)
    assert found["Send"]["waiting"] == 0.0
