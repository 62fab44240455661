"""Special functions of our own agree with scipy's, and the polynomial of the normal tail with its definition."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.special

from ranksight.core import special
from ranksight.model.uncertainty.mixture import MILLS, PIVOT


def test_normal_quantiles_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scipy.special")  # which would compute them itself
    tail = 10.0 ** -np.linspace(0.3, 300, 500)
    probability = np.concatenate([tail, 1 - tail[tail > 1e-16], np.linspace(0, 1, 101), [-1.0, 2.0, np.nan]])
    found = special.ndtri(probability)
    np.testing.assert_allclose(found, scipy.special.ndtri(probability), rtol=1e-14, atol=1e-15)
    assert [special.ndtri(float(p)) for p in probability[:20]] == found[:20].tolist()


def test_normal_distribution_is_that_of_scipy() -> None:
    z = np.linspace(-30, 10, 81)
    np.testing.assert_allclose([special.ndtr(float(each)) for each in z], scipy.special.ndtr(z), rtol=1e-11)
    np.testing.assert_array_equal(special.ndtr(z), scipy.special.ndtr(z))
    assert isinstance(special.ndtr(0.5), np.float64)  # next to short numbers a float would give short ones


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sums_of_logarithms_are_those_of_scipy(axis: int | None) -> None:
    values = 300 * np.random.default_rng(3).normal(size=(4, 5, 6))
    values[0], values[1, 2, 3], values[2, 1, 1] = -np.inf, np.inf, np.nan
    for keep in (False, True):
        ours = special.logsumexp(values, axis=axis, keepdims=keep)
        np.testing.assert_allclose(ours, scipy.special.logsumexp(values, axis=axis, keepdims=keep), rtol=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_the_gamma_function_are_those_of_scipy(order: int) -> None:
    x = 10.0 ** np.linspace(-2, 4, 61)
    np.testing.assert_allclose(special.polygamma(order, x), scipy.special.polygamma(order, x), rtol=1e-14)
    np.testing.assert_array_equal(special.digamma(x), scipy.special.digamma(x))


def test_functions_of_scipy_come_without_its_package_which_still_loads() -> None:
    code = (
        "import sys; from ranksight.core import special; mine = special.gammaln(5.0), special.stdtr(3.0, 1.0)\n"
        "loaded = {'scipy.special', 'numpy.f2py'} & set(sys.modules)\n"
        "import scipy.special, scipy.optimize; from scipy.special import cython_special\n"
        "same = mine == (scipy.special.gammaln(5.0), scipy.special.stdtr(3.0, 1.0)); print(sorted(loaded), same)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] True"


def test_other_functions_come_from_scipy() -> None:
    assert special.gammaln(5.0) == pytest.approx(np.log(24))
    with pytest.raises(AttributeError):
        special.no_such_function  # noqa: B018


def test_polynomial_of_the_normal_tail_is_the_least_squares_one() -> None:
    degree = len(MILLS) - 1
    nodes = np.cos(np.pi * np.arange(1, degree + 1) / degree)
    z = PIVOT * (1 + nodes) / (1 - nodes)
    ratio = np.append((z + PIVOT) * scipy.special.erfcx(z / np.sqrt(2)) / 2, 1 / np.sqrt(2 * np.pi))
    fitted = np.polynomial.chebyshev.chebfit(np.append(nodes, 1.0), ratio, degree)
    np.testing.assert_allclose(np.polynomial.chebyshev.cheb2poly(fitted), MILLS, atol=1e-8)
