"""The process of series along one coordinate: closed forms, properties, and simple laws that it has to meet."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ranksight.model.fitting.changes import changepoints
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.process import covariance, elimination, solve
from ranksight.model.process.fit_process import data_of, fit_process
from ranksight.model.process.prevalence import Prevalence, along_one, learned, texts_of, unlearned
from ranksight.model.search.terms import values
from ranksight.model.series.domains import Domains
from ranksight.model.series.noise import locate
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.mixture import quantiles

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
SCALES = np.array([(0.05, 0.1, 0.05, 0.02), (0.0, 0.3, 0.0, 0.1)])


def _data(times: np.ndarray, x: np.ndarray = X) -> solve.Data:
    logs = np.log(times)
    return solve.Data(np.log(x / x[0])[:, None], logs, np.full(logs.shape, 1e-4), logs, np.ones(logs.shape))


def _fit(times: np.ndarray, x: np.ndarray = X, name: str = "ranks") -> Fitted:
    names = tuple(f"k{at}" for at in range(len(times)))
    return fit_series(Series((name,), x[:, None], times, names, ("time",) * len(times)))


def test_covariance_is_that_of_its_parts() -> None:
    """An integrated Wiener process has the variance u^3 / 3, and any covariance is positive definite."""
    u = np.log(X)[:, None]
    parts = covariance.smooth(u, u)
    np.testing.assert_allclose(np.diagonal(parts, axis1=1, axis2=2), covariance.variance(u))
    np.testing.assert_allclose(np.diagonal(parts[1]), np.log(X) ** 3 / 3)
    assert (np.linalg.eigvalsh(parts.sum(axis=0) + 1e-9 * np.eye(5)) > 0).all()
    # What lies on the other side of the origin is independent of it.
    assert covariance.smooth(u[1:], -u[1:])[1].max() == 0


def test_large_matrices_are_those_of_the_steps_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK and elimination entry by entry give the same inverses, products and determinants, repeated rows too."""
    x = 1.0 + np.arange(9.0)
    times = np.stack([3 + 8 / x, 3 + 8 / x, 12 / x])
    data = _data(times, x)
    data = solve.Data(data.u, data.logs, np.array([1e-4, 1e-4, 4e-3])[:, None] * x, data.centre, data.most)
    scales = np.concatenate([SCALES, [(0.0, 0.0, 0.0, 0.05)]])
    each = np.stack([np.ones((3, 9)), times], axis=1)
    found = []
    for large, often in ((100, 100), (5, 5)):
        monkeypatch.setattr(elimination, "LARGE", large)
        monkeypatch.setattr(solve, "OFTEN", often)
        found.append([*solve.inverse(data, scales[None]), *solve.weighed(data, scales, each)])
    for steps, lapack in zip(*found, strict=True):
        np.testing.assert_allclose(lapack, steps, rtol=1e-8)
    inverted, log_determinant, turned, again = found[0]
    np.testing.assert_allclose(log_determinant, -np.linalg.slogdet(inverted)[1])
    np.testing.assert_allclose(turned, np.einsum("stn,scnk->stck", each, inverted), rtol=1e-8)
    np.testing.assert_allclose(again, log_determinant)


def test_terms_that_occur_are_counted_once() -> None:
    different, members = solve.occurring(np.array([[[3, 1], [1, -1], [7, 3]], [[2, -1], [2, -1], [2, -1]]]))
    assert different.tolist() == [[1, 3, 7], [2, 0, 0]]
    assert members.tolist() == [[[1, 0], [0, -1], [2, 1]], [[0, -1], [0, -1], [0, -1]]]


def test_evidence_is_the_normal_density_where_no_sign_is_known() -> None:
    """Without the half of the prior that positive coefficients keep, the evidence is a multivariate normal density."""
    data = _data((3 + 8 / X)[None] * np.exp(0.05 * np.sin(np.arange(5)))[None])
    terms, members = along_one()
    mean = texts_of(terms, members).index("1 + x^(-1)")
    at = values(terms, X[:, None])
    found = solve.evidence(data, at, members[[mean]], SCALES)[0, 0]
    share, _ = solve.columns(at[members[mean, :2]], data)
    for place, scales in enumerate(SCALES):
        inverted, _ = solve.inverse(data, scales[None, None])
        total = np.linalg.inv(inverted[0, 0]) + share[0].T @ share[0]
        density = -0.5 * data.target[0] @ np.linalg.solve(total, data.target[0]) - 0.5 * np.linalg.slogdet(total)[1]
        # Both coefficients are far from zero: their signs are certain, and worth a factor of two each.
        assert found[place] == pytest.approx(density + 2 * np.log(2), abs=0.05)


