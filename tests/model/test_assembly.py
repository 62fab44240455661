"""The model of an experiment whose truth is known: counts, times, messages and their sum at scales not measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ranksight.comm.costs.cost import cost
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.model import modelfile
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform, load
from ranksight.reports.validation import validate

RANKS, SIZES = (1, 2, 4, 8), (12, 24)


@pytest.fixture(scope="module")
def platform() -> Platform:
    return load("icelake-8360y")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory, platform: Platform, made_up: ModuleType) -> Experiment:
    return made_up.write(tmp_path_factory.mktemp("made") / "e", RANKS, SIZES, platform)


@pytest.fixture(scope="module")
def model(experiment: Experiment, platform: Platform) -> Model:
    return assemble(experiment, platform=platform)[0]


def value(model: Model, kernel: str, metric: str, ranks: float, size: float) -> float:
    said = model.forecast(np.array([[ranks, size]]))
    row = model.functions.rows[kernel, metric]
    assert said.status[row, 0] == 0, said.reason[row, 0]
    assert said.lower[row, 0] <= said.value[row, 0] <= said.upper[row, 0]
    return float(said.value[row, 0])


def test_counts_follow_the_grid_at_any_number_of_ranks(model: Model, made_up: ModuleType) -> None:
    for ranks in (6, 32, 1024, 100_000):
        neighbours = made_up.GRID.classes(ranks)
        rows, times = neighbours
        for size in SIZES:
            each = made_up.counts("pack", size, rows, len(rows))
            true = (each * times).sum() / ranks
            assert value(model, "pack", "instructions", ranks, size) == pytest.approx(true, rel=2e-3)


def test_counts_at_another_size_lie_within_what_two_sizes_can_say(model: Model, made_up: ModuleType) -> None:
    assert value(model, "stencil", "instructions", 4, 48) == pytest.approx(made_up.stencil(48), rel=1e-9)
    said = model.forecast(np.array([[1024, 96.0]]))
    row = model.functions.rows["stencil", "instructions"]
    assert said.lower[row, 0] * (1 - 1e-6) <= made_up.stencil(96) <= said.upper[row, 0] * (1 + 1e-6)
    assert "size" in model.functions.formula(row)


def test_loads_by_level_are_not_claimed_where_a_cache_may_be_outgrown(model: Model) -> None:
    said = model.forecast(np.array([[4, 48.0], [64, 24.0]]))
    row = model.functions.rows["stencil", "loads_l2"]
    assert said.status[row, 0] != 0
    assert "outgrow" in said.reason[row, 0]
    assert said.status[row, 1] == 0


def test_the_equation_closes_and_predicts(model: Model, platform: Platform, made_up: ModuleType) -> None:
    resources = model.equation.resources
    assert resources
    assert set(resources.kernels) == {"stencil", "pack"}
    latency = [cache.latency for cache in platform.caches]
    i = made_up.stencil(24)
    true = (0.5 * i + 0.3 * (0.2 * i * latency[0] + 0.04 * i * latency[1])) / platform.frequency
    assert value(model, "stencil", "time", 512, 24) == pytest.approx(true, rel=2e-2)
    assert "stalls are cycles beyond the CPI" in resources.evidence[0]


def test_messages_and_their_time(model: Model, experiment: Experiment, platform: Platform, made_up: ModuleType) -> None:
    communication = model.equation.communication
    assert communication
    assert set(communication.names) == {"pack: Isend", "solve: Allreduce"}
    said = communication.functions.predict(np.array([[32, 24.0]]))
    rows = communication.functions.rows
    mean = float(made_up.GRID.neighbours(32).sum(axis=1).mean())
    assert said.value[rows["pack: Isend", "messages"], 0] == pytest.approx(10 * mean, rel=1e-3)
    assert said.value[rows["pack: Isend", "bytes_sent"], 0] == pytest.approx(10 * mean * 8 * 576, rel=1e-3)
    network = model.equation.network
    if not network:
        assert not platform.network
        assert model.breakdown(np.array([[32, 24.0]])).parts["communication"][0] == 0
        return
    fabric = network.fabric()
    true = 10 * mean * cost("Isend", 32, 8 * 576, fabric) + 5 * cost("Allreduce", 32, 8, fabric)
    assert model.breakdown(np.array([[32, 24.0]])).parts["communication"][0] == pytest.approx(float(true), rel=1e-2)


def test_the_parts_add_up(model: Model) -> None:
    points = np.array([[8, 12.0], [64, 24.0], [1024, 24.0]])
    broken = model.breakdown(points)
    total = sum(broken.parts.values())
    assert broken.total.value[0] == pytest.approx(total, rel=1e-9)
    assert (broken.total.status == 0).all()
    assert broken.parts["execution"].min() > 0
    assert broken.parts["loads_l2"][1:].min() > 0
    assert np.abs(broken.parts["direct"]).max() < 1e-12
    answer = next(a for a in model.predict(ranks=64, size=24, metrics=["time"]).answers if a.kernel is None)
    assert answer.value == pytest.approx(float(broken.total.value[0, 1]))


def test_a_model_comes_back_from_its_file(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    points = np.array([[8, 12.0], [1024, 24.0], [4, 48.0]])
    one, two = model.forecast(points), again.forecast(points)
    assert np.allclose(one.value, two.value, rtol=1e-6, equal_nan=True)
    assert (one.status == two.status).all()
    assert model.breakdown(points).total.value == pytest.approx(again.breakdown(points).total.value, rel=1e-6)


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        (("equation", "imbalance"), 0.5),
        (("equation", "imbalance"), "much"),
        (("equation", "laws", "resources", "cpi"), [1.0]),
        (("equation", "laws", "resources", "machine"), "fast"),
        (("equation", "communication", "functions", "fitted"), None),
        (("structures", "levels", "levels"), [24, 12]),
        (("structures", "levels", "parameter"), "colour"),
        (("structures", "neighbours", "grids"), []),
        (("structures", "neighbours", "weight"), []),
        (("structures", "neighbours", "residual"), []),
    ],
)
def test_damaged_files_are_refused(model: Model, tmp_path: Path, place: tuple[str, ...], damage: object) -> None:
    model.save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = damage
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError):
        Model.load(tmp_path / "m.json").breakdown(np.array([[8, 12.0]]))


@pytest.mark.parametrize("name", ["root", "coefficients", "variance"])
def test_numbers_whose_squares_overflow_are_damaged(model: Model, tmp_path: Path, name: str) -> None:
    model.save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    content["fitted"][name] = np.append(np.asarray(content["fitted"][name], dtype=np.float64)[:-1], 1e200)
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError, match=f"'{name}' holds a number that is not finite, or beyond"):
        Model.load(tmp_path / "m.json")


def test_laws_of_kernels_that_the_model_does_not_have_are_refused(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.json")
    content = modelfile.read(tmp_path / "m.json")
    counted = content["equation"]["laws"]["counted"]
    counted["kernels"] = ["nobody", *counted["kernels"][1:]]
    counted["offset"] = [0.5] * len(counted["kernels"])
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError, match="names the kernel 'nobody', which has no time"):
        Model.load(tmp_path / "m.json").forecast(np.array([[8, 12.0]]))


def test_a_planted_bug_is_named_and_no_other(
    tmp_path: Path, platform: Platform, model: Model, made_up: ModuleType
) -> None:
    clean = model.diagnose(ranks=1024, size=12)
    assert clean.verdicts()["kernel"].tolist()[:2] == ["stencil", "pack"]
    assert not clean.scaling()["named"].any()
    bad = assemble(made_up.write(tmp_path / "bug", RANKS, SIZES, platform, bug=True), platform=platform)[0]
    found = bad.diagnose(ranks=1024, size=12).scaling().set_index("kernel")
    assert found.index[0] == "search"
    assert found.index[found["named"]].tolist() == ["search"]
    assert found.loc["search", "growth"] == pytest.approx(512, rel=0.1)
    with pytest.raises(InputError, match="no parameter ranks"):
        _renamed(bad).diagnose(threads=1024, size=12).scaling()


def _renamed(model: Model) -> Model:
    fitted = dataclasses.replace(model.fitted, parameters=("threads", "size"))
    return dataclasses.replace(model, functions=dataclasses.replace(model.functions, fitted=fitted))


def test_prediction_beside_runs(model: Model, tmp_path: Path, platform: Platform, made_up: ModuleType) -> None:
    truth = made_up.write(tmp_path / "check", (16, 32), (12,), platform)
    check = validate(model, truth)
    counts = check.requirements()
    assert len(counts) >= 8
    assert counts["error"].abs().max() < 3e-3
    compute = check.compute()
    assert len(compute) == 2
    assert compute["error"].abs().max() < 2e-2
    with pytest.raises(InputError, match="the model"):
        validate(model, Experiment.create(tmp_path / "other", "x", ["ranks"]))


def test_without_a_platform_times_are_functions_alone(experiment: Experiment) -> None:
    model = assemble(experiment)[0]
    assert not model.equation.resources
    assert model.equation.communication
    assert model.breakdown(np.array([[8, 12.0]])).parts["execution"][0] == 0


def test_what_grows_unseen_is_in_the_sum_and_in_the_diagnosis(
    tmp_path: Path, platform: Platform, made_up: ModuleType
) -> None:
    ranks = (1, 2, 3, 4, 5)
    experiment = made_up.write(tmp_path / "e", ranks, SIZES, platform, bug=True, unseen=("search",), samples=1)
    model, _ = assemble(experiment, platform=platform)
    answers = {answer.kernel: answer for answer in model.predict(ranks=[1 << 16], size=24, metrics=["time"]).answers}
    assert not answers["search"].ok
    assert "0 samples" in answers["search"].reason
    truth = 0.5 * 300 * (1 << 16) / platform.frequency
    assert answers["search"].lower < truth < answers["search"].upper
    assert answers[None].value > answers["search"].value
    verdicts = model.diagnose(ranks=[1 << 16], size=24).verdicts().set_index("kernel")
    assert verdicts["share"].idxmax() == "search"
