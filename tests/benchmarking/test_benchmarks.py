"""The benchmarks' own logic: splits, synthetic truth, measures, baselines. No timings, no comparison of methods."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import drawn_mutants, known_laws, law_ablation
from benchmarks.bayes import BayesOptimal
from benchmarks.headlines import HEADLINES, headlines
from benchmarks.laws import COUNT, LAWS, SEED
from benchmarks.laws import tasks_of as law_tasks
from benchmarks.measured_series import tasks_of as measured_tasks
from benchmarks.measures import covered, judge, widening
from benchmarks.methods.answers import Answer, plain
from benchmarks.methods.power import Last, Power
from benchmarks.mutants import MUTANTS, Mutant, mutated
from benchmarks.run import BENCHMARKS, RESULTS, sections
from benchmarks.settings import ROOT, Settings
from benchmarks.synthetic import lead_share
from benchmarks.synthetic_functions import EXPONENTS, Function, tasks_of
from benchmarks.table import markdown, number
from benchmarks.tasks import Task, batches, check_frozen, make, stack
from ranksight.model.laws import law
from ranksight.model.priors import MESSAGES_AHEAD, NODE_STEP, PROGRAM_STEP


def series(function: Function, parameters: int = 1) -> Task:
    train = [
        ((x,) * parameters, [float(function(np.array([[x] * parameters]))[0])]) for x in (4.0, 8.0, 16.0, 32.0, 64.0)
    ]
    held = [((x,) * parameters, [float(function(np.array([[x] * parameters]))[0])]) for x in (128.0, 1024.0)]
    return make("split", "name", "source", ("x", "y", "z")[:parameters], train, held)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_finds_what_it_asks_of_the_package(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").TITLE


@pytest.mark.skipif(pd.__version__ < "3", reason="pandas 2 reads decimal numbers with an error of 1e-13")
def test_the_frozen_splits_are_what_they_were(shared: Path) -> None:
    tasks, _ = measured_tasks(shared / "data")
    assert check_frozen(tasks) == []
    counts = {split: sum(task.split == split for task in tasks) for split in ("gromacs nodes 1-5", "lammps nodes 1-5")}
    assert counts == {"gromacs nodes 1-5": 37, "lammps nodes 1-5": 32}


def test_a_changed_value_changes_the_digest() -> None:
    task = series(Function(np.array([[1.0, 0.0]]), 1.0, np.array([2.0]), True))
    changed = make("split", "name", "source", ("x",), [((4.0,), [9.0]), ((8.0,), [17.5])], [((128.0,), [257.0])])
    assert task.digest() == series(Function(np.array([[1.0, 0.0]]), 1.0, np.array([2.0]), True)).digest()
    assert task.digest() != changed.digest()
    assert check_frozen([task]) == ["split is not frozen"]


def test_every_law_is_switched_off_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    off: list[frozenset[str]] = []

    def group() -> list[known_laws.Answer]:
        off.append(law.SWITCHED_OFF)
        wrong, right = (known_laws.Answer(False, error, 1.1, error < 0.25, True, 0.1) for error in (0.5, 0.01))
        return [wrong, right]

    monkeypatch.setattr(law_ablation, "_groups", lambda settings, folder: [("made up", group)])
    text = law_ablation.section(Settings(data=tmp_path))
    assert off == [frozenset(), *(frozenset({name}) for name in law.registered())]
    assert all(f"| {name} | 26, 100 %, 1 |" in text for name in law.registered())
    monkeypatch.undo()
    assert law_ablation.section(Settings(data=tmp_path / "nowhere")) == ""


def test_no_training_point_is_held_out(shared: Path) -> None:
    for task in measured_tasks(shared / "data")[0]:
        trained = {tuple(point) for point in task.points}
        assert len(trained) == len(task.points)
        if task.source != "homme by x":  # there the work per rank may agree on another grid
            assert not trained & {tuple(point) for point in task.targets}


def test_batches_keep_places_and_pad_repetitions() -> None:
    one = make("s", "a", "q", ("x",), [((1,), [1, 2]), ((2,), [3])], [((4,), [5])])
    two = make("s", "b", "q", ("x",), [((1,), [1]), ((2,), [3])], [((4,), [5])])
    three = make("s", "c", "q", ("x",), [((1,), [1]), ((3,), [3])], [((4,), [5])])
    found = list(batches([one, three, two]))
    assert [places for places, _ in found] == [[0, 2], [1]]
    values = stack(found[0][1])
    assert values.shape == (2, 2, 2)
    assert np.isnan(values[1, :, 1]).all()


def test_the_same_seed_draws_the_same_functions_at_every_noise() -> None:
    calm, truth = tasks_of(3, 20, 2, 0.0)
    loud, again = tasks_of(3, 20, 2, 0.5)
    for quiet, noisy, function, other in zip(calm, loud, truth, again, strict=True):
        assert function.constant == other.constant
        assert np.allclose(quiet.values, function(quiet.points)[:, None])
        assert (np.abs(noisy.values / quiet.values - 1) <= 0.25).all()
        assert np.abs(noisy.values / quiet.values - 1).max() > 0.2
        assert np.allclose(quiet.measured, function(quiet.targets))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_mutants_are_of_formulas_that_are_there(mutant: Mutant) -> None:
    assert mutated(mutant, (ROOT / mutant.file).read_text()) != (ROOT / mutant.file).read_text()
    assert all((ROOT / test).is_file() for test in mutant.tests.split())


def test_drawn_mutants_are_of_tests_and_lines_that_are_there() -> None:
    assert all((ROOT / test).is_file() for tests in drawn_mutants.TESTS.values() for test in tests.split())
    for (file, line, changed), reason in drawn_mutants.equivalent().items():
        assert line in (each.strip() for each in (ROOT / file).read_text(encoding="utf-8").splitlines())
        assert line != changed
        assert reason


@pytest.mark.slow
def test_the_same_mutants_are_drawn_again() -> None:
    pytest.importorskip("cosmic_ray")
    first = drawn_mutants.drawn()
    assert [each.name for each in drawn_mutants.drawn()] == [each.name for each in first]
    assert len({each.name for each in first}) == drawn_mutants.COUNT
    assert {each.file for each in first} <= set(drawn_mutants.TESTS)


def test_measures_count_what_misleads() -> None:
    task = make("s", "a", "q", ("x",), [((1,), [1])], [((x,), [100.0]) for x in (2, 3, 4, 5)])
    value = np.array([110.0, 200.0, 200.0, 200.0])
    lower, upper = np.array([90.0, 150.0, 90.0, 150.0]), np.array([120.0, 250.0, 250.0, 250.0])
    flagged = np.array([False, False, False, True])
    answer = Answer(value, lower, upper, flagged, ("",) * 4, np.full((1, 2), np.nan), "")
    points = judge([task], [answer])
    assert points.error.tolist() == pytest.approx([10, 100, 100, 100])
    assert points.inside.tolist() == [True, False, True, False]
    assert points.gross.tolist() == [False, True, False, False]
    assert points.last.tolist() == [False, False, False, True]
    assert covered(points) == pytest.approx(2 / 3)


def test_no_answer_is_an_error_without_bound_and_flagged() -> None:
    task = make("s", "a", "q", ("x",), [((1,), [1])], [((2,), [100.0])])
    points = judge([task], [plain(np.array([np.nan]), 1, "none")])
    assert np.isinf(points.error).all()
    assert points.flagged.all()
    assert not points.gross.any()


def test_widening_is_the_factor_that_gives_the_level() -> None:
    task = make("s", "a", "q", ("x",), [((1,), [1])], [((float(x),), [np.exp(0.1 * x)]) for x in range(1, 11)])
    ones = np.ones(10)
    answer = Answer(ones, ones * np.exp(-0.5), ones * np.exp(0.5), ones < 0, ("",) * 10, np.full((1, 2), np.nan), "")
    points = judge([task], [answer])
    assert covered(points) == pytest.approx(0.5)
    assert widening(points) == pytest.approx(1.8)


@pytest.mark.parametrize("exponents", [(0.5, 0.0), (1.5, 1.0), (3.0, 0.0)])
def test_the_best_possible_finds_what_little_noise_leaves_to_find(exponents: tuple[float, float]) -> None:
    tasks, _ = tasks_of(5, 1, 1, 0.0)
    function = Function(np.array([exponents]), 2.0, np.array([0.5]), True)
    generator = np.random.default_rng(1)
    points, targets = tasks[0].points, tasks[0].targets
    values = function(points)[:, None] * (1 + 0.01 * generator.uniform(-1, 1, size=(5, 5)))
    task = Task("s", "n", "q", ("x",), points, values, targets, function(targets))
    (answer,) = BayesOptimal(0.02).answer([task])
    assert abs(answer.exponents[0, 0] - exponents[0]) <= 0.25
    assert np.allclose(answer.value, task.measured, rtol=0.06)
    assert (answer.lower < answer.upper).all()


def test_the_best_possible_covers_what_it_says() -> None:
    for parameters, count in ((1, 150), (2, 40)):
        tasks, functions = tasks_of(17, count, parameters, 0.2)
        answers = BayesOptimal(0.2).answer(tasks)
        assert 0.8 <= covered(judge(tasks, answers)) <= 0.97
        assert lead_share(answers, functions) > 0.85


def test_the_power_baseline_recovers_a_power() -> None:
    for exponent in (-1.0, 0.75, 2.0):
        task = series(Function(np.array([[exponent, 0.0]]), 3.0, np.array([7.0]), True))
        (answer,) = Power().answer([task])
        assert np.allclose(answer.value, task.measured, rtol=1e-3)
    (last,) = Last().answer([task])
    assert (last.value == task.values[-1, 0]).all()


def test_results_keep_the_sections_of_other_benchmarks() -> None:
    text = "# Results\n\nWords.\n\n<!-- speed -->\n## Speed\n\nfast\n\n<!-- store -->\n## Store\n\n| a |\n"
    assert sections(text) == {"speed": "## Speed\n\nfast", "store": "## Store\n\n| a |"}


def test_tables_write_figures_plainly() -> None:
    assert [number(value) for value in (float("nan"), float("inf"), 3.0, 0.1234, 12345.6)] == [
        "–",
        "none",
        "3",
        "0.123",
        "12,346",
    ]
    assert markdown(["a", "b"], [["x", 1.0]]) == "| a | b |\n|---|---:|\n| x | 1 |"


def test_exponents_are_those_of_the_default_space_of_extrap() -> None:
    assert len(EXPONENTS) == 42
    assert len(set(EXPONENTS)) == 42


def test_laws_repeat_and_have_values_everywhere() -> None:
    tasks, again = law_tasks(SEED, 3), law_tasks(SEED, COUNT)
    assert list(dict.fromkeys(task.split for task in tasks)) == list(LAWS)
    firsts = [task for at, task in enumerate(again) if at % COUNT < 3]
    assert [task.digest() for task in tasks] == [task.digest() for task in firsts]
    for task in tasks:
        assert (task.values > 0).all()
        assert (task.measured > 0).all()
        assert (task.targets.min() > task.points).all()


def test_every_headline_finds_its_figures() -> None:
    held = sections(RESULTS.read_text(encoding="utf-8"))
    said = headlines(held)
    assert len(said) == len(set(HEADLINES) & set(held)) <= 10
    assert headlines({}) == []
    changed = held["communication"].replace("Wall time: error ", "Wall time: error 4")
    assert any("wall time 4" in line for line in headlines({"communication": changed}))


def test_steps_between_nodes_are_what_the_benchmark_found() -> None:
    section = sections(RESULTS.read_text())["node_step"]
    messages, programs = re.findall(r"(?:its deviation is|counted the same, have) ([\d.]+);", section)
    assert round(float(messages), 1) == NODE_STEP
    assert round(float(programs), 1) == PROGRAM_STEP


def test_how_far_messages_are_off_ahead_is_what_the_benchmark_found() -> None:
    (found,) = re.findall(r"of all prices ([\d.]+), replay ([\d.]+)\.", sections(RESULTS.read_text())["network"])
    assert [float(f"{float(each):.1g}") for each in found] == list(MESSAGES_AHEAD.values())
