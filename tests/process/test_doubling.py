"""Parameters that count doublings: levels of refinement, the scale of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.core.arrays import Array
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.process import prevalence
from ranksight.model.search.terms import DOUBLING, beyond_doubling
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.formula import latex, python, readable

Law = Callable[[Array], Array]


def _fit(points: Array, exact: Array, metric: str = "time", scatter: float = 0.01, seed: int = 1) -> Fitted:
    noise = np.exp(scatter * np.random.default_rng(seed).normal(size=(1, len(points), 3)))
    names = ("ranks", "refinement")[-points.shape[1] :]
    return fit_series(Series(names, points, exact[None, :, None] * noise, ("k",), (metric,)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("steps", "law"),
    [
        ((18, 19, 20, 21, 22), lambda x: 1e-7 * 2**x),
        ((16, 18, 20, 22), lambda x: 0.01 + 2e-9 * x * 2**x),
        ((2, 3, 4, 5), lambda x: 0.01 * 8**x),
        ((4, 5, 6, 7, 8), lambda x: 0.5 + 1e-4 * 4**x),
    ],
)
def test_times_double_with_every_step(steps: tuple[int, ...], law: Law, seed: int) -> None:
    """At most the next but one step was 50 to 95 % too low, and known."""
    x = np.array(steps, dtype=np.float64)
    asked = x[-1:] + np.array([0.0, 1.0, 2.0])
    answer = _fit(x[:, None], law(x), seed=seed).predict(asked[:, None])
    assert (answer.status == OK).all()
    np.testing.assert_allclose(answer.value[0], law(asked), rtol=0.06)
    assert ((answer.lower[0] < 1.01 * law(asked)) & (law(asked) < 1.01 * answer.upper[0])).all()


def test_ranks_divide_what_doubles_with_every_level() -> None:
    ranks, level = (each.ravel() for each in np.meshgrid([1.0, 2, 4, 8, 16], [3.0, 4, 5, 6]))
    points, asked = np.column_stack([ranks, level]), np.array([[32.0, 7], [64, 6], [16, 8]])

    def law(p: Array, n: Array) -> Array:
        return np.asarray(1e-5 * 8**n / p + 0.002 * np.log2(p) + 0.01)

    answer = _fit(points, law(*points.T)).predict(asked)
    np.testing.assert_allclose(answer.value[0], law(*asked.T), rtol=0.06)
    counts = _fit(points, 1e4 * 8**level / ranks, "instructions", scatter=0).predict(asked)
    np.testing.assert_allclose(counts.value[0], 1e4 * 8 ** asked[:, 1] / asked[:, 0], rtol=1e-6)


@pytest.mark.parametrize("law", [lambda x: 1000 * 8**x, lambda x: 512 * 4**x + 100 * 2**x, lambda x: 16 * x * 2**x])
def test_counts_double_with_every_level(law: Law) -> None:
    x, asked = np.array([3.0, 4, 5, 6, 7]), np.array([8.0, 10.0])
    fitted = _fit(x[:, None], law(x), "instructions", scatter=0)
    np.testing.assert_allclose(fitted.predict(asked[:, None]).value[0], law(asked), rtol=1e-6)
    at = [eval(python(fitted.formula(0), ("refinement",)), {"refinement": level}) for level in asked.tolist()]
    np.testing.assert_allclose(at, law(asked), rtol=1e-3)


def test_the_base_is_printed() -> None:
    text = _fit(np.arange(2.0, 7)[:, None], 1000 * 8 ** np.arange(2.0, 7), "instructions", scatter=0).formula(0)
    assert readable(text) == "1e3 · 8^refinement"
    assert "2^{3 " in latex(text)


def test_what_is_doubled_itself_counts_no_doublings() -> None:
    terms = np.array(DOUBLING)[:, None]
    for x in ((1.0, 2, 4), (4.0, 8, 16, 32), (1.0, 2, 4, 7), (100.0, 200, 300), (5.0,)):
        assert beyond_doubling(terms, np.array(x)[:, None]).all()
    assert not beyond_doubling(terms, np.arange(3.0, 7)[:, None]).any()
    # A step of four makes 64 times of it at a rate of three halves.
    many = [not 1 <= rate <= 1.5 for _, _, rate in DOUBLING]
    assert beyond_doubling(terms, np.array([[4.0], [8], [12]])).tolist() == many


def test_sizes_in_even_steps_count_no_doublings() -> None:
    """Bytes that sizes 16, 24 and 32 meet as `2^(size / 4)` were 85 times too many at 64, and known."""
    points = np.array([(p, n) for p in (2.0, 4, 8) for n in (16.0, 24, 32)])
    values = np.array([3072.0, 3072, 6528, 2880, 4128, 6336, 2592, 3936, 5664])
    series = Series(("ranks", "size"), points, values[None, :, None], ("k",), ("bytes_sent",))
    answer = fit_series(series).predict(np.array([[8.0, 64]]))
    assert answer.value[0, 0] < 5664 * 2**3


@pytest.mark.parametrize("also", [(), (16.0, 24, 48)])
def test_ranks_count_no_doublings(also: tuple[float, ...]) -> None:
    """Messages that grow along three sides of a grid, and are others on 5 and 7 ranks."""
    sides = {1: 0, 2: 1, 3: 1, 4: 2, 5: 1.5, 6: 2, 7: 1.8, 8: 3}
    points = np.array([(p, *size) for p in sides for size in ([(n,) for n in also] or [()])], dtype=np.float64)
    values = np.array([72.0 * sides[int(p)] for p in points[:, 0]])
    fitted = fit_series(
        Series(("ranks", "size")[: points.shape[1]], points, values[None, :, None], ("k",), ("messages",))
    )
    assert not (fitted.terms[..., 0, 2] > 0).any()


def test_doubling_is_as_likely_as_a_curve_that_was_not_seen() -> None:
    table = prevalence.learned()
    share = np.exp(table.means[prevalence.doubling(table.terms, table.members)]).sum()
    wild = np.exp(table.covariances[(table.scales >= prevalence.WILD).any(axis=1)]).sum()
    assert share == pytest.approx(wild, rel=0.05)


@pytest.mark.parametrize("law", [lambda n: 3 / n + 0.2, lambda n: 0.1 * n, lambda n: 2 + 0.3 * n**2, lambda n: 1 / n])
def test_nodes_one_after_the_other_go_on_as_they_did(law: Law) -> None:
    x, asked = np.arange(1.0, 6), np.array([10.0])
    answer = _fit(x[:, None], law(x)).predict(asked[:, None])
    assert answer.lower[0, 0] < law(asked)[0] < answer.upper[0, 0]
    np.testing.assert_allclose(answer.value[0], law(asked), rtol=0.1)