@pytest.mark.parametrize("name", ["ranks", "nodes", "p", "workers"])
@pytest.mark.parametrize(
    ("law", "ahead"), [(lambda p: 10 * (0.1 + 0.9 / p), 0.1), (lambda p: 40 / p, 0.2), (lambda p: 0 * p + 7, 0.1)]
)
def test_simple_laws_measured_once(name: str, law, ahead: float) -> None:
    """Amdahl's law, ideal scaling and a constant, each run once with 1 % scatter, four times beyond."""
    x = 2.0 ** np.arange(6)
    times = law(x) * np.exp(0.01 * np.random.default_rng(2).normal(size=6))
    answer = _fit(times[None, :, None], x, name=name).predict(np.array([[128.0]]))
    assert answer.value[0, 0] == pytest.approx(law(128.0), rel=ahead)
    assert answer.lower[0, 0] < law(128.0) < answer.upper[0, 0]
    assert answer.status[0, 0] == 0


def test_another_name_gives_the_same_answer() -> None:
    times = (12 / X + 0.3 * np.sqrt(X))[None, :, None]
    found = [_fit(times, name=name).predict(np.array([[64.0]])) for name in ("ranks", "nodes", "cores", "size")]
    for other in found[1:]:
        np.testing.assert_array_equal(other.value, found[0].value)
        np.testing.assert_array_equal(other.upper, found[0].upper)


def test_three_values_are_enough_for_ideal_scaling() -> None:
    answer = _fit(np.array([[[40.0], [20.2], [10.1]]]), np.array([4.0, 8.0, 16.0]), "nodes").predict([[32.0], [64.0]])
    np.testing.assert_allclose(answer.value[0], [5.05, 2.5], rtol=0.05)


def test_intervals_hold_as_often_as_they_say() -> None:
    """Times with a serial part and 3 % scatter: 90 % of new runs at twice and eight times the ranks are inside."""
    generator = np.random.default_rng(3)
    times = (9 / X + 1)[None, :, None] * np.exp(0.03 * generator.normal(size=(200, 5, 1)))
    asked = np.array([32.0, 128.0])
    truth = (9 / asked + 1) * np.exp(0.03 * generator.normal(size=(200, 2)))
    found = [_fit(each[None]).predict(asked[:, None]) for each in times[:60]]
    inside = [(each.lower[0] < new) & (new < each.upper[0]) for each, new in zip(found, truth, strict=False)]
    assert 0.8 < np.mean(inside) <= 0.99


def test_intervals_widen_with_the_distance_and_shrink_with_repetitions() -> None:
    scatter = np.exp(0.05 * np.random.default_rng(4).normal(size=(20, 5, 9)))
    times = (10 / X + 1)[None, :, None] * scatter
    asked = np.array([[16.0], [32.0], [128.0], [1024.0]])
    many, few = (_fit(times[:, :, :count]).predict(asked) for count in (9, 1))
    for each in (many, few):
        assert (np.diff(np.log(each.upper / each.lower), axis=1) > 0).all()
    # One run each may lie near a curve by chance.
    assert np.median(np.log(many.upper / many.lower)[:, 1]) < np.median(np.log(few.upper / few.lower)[:, 1])


def test_a_billion_ranks_are_not_answered() -> None:
    assert _fit((10 / X + 1)[None, :, None]).predict(np.array([[2.0**30]])).status[0, 0] != 0


def test_what_is_printed_is_what_predicts() -> None:
    generator = np.random.default_rng(5)
    laws = [9 / X + 1, 4 / X + 0.2 * X, 1 + 0.1 * np.log2(X), X**-0.8]
    times = np.array(laws)[:, :, None] * np.exp(0.01 * generator.normal(size=(4, 5, 2)))
    fitted = _fit(times)
    (process,) = fitted.processes
    asked = np.geomspace(1, 16 * 16, 40)
    apart = np.abs(fitted.at_training(asked[:, None]) / np.exp(process.medians(asked[:, None])) - 1).max(axis=1)
    assert (apart <= process.difference + 0.005).all()
    assert (process.difference < 0.03).all()


