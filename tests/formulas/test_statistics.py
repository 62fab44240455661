"""Closed forms of the statistics that intervals and weights rest on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats

from ranksight.model.application import whole
from ranksight.model.application.comm_blocking import Blocking, Taken
from ranksight.model.fit import model_of
from ranksight.model.kernel_time.counted import Counted
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.priors import DRIFT_FREEDOM
from ranksight.model.process import solve
from ranksight.model.process.several import _raised
from ranksight.model.quantity import TAIL, Quantity, add, product
from ranksight.model.series.reducing import Series
from ranksight.model.sharing.needs import contended
from ranksight.model.uncertainty.forecast import Forecast, mixture_forecast
from ranksight.model.uncertainty.mixture import Components

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def test_only_memory_waits_more_cycles_at_a_higher_clock() -> None:
    counted = SimpleNamespace(latencies=np.array([4.0, 14.0, 40.0, 200.0]), frequency=2e9)
    latencies = Counted.latencies_at(counted, np.array([2e9, 3e9]))  # type: ignore[arg-type]
    assert latencies == pytest.approx(np.array([[4.0, 4.0], [14.0, 14.0], [40.0, 40.0], [200.0, 300.0]]))


def test_ranks_share_a_domain_as_the_model_of_multicore_execution_says() -> None:
    """T(n) = max(n memory, core + (n - 1) u(n - 1) p0) by hand, for core 10 s, memory 2 s and p0 1 s."""
    core, memory = np.array([10.0]), np.array([2.0])
    second = 10 + 0.2
    third = 10 + 2 * (4 / second)
    for ranks, time, busy in ((1, 10.0, 0.2), (2, second, 4 / second), (3, third, 6 / third)):
        answer, share = contended(core, memory, np.array([ranks]), np.array([0.5]))
        assert (answer[0], share[0]) == pytest.approx((time, busy))
    answer, share = contended(core, memory, np.array([8]), np.array([0.0]))
    assert (answer[0], share[0]) == pytest.approx((16.0, 1.0))


def test_a_rate_that_is_not_seen_to_change_is_known_as_its_level_is() -> None:
    """The variance of an answer far away holds that of the level: that of kriging with an unknown mean."""
    x = np.log(RANKS)[:, None]
    rates = Rates(x, 0.01 * np.array([[1.0, -1.0, 1.0, -1.0, 1.0]]), np.full((1, 5), 0.02), ((True,),))
    rows, far = np.array([0]), np.log(np.array([[64.0]]))
    leading = rates._leading[rows]
    weights = np.take_along_axis(rates.weights[rows], leading, axis=1)[0]
    solved, used = rates._held(rows), rates.grid.select(leading[0])
    means, variances = [], []
    for at in range(len(weights)):
        total = np.linalg.inv(solved.inverse[0, at]) + 1e4  # a level of nearly any size
        cross = used.covariance(rates._places, far)[at, :, 0] + 1e4
        gain = np.linalg.solve(total, cross)
        means.append(gain @ solved.values[0, at])
        variances.append(used.variance(far)[at, 0] + 1e4 - gain @ cross)
    weights = weights / weights.sum()
    mean = weights @ means
    deviation = np.sqrt(weights @ (np.square(means) + variances) - mean**2)
    (found,), (spread,) = rates._at(rows, far)
    assert (found[0], spread[0]) == pytest.approx((mean, deviation), rel=1e-3)


def test_a_cost_of_communication_is_known_as_its_level_is() -> None:
    """The same of BF_comm, whose shape is constant."""
    points, values = RANKS[:, None], 0.1 * np.array([[1.0, -1.0, 1.0, -1.0, 1.0]])
    taken = Taken(("p",), points, values, np.full((1, 5), 0.02))
    one, none = np.ones(1), np.zeros(1)
    blocking = Blocking(("ranks",), (0,), ("p",), ("",), one, none, ("constant",), np.zeros((1, 3)), np.zeros(1, dtype=int),
                        values, taken.errors, 0.0, taken)  # fmt: skip
    covariances, far = blocking._covariances, np.array([[64.0]])
    chosen = np.array([0])
    noise = (0.02**2 + covariances.noise[0]) * np.eye(5)
    total = covariances.between(points, points, chosen)[0] + noise + 1e4
    cross = covariances.between(far, points, chosen)[0, 0] + 1e4
    gain = np.linalg.solve(total, cross)
    variance = covariances.variance(far, chosen)[0, 0] + 1e4 - gain @ cross
    mean, spread = blocking._at(far)
    assert (mean[0, 0], spread[0, 0]) == pytest.approx((gain @ values[0], np.sqrt(variance)), rel=1e-3)


def test_independent_errors_add_in_quadrature_and_those_of_one_cause_linearly() -> None:
    parts = [Quantity.even(np.log([2.0]), np.array([0.3])), Quantity.even(np.log([5.0]), np.array([0.4]))]
    joined = [part.caused_by("cache") for part in parts]
    assert product(parts).deviation == pytest.approx(np.hypot(0.3, 0.4))
    assert product(joined).deviation == pytest.approx(0.7)
    rises = np.array([2 * np.expm1(0.3 * TAIL), 5 * np.expm1(0.4 * TAIL)])
    for quantities, rise in ((parts, np.hypot(*rises)), (joined, rises.sum())):
        assert add(quantities).interval(0.9)[2] == pytest.approx(7 + rise)


@pytest.mark.parametrize(("rho", "half"), [(0.0, np.hypot(3.0, 4.0)), (1.0, 7.0), (0.5, np.sqrt(0.5 * 49 + 0.5 * 25))])
@pytest.mark.parametrize("form", [0.0, 0.36])
def test_noise_of_parts_adds_by_its_correlation_and_form_linearly(rho: float, half: float, form: float) -> None:
    value = np.array([[100.0], [100.0]])
    reach = np.array([[3.0], [4.0]])
    parts = Forecast.settled(value, value - reach, value + reach, form)
    total = whole.add(parts, np.array([0, 1]), np.array([0.5, 0.5]), rho)
    expected = np.hypot(np.sqrt(1 - form) * half, np.sqrt(form) * 7)
    assert (total.upper - total.value)[0, 0] == pytest.approx(expected)
    assert (total.value - total.lower)[0, 0] == pytest.approx(expected)


def test_correlation_is_one_of_common_noise_and_none_of_noise_that_cancels() -> None:
    noise = 0.01 * np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    sizes = np.ones((2, 5))
    assert whole.correlation(np.stack([noise, noise]), sizes) == pytest.approx(1.0)
    assert whole.correlation(np.stack([noise, -noise]), sizes) == 0.0


def test_a_programs_time_has_the_noise_that_its_kernels_share() -> None:
    noise = np.exp(0.05 * np.array([1.0, -1.0, 0.7, -0.4, 0.9]))
    values = np.stack([(8 / RANKS + 1) * noise, (6 / RANKS + 2) * noise])[..., None]
    model = model_of(Series(("ranks",), RANKS[:, None], values, ("a", "b"), ("time", "time")), "made")
    assert model.correlation["time"] > 0.85
    point = np.array([[32.0]])
    widths = {}
    for rho in (0.0, 1.0):
        total = type(model)("made", model.functions, model.training, model.shares, {"time": rho}).breakdown(point).total
        widths[rho] = float(total.upper[0, 0] - total.value[0, 0])
    assert widths[1.0] > 1.05 * widths[0.0]
    learned = model.breakdown(point).total
    assert float(learned.upper[0, 0] - learned.value[0, 0]) == pytest.approx(widths[1.0], rel=0.02)


def test_a_programs_counts_have_the_noise_that_its_kernels_share() -> None:
    values = np.stack([8 / RANKS + 1, 6 / RANKS + 2]) * np.exp(0.05 * np.array([1.0, -1.0, 0.7, -0.4, 0.9]))
    series = Series(("ranks",), RANKS[:, None], values[..., None], ("a", "b"), ("instructions", "instructions"))
    model, point, widths = model_of(series, "made"), np.array([[16.0]]), {}
    for rho in (0.0, 1.0):
        one = type(model)("made", model.functions, model.training, model.shares, {"instructions": rho})
        total = one.programs(point, ["instructions"])["instructions"]
        widths[rho] = float(total.upper[0, 0] - total.value[0, 0])
    assert widths[1.0] > 1.01 * widths[0.0]


@pytest.mark.parametrize("freedom", [4.0, 10.0, 40.0])
@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_scatter_and_drift_have_the_freedom_of_their_sum(freedom: float, drift: float) -> None:
    """A variance known with nu degrees of freedom and one known with others (Satterthwaite 1946)."""
    spread, one = 0.2, np.ones((1, 1, 1))
    added = np.full((1, 1), drift)
    said = mixture_forecast(Components(one, 0 * one, spread * one, freedom * one), (added, added), np.array([True]))
    both = spread**2 + drift**2
    combined = both**2 / (spread**4 / freedom + drift**4 / DRIFT_FREEDOM)
    half = stats.t.ppf(0.95, combined) * np.sqrt(both)
    assert np.log(said.upper[0, 0]) == pytest.approx(half, rel=6e-3)
    assert np.log(said.lower[0, 0]) == pytest.approx(-half, rel=6e-3)
    assert said.freedom[0, 0] == pytest.approx(freedom)


def _data() -> solve.Data:
    logs = np.log(3 + 8 / RANKS)[None] + 0.05 * np.sin(np.arange(5))[None]
    return solve.Data(
        np.log(RANKS)[:, None], logs, np.full(logs.shape, 1e-4), np.log(3 + 8 / RANKS)[None], np.ones(logs.shape)
    )


def test_evidence_of_one_term_is_its_likelihood_over_the_prior() -> None:
    """By quadrature over the coefficient, half a normal distribution: so are differences between covariances."""
    data = _data()
    scales = np.array([(0.05, 0.1, 0.05, 0.02), (0.0, 0.3, 0.0, 0.1), (0.3, 0.0, 0.2, 0.3)])
    term = np.ones((1, 5))
    found = solve.evidence(data, term, np.array([[0]]), scales)[0, 0]
    share, _ = solve.columns(term, data)
    coefficients, expected = np.linspace(0, 3, 60_001), []
    for scale in scales:
        covariance = np.linalg.inv(solve.inverse(data, scale[None, None])[0][0, 0])
        law = stats.multivariate_normal(np.zeros(5), covariance)
        density = law.logpdf(data.target[0] - coefficients[:, None] * share[0, 0]) + stats.norm.logpdf(coefficients)
        expected.append(density.max() + np.log(2 * integrate.trapezoid(np.exp(density - density.max()), coefficients)))
    assert np.diff(found) == pytest.approx(np.diff(expected), abs=0.01)


def test_evidence_of_a_mean_solved_about_itself_is_that_of_a_line() -> None:
    """A mean of one term is linear in its coefficient: solving about it once more changes the prior's unit alone."""
    data, scales = _data(), np.array([(0.05, 0.1, 0.05, 0.02), (0.3, 0.0, 0.2, 0.3)])
    share, _ = solve.columns(np.ones((1, 5)), data)
    single = solve.evidence(data, np.ones((1, 5)), np.array([[0]]), scales)[0, 0]
    both = data.part(np.array([0, 0]))
    solved = solve.refined(both, np.concatenate([share, share]), scales, rounds=0)
    assert np.diff(solved.evidence) == pytest.approx(np.diff(single), abs=1e-6)


