"""A model on another machine: closed forms of kernels that compute or wait for memory, and runs there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.runs import Anchor, Runs
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import measured_there, on, with_runs
from ranksight.model.priors import UNDIVIDED
from ranksight.model.series.computation import RUNNING
from ranksight.model.series.reducing import series_from_experiment
from ranksight.platforms import Clock, Platform, load, save
from ranksight.platforms.assumptions import BASES, assumptions, spread
from ranksight.platforms.cores import instructions_per_cycle

HERE = load("icelake-8360y")
RANKS = (1, 2, 3, 4, 6, 9, 12, 18, 36, 72)
WORK = 4e13
HERTZ = 2.4e9


def _slower(factor: float) -> Platform:
    """The same machine with its clock, and no turbo, at a part of the nominal one."""
    base = factor * HERE.clock.base
    return replace(HERE, name="slower", clock=Clock(base=base, measured=base))


def _narrower(factor: float) -> Platform:
    """The same machine with a part of its memory bandwidth."""
    scaling = {name: tuple((n, factor * b) for n, b in curve) for name, curve in HERE.memory.scaling.items()}
    core, domain = factor * HERE.memory.bandwidth_core, factor * HERE.memory.bandwidth_domain
    memory = replace(HERE.memory, bandwidth_core=core, bandwidth_domain=domain, scaling=scaling)
    return replace(HERE, name="narrower", memory=memory)


def _computing(ranks: int) -> float:
    return WORK / ranks / HERTZ


def _streaming(ranks: int) -> float:
    """Seconds of a rank whose traffic saturates domains of 18 cores from 6 ranks on."""
    traffic = 2e13 / ranks
    active = min(ranks, 18)
    return max(traffic / 15e9, traffic * active / 93.9e9)


def _experiment(
    path: Path, seconds: Callable[[int], float], traffic: float, ranks: tuple[int, ...] = RANKS
) -> Experiment:
    found = Experiment.create(path, path.name, ["ranks"])
    for p in ranks:
        time = seconds(p)
        row = {"kernel": WHOLE, "time": time, "instructions": WORK / p, "cycles": time * HERTZ}
        more = {"bytes_mem_read": traffic / p, "bytes_mem_written": 1e-3 * traffic / p}
        found.add(Run({"ranks": p}, 0, "test"), pd.DataFrame([{**row, **more, "rank": rank} for rank in range(p)]))
    return found


def _one(model: Model, ranks: int) -> tuple[float, float, float]:
    """Value and interval of the program's time."""
    (answer,) = model.predict(ranks=ranks, metrics="time").answers
    return answer.value, answer.lower, answer.upper