@pytest.mark.parametrize("level", [lambda p: 1 - 1 / p, lambda p: 1 - p**-0.5, lambda p: p / (p + 2), np.tanh])
def test_growth_that_levels_off_ends(level) -> None:
    """Of a ring, of neighbours at the end of a grid, and of forms that no mean has; the limit is printed as such."""
    times = (8 + 6 * level(X)) * np.exp(0.003 * np.random.default_rng(3).normal(size=5))
    fitted = _fit(times[None, :, None])
    far = np.array([64.0, 256.0])
    answer, true = fitted.predict(far[:, None]), 8 + 6 * level(far)
    assert (np.abs(answer.value[0] / true - 1) < [0.06, 0.15]).all()
    assert (answer.lower[0] < true).all()
    assert (answer.upper[0] > true).all()
    (process,) = fitted.processes
    printed = fitted.at_training(far[:, None]) / np.exp(process.medians(far[:, None]))
    assert printed == pytest.approx(1, abs=process.difference[0] + 0.005)


def test_a_change_within_the_range_is_followed_beyond_it() -> None:
    x = 2.0 ** np.arange(10)
    times = np.where(x < 12, 100 / x, 900 / x)[None, :, None]
    fitted = _fit(times, x)
    assert fitted.below
    assert 8 < fitted.breaks[0, 0] < 16
    assert fitted.predict(np.array([[2048.0]])).value[0, 0] == pytest.approx(900 / 2048, rel=0.05)
    assert fitted.predict(np.array([[3.0]])).value[0, 0] == pytest.approx(100 / 3, rel=0.05)
    smooth = data_of(x[:, None], locate((100 / x + 3)[None, :, None], points=x[:, None]))
    assert np.isnan(changepoints(x, smooth, learned(), np.zeros(len(smooth.logs), dtype=bool))).all()


def test_messages_within_a_node_do_not_spoil_those_beyond() -> None:
    """Runs on one node follow a law of their own in times of messages alone, and where the node's size is known."""
    x = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
    times = np.where(x <= 16, 0.4 * (x / 8) ** 1.2, 3.0 * (1 + 0.3 * np.log2(x / 16)))
    node, far = Domains.inferred(16, ranks_per_node=16), np.array([[512.0]])
    two = Series(("ranks",), x[:, None], np.stack([times, times])[:, :, None], ("MPI_Bcast", "solve"), ("time", "time"))
    fitted = fit_series(two, domains=node)
    beyond = Series(("ranks",), x[2:, None], times[None, 2:, None], ("MPI_Bcast",), ("time",))
    assert fitted.below
    assert 16 < fitted.breaks[0, 0] < 17
    assert np.isnan(fitted.breaks[1]).all()
    beyond_only = fit_series(beyond, domains=node).predict(far)
    assert fitted.predict(far).value[0] == pytest.approx(beyond_only.value[0], rel=0.05)
    assert fitted.predict(far).value[0] == pytest.approx(3.0 * (1 + 0.3 * 5), rel=0.25)
    inside = fitted.predict(np.array([[8.0]]))
    assert inside.lower[0, 0] < 0.4 < inside.upper[0, 0]
    assert fit_series(two).below == ()
    one_law = (0.5 + 0.2 * np.log2(x))[None, :, None]
    same = Series(("ranks",), x[:, None], one_law, ("MPI_Bcast",), ("time",))
    assert fit_series(same, domains=node).below == ()


def test_missing_values_change_nothing_else() -> None:
    times = np.stack([9 / X + 1, 9 / X + 1])[:, :, None]
    times[1, 2] = np.nan
    process = fit_process(X[:, None], locate(times, points=X[:, None]), np.arange(2))
    some = X[[0, 1, 3, 4], None]
    alone = fit_process(some, locate(times[1:, [0, 1, 3, 4]], points=some), np.arange(1))
    far = np.array([[64.0]])
    np.testing.assert_allclose(process.medians(far)[1], alone.medians(far)[0], atol=1e-3)