def test_a_sum_grows_by_the_evidence_of_the_longer_one() -> None:
    """What a further term raises the evidence to is the evidence with it, where all coefficients are above zero."""
    data, scales = _data(), np.array([(0.05, 0.02, 0.05, 0.02), (0.0, 0.1, 0.0, 0.1)])
    for scale in scales:
        terms = solve.columns(np.stack([np.ones(5), 1 / RANKS])[None], data)[0]
        equations = solve.Equations.of(data, terms, scale[None])
        share = equations.share[:, :-1]
        turned, right = (np.swapaxes(each[:, :-1], 1, 2).copy() for each in (equations.turned, equations.right))
        diagonal = 1.0 + np.einsum("sgtn,stn->sgt", turned, share)
        raised = _raised(np.array([[[0]]]), share, turned, right, diagonal, equations.of_nothing)[0, 0, 1]
        assert raised == pytest.approx(equations.evidence(np.array([[0, 1]]))[0, 0, 0], abs=0.02)


def test_curves_are_smoothed_by_covariances_in_proportion_to_their_evidence() -> None:
    data = _data()
    scales = np.array([(0.0, 0.1, 0.0, 0.05), (0.2, 0.0, 0.1, 0.02), (0.0, 0.0, 0.0, 0.3)])
    line, logs = np.stack([np.ones(5), data.u[:, 0]]), data.logs[0]
    rest = logs - logs.mean()
    pulls, densities = [], []
    for scale in scales:
        total = np.linalg.inv(solve.inverse(data, scale[None, None])[0][0, 0]) + line.T @ line / solve.VAGUE
        pulls.append(np.linalg.solve(total, rest) * (data.noise[0] + scale[-1] ** 2))
        densities.append(-0.5 * rest @ np.linalg.solve(total, rest) - 0.5 * np.linalg.slogdet(total)[1])
    weights = np.exp(np.array(densities) - max(densities))
    expected = logs - (weights / weights.sum()) @ np.array(pulls)
    assert solve.smoothed(data, scales).centre[0] == pytest.approx(expected, abs=1e-5)
