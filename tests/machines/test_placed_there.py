"""How ranks are placed on another machine, its network, and what verbs say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.comm.network import NetworkParameters
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import on
from ranksight.model.machine.transfer import SIZES
from ranksight.platforms import load
from ranksight.platforms.assumptions import spread
from ranksight.platforms.cores import instruction_set, instructions_per_cycle

HERE = load("icelake-8360y")


def _seconds(ranks: int) -> float:
    """Of a rank whose traffic saturates domains of 18 cores from 6 ranks on."""
    traffic = 2e13 / ranks
    return max(traffic / 15e9, traffic * min(ranks, 18) / 93.9e9)


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Model:
    found = Experiment.create(tmp_path_factory.mktemp("s") / "stream.exp", "stream", ["ranks"])
    for p in (1, 2, 3, 4, 6, 9, 12, 18, 36, 72):
        row = {"kernel": WHOLE, "time": _seconds(p), "instructions": 4e13 / p, "cycles": _seconds(p) * 2.4e9,
               "bytes_mem_read": 2e13 / p, "bytes_mem_written": 2e10 / p}  # fmt: skip
        found.add(Run({"ranks": p}, 0, "test"), pd.DataFrame([{**row, "rank": rank} for rank in range(p)]))
    return rs.fit(found, platform=HERE)


def _traced(path: Path) -> Model:
    """Computation that ranks divide and short reductions, on nodes of a slow network, a rank each."""
    found = Experiment.create(path, "traced", ["ranks"])
    for p in (2, 4, 8, 16):
        rank = np.arange(p)
        sent = pd.DataFrame({"kernel": "solve", "rank": rank, "operation": "Allreduce", "count": 1000, "comm_size": p,
                             "size_class": 64, "bytes": 64e3, "peers": 0, "seconds": 0.05 * np.log2(p)})  # fmt: skip
        whole = pd.DataFrame({"kernel": WHOLE, "rank": rank, "wall_time": 10.0 / p + 0.05 * np.log2(p)})
        solve = pd.DataFrame({"kernel": "solve", "rank": rank, "time": 10.0 / p})
        found.add(Run({"ranks": p}), pd.concat([whole, solve]), sent)
    slow = NetworkParameters.linear(50e-6, 8e-9).to_dict()
    return rs.fit(found, ["time"], platform=replace(load("generic"), name="slow", network={"inter": slow}))


def test_domains_that_ranks_leave_idle_are_named_and_used(streaming: Model) -> None:
    there = on(streaming, "zen4")
    note = "placed compactly, 72 ranks fill 3 of 8 memory domains of zen4: --placement scattered uses all"
    assert note in there.predict(ranks=72, metrics="time").notes
    assert not any("memory domains of" in each for each in there.predict(ranks=192, metrics="time").notes)
    scattered = there.placed("scattered")
    assert not any("memory domains of" in each for each in scattered.predict(ranks=72, metrics="time").notes)
    times = [each.predict(ranks=72, metrics="time").answers[0].value for each in (there, scattered)]
    assert times[1] < 0.6 * times[0]


def test_compare_and_report_take_a_placement(
    streaming: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streaming.save(tmp_path / "m.json")
    model = str(tmp_path / "m.json")
    asked = [model, "--ranks", "72"]
    compared = {}
    for words in ([], ["--placement", "scattered"], ["--ranks-per-node", "36"]):
        assert main(["compare", *asked, "--on", "zen4", *words, "--format", "csv"]) == 0
        head, line = capsys.readouterr().out.splitlines()
        compared[words[-1] if words else ""] = dict(zip(head.split(","), line.split(","), strict=False))
    assert float(compared["scattered"]["value"]) < 0.6 * float(compared[""]["value"])
    assert [each["nodes"] for each in compared.values()] == ["1", "1", "2"]
    assert main(["compare", *asked, "--on", "zen4,sapphirerapids-8470"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "sapphirerapids-8470 " in said
    assert "3 of 8 memory domains of zen4" in said
    assert main(["compare", model, model, "--placement", "scattered"]) == 2
    page = tmp_path / "r.html"
    assert main(["report", *asked, "--on", "zen4", "--placement", "scattered", "-q", "-o", str(page)]) == 0
    text = page.read_text()
    assert f"ranksight predict {model} --on zen4 --placement scattered" in text
    assert "range measured on icelake-8360y" in text
    assert "is within what was measured on icelake-8360y" in text
    assert not any(words in text for words in ("--experiment FOLDER", ">measured range<"))


def test_what_comes_next_stays_on_the_machine_asked_for(
    streaming: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streaming.save(tmp_path / "m.json")
    main(["predict", str(tmp_path / "m.json"), "--ranks", "4096", "--on", "zen4", "--placement", "scattered"])
    lines = capsys.readouterr().out.splitlines()
    assert "diagnose" in " ".join(lines[-3:])
    assert "--on zen4 --placement scattered" in " ".join(lines[-3:])
    assert not any(name in " ".join(lines) for name in ("cycles, ", "bytes_mem_read"))


def test_messages_inside_of_a_node_there_go_over_no_network_between_nodes(tmp_path: Path) -> None:
    model = _traced(tmp_path / "t.exp")
    there = on(model, HERE)
    points = np.array([[64.0], [144.0]])
    seconds = {name: each.breakdown(points).parts["communication"] for name, each in (("", model), ("on", there))}
    assert seconds["on"][0] < 0.1 * seconds[""][0]
    assert seconds["on"][1] > 0.2 * seconds[""][1]
    inside, between = there.equation.machine.messages
    usual = load("generic").network["inter"]
    slow, fast = (
        NetworkParameters.from_dict(each).transfer_time(SIZES)
        for each in (NetworkParameters.linear(50e-6, 8e-9).to_dict(), usual)
    )
    assert inside == pytest.approx(spread("network"))
    assert between == pytest.approx(np.log(slow / fast).max())


def test_another_network_is_in_the_interval_of_times_over_nodes(tmp_path: Path) -> None:
    found = Experiment.create(tmp_path / "t.exp", "t", ["nodes"])
    for n in (1, 2, 4, 8, 16, 32):
        table = pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [100.0 / n + 10.0]})
        found.add(Run({"nodes": n}, 0, "table"), table)
    there = on(rs.fit(found, platform="broadwell-e5-2697v4"), "skylake-6148")
    few, many = there.predict(nodes=[1, 32], metrics="time").answers
    assert many.upper / many.lower > 1.2 * few.upper / few.lower
    assert any("by another network" in note for note in there.predict(nodes=32).notes)


def test_an_instruction_set_is_an_architecture_of_which_no_core_is_known() -> None:
    one, other = (replace(HERE, name=name, architecture="x86-64") for name in ("one", "other"))
    assert instruction_set(one) == instruction_set(HERE) == "x86-64"
    assert instruction_set(replace(one, architecture="AArch64")) == "AArch64"
    assert instructions_per_cycle(one, other).spread == pytest.approx(spread("unknown"))
