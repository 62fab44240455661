"""Weights of laws: the one that predicted what was held out leads, kernels share what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import t as student

from ranksight.core.errors import InputError
from ranksight.model.laws.law import BANDWIDTH, CONSTANT_CPI, COST, COUNTED, FUNCTION, LAWS, LawTimes
from ranksight.model.laws.stacking import Weights, learn_weights, log_score, mix
from ranksight.model.laws.together import Laws
from ranksight.model.laws.weighing import by_misfit
from ranksight.model.priors import FREEDOM, REPEATED
from ranksight.model.quantity import Quantity


def law(kernels: tuple[str, ...], values: list[list[float]], width: float = 0.05) -> LawTimes:
    centre = np.log(np.array(values))
    side = np.full(centre.shape, width)
    return LawTimes(kernels, Quantity(centre, side, side), np.isfinite(centre), ("",) * len(kernels))


def test_weights_of_some_kernels_are_replaced_and_no_others() -> None:
    before = Weights(("a", "b"), (COUNTED, COST), np.array([[0.3, 0.7], [0.6, 0.4]]), np.array([0.5, 0.5]))
    after = before.having(("b", "c"), {COST: np.array([0.1, 0.2]), FUNCTION: np.array([0.9, 0.8])})
    np.testing.assert_allclose(after.of(("a", "b", "c"), (COUNTED, COST, FUNCTION))[1:], [[0, 0.1, 0.9], [0, 0.2, 0.8]])
    np.testing.assert_allclose(after.of(("a", "d"), (COUNTED, COST)), before.of(("a", "d"), (COUNTED, COST)))


def test_the_law_that_meets_all_runs_closer_is_likely_the_more_the_more_runs() -> None:
    freedom, wide = np.array([0.0, 3.0, 8.0]), np.full(3, 0.02)
    odds = LAWS[BANDWIDTH].prior / LAWS[FUNCTION].prior
    np.testing.assert_allclose(by_misfit(wide, wide, freedom), odds / (1 + odds))
    likely = odds * np.array([1.0, 8.0, 256.0])
    np.testing.assert_allclose(by_misfit(wide, wide / 2, freedom), likely / (1 + likely))
    rounded = by_misfit(np.zeros(1), np.array([1e-4]), freedom[2:])
    assert rounded == pytest.approx(odds / (1 + odds)), "rounding decides nothing"
    assert by_misfit(wide[:1], np.full(1, np.inf), freedom[:1]) == pytest.approx(0.0)


def test_the_law_that_was_right_leads() -> None:
    kernels = tuple(f"k{at}" for at in range(8))
    truth = np.full((8, 2), 1.0)
    scores = {
        COUNTED: log_score(law(kernels, [[2.0, 2.0]] * 8), kernels, truth),
        COST: log_score(law(kernels, [[1.01, 0.99]] * 8), kernels, truth),
    }
    found = learn_weights(kernels, scores)
    assert (found.of(kernels, (COUNTED, COST))[:, 1] > 0.95).all()


@pytest.mark.parametrize(("weight", "left"), [(0.02, False), (0.5, True), (0.9, True)])
def test_a_sure_law_replaces_a_vague_one_unless_that_predicted_better(weight: float, left: bool) -> None:
    sure, vague = law(("k", "m"), [[1.0], [1.0]]), law(("k", "m"), [[1.5], [1.5]], 1.0)
    laws = Laws({FUNCTION: vague, CONSTANT_CPI: sure})
    held = np.array([[1 - weight, weight]])
    laws.leave_vague(Weights(("k",), (FUNCTION, CONSTANT_CPI), held, held[0]))
    assert laws.laws[FUNCTION].answers.tolist() == [[not left]] * 2
    assert laws.laws[CONSTANT_CPI].answers.all()


def test_without_a_difference_the_prior_stays() -> None:
    kernels = ("k",)
    truth = np.ones((1, 1))
    same = law(kernels, [[1.0]])
    found = learn_weights(kernels, {name: log_score(same, kernels, truth) for name in (COUNTED, COST)})
    assert found.weight[0, 0] / found.weight[0, 1] == pytest.approx(LAWS[COUNTED].prior / LAWS[COST].prior, rel=0.5)
    assert found.weight.sum() == pytest.approx(1.0)


def test_a_sharp_law_scores_above_a_vague_one_and_a_wrong_one_below() -> None:
    kernels, truth = ("k",), np.ones((1, 1))
    sharp, vague, wrong = (
        log_score(law(kernels, [[value]], width), kernels, truth)[0]
        for value, width in ((1.0, 0.02), (1.0, 0.5), (1.5, 0.02))
    )
    assert sharp > vague > wrong


def test_the_score_is_the_logarithm_of_students_density() -> None:
    width = np.hypot(0.05, REPEATED)
    found = log_score(law(("k",), [[1.0, 1.0]]), ("k",), np.array([[1.1, 0.8]]))
    assert found[0] == pytest.approx(student.logpdf(np.log([1.1, 0.8]), FREEDOM, scale=width).mean())


def test_the_mixture_spans_laws_that_disagree() -> None:
    kernels = ("k",)
    laws = {COUNTED: law(kernels, [[1.0]]), FUNCTION: law(kernels, [[2.0]])}
    said, share = mix(kernels, laws, np.full((1, 2, 1), 0.5))
    assert said.lower[0, 0] < 1.0 < 2.0 < said.upper[0, 0]
    assert share.sum(axis=0) == pytest.approx(np.ones((1, 1)))
    between, within = (np.log(2) / 2) ** 2, 0.05**2
    assert said.form[0, 0] == pytest.approx(between / (between + within))
    alone, _ = mix(kernels, laws, np.array([[[1.0], [0.0]]]))
    assert alone.value[0, 0] == pytest.approx(1.0, rel=1e-3)
    assert np.log(alone.upper / alone.value)[0, 0] == pytest.approx(1.645 * 0.05, rel=0.1)


def test_a_law_can_be_left_out() -> None:
    found = learn_weights(("k",), {COST: np.zeros(1), FUNCTION: np.zeros(1)}).without(COST)
    assert found.of(("k", "other"), (COST, FUNCTION))[:, 0] == pytest.approx([0.0, 0.0])
    assert found.weight[0, 1] == pytest.approx(1.0)


def test_plain_data_and_back() -> None:
    found = learn_weights(("k",), {COST: np.zeros(1), FUNCTION: np.ones(1)})
    again = Weights.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.weight == pytest.approx(found.weight)
    with pytest.raises(InputError, match="weights"):
        Weights.from_dict({**found.to_dict(), "laws": [COST, COST]})
