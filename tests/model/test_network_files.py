"""Every kind of network file and every operation, from one rank to more than anybody looks at one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.comm.costs.collective import OPERATIONS, SPREAD, block
from ranksight.comm.costs.cost import cost
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import load

ASKED = (1, 2, 12, 4096, 65536, 65600)
MEASURED = (2, 4, 8, 16)
CALLS, SIZE = 100, 64.0
NEAR = NetworkParameters.linear(5e-7, 1e-10, eager_limit=8192)
FAR = NetworkParameters.linear(
    2e-6, 4e-10, gap=Piecewise((0,), (1e-6,), (4e-10,)), node_bandwidth=1e10, reduction=1e-10
)
FILES: Mapping[str, Mapping[str, Any]] = {
    "between nodes alone": {"inter": FAR.to_dict()},
    "inside a node alone": {"intra": NEAR.to_dict()},
    "both": {"intra": NEAR.to_dict(), "inter": FAR.to_dict(), "collectives": "mpich"},
    "both, algorithms stated": {
        "intra": NEAR.to_dict(), "inter": FAR.to_dict(), "algorithms": {"allreduce": "ring", "bcast": "chain"}
    },
    "none": {},
}  # fmt: skip


def messages(ranks: int) -> pd.DataFrame:
    """What every rank hands over in all operations: a block of SIZE to each where they spread, a message around a
    ring."""
    rank = np.arange(ranks)
    rows = []
    for operation in (*OPERATIONS, "isend", "waitall"):
        each = np.full(ranks, SIZE * (ranks if operation in SPREAD else 1))
        if operation in ("scatter", "scatterv"):
            each[0] *= ranks
        if operation in ("barrier", "waitall"):
            each[:] = 0
        rows.append(pd.DataFrame({"kernel": "solve", "rank": rank, "operation": operation.capitalize(), "count": CALLS,
                                  "comm_size": ranks, "size_class": 64, "bytes": CALLS * each, "peers": 0,
                                  "seconds": 1e-3}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def write(path: Path, linked: bool) -> Experiment:
    """Computation that ranks divide, and every operation; with `linked`, partners are known of the messages."""
    experiment = Experiment.create(path, "everything", ["ranks"])
    for ranks in MEASURED:
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": 10.0 / ranks + 0.02})
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": 10.0 / ranks})
        rank = np.arange(ranks)
        peers = pd.DataFrame({"kernel": "solve", "rank": rank, "operation": "Isend", "comm_size": ranks, "tag": 0,
                              "peer": (rank + 1) % ranks, "count": CALLS, "bytes": CALLS * SIZE})  # fmt: skip
        experiment.add(
            Run({"ranks": ranks}), pd.concat([whole, solve]), messages(ranks), tables={"peers": peers} if linked else {}
        )
    return experiment


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Experiment]:
    folder = tmp_path_factory.mktemp("network")
    return {name: write(folder / name, name == "every rank") for name in ("typical rank", "every rank")}


def fitted(experiment: Experiment, table: Mapping[str, Any]) -> Model:
    return fit(experiment, ["time"], platform=replace(load("generic"), network=dict(table)))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", FILES)
def test_every_verb_answers_at_every_number_of_ranks(
    experiments: dict[str, Experiment], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.json"
    fitted(experiments["every rank"], FILES[kind]).save(file)
    asked = ",".join(map(str, ASKED))
    for words in (
        ["predict", str(file), "--ranks", asked],
        *(["diagnose", str(file), "--ranks", str(ranks)] for ranks in ASKED),
        *(["report", str(file), "--ranks", ranks, "-f", "-o", str(tmp_path / "r.html")] for ranks in ("1", "65600")),
    ):
        assert main(words) in (0, 4), words
        assert "need parameters" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "none"])
@pytest.mark.parametrize("known", ["typical rank", "every rank"])
def test_a_message_has_one_price(experiments: dict[str, Experiment], kind: str, known: str) -> None:
    equation = fitted(experiments[known], FILES[kind]).equation
    sent, network = equation.communication, equation.network
    assert sent is not None
    assert network
    ranks = np.array(ASKED, dtype=float)
    fabric, choice = network.fabric(), network.choice()
    found = sent.times(ranks[:, None], fabric, choice=choice).value
    for name, times in zip(sent.names, found, strict=True):
        operation = name.rpartition(": ")[2]
        plain = operation.lower()
        if plain in OPERATIONS:
            handed_over = SIZE * (ranks if plain in SPREAD else 1) * (plain != "barrier")
            truth = CALLS * cost(plain, ranks, block(plain, ranks, handed_over), fabric, choice)
            np.testing.assert_allclose(times, truth, rtol=0.01, err_msg=operation)
        else:
            assert times[0] == 0
            assert times[-1] == pytest.approx(times[-2], rel=1e-6)


@pytest.mark.parametrize(("platform", "silent"), [(None, False), ("generic", True)])
def test_times_without_communication_say_so(tmp_path: Path, platform: str | None, silent: bool) -> None:
    """Messages were counted and not timed, as with more ranks than cores: without a network they take no time."""
    experiment = Experiment.create(tmp_path / "exp", "counted", ["ranks"])
    for ranks in MEASURED:
        solve = pd.DataFrame({"kernel": "solve", "rank": np.arange(ranks), "time": 10.0 / ranks})
        sent = messages(ranks).assign(seconds=np.nan)
        experiment.add(Run({"ranks": ranks}), solve, sent[sent["operation"] == "Allreduce"])
    model = fit(experiment, platform=load(platform) if platform else None)
    notes = " ".join(model.predict(ranks=64).notes)
    assert ("without communication" in notes) != silent
    assert "without communication" not in " ".join(model.predict(ranks=1).notes)
