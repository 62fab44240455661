"""Quantiles of mixtures."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from ranksight.model.uncertainty.mixture import CAUCHY, _bend, quantile, quantiles


def t_cdf(t: Any, freedom: Any) -> Any:
    """Distribution function of Student's t by Wallace's approximation, which the quantiles invert; exact for one."""
    t = np.clip(t, -1e100, 1e100)
    z = np.sqrt(freedom * np.log1p(t * t / freedom)) * _bend(freedom)
    return np.where(freedom < CAUCHY, 0.5 + np.arctan(t) / np.pi, ndtr(np.copysign(z, t)))


@pytest.mark.parametrize("freedom", [1.0, 2.0, 5.0, 100.0])
def test_one_component_has_its_own_quantiles(freedom: float) -> None:
    one = np.ones((1, 1))
    for p in (0.001, 0.05, 0.5, 0.95, 0.999):
        at = quantile(p, one, 3 * one, 0.1 * one, freedom * one)
        assert t_cdf((at - 3) / 0.1, one[0] * freedom)[0] == pytest.approx(p, abs=1e-12)


def test_components_far_apart_have_quantiles_on_the_right_side() -> None:
    weight, centre = np.array([[0.5], [0.5], [0.0]]), np.array([[-1.0], [2.0], [9.0]])
    spread, freedom = np.array([[1e-9], [1e-9], [1.0]]), np.full((3, 1), 5.0)
    assert quantile(0.05, weight, centre, spread, freedom)[0] == pytest.approx(-1, abs=1e-7)
    assert quantile(0.95, weight, centre, spread, freedom)[0] == pytest.approx(2, abs=1e-7)
    assert np.isnan(quantile(0.5, 0 * weight, centre, spread, freedom)[0])
    assert quantile(0.3, np.ones((1, 1)), np.full((1, 1), 4.0), np.zeros((1, 1)), np.ones((1, 1)))[0] == 4.0


def test_what_does_not_spread_has_its_quantiles_at_its_centre() -> None:
    for count in (1, 2):
        zero, one = np.zeros((count, 1)), np.ones((count, 1))
        assert quantiles((0.05, 0.5, 0.95), one / count, zero, zero, 5 * one).tolist() == [[0.0]] * 3


def test_mixtures_of_unlike_size_are_distinguished() -> None:
    weight = np.array([[1.0, 0.3, 0.2], [0.0, 0.7, 0.3], [0.0, 0.0, 0.5]])
    centre, spread = np.array([[0.0], [1.0], [4.0]]) + np.zeros((3, 3)), np.array([[1.0], [0.2], [0.5]]) * np.ones(3)
    freedom = np.full((3, 3), 4.0)
    low, high = quantiles((0.1, 0.9), weight, centre, spread, freedom)
    for column in range(3):
        some = slice(0, column + 1)
        alone = [part[some, column : column + 1] for part in (weight, centre, spread, freedom)]
        assert low[column] == quantile(0.1, *alone)[0]
        assert high[column] == quantile(0.9, *alone)[0]


def test_a_step_does_not_leave_a_narrow_component_behind() -> None:
    """The medians lie in the last thousandth of a narrow component, and flat functions added to it lead over it."""
    generator, n = np.random.default_rng(3), 20_000
    weight = generator.uniform([[0.2], [0.2], [0.001], [0.05]], [[0.4], [0.4], [0.05], [0.2]], (4, n))
    weight /= weight.sum(axis=0)
    centre = generator.uniform([[-20.0], [5.0], [-20.0], [-1.0]], [[-5.0], [20.0], [20.0], [1.0]], (4, n))
    spread = 10 ** generator.uniform([[-8], [-8], [-0.5], [-7]], [[-3], [-3], [1.5], [-5]], (4, n))
    freedom = np.full((4, n), 20.0)
    below = (weight * t_cdf((centre[3] - centre) / spread, freedom)).sum(axis=0) + weight[3] / 2
    moved = below - 0.5 - 10 ** generator.uniform(-6, -4, n)
    weight[0] -= moved
    weight[1] += moved
    whole = (weight > 0).all(axis=0)
    found = quantile(0.5, *(part[:, whole] for part in (weight, centre, spread, freedom)))
    assert whole.sum() > n / 2
    assert np.abs(found - centre[3, whole]).max() < 3e-4


_COMPONENT = st.tuples(
    st.floats(1e-3, 1.0),
    st.floats(-20.0, 20.0),
    st.floats(-9.0, 1.5),
    st.sampled_from([1.0, 1.4, 2.0, 5.0, 20.0, 100.0]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_COMPONENT, min_size=2, max_size=12), st.floats(0.001, 0.999))
def test_quantiles_invert_the_mixture(components: list[tuple[float, float, float, float]], probability: float) -> None:
    weight, centre, spread, freedom = (np.array(column)[:, None] for column in zip(*components, strict=True))
    weight, spread = weight / weight.sum(), 10.0**spread
    at = quantile(probability, weight, centre, spread, freedom)

    def below(x: np.ndarray) -> float:
        return float((weight * t_cdf((x - centre) / spread, freedom)).sum())

    # Where a narrow component makes the distribution jump within the digits of x, the jump is where it belongs. Digits
    # are those of the components' quantiles, the root lying between the least and the largest.
    one = np.ones((1, len(components)))
    ends = quantile(probability, one, centre.T, spread.T, freedom.T)
    reach = np.abs(ends - centre[:, 0]).max() + np.ptp(ends)
    digits = 1e-11 * (1 + np.abs(at)) + 2e-12 * reach
    assert below(at - digits) - 1e-5 <= probability <= below(at + digits) + 1e-5
