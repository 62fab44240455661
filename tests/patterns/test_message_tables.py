"""Message tables predicted for numbers of ranks that were not traced."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.comm.patterns.distances import Hypercube, Offset, Shift
from ranksight.comm.patterns.rule import Rule
from ranksight.comm.patterns.steps import Step
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.model.messages.fit_messages import fit_messages
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.volumes import LAWS, Volumes, find_law, fit_volumes, weight
from ranksight.model.uncertainty import forecast

from .conftest import message_tables

AXES = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
HALO: tuple[Rule, ...] = tuple(Step(v, False, False, True) for v in AXES)
Write = Callable[..., Experiment]
KEYS = ["kernel", "rank", "operation", "comm_size", "size_class"]


def face(i: int, p: int, n: float) -> float:
    """Bytes of a face of n^3 cells shared by all ranks, for the i-th of the six directions."""
    extents = dims_create(p, 3)
    return 8 * n * n / np.prod([extents[d] for d in range(3) if d != i // 2])


def check(
    messages: Messages,
    point: tuple[float, float],
    rules: tuple[Rule, ...],
    bytes_of: Callable[[int, int, float], float],
) -> None:
    """Every row and link of the predicted table is the one that the rules make."""
    table = messages.predict(np.array(point))
    wanted, peers = message_tables(rules, int(point[0]), point[1], bytes_of)
    found = table.per_rank()
    assert (found["status"] == "ok").all(), [row.reason for row in table.rows]
    both = wanted.merge(found, on=KEYS, how="outer", suffixes=("", "_said"), indicator=True)
    assert (both["_merge"] == "both").all()
    for column in ("count", "bytes", "peers"):
        np.testing.assert_allclose(both[f"{column}_said"], both[column], rtol=1e-6)
    links = peers.merge(
        table.partners(),
        on=["kernel", "rank", "operation", "peer"],
        how="outer",
        suffixes=("", "_said"),
        indicator=True,
    )
    assert (links["_merge"] == "both").all()
    np.testing.assert_allclose(links["bytes_said"], links["bytes"], rtol=1e-6)


def test_weak_scaling_of_a_halo(experiment_of: Write) -> None:
    experiment = experiment_of(HALO, (4, 8, 12, 27), (8, 16))
    messages = fit_messages(experiment)
    assert messages
    for ranks in (2, 64, 100):
        for size in (8, 16):
            check(messages, (ranks, size), HALO, lambda i, p, n: 8 * n * n)


def test_strong_scaling_follows_the_faces_of_the_blocks(experiment_of: Write) -> None:
    messages = fit_messages(experiment_of(HALO, (8, 12, 16, 27), (144,), face))
    assert messages
    for ranks in (64, 96):
        check(messages, (ranks, 144), HALO, face)


def test_a_ring_and_a_growing_size(experiment_of: Write) -> None:
    rules = (Shift(1), Shift(-1))
    messages = fit_messages(experiment_of(rules, (3, 5, 8, 16), (8,), lambda i, p, n: 720720 / p if i else 64))
    assert messages
    check(messages, (30, 8), rules, lambda i, p, n: 720720 / p if i else 64)


def test_rounds_that_double(experiment_of: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recursive doubling: in round k 2^k blocks; every round has a size of its own."""

    class Round(Offset):
        def links(self, ranks: int):  # type: ignore[no-untyped-def]
            whole = Hypercube().links(ranks)
            kept = whole.round == self.by
            return type(whole)(whole.source[kept], whole.target[kept], whole.round[kept])

    rounds = tuple(Round(k) for k in range(7))
    messages = fit_messages(experiment_of(rounds[:5], (4, 9, 16, 32), (8,), lambda k, p, n: 24 * 2**k))
    assert messages
    assert [len(e.explanations[0].rules) for e in messages.entries if e.kind == "links"] == [1]
    check(messages, (64, 8), rounds[:6], lambda k, p, n: 24 * 2**k)


def test_classes_of_ranks(experiment_of: Write) -> None:
    messages = fit_messages(experiment_of(HALO, (4, 8, 12, 27)))
    assert messages
    table = messages.predict(np.array([64.0, 8.0])).by_class()
    sends = table[table["operation"] == "Isend"].set_index("class")
    assert sends["class_ranks"].to_dict() == {"corner": 8, "edge": 24, "face": 24, "interior": 8}
    assert sends["peers"].to_dict() == {"corner": 3, "edge": 4, "face": 5, "interior": 6}
    assert sends["count"].to_dict() == {"corner": 9, "edge": 12, "face": 15, "interior": 18}
    assert table.loc[table["operation"] == "Allreduce", ["class", "class_ranks"]].to_numpy().tolist() == [["all", 64]]
    torus = tuple(Step(v, True, False, False) for v in AXES)
    around = fit_messages(experiment_of(torus, (8, 12, 27, 30)))
    assert around is not None
    assert set(around.predict(np.array([125.0, 8.0])).by_class()["class"]) == {"all"}