def test_files_hold_the_same_answers() -> None:
    times = np.stack([9 / X + 1, 3 * X])[:, :, None] * np.exp(0.02 * np.random.default_rng(6).normal(size=(2, 5, 3)))
    fitted = _fit(times)
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    asked = np.array([[3.0], [64.0]])
    np.testing.assert_allclose(again.predict(asked).upper, fitted.predict(asked).upper, rtol=1e-9)


def test_prevalence_learns_what_curves_show() -> None:
    """Curves of one law make its mean the most frequent, and a table that counts for many curves moves little."""
    terms, members = along_one()
    data = _data(np.stack([a / X + b for a, b in zip(np.linspace(2, 20, 30), np.linspace(1, 2, 30), strict=True)]))
    scores = solve.evidence(data, values(terms, X[:, None]), members, SCALES)
    first = unlearned(SCALES)
    found = first.updated(scores, 1.0, 20)
    assert texts_of(terms, members)[found.means.argmax()] == "1 + x^(-1)"
    assert np.abs(np.exp(first.updated(scores, 1e6, 20).means) - np.exp(first.means)).max() < 1e-4
    np.testing.assert_allclose(np.exp(found.means).sum(), 1)


def test_the_table_is_a_distribution() -> None:
    table = learned()
    np.testing.assert_allclose([np.exp(table.means).sum(), np.exp(table.covariances).sum()], 1)
    assert isinstance(table, Prevalence)
    np.testing.assert_allclose([np.exp(table.kinds).sum(), np.exp(table.in_domains.means).sum()], 1)
    assert (np.exp(table.filling) > 0).all()
    assert (np.exp(table.filling) < 1).all()
    assert table.scales.shape == (len(table.covariances), 4)


def test_repetitions_that_agree_are_no_slow_run() -> None:
    """What grows at the last value is a slow run where it was measured once, and growth where three runs show it."""
    x, asked = 2.0 ** np.arange(3, 9), np.array([[256.0], [512.0]])
    times = 312 / x + 1.1 + 6e-5 * x**2
    scatter = np.exp(0.01 * np.random.default_rng(3).standard_normal((6, 3)))
    once, thrice = (_fit((times[:, None] * scatter[:, :runs])[None], x).predict(asked) for runs in (1, 3))
    assert thrice.value[0, 0] == pytest.approx(times[-1], rel=0.1)
    assert thrice.value[0, 1] > 1.4 * times[-1]
    assert once.value[0, 1] < thrice.value[0, 1]


def test_one_slow_run_is_not_growth() -> None:
    """The last of six runs took 40 % longer than the curve of the others, which scatter by 5 %."""
    x = 2.0 ** np.arange(2, 8)
    times = 100 / x * np.exp(0.05 * np.random.default_rng(8).normal(size=6))
    slow = times * np.where(np.arange(6) == 5, 1.4, 1.0)
    asked = np.array([[512.0]])
    said, usual = (_fit(each[None, :, None], x).predict(asked) for each in (slow, times))
    assert usual.value[0, 0] == pytest.approx(100 / 512, rel=0.3)
    assert said.lower[0, 0] < 100 / 512 < said.upper[0, 0]
    assert said.value[0, 0] < 3 * 100 / 512


def test_powers_between_those_listed_are_met() -> None:
    for power in (-0.79, -0.62, -1.13):
        answer = _fit((3 * X**power)[None, :, None]).predict(np.array([[64.0]]))
        assert answer.value[0, 0] == pytest.approx(3 * 64**power, rel=0.02)


def test_a_known_domain_keeps_its_cost_per_work_when_it_is_full() -> None:
    """A time that saturates within a domain of 8 ranks is halved by a second one; without domains it may stay."""
    x = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
    times = (10 / x + 5) * np.exp(0.003 * np.random.default_rng(9).normal(size=6))
    location = locate(times[None, :, None], points=x[:, None])
    domains = Domains(8, 4, 32)
    known, unknown = (fit_process(x[:, None], location, np.arange(1), domains=each) for each in (domains, None))
    asked = np.array([16.0, 32.0])
    full = (10 / 8 + 5) * 8 / asked
    low, middle, high = np.exp(quantiles((0.05, 0.5, 0.95), *known.components(asked[:, None])))
    assert ((low < full) & (full < high)).all()
    assert (np.abs(middle / full - 1) < np.abs(np.exp(unknown.medians(asked[:, None])) / full - 1)).all()