@pytest.fixture(scope="module")
def computing(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return rs.fit(_experiment(tmp_path_factory.mktemp("a") / "compute.exp", _computing, 1e9), platform=HERE)


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return rs.fit(_experiment(tmp_path_factory.mktemp("b") / "stream.exp", _streaming, 2e13), platform=HERE)


def _whole(model: Model, ranks: int) -> tuple[float, float, float]:
    (answer,) = (each for each in model.predict(ranks=ranks, metrics="time").answers if each.kernel is None)
    return answer.value, answer.lower, answer.upper


def test_a_factor_of_two_cores_is_the_product_of_the_generations_between() -> None:
    step = instructions_per_cycle(HERE, load("sapphirerapids-8470"))
    assert step.value == pytest.approx(1.19)
    assert step.spread == pytest.approx(spread("generation"))
    back = instructions_per_cycle(load("sapphirerapids-8470"), HERE)
    assert back.value * step.value == pytest.approx(1)
    two = instructions_per_cycle(load("cascadelake-6248"), load("sapphirerapids-8470"))
    assert two.value == pytest.approx(1.19 * 1.20)
    assert two.spread == pytest.approx(spread("generation") * np.sqrt(2))
    assert instructions_per_cycle(load("skylake-6148"), load("rome-7742")).spread == pytest.approx(spread("lines"))
    assert instructions_per_cycle(HERE, load("generic")).spread > 2 * spread("generation")


def test_a_kernel_that_computes_takes_as_much_longer_as_the_clock_is_slower(computing: Model) -> None:
    for ranks in (4, 36, 72):
        value, lower, upper = _whole(on(computing, _slower(0.5)), ranks)
        assert value == pytest.approx(2 * _computing(ranks), rel=0.02)
        assert lower < 2 * _computing(ranks) < upper


def test_a_kernel_that_streams_follows_the_bandwidth_and_not_the_clock(streaming: Model) -> None:
    for ranks in (18, 36, 72):
        value, lower, upper = _whole(on(streaming, _narrower(0.5)), ranks)
        assert value == pytest.approx(2 * _streaming(ranks), rel=0.05)
        assert lower < 2 * _streaming(ranks) < upper
        assert _whole(on(streaming, _slower(0.7)), ranks)[0] == pytest.approx(_streaming(ranks), rel=0.05)


def test_smaller_domains_saturate_with_fewer_ranks(streaming: Model) -> None:
    layout = replace(HERE.layout, domains_per_socket=4, cores_per_domain=9)
    memory = replace(HERE.memory, scaling={})
    halves = replace(HERE, name="halves", layout=layout, memory=memory)
    # As much bandwidth for nine cores as for eighteen: the node has twice of it.
    assert _whole(on(streaming, halves), 72)[0] == pytest.approx(_streaming(72) / 2, rel=0.1)


def test_stated_instructions_multiply_the_work(computing: Model) -> None:
    once, more = (_whole(on(computing, _slower(0.5), instructions=n), 72)[0] for n in (1.0, 1.5))
    assert more / once == pytest.approx(1.5, rel=0.01)


def test_what_is_assumed_widens_the_interval_and_is_listed(computing: Model) -> None:
    other = on(computing, "sapphirerapids-8470")
    _, lower, upper = _whole(other, 72)
    _, least, most = _whole(computing, 72)
    assert upper / lower > 1.3 * most / least
    notes = other.predict(ranks=72, metrics="time").notes
    assert any(note.startswith("assumed: 1.19 +- 0.14 instructions per cycle against Ice Lake-SP") for note in notes)
    assert not any("assumed: " in note for note in computing.predict(ranks=72, metrics="time").notes)
    arm = on(computing, "grace").predict(ranks=72, metrics="time").notes
    assert any("AArch64 against x86-64, no factor is stated" in note for note in arm)
    unknown = on(computing, "generic").predict(ranks=72, metrics="time").notes
    assert any("an instruction set is not known, no factor is stated" in note for note in unknown)


def test_metrics_that_a_machine_decides_are_not_predicted_for_another(computing: Model) -> None:
    answers = on(computing, "grace").predict(ranks=72, metrics=["instructions", "cycles"]).answers
    status = {each.metric: each.ok for each in answers}
    assert status == {"instructions": True, "cycles": False}


def test_a_machine_is_itself_and_two_of_one_name_are_refused(computing: Model) -> None:
    assert on(computing, "icelake-8360y") is computing
    with pytest.raises(InputError, match="two machines are named icelake-8360y"):
        on(computing, replace(_slower(0.5), name=HERE.name))
    with pytest.raises(InputError, match="does not know on which machine"):
        on(replace(computing, platform=""), "grace")
    for ratio in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="times those here"):
            on(computing, "grace", instructions=ratio)


def test_a_model_that_was_moved_survives_its_file(computing: Model, tmp_path: Path) -> None:
    other = on(computing, "grace")
    other.save(tmp_path / "there.model.json")
    assert _whole(rs.load(tmp_path / "there.model.json"), 72) == pytest.approx(_whole(other, 72), rel=1e-6)


