"""Departures from functions that go on beyond the values they were seen at."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model import priors
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.lasting import Lasting

X = np.geomspace(4.0, 256.0, 7)


def _weights(known: Lasting, points: list[float]) -> np.ndarray:
    found = known.carried(np.ones((1, len(X))), np.array(points)[:, None])
    assert found is not None
    # A departure of one at each of the values in turn.
    logs, one = np.where(np.isnan(known.logs), np.nan, np.eye(len(X))[:, None]), np.ones((1, 1, 1))
    return np.stack([replace(found, logs=each).of(0 * one.astype(np.intp), one)[0, 0] for each in logs], axis=1)


def _known(part: float, logs: np.ndarray) -> Lasting:
    return Lasting(X[:, None], logs[None], np.array([part]), np.zeros(1, dtype=np.intp))


def _correlation(ratio: np.ndarray) -> np.ndarray:
    return np.asarray(priors.CORRELATED * np.exp(-np.abs(np.log(ratio)) / priors.CORRELATION_LENGTH))


def test_the_residual_of_one_value_decays_with_the_distance() -> None:
    logs = np.full(len(X), np.nan)
    logs[-1] = 0.0
    ratio = np.array([2.0, 8.0, 1.0])
    found = _weights(_known(0.5, logs), (256.0 * ratio).tolist())
    np.testing.assert_allclose(found[:, -1], 0.5 * _correlation(ratio), atol=1e-12)
    np.testing.assert_allclose(found[:, :-1], 0.0, atol=1e-12)


def test_two_values_share_what_is_between_them() -> None:
    logs = np.full(len(X), np.nan)
    logs[[1, 2]] = 0.0
    found = _weights(_known(1.0, logs), [np.sqrt(8.0 * 16.0)])[0]
    near, apart = _correlation(np.array([np.sqrt(2.0), 2.0]))
    np.testing.assert_allclose(found[[1, 2]], near / (1 + apart), rtol=1e-9)


def test_noise_and_missing_values_carry_nothing_on() -> None:
    assert _known(0.0, np.zeros(len(X))).carried(np.ones((1, len(X))), X[:, None]) is None
    logs = np.zeros(len(X))
    logs[-1] = np.nan
    found = _weights(_known(0.5, logs), [512.0])[0]
    assert found[-1] == 0
    assert 0 < found[-2] < 0.5


def _program(lasts: bool) -> tuple[Series, np.ndarray]:
    """Kernels whose times 5 + x are off by waves, or by scatter between runs; and what comes next."""
    generator = np.random.default_rng(4)
    x = np.append(np.geomspace(4.0, 512.0, 8), 640.0)
    waves = np.sin(generator.uniform(1, 2.5, (60, 1)) * np.log(x) + generator.uniform(0, 2 * np.pi, (60, 1)))
    off = 0.15 * (waves if lasts else generator.normal(size=(60, 9)))
    values = ((5 + x) * np.exp(off))[:, :, None] * np.exp(0.005 * generator.normal(size=(60, 9, 3)))
    series = Series(("p",), x[:-1, None], values[:, :-1], tuple(f"k{i}" for i in range(60)), ("loads_mem",) * 60)
    return series, values[:, -1].mean(axis=1)


@pytest.mark.parametrize("lasts", [True, False])
def test_departures_are_carried_on_where_they_last(lasts: bool) -> None:
    series, measured = _program(lasts)
    fitted = fit_series(series)
    assert fitted.lasting is not None
    points = np.array([[640.0]])
    carried = fitted.predict(points).value[:, 0]
    plain = replace(fitted, lasting=None).predict(points).value[:, 0]
    with_it, without = (np.abs(np.log(value / measured)).mean() for value in (carried, plain))
    assert with_it < (0.95 if lasts else 1.05) * without


def test_scatter_of_repetitions_is_not_predicted_on() -> None:
    generator = np.random.default_rng(0)
    x = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    values = 3 * x[None, :, None] * (1 + 0.05 * generator.normal(size=(200, 5, 5)))
    fitted = fit_series(Series(("p",), x[:, None], values, tuple(f"k{i}" for i in range(200)), ("loads_mem",) * 200))
    assert fitted.lasting is not None
    assert np.median(fitted.lasting.part) < 0.1


def test_plain_data_keep_what_is_carried_on() -> None:
    series, _ = _program(True)
    points = np.array([[300.0], [1024.0]])
    fitted = fit_series(series)
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.predict(points).value, fitted.predict(points).value, rtol=1e-6)
    content = fitted.to_dict()
    content["lasting"]["part"][0] = 7.0
    with pytest.raises(InputError, match="'lasting' does not fit together"):
        Fitted.from_dict(content)


def test_a_parameter_that_did_not_vary_changes_nothing() -> None:
    series, _ = _program(True)
    points = np.column_stack([np.full(len(series.points), 100.0), series.points[:, 0]])
    both = fit_varied(replace(series, parameters=("size", "p"), points=points))
    alone = fit_series(series, segments=False)
    np.testing.assert_allclose(
        both.predict(np.array([[100.0, 1024.0]])).value, alone.predict(np.array([[1024.0]])).value, rtol=1e-9
    )
