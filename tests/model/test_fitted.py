"""Fitted functions: forecasts, abstentions, guidance, and the way to plain data and back."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import join
from ranksight.model.fitting.parallel import share
from ranksight.model.fitting.verify import verify_largest
from ranksight.model.priors import HIDDEN_DIVIDED, HIDDEN_UNDIVIDED
from ranksight.model.search.offer import Listed
from ranksight.model.search.terms import ONE, hypotheses
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.drift import beyond, spreads

X = np.array([2.0, 4.0, 8.0, 16.0, 32.0])


def _one(values: Any, metric: str = "time", x: np.ndarray = X) -> Series:
    values = np.asarray(values, dtype=float)
    values = values.reshape(1, len(x), -1)
    return Series(("p",), x[:, None], values, ("k",), (metric,))


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    generator = np.random.default_rng(1)
    exact = np.stack([5 * X, 2e-3 + 1e-3 * X, 7 * X**0.5, 1e-3 * X**1.5 + 1e-4])
    values = np.repeat(exact[:, :, None], 3, axis=2)
    values[[1, 3]] *= 1 + generator.uniform(-0.02, 0.02, (2, 5, 3))
    names, metrics = ("k", "k", "j", "j"), ("instructions", "time", "instructions", "time")
    return fit_series(Series(("p",), X[:, None], values, names, metrics))


def test_plain_data_keep_every_answer(fitted: Fitted) -> None:
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    points = np.array([[3.0], [64.0], [1024.0]])
    before, after = fitted.predict(points), again.predict(points)
    np.testing.assert_allclose(after.value, before.value, rtol=2e-3)
    np.testing.assert_allclose(after.upper, before.upper, rtol=2e-2)
    assert [again.formula(i) for i in range(4)] == [fitted.formula(i) for i in range(4)]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_hostile_plain_data_are_refused_or_answer(data: st.DataObject) -> None:
    content = json.loads(json.dumps(fit_series(_one(5 * X)).to_dict()))
    broken = copy.deepcopy(content)
    name = data.draw(st.sampled_from(sorted(content)))
    junk = st.one_of(
        st.none(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=True),
        st.text(max_size=5),
        st.lists(st.one_of(st.floats(), st.integers(-5, 10**12), st.text(max_size=3), st.booleans()), max_size=6),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    )
    broken[name] = data.draw(junk)
    with contextlib.suppress(InputError):
        answer = Fitted.from_dict(broken).predict(np.array([[64.0]]))
        assert answer.value.shape[1] == 1


def test_standard_errors_are_those_of_the_regression() -> None:
    generator = np.random.default_rng(8)
    x = np.linspace(1, 10, 40)
    values = (3 + 2 * x) * (1 + 0.01 * generator.normal(size=40))
    line = Listed(hypotheses([((ONE,), ((1.0, 0.0, 0.0),))], [0.0]))
    fitted = fit_series(_one(values, "instructions", x), space=line)
    design = np.stack([np.ones(40), x], axis=1) / values[:, None]
    covariance = np.linalg.inv(design.T @ design)
    rest = 1 - design @ (covariance @ design.T @ np.ones(40))
    expected = np.sqrt(np.diag(covariance) * (rest @ rest) / 38)
    errors = [error for _, _, error in fitted.coefficients(0)]
    np.testing.assert_allclose(errors, expected, rtol=0.05)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([1.0, 2.0, np.nan, np.nan, np.nan], forecast.FEW_POINTS),
        ([np.nan] * 5, forecast.NO_DATA),
    ],
)
def test_too_little_is_refused(values: list[float], code: int) -> None:
    answer = fit_series(_one(values)).predict(np.array([[64.0]]))
    assert answer.status[0, 0] == code
    assert answer.reason[0, 0]


def test_zeros_constants_and_missing_points_are_handled() -> None:
    assert fit_series(_one([0.0] * 5)).predict(np.array([[64.0]])).value[0, 0] == 0
    answer = fit_series(_one([3.0] * 5, "visits")).predict(np.array([[64.0]]))
    assert answer.value[0, 0] == pytest.approx(3.0, rel=1e-12)
    assert answer.status[0, 0] == forecast.OK
    gap = fit_series(_one([4.0, 8.0, np.nan, 32.0, 64.0], "visits"))
    assert gap.formula(0) == "2 * p"


def test_negative_values_are_fitted_without_a_limit() -> None:
    answer = fit_series(_one(3 - 2 * X, "balance")).predict(np.array([[64.0]]))
    assert answer.value[0, 0] == pytest.approx(-125, rel=0.02)


def test_a_time_that_falls_never_falls_below_zero() -> None:
    x = 4.0 ** np.arange(5)
    fitted = fit_series(_one(10 * x**-0.25 - 1.5, x=x))
    assert (fitted.predict(np.array([[1e6]])).value > 0).all()
    held = fitted.weight[0] > 0
    # Whatever the form, its slowest decay or the constant is what is left in the end.
    last = np.take_along_axis(fitted.coefficient[0], ((fitted.members[0] >= 0).sum(axis=1) - 1)[:, None], axis=1)[:, 0]
    assert (last[held] > 0).all()


def test_parameter_that_was_not_varied_is_refused_elsewhere() -> None:
    points = np.stack([X, np.full(5, 48.0)], axis=1)
    series = Series(("ranks", "size"), points, (5 * X).reshape(1, 5, 1), ("k",), ("visits",))
    answer = fit_series(series).predict(np.array([[64.0, 48.0], [64.0, 96.0]]))
    assert answer.status[0].tolist() == [forecast.OK, forecast.UNVARIED]
    assert "size took one value" in answer.reason[0, 1]


def test_a_remark_names_few_requirements() -> None:
    metrics = ("time", "visits", "instructions", "loads", "stores", "loads_l1")
    values = np.stack([X * n for n in range(1, len(metrics) + 1)])[:, :, None]
    said = fit_series(Series(("p",), X[:, None], values, ("k",) * len(metrics), metrics)).notes(frozenset({"k"}))
    assert said[0] == "grows as visits, instructions, loads and 2 more"


def test_parameter_of_zero_under_a_logarithm() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])
    fitted = fit_series(_one(3 + 2 * x, "visits", x))
    assert fitted.predict(np.array([[32.0]])).value[0, 0] == pytest.approx(67)
    assert fit_series(_one(5 * X)).predict(np.array([[0.0]])).status[0, 0] == forecast.DOMAIN


def test_noise_above_the_signal_is_named() -> None:
    generator = np.random.default_rng(3)
    values = 1e-3 * (1 + 0.9 * generator.uniform(-1, 1, (1, 5, 3)))
    answer = fit_series(_one(values)).predict(np.array([[4096.0]]))
    assert answer.status[0, 0] == forecast.NOISE
    assert "noise above the signal" in answer.reason[0, 0]


def test_times_are_compared_with_their_requirements(fitted: Fitted) -> None:
    said = fitted.notes(frozenset(fitted.kernels))
    assert said[1] == "grows as instructions"
    assert said[3].startswith("grows faster than every requirement")


def test_verification_keeps_the_largest_back() -> None:
    series = _one((3 + 2 * X) * 1.0, "visits")
    checked = verify_largest(series)
    assert checked.parameter == "p"
    assert checked.points.tolist() == [[32.0]]
    assert checked.error[0, 0] < 1e-4
    assert checked.covered.all()
    with pytest.raises(InputError, match="took 3 values"):
        verify_largest(series.at(np.arange(3)))


def test_nothing_that_is_predicted_as_nothing_is_met() -> None:
    checked = verify_largest(_one(0.0 * X, "visits"))
    assert checked.error.tolist() == [[0.0]]
    assert checked.covered.all()


def test_shares_give_what_one_fit_gives() -> None:
    generator = np.random.default_rng(6)
    values = generator.uniform(1, 9, (40, 1, 1)) * X[None, :, None] ** generator.choice([0.5, 1.0, 2.0], (40, 1, 1))
    series = Series(("p",), X[:, None], values, tuple(f"k{i}" for i in range(40)), ("visits",) * 40)
    whole = fit_series(series)
    rows = [np.arange(0, 40, 2), np.arange(1, 40, 2)]
    joined = join([fit_series(series.select(r)) for r in rows], rows)
    assert joined.kernels == whole.kernels
    np.testing.assert_allclose(joined.predict(np.array([[64.0]])).value, whole.predict(np.array([[64.0]])).value)


def test_shares_keep_a_kernel_together() -> None:
    values = np.ones((8, len(X), 1))
    series = Series(("p",), X[:, None], values, ("a", "b", "c", "d") * 2, ("visits",) * 4 + ("time",) * 4)
    shares = share(series, 3)
    assert sorted(np.concatenate(shares)) == list(range(8))
    assert len(shares) == 2
    assert all(
        {series.kernels[i] for i in one}.isdisjoint({series.kernels[i] for i in shares[1]}) for one in shares[:1]
    )


@pytest.mark.slow
def test_processes_and_a_dask_cluster_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from ranksight.model.fitting import fit_series as fitting
    from ranksight.model.fitting import parallel

    generator = np.random.default_rng(3)
    values = np.arange(1.0, 9.0)[:, None, None] * X[None, :, None] * generator.lognormal(0, 0.1, (8, len(X), 3))
    series = Series(("p",), X[:, None], values, tuple(f"k{i}" for i in range(8)), ("visits",) * 8)
    monkeypatch.setattr(fitting, "MANY", 8)
    monkeypatch.setattr(parallel.share, "__defaults__", (4,))
    far = np.array([[1000.0]])
    alone = fit_series(series).predict(far)
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        answers = [fit_series(series, jobs=2), fit_series(series, dask=cluster.scheduler_address)]
    for answer in answers:
        for name in ("value", "lower", "upper"):
            np.testing.assert_array_equal(getattr(answer.predict(far), name), getattr(alone, name))


def test_hidden_parameters_far_outside_widen_the_answer() -> None:
    x = np.array([64.0, 128.0, 256.0, 512.0, 1024.0])
    hidden = np.stack([6144 / x, np.full(5, 32.0)], axis=1)
    series = Series(("x",), x[:, None], (5 + 0.3 * x)[None, :, None], ("k",), ("time",), hidden=hidden)
    fitted = Fitted.from_dict(json.loads(json.dumps(fit_series(series).to_dict())))
    point = np.array([[256.0]])
    near, far = (fitted.predict(point, hidden=np.array([h])) for h in ([24.0, 32.0], [6144.0, 512.0]))
    assert near.upper[0, 0] == fitted.predict(point).upper[0, 0]
    assert far.value[0, 0] == near.value[0, 0]
    assert far.upper[0, 0] / far.lower[0, 0] > 1.25 * near.upper[0, 0] / near.lower[0, 0]
    # Waiting does not shrink with more ranks: the answer is open upwards.
    assert far.upper[0, 0] / far.value[0, 0] > 1.1 * far.value[0, 0] / far.lower[0, 0]
    # What does not follow the work per rank is communication, which the rank count decides.
    waiting = Series(("x",), x[:, None], (5 + 0.003 * x)[None, :, None], ("k",), ("time",), hidden=hidden)
    other = fit_series(waiting).predict(point, hidden=np.array([[6144.0, 512.0]]))
    assert other.upper[0, 0] / other.lower[0, 0] > 2 * far.upper[0, 0] / far.lower[0, 0]
    # What waited at the smallest work per rank waits at the largest, too, where it hardly shows.
    top = fit_series(waiting).predict(np.array([[1024.0]]), hidden=np.array([[6144.0, 1024.0]]))
    assert top.upper[0, 0] > 20
    with pytest.raises(InputError, match="hidden values of shape"):
        fitted.predict(point, hidden=np.array([[1.0]]))


def test_hidden_parameters_below_their_range_leave_less_to_wait_for() -> None:
    above, below = beyond(np.array([[768.0], [3.0], [48.0]]), np.array([[6.0, 96.0]]))
    np.testing.assert_allclose(above, [np.log(8), 0, 0])
    np.testing.assert_allclose(below, [0, np.log(2), 0])
    fall, rise = spreads(above, below, np.ones((1, 3)), np.ones(1))
    assert rise[0, 0] == pytest.approx(np.hypot(HIDDEN_DIVIDED, HIDDEN_UNDIVIDED) * np.log(8))
    assert fall[0, 0] == pytest.approx(HIDDEN_DIVIDED * np.log(8))
    assert fall[0, 1] > rise[0, 1] > 0
    assert fall[0, 2] == rise[0, 2] == 0


def test_growth_that_no_point_shows_is_unknown_as_known() -> None:
    # Nearly flat counts over few ranks and two sizes: jitter of a few per cent must not become an explosion.
    points = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0) for n in (8.0, 16.0)])
    values = np.array([24.3, 24.8, 24.8, 24.3, 24.3, 24.8, 24.8, 25.3])
    answer = fit_series(Series(("ranks", "size"), points, values[None, :, None], ("k",), ("loads_mem",))).predict(
        np.array([[16.0, 16.0], [1024.0, 16.0]])
    )
    np.testing.assert_allclose(answer.value[0], 24.8, rtol=0.1)
    assert answer.status[0, 1] != forecast.OK or answer.upper[0, 1] < 100


def test_first_configuration_of_another_regime() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    values = np.array([0.0339, 0.0972 / 2, 0.0972 / 3, 0.0972 / 4, 0.0972 / 5])
    answer = fit_series(_one(values, x=x)).predict(np.array([[10.0]]))
    assert answer.lower[0, 0] <= 0.00972 <= answer.upper[0, 0]


@pytest.mark.parametrize(("least", "reads"), [(1e-15, "5 * p"), (-1e-9, "5 * p"), (1e-7, "1e-07 + 5 * p")])
def test_what_rounding_left_is_not_written(least: float, reads: str) -> None:
    sums = hypotheses([((ONE,), ((1.0, 0.0, 0.0),))], [0.0])
    fitted = fit_series(_one(5 * X, metric="instructions"), space=Listed(sums))
    assert len(fitted.leading(0)) == 2
    coefficient = fitted.coefficient.copy()
    coefficient[0, 0] = np.where(fitted.terms[fitted.members[0, 0], 0, 0] > 0, 5.0, least)
    rounded = replace(fitted, coefficient=coefficient)
    assert rounded.formula(0) == reads
    assert len(rounded.coefficients(0)) == reads.count("+") + 1


def test_what_is_zero_everywhere_reads_as_zero() -> None:
    assert fit_series(_one([0.0] * 5, metric="loads_mem")).formula(0) == "0"


def test_shares_of_the_form_weigh_by_variance() -> None:
    one, zero = np.ones(2), np.zeros(2)
    found = forecast.form_of((np.array([3.0, 0.0]), one), (np.array([1.0, 0.0]), zero))
    assert found == pytest.approx([0.75, 0.0])
    assert forecast.form_of((one, np.array([np.nan, 0.5]))) == pytest.approx([0.0, 0.5])
