"""More ranks on a node than it has cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform, load

CORES, RANKS = 32, (2, 4, 8, 16, 32)
Fitted = Callable[..., Model]


def machine(threads: int) -> Platform:
    generic = load("generic")
    layout = replace(generic.layout, sockets=1, cores_per_socket=CORES, domains_per_socket=1, cores_per_domain=CORES,
                     threads_per_core=threads)  # fmt: skip
    return replace(generic, name="node", layout=layout)


@pytest.fixture
def fitted(tmp_path: Path) -> Fitted:
    """Computation that ranks divide, on nodes of 32 cores; with `nodes`, the number of nodes is a parameter."""

    def make(threads: int = 1, nodes: dict[int, int] | None = None, **settings: int) -> Model:
        names = ["ranks", "nodes"] if nodes else ["ranks"]
        experiment = Experiment.create(tmp_path / "e", "compute", names)
        for ranks in nodes or RANKS:
            work = 4e9 / ranks
            counters = pd.DataFrame({"kernel": "k", "rank": np.arange(ranks), "time": work / 4e9, "cycles": work,
                                     "instructions": 2 * work, "stalls": 0.1 * work, "loads_l1": 0.5 * work})  # fmt: skip
            configuration = {"ranks": ranks, **({"nodes": nodes[ranks]} if nodes else {})}
            experiment.add(Run(configuration), counters)
        return fit(experiment, ["time", "instructions", "loads_l1"], platform=machine(threads), **settings)

    return make


def seconds(model: Model, ranks: float, per_node: int) -> tuple[float, float, float]:
    total = model.placed(ranks_per_node=per_node).breakdown(np.array([[ranks]])).total
    return float(total.value[0, 0]), float(total.lower[0, 0]), float(total.upper[0, 0])


def test_threads_of_a_core_take_between_once_and_twice_as_long(fitted: Fitted) -> None:
    model = fitted(threads=2)
    alone, *_ = seconds(model, 256, CORES)
    for per_node in (48, 64):
        value, least, most = seconds(model, 256, per_node)
        assert alone < value < per_node / CORES * alone
        assert least <= alone
        assert most >= per_node / CORES * alone


def test_more_ranks_than_hardware_threads_are_refused(fitted: Fitted) -> None:
    with pytest.raises(InputError, match=r"33 ranks a node .* 32 cores"):
        fitted().placed(ranks_per_node=33)


def test_a_platform_with_too_few_cores_is_refused(fitted: Fitted) -> None:
    with pytest.raises(InputError, match=r"65 ranks a node .* 32 cores of 2 hardware threads"):
        fitted(threads=2, ranks_per_node=65)


def test_runs_on_nodes_that_do_not_hold_their_ranks_are_refused(fitted: Fitted) -> None:
    with pytest.raises(InputError, match=r"64 ranks a node .* 32 cores"):
        fitted(nodes={2: 1, 4: 1, 8: 1, 16: 2, 32: 1, 64: 1})


def test_a_number_of_nodes_that_does_not_hold_the_ranks_is_not_answered(fitted: Fitted) -> None:
    points = np.array([[64.0, 1.0], [64.0, 2.0]])
    total = fitted(nodes={2: 1, 4: 2, 8: 4, 16: 1, 32: 2}).breakdown(points).total
    assert "64 ranks and threads on a node of 32 hardware threads" in total.reason[0, 0]
    assert "hardware threads" not in total.reason[0, 1]


def test_runs_on_shared_cores_are_what_more_are_compared_with(fitted: Fitted) -> None:
    node = fitted(threads=2).equation.node
    assert node is not None
    shared = replace(node, most=64, ranks=64)
    least, most, crowded = shared.slower(np.array([[32.0], [256.0]]), ["ranks"])
    assert most.tolist() == [1.0, 1.0]
    assert least.tolist() == [1.0, 1.0]
    assert not crowded.any()