def test_runs_of_one_domain_there_narrow_and_correct_what_was_assumed(computing: Model, tmp_path: Path) -> None:
    there, factor = load("sapphirerapids-8470"), 1.3
    runs = _experiment(tmp_path / "there.exp", lambda p: factor * _computing(p), 1e9, (1, 4, 13))
    anchored = on(with_runs(computing, series_from_experiment(runs, ["time"]), there), there)
    value, lower, upper = _whole(anchored, 104)
    assert value == pytest.approx(factor * _computing(104), rel=0.04)
    assert lower < factor * _computing(104) < upper
    _, least, most = _whole(on(computing, there), 104)
    assert np.log(upper / lower) < 0.5 * np.log(most / least)


def test_runs_there_have_to_be_of_the_same_program(computing: Model, tmp_path: Path) -> None:
    other = Experiment.create(tmp_path / "other.exp", "other", ["size"])
    other.add(Run({"size": 3}, 0, "test"), pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [1.0]}))
    with pytest.raises(InputError, match="are over size, the model over ranks"):
        with_runs(computing, series_from_experiment(other, ["time"]), load("grace"))
    same = Experiment.create(tmp_path / "same.exp", "same", ["ranks"])
    same.add(Run({"ranks": 3}, 0, "test"), pd.DataFrame({"kernel": ["f"], "rank": [0], "time": [1.0]}))
    with pytest.raises(InputError, match="have no kernel of the model"):
        with_runs(computing, series_from_experiment(same, ["time"]), load("grace"))


def test_damaged_entries_of_a_model_are_named(computing: Model) -> None:
    content = computing.present()
    wrong = {"kernels": ["f"], "points": [[1.0]], "logs": [[0.0]], "errors": [[0.1]], "scatter": [[0.1]]}
    for entry in (3, [3], [{}], [{"name": "grace", "platform": "", "runs": {}}]):
        with pytest.raises(InputError):
            Model.from_dict({**content, "anchors": entry})
    anchor = Anchor("grace", "", Runs.from_dict(wrong))
    with pytest.raises(InputError, match="kernels that the model lacks"):
        on(replace(computing, anchors=(anchor,)), "grace")
    with pytest.raises(InputError):
        Model.from_dict({**content, "platform": 3})
    for text in ("schema = [", "schema = 1"):
        with pytest.raises(InputError):
            on(replace(computing, platform=text), "grace")


def test_times_alone_are_wide_and_one_run_there_is_met(tmp_path: Path) -> None:
    def curve(path: Path, nodes: tuple[int, ...], factor: float) -> Experiment:
        found = Experiment.create(path, path.name, ["nodes"])
        for n in nodes:
            table = pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [factor * (1000 / n + 5)]})
            found.add(Run({"nodes": n}, 0, "test"), table)
        return found

    model = rs.fit(curve(tmp_path / "a.exp", (1, 2, 4, 8, 16, 32), 1.0), platform=HERE)
    there = load("rome-7742")
    (alone,) = on(model, there).predict(nodes=16, metrics="time").answers
    assert alone.upper / alone.lower > 1.6
    runs = series_from_experiment(curve(tmp_path / "b.exp", (4,), 1.7), ["time"])
    met = on(with_runs(model, runs, there), there).predict(nodes=[4, 16], metrics="time").answers
    for each, nodes in zip(met, (4, 16), strict=True):
        assert each.value == pytest.approx(1.7 * (1000 / nodes + 5), rel=0.06)
    near, far = (each.upper / each.lower for each in met)
    assert near < far < 3
    # However far it is from what the platforms give, as where fewer steps were timed there.
    runs = series_from_experiment(curve(tmp_path / "c.exp", (4,), 1 / 200), ["time"])
    (met_far,) = on(with_runs(model, runs, there), there).predict(nodes=4, metrics="time").answers
    assert met_far.value == pytest.approx((1000 / 4 + 5) / 200, rel=0.02)


