"""Beliefs, their change by runs that are not made yet, and the runs chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.analysis.planning import designs
from ranksight.analysis.planning.belief import Belief
from ranksight.analysis.planning.candidates import candidates
from ranksight.analysis.planning.choice import BUDGET, NOTHING, RUNS, WORTHLESS, Choice, choose_runs
from ranksight.analysis.planning.cost import MOST_SIGMA, Cost, cost_of
from ranksight.analysis.planning.designs import Means
from ranksight.analysis.planning.goal import goal
from ranksight.analysis.planning.prospect import Prospect, Worlds
from ranksight.analysis.planning.values import Rule
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import WHOLE
from ranksight.model.fit import model_of
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import NO_DATA, WIDEST
from ranksight.reports.plans import blocks
from ranksight.reports.terminal import Text

RANKS = (2.0, 4.0, 8.0, 16.0)


def series(function, points, noise=0.02, kernels=("work",), metric="time", seed=3) -> Series:  # type: ignore[no-untyped-def]
    points = np.atleast_2d(np.array(points, dtype=float))
    generator = np.random.default_rng(seed)
    values = np.array([function(points, kernel) for kernel in kernels])
    scatter = 1 + noise * generator.standard_normal((len(kernels), len(points), 3))
    names = ("ranks", "size")[: points.shape[1]]
    return Series(names, points, values[:, :, None] * scatter, tuple(kernels), (metric,) * len(kernels))


def plan(model: Model, target, **settings) -> Choice:  # type: ignore[no-untyped-def]
    targets = np.atleast_2d(np.array(target, dtype=float))
    rules = settings.pop("rules", None)
    offered = candidates(model.parameters, model.training, targets, rules)
    return choose_runs(goal(model, targets), offered, cost_of(model), **settings)


def line(points: np.ndarray, kernel: str) -> np.ndarray:
    return 1 + 0.1 * points[:, 0]


def test_one_hypothesis_is_the_textbook_s_linear_update() -> None:
    """With one form, variances after a run are those of Bayesian linear regression, whatever its outcome."""
    fitted = fit_series(series(line, [[x] for x in (2, 4, 8, 16, 32)], metric="instructions"))
    alone = np.zeros_like(fitted.weight)
    alone[0, 0] = 1.0
    fitted = replace(fitted, weight=alone)
    belief = Belief.of(fitted, np.array([0]), np.array([[3.0], [64.0], [256.0]]))
    belief = replace(belief, drift=np.zeros_like(belief.drift))
    worlds, one = Worlds(belief, targets=1), belief.hypotheses
    feature, v = one.feature[0, 0], one.prior[0, 0][:, None]
    covariance = feature.T @ (v * feature)
    noise = one.noise[0, 0, 0] + belief.jobs[0] ** 2
    for at in (0, 1):
        left = covariance[2, 2] - covariance[2, at] ** 2 / (covariance[at, at] + noise)
        wanted = np.sqrt(np.log1p(left) + one.noise[0, 0, 2] + belief.jobs[0] ** 2)
        assert worlds.outlook(np.array([at]))[0][0, 0, 0] == pytest.approx(wanted, rel=1e-9)
    far = worlds.outlook(np.array([1]))[0][0, 0, 0]
    worlds.choose(1)
    assert worlds.spread()[0][0, 0] == pytest.approx(far, rel=1e-9)


def test_a_belief_of_a_time_is_what_the_process_answers() -> None:
    """Hypotheses have the medians and deviations of the answers, and a run changes one as a longer fit would."""
    points = np.array([[32.0], [64.0], [128.0]])
    fitted = fit_series(series(line, [[x] for x in RANKS]))
    (process,) = fitted.processes
    every = Belief.of(fitted, np.array([0]), points).hypotheses
    weight, centre, spread, _ = process.straight(points, latent=True)
    used = every.weight[0] > 0
    variance = (every.feature[0] ** 2 * every.prior[0][..., None]).sum(axis=1)
    np.testing.assert_allclose(np.log1p(variance[used]), spread[used, 0] ** 2, rtol=0.1, atol=1e-6)
    middle = np.exp(every.centre[0, used] - np.log1p(variance[used]) / 2)
    np.testing.assert_allclose(middle, np.exp(centre[used, 0]), rtol=0.1)
    np.testing.assert_allclose(every.weight[0, used], weight[used, 0, 0])


def test_a_run_nearer_the_target_is_wanted_though_few_points_lie_on_a_function() -> None:
    """Three values on a line, without scatter: the interval is narrow, and still the plan goes on to more ranks."""
    model = model_of(series(line, [[2], [4], [8]], noise=1e-4), "made")
    choice = plan(model, [64], most=1, budget=1e9)
    assert choice.runs[0].configuration["ranks"] >= 16
    assert choice.runs[0].why == "farther in ranks"


def both(points: np.ndarray, kernel: str) -> np.ndarray:
    return 1e-4 * points[:, 1] ** 3 / points[:, 0] + 0.01 * points[:, 0]


def offer(noise: float = 0.05):  # type: ignore[no-untyped-def]
    """A cross of five configurations, candidates of ranks to 32 and sizes to 64, a target beyond."""
    model = model_of(series(both, [[1, 8], [2, 8], [4, 8], [1, 16], [1, 32]], noise=noise), "made")
    rules = {"ranks": Rule("1,2,4,8,16,32"), "size": Rule("8,16,32,64")}
    target = np.array([[64.0, 128.0]])
    offered = candidates(model.parameters, model.training, target, rules).points
    price = cost_of(model).of(offered, 1).core_hours
    return model, goal(model, target), offered, price


def test_only_what_never_varied_is_explored_by_half_of_a_plan_at_most() -> None:
    """Nothing that hardly narrows the interval is proposed where every parameter varied."""
    model, asked, offered, price = offer()
    rules = {"ranks": Rule("1,2,4,8,16,32"), "size": Rule("8,16,32,64")}
    rich = plan(model, [64, 128], rules=rules, budget=1e4 * price.min(), most=4)
    assert rich.runs
    assert not any(run.why.startswith("explores") for run in rich.runs)
    means = Means(price, np.arange(len(price)), 1.5 * price.min() / designs.EXPLORED, 4)
    assert designs._explored(Prospect(asked, offered, 8), means) == ()


def test_no_rule_of_thumb_is_expected_to_leave_less() -> None:
    """What is chosen is at least as good, by interval and cost together, as every design of the same means."""
    _, asked, offered, price = offer()
    now = Prospect(asked, offered, 16)
    for budget in (5 * price.min(), np.median(price), price.sum()):
        means = Means(price, np.flatnonzero(price <= budget), float(budget), 4)
        chosen = designs.best(now, means)
        assert means.spent(chosen.chosen) <= budget * designs.ROUNDING
        assert list(price[list(chosen.chosen)]) == sorted(price[list(chosen.chosen)])
        for design in designs.DESIGNS:
            explored = designs._explored(now, means)
            rule = designs.ordered(now, design(now.after(explored), means), means)
            rule = designs._needed(now, rule, means, explored)
            assert means.spent(rule.chosen) <= budget * designs.ROUNDING
            assert designs.loss(chosen, means) <= designs.loss(rule, means) + 1e-12


def test_runs_are_weighed_together() -> None:
    """What is expected after a set of runs is counted once, however they are reached, and forks do not meet."""
    _, asked, offered, _ = offer()
    now = Prospect(asked, offered, 16)
    first = now.after((0, 5))
    assert now.chosen == ()
    again = now.after((0,)).after((5,))
    assert np.array_equal(first.widths[-1], again.widths[-1])
    assert first.width <= now.after((0,)).width <= now.width == 1.0


@pytest.mark.parametrize("noise", [0.0, 0.4, 1.0])
def test_a_plan_adds_up_a_program_as_its_prediction_does(noise: float) -> None:
    """Kernels whose errors go together in whatever way: what a plan starts from is the interval that is predicted."""
    points = [[r, s] for r in (1, 2, 4, 8, 16) for s in (8, 16, 24, 32, 64)]
    names = ("a", "b", "c", "d")
    model = model_of(series(both, points, noise=0.05, kernels=names), "made")
    model = replace(model, correlation={"time": noise})
    target = np.array([[32.0, 96.0]])
    asked = goal(model, target)
    said = model.predict_at(target, kernels=[WHOLE]).answers[0]
    assert (asked.sources[0].ends.sum(axis=0) <= np.log(WIDEST)).all()
    predicted = np.log(said.upper / said.lower) / 2
    assert asked.rest == pytest.approx([0.0], abs=1e-6)
    assert Prospect(asked, np.array([[16.0, 96.0]]), 8).widths[0][0] == pytest.approx(predicted, rel=1e-9)


def test_runs_narrow_less_what_goes_together() -> None:
    """Four equal kernels: the same runs help the sum less where their noise is correlated."""
    names = ("a", "b", "c", "d")
    points = [[r, s] for r in (1, 2, 4, 8, 16) for s in (8, 16, 24, 32, 64)]
    model = model_of(series(both, points, noise=0.05, kernels=names), "made")
    target, offered = np.array([[64.0, 256.0]]), np.array([[16.0, 96.0], [32.0, 128.0]])
    width = {}
    for noise in (0.0, 1.0):
        asked = goal(replace(model, correlation={"time": noise}), target)
        width[noise] = float(Prospect(replace(asked, rest=np.zeros(1)), offered, 16).after((0, 1)).widths[-1][0])
    assert width[1.0] > 1.2 * width[0.0]


@pytest.mark.parametrize("spread", [1.0, 1.5, 1000.0])
def test_a_run_that_may_take_long_costs_more(spread: float) -> None:
    points, median = np.array([[4.0], [8.0]]), np.array([[10.0, 10.0]])
    price = Cost(lambda at: (median[0], median[0] * spread), "made", (0,)).of(points, 3)
    sigma = min(np.log(spread) / 1.6448536, MOST_SIGMA)
    assert price.seconds == pytest.approx(10 * np.exp(sigma**2 / 2))
    assert price.core_hours == pytest.approx(price.seconds * points[:, 0] * 3 / 3600)
    assert price.upper == pytest.approx(10 * np.exp(1.6448536 * sigma) * points[:, 0] * 3 / 3600)


@pytest.mark.parametrize(
    ("names", "cores", "counted"),
    [
        (("nodes",), 8, ", each of the nodes counted as a core"),
        (("cores", "nodes"), 8, ""),
        (("size", "Tasks"), 3, ", each of the Tasks counted as a core"),
        (("threads", "ranks"), 24, ""),
        (("nodes", "ranks"), 3, ""),
        (("size", "n"), 1, ""),
    ],
)
def test_what_counts_the_cores_of_a_run(names: tuple[str, ...], cores: int, counted: str) -> None:
    points = [[float(a), float(b)][: len(names)] for a in (1, 2, 4, 8) for b in (1, 2, 4)[: 3 if names[1:] else 1]]
    made = replace(series(line, points, noise=0.0, kernels=(WHOLE,)), parameters=names)
    cost = cost_of(model_of(made, "made"))
    price = cost.of(np.array([[8.0, 3.0][: len(names)]]), 1)
    assert 3600 * price.core_hours == pytest.approx(price.seconds * cores)
    assert cost.basis == "predicted time" + counted


def test_why_a_plan_ends_and_what_each_run_adds() -> None:
    model = offer()[0]
    rules = {"ranks": Rule("1,2,3,4,8"), "size": Rule("8,16,32")}
    choice = plan(model, [64, 64], rules=rules, most=30, budget=1e9)
    assert choice.ended in (WORTHLESS, NOTHING)
    why = {tuple(run.configuration.values()): run.why for run in choice.runs}
    adds = {text.removeprefix("explores, ") for text in why.values()}
    assert adds <= {"farther in ranks", "new ranks", "ranks and size together"}
    # Every run narrows the interval by a tenth of what the runs before it leave, or says that it explores.
    now = choice.goal.now
    first = float(np.log(now.upper[0] / now.lower[0]).mean() / 2)
    widths = [first, *(float(np.log(run.factor).mean()) for run in choice.runs)]
    for run, before, after in zip(choice.runs, widths, widths[1:], strict=False):
        assert run.why.startswith("explores, ") or after <= 0.95 * before
    assert plan(model, [64, 64], rules=rules, most=1, budget=1e9).ended == RUNS
    cheapest = min(run.core_hours for run in choice.runs)
    small = plan(model, [64, 64], rules=rules, most=30, budget=1.5 * cheapest)
    assert small.ended in (BUDGET, WORTHLESS)
    assert small.core_hours <= 1.5 * cheapest


def test_without_an_answer_nothing_narrow_is_promised() -> None:
    """One configuration has no function; a few runs cannot promise more for a distant target than they can show."""
    model = model_of(series(line, [[4]], noise=0.02), "made")
    choice = plan(model, [512], budget=1e9, most=2)
    assert choice.goal.now.status.any()
    assert float(choice.after.upper[0, 0] / choice.after.lower[0, 0]) > 1.25


def test_runs_never_widen_what_is_expected() -> None:
    fitted = fit_series(series(line, [[x] for x in RANKS]))
    points = np.array([[x] for x in (3.0, 32.0, 64.0, 512.0)])
    worlds = Worlds(Belief.of(fitted, np.array([0]), points), targets=1)
    before = worlds.spread()[0][0, 0]
    after = worlds.outlook(np.arange(3))[0][0, :, 0]
    assert (after <= before * 1.02).all()
    assert after[2] < after[1] < before  # farther out separates hypotheses better, and leaves a shorter extrapolation


def test_competing_forms_are_distinguished_where_they_differ() -> None:
    """Two forms agree at 2..16 ranks by construction; the run must go where their predictions part."""
    model = model_of(series(line, [[x] for x in RANKS], noise=0.05), "made")
    choice = plan(model, [1024], most=1, budget=1e9)
    assert choice.runs[0].configuration["ranks"] >= 128
    assert choice.runs[0].factor[0] < np.sqrt(choice.goal.now.upper / choice.goal.now.lower)[0, 0]


def test_a_budget_is_kept_and_a_larger_one_narrows_more() -> None:
    model = model_of(series(line, [[x] for x in RANKS], noise=0.05), "made")
    widths = []
    for budget in (0.05, 0.2, 20.0):
        choice = plan(model, [1024], budget=budget)
        assert choice.core_hours <= budget
        widths.append(float(np.log(choice.after.upper / choice.after.lower)[0, 0]))
    assert widths[0] >= widths[1] >= widths[2]
    assert widths[2] < 0.8 * widths[0]


def test_without_an_answer_widths_are_counted_from_the_widest_that_is_reported() -> None:
    """The ends of parts that have no answer may be anywhere; they are not what is expected after the runs."""
    model = model_of(series(line, [[x] for x in RANKS]), "program")
    targets = np.array([[128.0]])
    asked = goal(model, targets)
    now = replace(
        asked.now, upper=np.array([[1e22]]), status=np.array([[NO_DATA]]), reason=np.array([["none"]], object)
    )
    offered = candidates(model.parameters, model.training, targets)
    choice = choose_runs(replace(asked, now=now), offered, cost_of(model))
    assert choice.runs
    assert max(run.factor[0] for run in choice.runs) <= WIDEST
    text = " ".join(block.text for block in blocks(choice) if isinstance(block, Text))
    assert "now       no answer" in text
    assert "expected  " in text
    assert f"{now.value[0, 0]:.3g}" not in text


def test_expected_narrowing_comes_true() -> None:
    """Over many programs, intervals after the planned runs are about as wide as was expected before them."""
    generator = np.random.default_rng(11)
    expected, came = [], []
    for seed in range(12):
        a, b = generator.choice([0.25, 0.5, 1.0, 1.5]), np.exp(generator.uniform(-3, 0))

        def truth(points: np.ndarray, kernel: str, a: float = a, b: float = b) -> np.ndarray:
            return 1 + b * points[:, 0] ** a

        first = series(truth, [[x] for x in RANKS], seed=seed)
        model = model_of(first, "made")
        choice = plan(model, [1024], budget=1e9, most=2)
        added = [[run.configuration["ranks"]] for run in choice.runs]
        assert added
        after = model_of(series(truth, [*first.points.tolist(), *added], seed=100 + seed), "made")
        said = after.predict(ranks=1024).answers[0]
        expected.append(float(np.log(choice.after.upper / choice.after.lower)[0, 0]))
        came.append(np.log(said.upper / said.lower))
    # What is expected does not learn from the new values how little the times leave their function.
    ratio = np.median(np.array(came) / np.array(expected))
    assert 0.2 < ratio < 2.5


def test_a_parameter_that_never_varied_is_varied_first() -> None:
    points = [[ranks, 24.0] for ranks in (1, 2, 4, 8, 16)]

    def both(points: np.ndarray, kernel: str) -> np.ndarray:
        return 1e-4 * points[:, 1] ** 3 / points[:, 0] + 0.01

    model = model_of(series(both, points), "made")
    choice = plan(model, [64, 96], rules={"size": Rule("24,48,96")}, most=2, budget=1e9)
    assert choice.goal.now.status.any()
    assert choice.runs[0].configuration["size"] > 24
    assert list(choice.runs[0].configuration) == ["ranks", "size"]
    assert choice.runs[0].configuration["size"] in (48, 96)


def test_the_kernel_that_matters_decides() -> None:
    """A tiny kernel of unknown growth in ranks, a heavy one of unknown growth in size: the heavy one is helped."""

    def two(points: np.ndarray, kernel: str) -> np.ndarray:
        if kernel == "tiny":
            return 1e-6 * (1 + 0.1 * points[:, 0])
        return 1e-3 * points[:, 1] ** 2

    points = [[r, s] for r in (2, 4, 8) for s in (16, 24, 32)]
    model = model_of(series(two, points, noise=0.05, kernels=("tiny", "heavy")), "made")
    choice = plan(model, [8, 256], most=1, budget=1e9)
    assert choice.runs[0].helps == "heavy"
    assert choice.runs[0].configuration["size"] > 32


def test_without_any_time_there_is_no_cost() -> None:
    model = model_of(series(line, [[x] for x in (2, 4, 8, 16, 32, 64)], noise=0.0, metric="instructions"), "made")
    with pytest.raises(InsufficientError, match="the duration of a run is not known"):
        cost_of(model)


def test_candidates_follow_rules_and_limits_and_leave_out_targets_and_what_was_measured() -> None:
    measured, target = np.array([[8.0, 10], [27, 10], [8, 20]]), np.array([[512.0, 40]])
    found = candidates(("ranks", "size"), measured, target)
    assert found.rules["ranks"].text == "cubes"
    assert set(found.points[:, 0]) == {8, 27, 64, 125, 216}
    assert not (found.points[:, None] == measured[None]).all(axis=2).any()
    limited = candidates(("ranks", "size"), measured, target, {"ranks": Rule("6*n^2")}, {"ranks": (None, 100)})
    assert set(limited.points[:, 0]) == {24, 54, 96}
    with pytest.raises(InputError, match="there is no parameter nodes"):
        candidates(("ranks", "size"), measured, target, {"nodes": Rule("cubes")})
    with pytest.raises(InputError, match="has no value from"):
        candidates(("ranks", "size"), measured, target, {"ranks": Rule("7..7.5")}, {"ranks": (8, 9)})
    with pytest.raises(InputError, match="is above"):
        candidates(("ranks", "size"), measured, target, None, {"size": (50, None)})


def test_what_lies_below_one_of_several_targets_is_left_to_measure() -> None:
    """Asked at 16 and 64 ranks, runs at 16 and 32 were left out as beyond 16, and all was said to be measured."""
    measured = np.array([[1.0], [2], [4], [8]])
    found = candidates(("ranks",), measured, np.array([[16.0], [64]]))
    assert found.points.ravel().tolist() == [16, 32]
    assert not found.none_left


def test_a_target_below_all_that_was_measured_is_to_be_run_itself() -> None:
    found = candidates(("ranks",), np.array([[1024.0], [2048]]), np.array([[64.0]]))
    assert not len(found.points)
    assert "smaller than all that was measured" in found.none_left


def test_a_grid_measured_in_full_is_reported_with_its_ends() -> None:
    whole = np.array([[r, s] for r in (2.0, 4, 8) for s in (16.0, 32)])
    found = candidates(("ranks", "size"), whole, np.array([[16.0, 32]]))
    assert not len(found.points)
    assert "was measured, up to ranks 8, size 32" in found.none_left
    # a larger maximum would not help: the target itself is what is left
    assert "--max" not in found.none_left


def test_long_axes_are_thinned_and_said() -> None:
    found = candidates(
        ("ranks", "size"), np.array([[1.0, 1], [2, 2], [3, 3]]), np.array([[5000.0, 5000]]),
        {"ranks": Rule("any"), "size": Rule("any")},
    )  # fmt: skip
    assert len(found.points) <= 600
    assert found.thinned == ("ranks", "size")


def test_a_budget_below_the_cheapest_run_is_said() -> None:
    model = model_of(series(line, [[x] for x in RANKS]), "made")
    with pytest.raises(InsufficientError, match="the cheapest run costs"):
        plan(model, [1024], budget=1e-9)


def test_the_same_plan_every_time() -> None:
    model = model_of(series(line, [[x] for x in RANKS]), "made")
    first, second = plan(model, [1024]), plan(model, [1024])
    assert [run.configuration for run in first.runs] == [run.configuration for run in second.runs]
    assert np.array_equal(first.after.upper, second.after.upper)