def test_what_the_runs_do_not_show_is_refused(experiment_of: Write) -> None:
    messages = fit_messages(experiment_of(HALO, (1, 2, 4, 8)))
    assert messages
    rows = messages.predict(np.array([64.0, 8.0])).by_class().set_index("operation")
    assert (rows.loc["Isend", "status"] == "insufficient").all()
    assert "trace" in rows.loc["Isend", "reason"].iloc[0]
    assert rows.loc["Allreduce", "status"] == "ok"
    once = fit_messages(experiment_of(HALO, (27,)))
    assert once is not None
    assert not once.predict(np.array([64.0, 8.0])).ok
    with pytest.raises(InputError, match="whole"):
        messages.predict(np.array([6.5, 8.0]))


def test_an_operation_that_some_runs_lack_is_unknown(experiment_of: Write, tmp_path: Path) -> None:
    first, second = experiment_of(HALO, (8, 12)), experiment_of(HALO, (27,))
    joined = Experiment.create(tmp_path / "joined", "made-up", first.parameters)
    for source in (first, second):
        for run in source.runs:
            rows = source.table(run, "messages")
            assert rows is not None
            if run.configuration["ranks"] == 12:
                rows = rows[rows["operation"] != "Allreduce"]
            peers = source.table(run, "peers")
            assert peers is not None
            joined.add(run, source.table(run, "counters"), rows, tables={"peers": peers})
    messages = fit_messages(joined)
    assert messages
    rows = messages.predict(np.array([64.0, 8.0])).by_class().set_index("operation")
    assert "12 ranks" in rows.loc["Allreduce", "reason"]
    assert (rows.loc["Isend", "status"] == "ok").all()


def test_the_model_keeps_its_messages(experiment_of: Write, tmp_path: Path) -> None:
    experiment = experiment_of(HALO, (4, 8, 12, 27))
    model, _ = assemble(experiment)
    model.save(tmp_path / "m.json")
    (table,) = Model.load(tmp_path / "m.json").messages(ranks=64)
    (same,) = model.messages(ranks=64)
    assert table.by_class().equals(same.by_class())
    held = modelfile.read(tmp_path / "m.json")
    held["equation"]["communication"]["messages"]["entries"][0]["parts"][0][2] = 10_000
    modelfile.write(tmp_path / "bad.json", held, force=True)
    with pytest.raises(InputError, match="does not fit together"):
        Model.load(tmp_path / "bad.json").messages(ranks=64)
    del held["equation"]["communication"]["messages"]
    modelfile.write(tmp_path / "none.json", held, force=True)
    with pytest.raises(InputError, match="no messages"):
        Model.load(tmp_path / "none.json").messages(ranks=64)


