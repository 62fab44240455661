"""Iterations as a factor: few steps predict many, and what lies outside of the loop does not grow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast

RANKS, STEPS = (1, 2, 4, 8, 16), (5, 10, 20)


def _times(p: float, n: float) -> dict[str, float]:
    return {"init": 0.5 + 0.1 * np.log2(p), "op": (0.002 + 0.08 / p) * n, "mixed": 0.3 / p + 0.004 * n}


def _visits(n: float) -> dict[str, float]:
    return {"init": 1, "op": n, "mixed": n + 1}


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    made = Experiment.create(tmp_path_factory.mktemp("looped") / "looped.exp", "looped", ["ranks", "steps"])
    noise = np.random.default_rng(4)
    for p in RANKS:
        for n in STEPS:
            times = {name: value * noise.uniform(0.98, 1.02) for name, value in _times(p, n).items()}
            table = pd.DataFrame({"kernel": list(times), "rank": -1, "time": times.values()})
            made.add(Run({"ranks": p, "steps": n}), table.assign(visits=[_visits(n)[name] for name in times]))
    return made


def test_few_steps_show_many(looped: Experiment, tmp_path: Path) -> None:
    fit(looped, iterations="steps").save(tmp_path / "m.json")
    prediction = Model.load(tmp_path / "m.json").predict(ranks=16, steps=10_000, metrics=["time", "visits"])
    found = {(answer.kernel, answer.metric): answer for answer in prediction.answers}
    for name, true in _times(16, 10_000).items():
        answer = found[name, "time"]
        assert answer.ok
        assert answer.value == pytest.approx(true, rel=0.03)
        assert answer.lower <= true <= answer.upper
        assert found[name, "visits"].value == pytest.approx(_visits(10_000)[name], rel=1e-6)
    total = found[None, "time"]
    assert total.upper / total.lower < 1.3
    assert any("from runs of 5 to 20" in note for note in prediction.notes)


def test_undeclared_steps_are_a_parameter_like_any_other(looped: Experiment) -> None:
    """Nothing says that time goes on in proportion to them: the answer is as near, and is less sure."""
    asked = {"ranks": 16, "steps": 10_000, "metrics": ["time"]}
    total, declared = (
        next(a for a in fit(looped, iterations=name).predict(**asked).answers if a.kernel is None)
        for name in (None, "steps")
    )
    assert total.value == pytest.approx(declared.value, rel=0.1)
    assert np.log(total.upper / total.lower) > 1.5 * np.log(declared.upper / declared.lower)


@pytest.mark.parametrize(("name", "named"), [("steps", True), ("n_iter", True), ("timesteps", True), ("size", False)])
def test_a_refused_number_of_steps_names_the_option(name: str, named: bool, tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "steps", [name])
    for n, times in ((100, (60.1, 59.6)), (200, (81.6, 84.1)), (400, (122.4, 126.8)), (800, (210.8, 218.1))):
        for repetition, time in enumerate(times):
            made.add(Run({name: n}, repetition), pd.DataFrame({"kernel": ["a"], "rank": -1, "time": [time]}))
    model = fit(made)
    assert any(f"--iterations {name}" in note for note in model.predict({name: [12_800]}).notes) is named
    assert not any("--iterations" in note for note in model.predict({name: [400]}).notes)


def test_a_part_too_small_to_be_seen_is_held_by_the_interval(looped: Experiment) -> None:
    # Without visits nothing says that init lies outside of the loop; scatter hides 0.2 ms a step.
    answers = fit(looped, ["time"], iterations="steps").predict(ranks=16, steps=10_000).answers
    init = next(answer for answer in answers if answer.kernel == "init")
    assert not init.ok
    assert init.upper > 0.9 + 2.0
    near = fit(looped, ["time"], iterations="steps").predict(ranks=16, steps=40).answers
    assert next(answer for answer in near if answer.kernel == "init").ok


@pytest.mark.parametrize("steps", [(5.0, 10.0), (5.0, 10.0, 20.0, 40.0)])
def test_steps_alone_are_a_line(steps: tuple[float, ...]) -> None:
    points = np.array([[n] for n in (*steps, 4 * steps[-1])])
    series = Series(("steps",), points, (3 + 0.5 * points[:, 0])[None, :, None], ("k",), ("instructions",))
    fitted = fit_varied(series, iterations="steps")
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    said = again.predict(np.array([[1e6]]))
    assert said.status[0, 0] == forecast.OK
    assert said.value[0, 0] == pytest.approx(3 + 0.5e6)


def test_two_numbers_of_steps_with_two_sizes_keep_their_laws() -> None:
    points = np.array([(p, m, n) for p in (1.0, 2.0, 4.0, 8.0) for m in (16.0, 32.0) for n in (10.0, 20.0)])
    values = 7 * points[:, 1] ** 2 + points[:, 2] * points[:, 1] ** 3 / points[:, 0]
    series = Series(("ranks", "size", "steps"), points, values[None, :, None], ("k",), ("instructions",))
    said = fit_varied(series, iterations="steps").predict(np.array([(8.0, 32.0, 1e4), (4.0, 16.0, 1e4)]))
    np.testing.assert_allclose(said.value[0], [7 * 32**2 + 1e4 * 32**3 / 8, 7 * 16**2 + 1e4 * 16**3 / 4], rtol=1e-3)


@pytest.mark.parametrize(
    ("where", "name", "expected"),
    [("", "turns", "no parameter turns"), ("steps=10", "steps", "steps is 10 in all runs")],
)
def test_what_shows_no_iterations_is_refused_in_a_line(
    where: str, name: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    rows = [f"{p},{n},k,{_times(p, n)['op']}" for p in RANKS for n in STEPS]
    table.write_text("\n".join(["ranks,steps,kernel,time", *rows]) + "\n")
    words = ["--parameter", "ranks", "--parameter", "steps", "--kernel", "kernel", "--metric", "time", "--quiet"]
    words += ["--where", where] if where else []
    assert main(["import", "csv", str(table), *words, "-o", str(tmp_path / "t.exp")]) == 0
    assert main(["fit", str(tmp_path / "t.exp"), "--iterations", name]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
