"""Properties of sums of kernels and of mixtures of laws that hold for all numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from ranksight.model import priors
from ranksight.model.application import whole
from ranksight.model.application.others import DoubtfulSum
from ranksight.model.laws.law import CONSTANT_CPI, COST, COUNTED, FUNCTION, LAWS, LawTimes
from ranksight.model.laws.stacking import WORTH, learn_weights, log_score, mix
from ranksight.model.process.covariance import smooth, unseen, variance
from ranksight.model.quantity import TAIL, Quantity, add
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

KERNELS = tuple(f"k{at}" for at in range(6))


def law(values: np.ndarray, down: float, up: float) -> LawTimes:
    centre = np.log(np.atleast_2d(values))
    time = Quantity(centre, np.full(centre.shape, down), np.full(centre.shape, up))
    return LawTimes(KERNELS[: len(centre)], time, np.isfinite(centre), ("",) * len(centre))


def test_zeros_add_to_a_zero_that_is_exact_and_what_is_below_has_no_logarithm() -> None:
    ends = np.array([0.0, -0.5])
    parts = Quantity.of_ends(ends, ends, ends)
    assert parts.centre[0] == -np.inf
    assert np.isnan(parts.centre[1])
    total = add([parts.rows(np.array([0]))] * 2)
    assert (total.centre[0], total.down[0], total.up[0]) == (-np.inf, 0.0, 0.0)


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_part_without_a_value_takes_its_share_of_what_was_measured(share: float) -> None:
    """Up to several times as much, or nothing, and the sum is no answer where that is a large part."""
    value = np.array([[3.0], [5.0], [np.nan]])
    status = np.array([[forecast.OK], [forecast.OK], [forecast.NO_DATA]])
    reason = np.array([[""], [""], ["lost"]], dtype=object)
    parts = Forecast(value, value - 0.1, value + 0.1, status, reason, np.ones((3, 1)))
    total = whole.add(parts, np.arange(3), np.array([0.5 - share / 2, 0.5 - share / 2, share]), 0.0)
    missing = 8 * share / (1 - share)
    assert total.value[0, 0] == pytest.approx(8 + missing)
    assert total.upper[0, 0] == pytest.approx(8 + missing + 0.2 + (forecast.WIDEST - 1) * missing)
    assert total.lower[0, 0] == pytest.approx(7.8)
    assert total.status[0, 0] == forecast.NO_DATA


def test_a_sum_of_no_part_with_a_value_has_none_and_one_of_no_parts_is_zero() -> None:
    nothing = np.full((2, 1), np.nan)
    status, reason = np.full((2, 1), forecast.NO_DATA), np.full((2, 1), "lost", dtype=object)
    parts = Forecast(nothing, nothing, nothing, status, reason, nothing)
    assert np.isnan(whole.add(parts, np.arange(2), np.full(2, 0.5), 0.0).value).all()
    empty = whole.add(parts, np.array([], dtype=np.intp), np.zeros(0), 0.0)
    assert (empty.value[0, 0], empty.status[0, 0]) == (0.0, forecast.OK)


def test_a_law_without_a_score_weighs_as_if_it_were_not_there() -> None:
    generator = np.random.default_rng(0)
    scores = {COUNTED: generator.normal(size=6), COST: generator.normal(size=6), FUNCTION: np.full(6, np.nan)}
    two = learn_weights(KERNELS, {name: scores[name] for name in (COUNTED, COST)})
    three = learn_weights(KERNELS, scores)
    assert three.of(KERNELS, (COUNTED, COST)) == pytest.approx(two.of(KERNELS, (COUNTED, COST)))
    assert three.of(KERNELS, (FUNCTION,)) == pytest.approx(0.0)


def test_shares_are_those_that_their_weights_lead_to_and_kernels_of_no_run_have_them() -> None:
    """The fixed point of the expectation and the maximum over a prior worth :data:`WORTH` kernels."""
    generator = np.random.default_rng(1)
    scores = {name: generator.normal(size=6) for name in (COUNTED, COST, CONSTANT_CPI)}
    learned = learn_weights(KERNELS, scores)
    prior = np.array([LAWS[name].prior for name in scores])
    share = (WORTH * prior / prior.sum() + learned.weight.sum(axis=0)) / (WORTH + 6)
    weight = share * np.exp(np.stack(list(scores.values()), axis=1))
    assert learned.weight == pytest.approx(weight / weight.sum(axis=1, keepdims=True), abs=1e-3)
    assert np.ravel(learned.of(("another",), tuple(scores))) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize(("down", "up"), [(0.1, 0.1), (0.05, 0.4), (0.3, 0.02)])
def test_the_density_of_a_law_has_the_integral_one(down: float, up: float) -> None:
    one = law(np.array([[2.0]]), down, up)
    below, above = (np.hypot(side, priors.REPEATED) for side in (down, up))
    gaps = np.concatenate([np.linspace(-40, 0, 1001) * below, np.linspace(0, 40, 1001)[1:] * above])
    density = [np.exp(log_score(one, ("k0",), 2 * np.exp(np.array([[gap]])))[0]) for gap in gaps]
    assert integrate.trapezoid(density, gaps) == pytest.approx(1.0, abs=0.01)


def test_a_mixture_knows_weights_up_to_a_factor_and_each_side_of_its_laws() -> None:
    laws = {COUNTED: law(np.array([[1.0]]), 0.1, 0.3), FUNCTION: law(np.array([[1.5]]), 0.2, 0.1)}
    weights = np.array([[[0.3], [0.7]]])
    mixture, share = mix(("k0",), laws, weights)
    half, same = mix(("k0",), laws, weights / 2)
    assert share[:, 0, 0] == pytest.approx([0.3, 0.7])
    assert same == pytest.approx(share)
    for name in ("value", "lower", "upper", "form"):
        assert getattr(half, name) == pytest.approx(getattr(mixture, name))
    between, within = 0.3 * 0.7 * np.log(1.5) ** 2, 0.3 * 0.2**2 + 0.7 * 0.15**2
    assert mixture.form[0, 0] == pytest.approx(between / (between + within))
    ends = {"lower": (0.05, [0.1, 0.2]), "value": (0.5, [0.2, 0.15]), "upper": (0.95, [0.3, 0.1])}
    centres = np.log([1.0, 1.5])
    for name, (probability, deviations) in ends.items():
        end = np.log(getattr(mixture, name)[0, 0])
        assert stats.norm.cdf((end - centres) / deviations) @ [0.3, 0.7] == pytest.approx(probability, abs=0.01)


def test_departures_have_the_covariance_of_their_processes() -> None:
    """The integrated Wiener process by quadrature; variances are covariances with themselves."""
    u, v = np.array([[0.5], [1.5], [-1.0]]), np.array([[2.0], [-0.7]])
    at = np.linspace(0, 3, 30_001)
    for i, (x,) in enumerate(u):
        for j, (y,) in enumerate(v):
            product = np.maximum(abs(x) - at, 0) * np.maximum(abs(y) - at, 0) * (x * y > 0)
            expected = np.exp(-abs(x - y)), integrate.trapezoid(product, at), x * y
            assert smooth(u, v)[:, i, j] == pytest.approx(expected, abs=1e-6)
    plane = np.array([[0.5, 2.0], [1.5, -0.3]])
    assert variance(plane) == pytest.approx(np.stack([np.diag(part) for part in smooth(plane, plane)]))


def test_what_runs_do_not_show_grows_with_the_distance_and_faster_from_far_on() -> None:
    runs = np.array([[0.0], [2.0]])
    near, steps = np.array([[1.0], [2.0]]), np.array([1e-3, 1e3])
    assert unseen(near, runs) == pytest.approx(priors.REPEATED)
    beyond = np.sqrt(unseen(2 + steps[:, None], runs) ** 2 - priors.REPEATED**2)
    assert beyond == pytest.approx(priors.UNSEEN * steps * np.array([1.0, 1e3 / priors.FAR]), rel=1e-3)


def test_a_rest_that_repetitions_settle_is_as_uncertain_as_another_job() -> None:
    points, error = np.array([[1.0], [2.0], [4.0], [8.0]]), np.full(4, 1e-9)
    constant = np.zeros((1, 1, 3))
    rest = DoubtfulSum(constant, np.zeros((1, 1), dtype=np.intp), np.zeros(1), points, np.full(4, 3.0), error, 1e6)
    mixture = rest.at(np.array([[16.0]]))
    assert mixture.value[0, 0] == pytest.approx(3.0)
    assert mixture.upper[0, 0] - 3 == pytest.approx(3 * TAIL * priors.REPEATED, rel=0.01)
    assert 3 - mixture.lower[0, 0] == pytest.approx(3 * TAIL * priors.REPEATED, rel=0.01)


def test_sums_of_the_rest_weigh_as_their_likelihood() -> None:
    points = np.array([[1.0], [2.0], [4.0], [8.0]])
    terms = np.array([[[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])  # a constant, and the ranks
    one = DoubtfulSum(terms, np.array([[0], [1]]), np.zeros(2), points, points[:, 0], np.full(4, 0.1), 1e6)
    assert one.at(np.array([[32.0]])).value[0, 0] == pytest.approx(32.0, rel=0.05)
