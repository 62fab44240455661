"""Answers on several nodes after runs that may all have been on one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit

RANKS, CALLS = (2, 4, 8, 12, 24), 400


@pytest.fixture
def traced(tmp_path: Path) -> Experiment:
    """Work that ranks divide, a reduction whose messages are known, and waits for messages that are not."""
    experiment = Experiment.create(tmp_path / "e", "solver", ["ranks"])
    for ranks in RANKS:
        each = np.arange(ranks)
        reduction, waits = 0.02 * np.log2(ranks), 0.5 / ranks**0.5
        times = {"smooth": 36 / ranks, "norm->MPI_Allreduce": reduction, "swap->MPI_Waitall": waits}
        rows = [pd.DataFrame({"kernel": name, "rank": each, "time": took}) for name, took in times.items()]
        rows.append(pd.DataFrame({"kernel": WHOLE, "rank": each, "wall_time": sum(times.values())}))
        messages = pd.DataFrame({"kernel": "norm", "rank": each, "operation": "Allreduce", "count": CALLS,
                                 "comm_size": ranks, "size_class": 8, "bytes": CALLS * 8, "peers": 0,
                                 "seconds": reduction})  # fmt: skip
        experiment.add(Run({"ranks": ranks}), pd.concat(rows), messages)
    return experiment


def test_a_program_whose_messages_are_a_part_is_predicted_on_its_second_node(traced: Experiment) -> None:
    """What messages between nodes take is open by a factor, and small next to the rest."""
    model = fit(traced, ["time"], ranks_per_node=24, cores_per_domain=12)
    asked = model.predict(ranks=96)
    table = asked.table().fillna({"kernel": WHOLE}).set_index("kernel")
    total = table.loc[WHOLE]
    assert total["status"] == "ok"
    assert total["lower"] < 36 / 96 + 0.02 * np.log2(96) + 0.5 / 96**0.5 < total["upper"]
    assert any("48 ranks, two full nodes" in note for note in asked.notes)
    # Each of them alone is not: both are messages, whoever timed them.
    for kernel in ("norm->MPI_Allreduce", "swap->MPI_Waitall"):
        assert table.loc[kernel, "status"] == "insufficient"
        assert table.loc[kernel, "upper"] > 1.5 * table.loc[kernel, "value"]
    assert not any("how many ranks fill a node" in note for note in asked.notes)


def test_nodes_that_nobody_described_are_said_to_be_unknown(traced: Experiment) -> None:
    model = fit(traced, ["time"])
    assert any("if the 24 of the runs fit on one" in note for note in model.predict(ranks=96).notes)
    assert not any("how many ranks fill a node" in note for note in model.predict(ranks=24).notes)


def test_what_sends_nothing_is_the_same_on_every_node(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "solver", ["ranks"])
    for ranks in RANKS:
        experiment.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": "smooth", "rank": [-1], "time": [36 / ranks]}))
    assert not any("how many ranks fill a node" in note for note in fit(experiment).predict(ranks=96).notes)