def test_the_command_line(experiment_of: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.json"
    assemble(experiment_of(HALO, (4, 8, 12, 27)))[0].save(model)
    assert main(["predict", str(model), "--ranks", "64", "--messages"]) == 0
    text = capsys.readouterr().out
    assert "corner x8" in text
    assert "on a 3-d grid" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("next:")) <= 80
    assert main(["predict", str(model), "--ranks", "64,125", "--messages", "rank", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ranks,size,kernel,rank,operation")
    assert len(lines) == 1 + 2 * 64 + 2 * 125
    assert main(["predict", str(model), "--ranks", "64", "--messages", "links", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["messages"][0]["rows"]) == 2 * 3 * 4 * 4 * 3
    assert main(["predict", str(model), "--ranks", "64", "--messages", "--metric", "messages"]) == 2
    assemble(experiment_of(HALO, (27,)))[0].save(tmp_path / "one.json")
    assert main(["predict", str(tmp_path / "one.json"), "--ranks", "64", "--messages"]) == 4


def test_unlike_rules_that_explain_the_partners_are_in_the_interval(tmp_path: Path) -> None:
    # The neighbours with diagonals of a rank are all others at 2, 4 and 8 ranks, and at 16 nine of fifteen.
    steps = [v for v in itertools.product((-1, 0, 1), repeat=3) if any(v)]
    around: tuple[Rule, ...] = tuple(Step(v, False, False, True) for v in steps)

    def model(ranks: tuple[int, ...], calls: float | None = None) -> Model:
        experiment = Experiment.create(tmp_path / f"e{len(ranks)}{calls}", "made-up", ["ranks"])
        for p in ranks:
            messages, peers = message_tables(around, p, 1.0, lambda i, p, n: 64.0)
            sends = messages[messages["operation"].str.contains("end")]
            count = sends.groupby(["kernel", "rank"], as_index=False, observed=True)["count"].sum()
            counters = count.rename(columns={"count": "messages"})
            counters["messages"] = counters["messages"] if calls is None else calls
            counters = pd.concat([counters, pd.DataFrame({"kernel": "dot", "rank": range(p), "messages": 90.0})])
            run = Run({"ranks": p}, collector="pmpi")
            experiment.add(run, counters, messages, tables={"peers": peers})
        return assemble(experiment)[0]

    kernel = str(message_tables(around, 8, 1.0, lambda i, p, n: 64.0)[0]["kernel"].iloc[0])
    few = model((2, 4, 8))
    said = {a.kernel: a for a in few.predict(ranks=16, metrics=["messages"]).answers}
    assert said[kernel].lower <= 3 * 9 * (1 + 1e-9)
    assert said[kernel].upper >= 3 * 15 * (1 - 1e-9)
    assert said["dot"].status == forecast.OK
    far = {a.kernel: a for a in few.predict(ranks=512, metrics=["messages"]).answers}
    assert far[kernel].status == forecast.WIDE
    same = {a.kernel: a for a in model((2, 4, 8), 18.0).predict(ranks=16, metrics=["messages"]).answers}
    assert same[kernel].status == forecast.OK, "as many at every number of ranks, whoever they went to"
    answers = {a.kernel: a for a in model((2, 4, 8, 12, 18)).predict(ranks=16, metrics=["messages"]).answers}
    assert answers[kernel].status == forecast.OK


def test_faces_are_reported_by_the_way_the_message_goes(experiment_of: Write) -> None:
    # Up to 16 ranks the face across the second axis shrinks as 1 / (x y) of a grid of three dimensions does.
    flat = tuple(Step(v, False, True, True) for v in ((-1, 0), (1, 0), (0, -1), (0, 1)))

    def side(i: int, p: int, n: float) -> float:
        return float(8 * n * n / dims_create(p, 2)[::-1][1 - i // 2])

    messages = fit_messages(experiment_of(flat, (2, 4, 8, 16), (144,), side))
    assert messages
    for asked in (32, 64):
        check(messages, (asked, 144), flat, side)


def test_laws_that_the_runs_cannot_distinguish_widen_the_interval() -> None:
    ranks = np.array([[2.0], [4.0], [8.0]])
    values = 4096.0 / ranks.T
    volumes = fit_volumes(("ranks",), ranks, values, [("halo", "bytes_sent")], [None])
    said = volumes.predict(np.array([[4.0], [16.0], [64.0], [1024.0]]))
    assert said.lower[0, 0] == said.value[0, 0] == said.upper[0, 0] == pytest.approx(1024)
    # A face of a 3-d grid: 1 / (y z) is 1 / 4 at 8 and at 16 ranks, and 1 / 16 at 64.
    assert said.upper[0, 1:3] == pytest.approx([512, 128])
    assert said.value[0, 1:3] == pytest.approx([256, 64])
    assert said.status[0].tolist() == [forecast.OK, forecast.OK, forecast.OK, forecast.WIDE]
    assert "fit the runs equally well" in said.reason[0, 3]
    again = Volumes.from_dict(json.loads(json.dumps(volumes.to_dict())))
    np.testing.assert_array_equal(again.predict(np.array([[64.0]])).upper, said.upper[:, 2:3])


@pytest.mark.parametrize("law", LAWS)
def test_laws_are_found(law: str) -> None:
    ranks = np.array([4, 8, 12, 16, 27, 30, 64])
    values = 7.0 * np.array([weight(law, int(p)) for p in ranks])
    found = find_law(ranks, np.zeros(len(ranks), dtype=int), values)
    assert [weight(found, p) for p in (100, 128)] == pytest.approx([weight(law, p) for p in (100, 128)])


def test_laws_are_not_claimed() -> None:
    ranks, together = np.array([4, 8, 16]), np.zeros(3, dtype=int)
    assert find_law(ranks, together, np.array([1.0, 2.0, 5.0])) == ""
    assert find_law(ranks[:2], together[:2], np.array([4.0, 8.0])) == "", "two runs are met by many laws"
    assert find_law(ranks[:1], together[:1], np.array([4.0])) == ""
    assert find_law(ranks, np.arange(3), np.array([4.0, 8.0, 16.0])) == "", "no two runs share the other parameters"
