"""Thresholds of the MPI library between the runs and a target: named, and in the interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.costs.cost import algorithm_of, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.thresholds import Call, Crossed, crossed, others
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import load

EAGER = 4096
LINK = NetworkParameters(Piecewise((0, EAGER), (2e-6, 8e-6), (1e-10, 1e-10)), eager_limit=EAGER)
CALLS, TARGET = 1000, 512


def model(path: Path, operation: str, size: Any, **network: object) -> Model:
    """`operation` of `size` (a function of the ranks) bytes a call."""
    experiment = Experiment.create(path, "solver", ["ranks"])
    for ranks in (2, 4, 8, 16):
        own = 10.0 / ranks
        messages = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "operation": operation, "count": CALLS,
                                 "comm_size": ranks, "size_class": 8, "bytes": CALLS * size(ranks), "peers": 0,
                                 "seconds": np.nan})  # fmt: skip
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": own})
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": own})
        experiment.add(Run({"ranks": ranks}), pd.concat([whole, solve]), messages)
    platform = replace(load("generic"), network={"inter": LINK.to_dict(), **network})
    return fit(experiment, ["time"], platform=platform)


def test_a_switch_to_another_algorithm_is_named_and_in_the_interval(tmp_path: Path) -> None:
    found = model(tmp_path / "e", "Allreduce", lambda ranks: 8.0, collectives="openmpi-4.1")
    fabric = Fabric.flat(LINK)
    was, now = (algorithm_of("allreduce", ranks, 8.0, fabric, "openmpi-4.1") for ranks in (16, TARGET))
    assert was != now
    assert f"solve: Allreduce: {now} (in the runs {was})" in " ".join(found.predict(ranks=[TARGET]).notes)
    assert not any("other algorithms or protocols" in note for note in found.predict(ranks=[16]).notes)
    said = found.breakdown(np.array([[float(TARGET)]])).exchanged
    assert said is not None
    each = [CALLS * float(cost("allreduce", TARGET, 8.0, fabric, {"allreduce": way})) for way in (was, now)]
    # BF_comm is open by a factor of three, and the algorithm adds to that on its side alone.
    assert said.times.lower[0, 0] < min(each[0], each[1] / 3.5)
    assert said.times.upper[0, 0] == pytest.approx(3 * each[1], rel=0.05)


def test_the_eager_limit_is_named(tmp_path: Path) -> None:
    found = model(tmp_path / "e", "Send", lambda ranks: 131072.0 / ranks)
    (note,) = (note for note in found.predict(ranks=[TARGET]).notes if "other algorithms or protocols" in note)
    assert "solve: Send: eager (in the runs rendezvous)" in note


@pytest.mark.parametrize("way", ["eager", "rendezvous"])
def test_a_message_may_go_by_the_protocol_of_the_runs(way: str) -> None:
    """The jump at the limit is what the two protocols differ by."""
    other = {"eager": "rendezvous", "rendezvous": "eager"}[way]
    size = EAGER / 2 if way == "eager" else EAGER * 2
    key, seconds = ("k", "Send"), float(LINK.transfer_time(size))
    runs = [{key: Call(4, 8.0, 1.0, other)}]
    found = crossed(runs, {key: Call(64, size, seconds, way)}, Fabric.flat(LINK))
    by_other = {"eager": 8e-6, "rendezvous": 2e-6}[way] + 1e-10 * size
    assert found[key].ratio * seconds == pytest.approx(by_other, rel=1e-3)
    assert (found[key].was, found[key].now) == (other, way)
    assert crossed([{key: Call(4, 8.0, 1.0, way)}], {key: Call(64, size, seconds, way)}, Fabric.flat(LINK)) == {}


def test_a_threshold_is_said_in_words() -> None:
    assert Crossed("ring", "bruck", 2.0).text("k: Allgather") == "k: Allgather: bruck (in the runs ring)"


def test_other_algorithms_are_those_that_there_are() -> None:
    call = Call(64, 8.0, 1.0, "bruck")
    flat = others("Alltoall", call, Fabric.flat(LINK), "openmpi-5.0")
    assert set(flat) == {"linear", "linear_sync", "pairwise", "scattered"}
    assert list(flat.values()) == sorted(flat.values())
    assert "hierarchical" in others("Allreduce", call, Fabric(LINK, LINK, 8), "openmpi-5.0")
    assert "hierarchical" not in others("Allreduce", call, Fabric.flat(LINK), "openmpi-5.0")


def test_diagnosis_names_the_algorithm_and_what_another_takes(tmp_path: Path) -> None:
    found = model(tmp_path / "e", "Allreduce", lambda ranks: 8.0, collectives="openmpi-4.1")
    (row,) = found.diagnose(ranks=[TARGET]).algorithms().to_dict("records")
    fabric = Fabric.flat(LINK)
    assert row["algorithm"] == algorithm_of("allreduce", TARGET, 8.0, fabric, "openmpi-4.1")
    assert row["runs"] == "recursive_doubling"
    assert row["seconds"] == pytest.approx(float(cost("allreduce", TARGET, 8.0, fabric, "openmpi-4.1")))
    assert row["other_seconds"] == pytest.approx(float(cost("allreduce", TARGET, 8.0, fabric,
                                                            {"allreduce": row["other"]})))  # fmt: skip
    assert row["share"] == pytest.approx(1.0)
