"""Tests of times over several coordinates."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from ranksight.core.arrays import Array
from ranksight.model.fitting import outcome
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.process import products as term_products
from ranksight.model.process import several
from ranksight.model.process.compare import SMOOTHING
from ranksight.model.process.prevalence import learned
from ranksight.model.process.products import numbered, products
from ranksight.model.process.several import grown
from ranksight.model.process.solve import Data, evidence, smoothed
from ranksight.model.search.terms import values
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK, WIDE
from ranksight.model.uncertainty.mixture import quantile

GRID = np.array([(p, n) for p in (2.0, 4.0, 8.0, 16.0) for n in (32.0, 48.0, 64.0, 96.0)])
FAR = np.array([(64.0, 96.0), (16.0, 384.0), (64.0, 384.0)])
Law = Callable[[Array, Array], Array]
LAWS: dict[str, Law] = {
    "divided": lambda p, n: n**3 / p,
    "serial": lambda p, n: n**3 * (1 / p + 0.03),
    "faces": lambda p, n: n**3 / p + 4 * (n**3 / p) ** (2 / 3),
    "tree": lambda p, n: n**3 / p + 9e3 * np.log2(p),
    "start": lambda p, n: n**3 / p + 2e4,
    "size alone": lambda p, n: n**2.4,
}


def _fit(times: Array, points: Array = GRID, names: tuple[str, ...] = ("ranks", "size")) -> Fitted:
    count = len(times)
    return fit_series(Series(names, points, times, tuple(f"k{i}" for i in range(count)), ("time",) * count))


def _scattered(law: Law, points: Array, scatter: float, seed: int = 1) -> Array:
    times = law(*points.T)[None, :, None]
    return np.asarray(times * np.exp(scatter * np.random.default_rng(seed).normal(size=(1, len(points), 3))))


@pytest.mark.parametrize("name", LAWS)
def test_simple_laws_are_met_at_four_times_both(name: str) -> None:
    law = LAWS[name]
    answer = _fit(_scattered(law, GRID, 0.01)).predict(FAR)
    truth = law(*FAR.T)
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.15)
    assert ((answer.lower[0] < truth) & (truth < answer.upper[0])).mean() > 0.6


def test_names_and_the_order_of_parameters_mean_nothing() -> None:
    times = _scattered(LAWS["faces"], GRID, 0.02)
    first = _fit(times).predict(FAR)
    second = _fit(times, GRID[:, ::-1], ("a", "b")).predict(FAR[:, ::-1])
    np.testing.assert_allclose(first.value, second.value, rtol=1e-6)


def test_one_slow_run_is_no_growth() -> None:
    """The last run of a design took twice as long as it should: a term that begins there is no explanation."""
    times = _scattered(LAWS["tree"], GRID, 0.01)
    usual = _fit(times).predict(FAR).value
    times[0, -1] *= 2
    assert (np.abs(np.log(_fit(times).predict(FAR).value / usual)) < np.log(1.5)).all()


def test_intervals_hold() -> None:
    """Over laws that are no sum of listed terms, 90 % intervals hold as often as they say, and are not much wider."""
    laws: list[Law] = [
        lambda p, n: n**2.83 / p**0.91,
        lambda p, n: n**3 / p * (1 + 0.5 * (1 - np.exp(-p / 6))),
        lambda p, n: n**3 * np.log2(n) / p + 300 * n,
    ]
    inside = []
    for number, law in enumerate(laws * 4):
        answer = _fit(_scattered(law, GRID, 0.02, number)).predict(FAR)
        truth = law(*FAR.T)
        inside.append((answer.lower[0] < truth) & (truth < answer.upper[0]))
        assert (answer.upper / answer.lower < 6).all()
    assert np.mean(inside) > 0.8


def test_added_terms_raise_the_evidence_as_solved_together() -> None:
    """Where coefficients are far above zero, a sum that was grown has the evidence that it has when solved whole."""
    logs = np.log(LAWS["tree"](*GRID.T))[None] + 0.003 * np.random.default_rng(2).normal(size=(1, len(GRID)))
    data = smoothed(
        Data(np.log(GRID / GRID.min(axis=0)), logs, np.full(logs.shape, 1e-5), logs, np.ones(logs.shape)), SMOOTHING
    )
    terms = products(GRID, data)
    at = values(terms.terms, GRID)
    members, prior = grown(data, at, terms, learned())
    assert np.isfinite(prior[0, 0])
    best = [tuple(map(tuple, term[:, :2])) for term in terms.terms[0][members[0, 0][members[0, 0] >= 0]]]
    assert ((-1, 0), (3, 0)) in best
    assert ((0, 1), (0, 0)) in best
    coarse = learned().coarse
    scores = evidence(data, at, members[:, :3], coarse.scales)
    again = evidence(data, at[0], members[0, :3], coarse.scales)
    np.testing.assert_allclose(scores, again)


def test_numbers_of_terms_lead_back() -> None:
    data = Data(np.log(GRID / 2), *np.zeros((3, 1, 16)), np.ones((1, 16)))
    terms = products(GRID, data)
    members = np.arange(terms.factors.shape[1])[None]
    np.testing.assert_allclose(numbered(terms.numbers(members)[0], GRID), terms.terms[0])


def test_work_that_is_divided_grows_with_the_size() -> None:
    factors = {each: at for at, each in enumerate(term_products.FACTORS)}
    one, fall, cube = term_products.ONE, (-1.0, 0.0, 0.0), (3.0, 0.0, 0.0)
    terms = term_products.Products(
        term_products.offered_along(np.ones((1, 2))),
        np.array([[[factors[a], factors[b]] for a, b in ((fall, one), (one, cube), (fall, cube))]]),
    )
    apart, together = terms.prior(np.array([[[0, 1, -1], [2, -1, -1]]]))[0]
    alone = terms.prior(np.array([[[0, -1, -1]]]))[0, 0]
    assert apart < alone
    assert apart < together


def test_three_parameters_and_files() -> None:
    points = np.array([(p, t, n) for p in (2.0, 4.0, 8.0) for t in (1.0, 2.0, 4.0) for n in (32.0, 64.0, 128.0)])
    times = (points[:, 2] ** 3 / points[:, 0] / points[:, 1] + 5e3)[None, :, None]
    fitted = _fit(times, points, ("ranks", "threads", "size"))
    far = np.array([[16.0, 8.0, 256.0]])
    assert fitted.predict(far).value[0, 0] == pytest.approx(256**3 / 128 + 5e3, rel=0.05)
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.predict(far).value, fitted.predict(far).value)


@pytest.mark.parametrize("slowed", [False, True])
def test_one_slow_run_is_looked_for_where_it_may_be(slowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that takes 1.4 times as long is found without repetitions; and where no run is off, none is tried."""
    points = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0) for n in (16.0, 32.0, 64.0)])
    times = 1e-3 * points[:, 1] ** 2 / points[:, 0] + 0.2
    times *= np.exp(0.004 * np.random.default_rng(1).normal(size=len(points)))
    times[5] *= 1.4 if slowed else 1.0
    tried = []
    smoothed = several.smoothed
    monkeypatch.setattr(several, "smoothed", lambda *asked: tried.append(len(asked[0].logs)) or smoothed(*asked))
    series = Series(("ranks", "size"), points, times[None, :, None], ("kernel",), ("time",))
    answer = fit_series(series).predict(np.array([[16.0, 128.0]]))
    assert sum(tried) == slowed
    assert answer.value[0, 0] == pytest.approx(1e-3 * 128**2 / 16 + 0.2, rel=0.03)


