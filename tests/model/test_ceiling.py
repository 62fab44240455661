"""Times that fall ideally and then hit a ceiling: the next ranks may bring nothing, or domains of their own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.ceiling import between
from ranksight.model.uncertainty.forecast import OK

DENSE = np.arange(1.0, 19.0)
POWERS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def _law(x: np.ndarray, cores: float, saturated: float, sharp: float) -> np.ndarray:
    """Times on compact ranks of domains that `saturated` of their `cores` fill."""
    return ((1 / x) ** sharp + (1 / (saturated * np.maximum(x / cores, 1))) ** sharp) ** (1 / sharp)


def _fit(x: np.ndarray, time: np.ndarray, parameter: str = "ranks") -> Fitted:
    rng = np.random.default_rng(5)
    values = time[None, :, None] * np.exp(0.01 * rng.standard_normal((1, len(x), 3)))
    return fit_series(Series((parameter,), x[:, None], values, ("k",), ("time",)))


def _full(fitted: Fitted) -> float:
    assert fitted.lasting is not None
    return float(fitted.lasting.full[0])


@pytest.mark.parametrize("x", [DENSE, POWERS])
@pytest.mark.parametrize("sharp", [3.0, 9.0])
def test_whether_the_next_ranks_bring_a_domain_or_not_is_left_open(x: np.ndarray, sharp: float) -> None:
    fitted = _fit(x, _law(x, x[-1], x[-1] / 2.5, sharp))
    assert _full(fitted) > 0.5
    ahead = x[-1] * np.array([2.0, 4.0])
    said = fitted.predict(ahead[:, None])
    for cores in (x[-1], 8 * x[-1]):
        truth = _law(ahead, cores, x[-1] / 2.5, sharp)
        assert ((said.lower[0] <= truth) & (truth <= said.upper[0])).all()
    # A factor of four, which a ceiling leaves open at four times the ranks, is no answer.
    assert said.status[0, 1] != OK


def test_a_knee_within_many_ranks_is_no_break_to_a_constant() -> None:
    fitted = _fit(DENSE, _law(DENSE, 18, 6, 15.0))
    assert fitted.below is not None
    said = fitted.predict(np.array([[36.0]]))
    assert said.lower[0, 0] < 1 / 12 < 1 / 6 < said.upper[0, 0]


@pytest.mark.parametrize("serial", [0.0, 0.02, 0.2])
def test_serial_work_is_no_ceiling(serial: float) -> None:
    assert _full(_fit(DENSE, serial + (1 - serial) / DENSE)) < 0.05


@pytest.mark.parametrize("law", [np.ones_like, np.sqrt, lambda x: 1 / x + 0.002 * x, lambda x: x ** (-1 / 2)])
def test_what_hits_nothing_has_no_ceiling(law: object) -> None:
    assert callable(law)
    assert _full(_fit(DENSE, law(DENSE))) < 0.05


def test_more_ranks_than_a_domain_has_fill_none() -> None:
    far = 100 * POWERS
    assert _full(_fit(far, _law(far, far[-1], far[-1] / 2, 9.0))) < 0.05 < _full(_fit(POWERS, _law(POWERS, 16, 8, 9.0)))


def test_sizes_fill_no_domain() -> None:
    sizes, ranks = (_fit(DENSE, _law(DENSE, 18, 7, 4.0), name) for name in ("size", "ranks"))
    at = np.array([[36.0]])
    assert ranks.predict(at).lower[0, 0] < 0.75 * sizes.predict(at).lower[0, 0]


def test_between_nothing_and_the_ideal_share() -> None:
    said = between(8.0, np.array([[4.0, 16.0, 80.0]]), np.full((1, 3), np.log(3.0)), np.array([0.7]))
    np.testing.assert_allclose(said.share, [[0, 0.7, 0.7]])
    np.testing.assert_allclose(np.exp(said.centre[0, 1:]), 3 / np.sqrt([2, 10]))
    np.testing.assert_allclose(np.exp(said.centre + said.spread)[0, 1:], 3)


def test_a_model_file_keeps_ceilings() -> None:
    fitted = _fit(DENSE, _law(DENSE, 18, 7, 4.0))
    content = json.loads(json.dumps(fitted.to_dict()))
    at = np.array([[36.0]])
    np.testing.assert_allclose(Fitted.from_dict(content).predict(at).lower, fitted.predict(at).lower, rtol=1e-6)
    content["lasting"]["full"] = [1.5]
    with pytest.raises(InputError):
        Fitted.from_dict(content)