def test_what_the_laws_leave_of_runs_there_holds_near_them(computing: Model, tmp_path: Path) -> None:
    """A third longer at 72 ranks there, which no law of a computing kernel has: so no law meets it, and none is far off."""
    there = _slower(0.8)

    def seconds(ranks: int) -> float:
        return (4 / 3 if ranks == 72 else 1.0) * _computing(ranks) / 0.8

    runs = measured_there(computing, _experiment(tmp_path / "there.exp", seconds, 1e9, (1, 2, 4, 9, 18, 72)))
    moved = on(with_runs(computing, runs, there), there)
    factor = {n: _one(moved, n)[0] / (_computing(n) / 0.8) for n in (3, 12, 60)}
    assert factor[3] == pytest.approx(1.0, abs=0.06)
    assert factor[60] == pytest.approx(4 / 3, rel=0.1)
    assert factor[3] < factor[12] + 0.02 < factor[60]


def test_what_is_not_divided_work_differs_less(tmp_path: Path) -> None:
    """500 / n s that a core 4 times as fast divides by 4, and 20 s that do not divide, on fewer and on more nodes."""

    def curve(path: Path, work: float, rest: float, nodes: tuple[int, ...]) -> Experiment:
        found = Experiment.create(path, path.name, ["nodes"])
        for n in nodes:
            table = pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [work / n + rest]})
            found.add(Run({"nodes": n}, 0, "test"), table)
        return found

    model = rs.fit(curve(tmp_path / "a.exp", 500.0, 20.0, (1, 2, 4, 8, 16, 32, 64)), platform=HERE)
    there = load("rome-7742")
    runs = series_from_experiment(curve(tmp_path / "b.exp", 500 / 4, 20 / 4**UNDIVIDED, (1,)), ["time"])
    for each in on(with_runs(model, runs, there), there).predict(nodes=[8, 64], metrics="time").answers:
        nodes = each.configuration["nodes"]
        assert each.value == pytest.approx(500 / 4 / nodes + 20 / 4**UNDIVIDED, rel=0.05)
        assert each.value > 1.1 * (500 / nodes + 20) / 4


def test_two_machines_in_one_experiment_are_no_repetition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Experiment.create(tmp_path / "both.exp", "both", ["ranks"])
    names = (("Intel(R) Xeon(R) Platinum 8360Y CPU", 1.0, RANKS), ("Intel(R) Xeon(R) Platinum 8470", 1.4, (1, 4, 12)))
    for name, factor, ranks in names:
        for p in ranks:
            time = factor * _computing(p)
            row = {
                "kernel": WHOLE,
                "time": time,
                "instructions": WORK / p,
                "cycles": time * HERTZ,
                "bytes_mem": 1e9 / p,
            }
            table = pd.DataFrame([{**row, "rank": rank} for rank in range(p)])
            both.add(Run({"ranks": p}, 0 if factor == 1 else 1, "test", environment={"processor": name}), table)
    model = str(tmp_path / "m.json")
    assert main(["fit", str(both.path), "-o", model, "-q"]) == 1
    assert "a machine is no repetition" in capsys.readouterr().err
    one, other = ["--platform", "icelake-8360y"], ["--platform", "sapphirerapids-8470"]
    assert main(["fit", str(both.path), *one, *other, "-o", model, "-q"]) == 0
    for where, factor in (([], 1.0), (["--on", "sapphirerapids-8470"], 1.4)):
        assert main(["predict", model, "--ranks", "72", *where, "--format", "csv", "--metric", "time"]) == 0
        head, line = capsys.readouterr().out.splitlines()
        value = float(dict(zip(head.split(","), line.split(","), strict=False))["value"])
        assert value == pytest.approx(factor * _computing(72), rel=0.05)
    assert main(["fit", str(both.path), *one, "--platform", "grace", "-o", model, "-q", "-f"]) == 1
    assert "has no run on grace" in capsys.readouterr().err