@pytest.mark.parametrize("law", [lambda n: 100 + 0.1 * n**3, lambda n: 3 * n + n**2, lambda n: n**2.2])
def test_two_sizes_leave_open_how_a_law_bends_between_and_beyond_them(law: Callable[[float], float]) -> None:
    points = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0) for n in (10.0, 20.0)])
    times = np.array([law(n) / p for p, n in points])
    asked = np.array([(8.0, 10.0), (8.0, 12.0), (8.0, 15.0), (16.0, 20.0), (8.0, 40.0)])
    answer = _fit(times[None, :, None], points).predict(asked)
    truth = np.array([law(n) / p for p, n in asked])
    assert (answer.lower[0] < truth).all()
    assert (truth < answer.upper[0]).all()
    width = (answer.upper / answer.lower)[0]
    # Where it was measured, and on further ranks there, nothing is left open.
    assert width[[0, 3]].max() < width[1] < width[2] < width[4]


ONE_RANK = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0) for n in (1e5, 2e5, 4e5)])


@pytest.mark.parametrize("scatter", [0.01, 0.2])
def test_times_that_one_rank_has_next_to_nothing_of_are_met_where_they_were_measured(scatter: float) -> None:
    ranks, size = ONE_RANK.T
    truth = np.where(ranks == 1, 1e-4, 0.02 * np.log2(ranks) + 1e-6 * size * ranks)
    times = truth * np.exp(scatter * np.random.default_rng(1).normal(size=len(truth)))
    answer = _fit(times[None, :, None], ONE_RANK).predict(ONE_RANK)
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.1 + 3 * scatter)
    assert ((answer.lower[0] < truth) & (truth < answer.upper[0])).mean() > 0.8


@pytest.mark.parametrize("scatter", [1.0, 2.0])
def test_what_scatters_by_factors_is_not_known_to_less(scatter: float) -> None:
    times = np.exp(scatter * np.random.default_rng(0).normal(size=(8, len(ONE_RANK), 1)))
    answer = _fit(times, ONE_RANK).predict(ONE_RANK)
    assert (answer.status != OK).mean() > 0.9
    inside = (answer.lower < times[..., 0]) & (times[..., 0] < answer.upper)
    assert 0.8 < inside.mean() < 1.0


def test_a_process_that_misses_its_own_runs_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _fit(_scattered(LAWS["tree"], GRID, 0.01)).predict(GRID)
    assert (known.status == OK).all()
    monkeypatch.setattr(outcome, "quantile", lambda *given: quantile(*given) + 3)
    missed = _fit(_scattered(LAWS["tree"], GRID, 0.01)).predict(GRID)
    assert (missed.status == WIDE).all()
