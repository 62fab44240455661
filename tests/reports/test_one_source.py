"""For one model and target every verb, the notebooks and the report give the same figures."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.analysis.planning.cost import cost_of
from ranksight.analysis.planning.designs import GAIN
from ranksight.cli.main import main
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.units import format_si
from ranksight.examples import measured as example
from ranksight.model.fit import assemble
from ranksight.platforms import load
from ranksight.reports.demonstration import prove
from ranksight.reports.html.context import Context
from ranksight.reports.html.sections.ask import live_answer
from ranksight.reports.palette import NAMES
from ranksight.reports.plans import spent
from ranksight.reports.sweep import sweep
from ranksight.reports.trust import trust

RANKS = (1, 2, 4, 8, 16)
Times = Mapping[str, Callable[[float], float]]
MADE: dict[str, tuple[Times, bool]] = {
    "strong": ({"work": lambda p: 8 / p, "serial": lambda p: 0.2}, False),
    "weak": ({"work": lambda p: 3.0, "tree": lambda p: 0.1 * (1 + np.log2(p))}, False),
    "grows": ({"work": lambda p: 5 / p, "search": lambda p: 0.01 * p}, True),
    "single": ({"only": lambda p: 6 / p + 0.1}, True),
    "program": ({WHOLE: lambda p: 10 / p + 0.5, "work": lambda p: 9 / p, "rest": lambda p: 0.2}, False),
    "nested": ({WHOLE: lambda p: 4 / p + 0.1, "outer": lambda p: 3.9 / p + 0.1, "inner": lambda p: 3.5 / p}, False),
    "scatter": ({"noisy": lambda p: 2 / p * (1 + 0.3 * np.sin(7 * p)), "work": lambda p: 1 / p}, False),
    "tiny": ({"fast": lambda p: 3e-6 / p, "other": lambda p: 1e-6}, False),
    "by ranks": ({"uneven": lambda p: 4 / p, "even": lambda p: 0.3}, True),
}
"""Seconds by kernel, and whether instructions and the ranks one by one were measured."""


@dataclass(frozen=True)
class Case:
    """A model in its file, with what it was made of and the question asked of all."""

    file: Path
    experiment: Experiment
    target: dict[str, float]

    def words(self) -> list[str]:
        return [word for name, value in self.target.items() for word in (f"--{name}", f"{value:g}")]


def made(folder: Path, name: str) -> Case:
    """One of :data:`MADE`, measured with a hundredth of scatter and fitted."""
    times, counted = MADE[name]
    random = np.random.default_rng(len(name))
    experiment = Experiment.create(folder / "experiment", name, ["ranks"])
    for p in RANKS:
        ranks = range(p) if counted else [-1]
        rows = [
            {
                "kernel": kernel,
                "rank": rank,
                "time": time(p)
                * (1 + 0.01 * random.standard_normal())
                * (1.3 if rank == 0 and kernel == "uneven" else 1),
                **({"instructions": 1e9 * time(p)} if counted else {}),
            }
            for kernel, time in times.items()
            for rank in ranks
        ]
        experiment.add(Run({"ranks": p}, wall_time=1.5 * sum(time(p) for time in times.values())), pd.DataFrame(rows))
    assemble(experiment)[0].save(folder / "own.model.json")
    return Case(folder / "own.model.json", experiment, {"ranks": 64})


@pytest.fixture(scope="module", params=[*MADE, "example"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("case")
    if request.param != "example":
        return made(folder, request.param)
    example.unpack(folder)
    trained = rs.read(folder / "experiment")
    assemble(trained, platform=load("simulated"))[0].save(folder / "heat.model.json")
    return Case(folder / "heat.model.json", trained, {"ranks": 256, "size": 24})


def asked(verb: str, case: Case, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    main([verb, str(case.file), *case.words(), *more])
    return capsys.readouterr().out


def context_of(case: Case) -> Context:
    held = {name: value for name, value in case.target.items() if name != "ranks"}
    asked_of = sweep(rs.load(case.file), along="ranks", to=case.target["ranks"], at=held)
    return Context(asked_of.model, asked_of, (case.experiment,))


def program_of(content: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = (row for row in content["predictions"] if row["kernel"] is None and row["metric"] == "time")
    return dict(row)


def test_the_time_its_interval_and_its_status_are_the_same(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    program = program_of(json.loads(asked("predict", case, capsys, "--format", "json", "--metric", "time")))
    (row,) = json.loads(asked("diagnose", case, capsys, "--format", "json"))["program"]
    assert [row["value"], row["lower"], row["upper"]] == pytest.approx([program["value"], *program["interval"]])
    assert (row["status"], row["reason"]) == (program["status"], program["reason"])
    total = context_of(case).sweep.total
    assert [float(getattr(total, end)[0, -1]) for end in ("value", "lower", "upper")] == pytest.approx(
        [program["value"], *program["interval"]]
    )
    plan = json.loads(asked("plan", case, capsys, "--format", "json"))["targets"][0]
    assert [plan["value"], *plan["interval"]] == pytest.approx([program["value"], *program["interval"]])
    assert plan["status"] == program["status"]
    # What people read first.
    time = format_si(program["value"], "s")
    first = asked("diagnose", case, capsys).splitlines()[0]
    assert time in first
    assert ("insufficient" in first) == (program["status"] != "ok")
    assert time in asked("predict", case, capsys)
    notebook = rs.load(case.file).predict(case.target, metrics="time")._repr_html_()
    assert re.search(rf"whole program</td><td>time</td><td>{re.escape(time)}</td>", notebook)


def test_kernels_take_the_same_time_and_share_and_no_more_than_the_whole(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(asked("predict", case, capsys, "--format", "json", "--metric", "time"))
    predicted = {row["kernel"]: row for row in content["kernels"]}
    verdicts = json.loads(asked("diagnose", case, capsys, "--format", "json"))["verdicts"]
    for row in verdicts:
        assert predicted[row["kernel"]]["wall_time"] == pytest.approx(row["time"])
        assert predicted[row["kernel"]]["share"] == pytest.approx(row["share"])
    assert sum(row["share"] for row in content["kernels"]) <= 1 + 1e-9
    names = {row["kernel"]: row for row in pages_of(case)}
    for row in verdicts:
        assert names[row["kernel"]]["time"] == pytest.approx(row["time"])
        assert names[row["kernel"]]["share"] == pytest.approx(row["share"])


def pages_of(case: Case) -> list[dict[str, Any]]:
    from ranksight.reports.html.sections.kernels import build

    found = build(context_of(case))
    assert found is not None
    return list(found["rows"])


def test_the_parts_of_the_time_are_the_same_and_make_up_the_whole(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = json.loads(asked("diagnose", case, capsys, "--format", "json"))["program"]
    parts = {name: float(seconds[-1]) for name, seconds in context_of(case).sweep.parts.items()}
    total = sum(parts.values())
    assert {name: seconds / total for name, seconds in parts.items()} == pytest.approx(row["parts"], abs=1e-12)
    assert sum(row["parts"].values()) == pytest.approx(1.0)
    spent = asked("diagnose", case, capsys).split("spent on ")[1].split("\n")[0]
    largest = max(parts, key=lambda name: parts[name])
    assert spent.startswith(f"{NAMES[largest]} {parts[largest] / total:.0%}")


def test_advice_scaling_and_efficiencies_are_the_same(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    from ranksight.reports.html.sections.front import build

    content = json.loads(asked("diagnose", case, capsys, "--format", "json"))
    context = context_of(case)
    found = context.sweep.diagnosis
    assert found is not None
    helps = build(context)["help"]
    advice = [(row["kernel"], row["kind"], row["text"]) for row in content["advice"]]
    assert [(row["kernel"], row["kind"], row["text"]) for row in helps] == advice[: len(helps)]
    assert not helps or [row["saves"] for row in helps] == pytest.approx(
        [np.nan if row["saves"] is None else row["saves"] for row in content["advice"][: len(helps)]], nan_ok=True
    )
    assert found.scaling()["verdict"].tolist() == [row["verdict"] for row in content["scaling"]]
    shares = {row["kernel"]: row["share"] for row in content["verdicts"]}
    assert all(row["share"] == pytest.approx(shares[row["kernel"]]) for row in content["scaling"])
    notebook = rs.load(case.file).diagnose(**case.target)
    assert notebook.verdicts()["share"].tolist() == pytest.approx([row["share"] for row in content["verdicts"]])
    assert notebook.advice()["text"].tolist() == [row["text"] for row in content["advice"]]
    assert found.efficiencies()["global"].tolist() == pytest.approx([row["global"] for row in content["efficiencies"]])
    if context.ideal is not None:
        assert context.ideal.kind == content["work"]
        last = found.efficiencies()["global"].iloc[-1]
        assert context.ideal.efficiency(context.sweep)[-1] == pytest.approx(last)
        live = live_answer(context, case.target)
        assert live["efficiency"] == pytest.approx(last, rel=1e-3)


def test_a_run_costs_the_same_in_a_plan_and_in_the_report(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(asked("plan", case, capsys, "--format", "json", "--reps", "1"))
    context = context_of(case)
    assert context.cost is not None
    assert plan["cost_basis"] == context.cost.basis == cost_of(context.model, case.experiment).basis
    price = float(context.cost.of(context.sweep.points[-1:], 1).core_hours[0])
    assert plan["core_hours_of_the_targets"] == pytest.approx(price)
    # A run costs no less than the cores for the time that is predicted.
    predicted = plan["targets"][0]["value"]
    assert price >= predicted * case.target["ranks"] / 3600 * (1 - 1e-9)
    if (found := context.recommended) is not None and found.target_hours == found.target_hours:
        assert found.target_hours == pytest.approx(price)
        from ranksight.reports.html.sections.front import build

        recommended = build(context)["recommended"]
        assert recommended is not None
        assert spent(found.core_hours) in html.unescape(recommended["why"])


def test_what_to_measure_next_is_that_of_the_plan(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    from ranksight.reports.html.sections.front import build

    plan = json.loads(asked("plan", case, capsys, "--format", "json", "--reps", "1"))
    assert all(row["narrowing"] is None or row["narrowing"] >= GAIN for row in plan["remedies"])
    listed = build(context_of(case))["next"]
    rows = [] if listed is None else [row for row in listed["remedies"] if not row["cause"].startswith("to predict")]
    causes = [(row["cause"], row["text"]) for row in rows]
    assert causes == [(row["cause"], row["text"]) for row in plan["remedies"]]


def test_the_fields_of_the_report_and_the_server_answer_as_predict(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    program = program_of(json.loads(asked("predict", case, capsys, "--format", "json", "--metric", "time")))
    (row,) = json.loads(asked("diagnose", case, capsys, "--format", "json"))["program"]
    context = context_of(case)
    live = live_answer(context, case.target)
    assert live["time"] == pytest.approx(program["value"])
    assert live["supported"] == (program["status"] == "ok")
    # The page draws no interval of what the data do not support.
    assert [live["low"], live["high"]] == (pytest.approx(program["interval"]) if live["supported"] else [None, None])
    parts = dict(zip(NAMES, live["parts"], strict=True))
    total = sum(parts.values())
    assert {name: seconds / total for name, seconds in parts.items() if seconds} == pytest.approx(
        {name: share for name, share in row["parts"].items() if share}, abs=1e-6
    )
    assert context.cost is not None
    assert live["hours"] == pytest.approx(float(context.cost.of(context.sweep.points[-1:], 1).core_hours[0]))


def test_measured_times_are_held_against_what_predict_answers(case: Case) -> None:
    """At the runs themselves, where the whole program and its kernels were measured."""
    model = rs.load(case.file)
    table = rs.validate(model, case.experiment).table
    table = table[table["metric"].isin(["time", "wall_time"])].tail(4)
    for row in table.to_dict("records"):
        kernel = None if row["kernel"] == WHOLE else row["kernel"]
        answers = model.predict({name: row[name] for name in model.parameters}, metrics="time").answers
        (answer,) = (each for each in answers if each.kernel == kernel)
        assert (row["predicted"], row["lower"], row["upper"]) == pytest.approx(
            (answer.value, answer.lower, answer.upper)
        )


def test_the_proof_of_the_demonstration_is_what_predict_answers(tmp_path: Path) -> None:
    """Wall times are held against the whole program; the report, which has kernels alone, says that it means these."""
    example.unpack(tmp_path)
    trained, checked = rs.read(tmp_path / "experiment"), rs.read(tmp_path / "check")
    model = assemble(trained, platform=load("simulated"))[0]
    for row in prove(model, checked).table.to_dict("records"):
        asked = {name: row[name] for name in model.parameters}
        (whole,) = (each for each in model.predict(metrics=["time"], **asked).answers if each.kernel is None)
        proven = row["predicted"], row["lower"], row["upper"]
        assert proven == pytest.approx((whole.value, whole.lower, whole.upper), rel=1e-9)
    held = rs.validate(model, checked).table
    walls = held[(held["kernel"] == WHOLE) & (held["metric"] == "wall_time")].set_index(list(model.parameters))
    assert len(walls) == len(prove(model, checked).table)
    for row in prove(model, checked).table.to_dict("records"):
        found = walls.loc[tuple(row[name] for name in model.parameters)]
        assert found[["predicted", "lower", "upper", "measured"]].tolist() == pytest.approx(
            [row[name] for name in ("predicted", "lower", "upper", "measured")], rel=1e-9
        )
    context = Context(model, sweep(model, to=256, at={"size": 24}), (trained, checked))
    (text,) = (fact.text for fact in trust(context.sweep, context.measured) if fact.title == "Check")
    assert "computation off by" in text


def test_the_page_of_the_whole_program_has_the_time_that_is_predicted(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the whole program was timed, too, its own function is not what is predicted."""
    from ranksight.reports.html.sections.pages import build
    from ranksight.reports.html.writing import value

    context = context_of(case)
    found = build(context)
    assert found is not None
    rows = [row for page in found["pages"] if page["whole"] for row in page["rows"] if row["metric"] == "time"]
    program = program_of(json.loads(asked("predict", case, capsys, "--format", "json", "--metric", "time")))
    for row in rows:
        assert row["value"] == value(program["value"], "time")
        assert row["ok"] == (program["status"] == "ok")
    assert len(rows) == ((WHOLE, "time") in context.model.functions.rows)