def test_verbs_ask_for_another_machine(computing: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.model.json"
    computing.save(path)
    save(_slower(0.5), tmp_path / "slower.toml")
    asked = [str(path), "--ranks", "72"]
    assert main(["predict", *asked, "--on", str(tmp_path / "slower.toml")]) == 0
    assert "assumed: 0.5 +- 0.005 clock" in " ".join(capsys.readouterr().out.split())
    assert (
        main(
            ["compare", *asked, "--on", "icelake-8360y,sapphirerapids-8470", "--price", "icelake-8360y=3 EUR/node-hour"]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert all(word in said for word in ("sapphirerapids-8470 ", "node-hours", "cost, EUR"))
    assert main(["diagnose", *asked, "--on", "grace"]) in (0, 4)
    said = capsys.readouterr().out
    assert all(words in said for words in ("ranks 72 on grace: ", "note: assumed: "))
    assert main(["compare", *asked, "--on", str(tmp_path / "slower.toml")]) == 0
    assert f"--on {tmp_path / 'slower.toml'}" in capsys.readouterr().out.splitlines()[-1]
    assert main(["report", *asked, "--on", "grace", "-q", "-o", str(tmp_path / "there.html")]) == 0
    page_there = (tmp_path / "there.html").read_text()
    assert all(words in page_there for words in ("No configuration was measured on grace", "on grace, "))
    power = ["--power", "grace=600", "--power", "zen4=1200"]
    assert main(["compare", *asked, "--on", "grace,zen4", *power, "--price", "1 EUR/kWh"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("energy", "cost, EUR"))
    assert max(map(len, shown.partition("next:")[0].splitlines())) <= 80
    assert main(["compare", *asked, "--on", "grace,zen4", *power, "--price", "1 EUR/kWh", "--format", "json"]) == 0
    for offer in json.loads(capsys.readouterr().out)["machines"]:  # of all machines
        assert offer["cost"] == pytest.approx(offer["energy"] / 3.6e6)
    page = tmp_path / "page.html"
    assert main(["compare", *asked, "--on", "grace,zen4", "-o", str(page)]) == 0
    assert "Which machine" in page.read_text()
    capsys.readouterr()
    for line, code in (
        (["compare", str(path)], 2),
        (["compare", *asked, "--on", "grace", "--price", "grace=3"], 1),
        (["compare", *asked, "--on", "grace", "--price", "grace=3 EUR/kWh"], 1),
        (["compare", *asked, "--on", "grace", "--price", "3 EUR/kWh"], 1),
        (["compare", *asked, "--on", "grace", "--price", "=3 EUR/kWh"], 2),
        (["compare", *asked, "--on", "grace,zen4", "--price", "grace=3 EUR/kWh", "--price", "zen4=3 USD/kWh"], 1),
        (["compare", *asked, "--on", "grace,grace"], 1),
        (["compare", *asked, "--on", "grace", "--power", "grace"], 2),
        (["predict", *asked, "--instructions", "1.2"], 2),
        (["predict", *asked, "--on", "nowhere"], 1),
        (["predict", *asked, "--on", "grace,zen4"], 2),
        (["report", *asked, "--on", "grace", "--experiment", str(tmp_path), "-o", str(tmp_path / "r.html")], 2),
    ):
        assert main(line) == code
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_times_alone_cost_in_width_is_listed(computing: Model, tmp_path: Path) -> None:
    """The ratio of a kernel that computes and of one that waits for memory, and the spread between both."""
    found = Experiment.create(tmp_path / "t.exp", "t", ["nodes"])
    for nodes in (1.0, 2.0, 4.0, 8.0):
        found.add(
            Run({"nodes": nodes}, 0, "table"), pd.DataFrame({"kernel": [WHOLE], "rank": [0], "time": [800 / nodes]})
        )
    timed = rs.fit(found, platform="icelake-8360y")
    for model, asked, said in ((timed, {"nodes": 8}, True), (computing, {"ranks": 72}, False)):
        notes = " ".join(on(model, load("grace")).predict(asked, metrics=["time"]).notes)
        assert ("nothing counted says which" in notes) == said


def test_platforms_are_listed_shown_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platforms"]) == 0
    assert "icelake-8360y" in capsys.readouterr().out
    assert main(["platforms", "grace"]) == 0
    assert "[memory]" in capsys.readouterr().out
    assert main(["platforms", "icelake-8360y", "sapphirerapids-8470"]) == 0
    assert "1.5x the memory bandwidth, 1.2x the cores x clock" in " ".join(capsys.readouterr().out.split())
    assert main(["platforms", "a", "b", "c"]) == 2


def test_a_real_program_is_predicted_on_a_processor_that_it_never_ran_on(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "counters"
    files = [str(f) for f in sorted((folder / "spechpc_likwid_icelake" / "MEM_DP").glob("tealeaf-*"))]
    made = tmp_path / "tealeaf.exp"
    assert main(["import", "likwid", *files, "--parameter", r"ranks=Rank(\d+)", "-o", str(made), "-q"]) == 0
    model = on(rs.fit(made, platform=HERE), "sapphirerapids-8470")
    value, lower, upper = _whole(model, 104)
    assert value == pytest.approx(394.1, rel=0.1)  # seconds of tealeaf-FritzRank104
    assert lower < 394.1 < upper
    assert upper / lower < 2


def _halting(path: Path, ranks: tuple[int, ...], factor: float = 1.0) -> Experiment:
    """A program of :func:`_computing` whose cores are halted for a second and a quarter of one for each rank."""
    found = Experiment.create(path, path.name, ["ranks"])
    for p in ranks:
        running, halted = factor * _computing(p), 1.0 + p / 4
        row = {"kernel": WHOLE, "time": running + halted, "time_halted": halted, "cycles": running * HERTZ}
        counts = {"instructions": WORK / p, "bytes_mem_read": 1e9 / p, "bytes_mem_written": 1e6 / p}
        found.add(Run({"ranks": p}, 0, "test"), pd.DataFrame([{**row, **counts, "rank": rank} for rank in range(p)]))
    return found


@pytest.mark.parametrize("counted", [True, False], ids=["halted time counted there", "times alone there"])
def test_runs_there_correct_the_running_time_of_a_program_that_also_waits(counted: bool, tmp_path: Path) -> None:
    there, factor = load("sapphirerapids-8470"), 1.3
    model = rs.fit(_halting(tmp_path / "here.exp", RANKS), platform=HERE)
    assert RUNNING in model.functions.fitted.kernels
    runs = _halting(tmp_path / "there.exp", (1, 4, 13), factor)
    series = measured_there(model, runs) if counted else series_from_experiment(runs, ["time"])
    value, lower, upper = _whole(on(with_runs(model, series, there), there), 104)
    true = factor * _computing(104) + 27
    assert value == pytest.approx(true, rel=0.05)
    assert lower < true < upper


def test_every_assumption_says_what_it_rests_on() -> None:
    table = assumptions()
    assert all(0 < each.value < 1 and each.basis in BASES for each in table.values())
    assert all(each.what and each.source for each in table.values())
    assert all("python -m benchmarks" in each.source for each in table.values() if each.basis == "learned")


def test_machines_are_compared_at_the_level_of_predictions(
    computing: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    computing.save(tmp_path / "m.json")
    assert main(["compare", str(tmp_path / "m.json"), "--on", "grace", "--ranks", "72", "--format", "json"]) == 0
    (offer,) = json.loads(capsys.readouterr().out)["machines"]
    assert offer["level"] == 0.9
    assert offer["interval"] == pytest.approx(_whole(on(computing, "grace"), 72)[1:])
