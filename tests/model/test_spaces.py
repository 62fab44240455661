"""Search spaces: what they hold, and what they find in the papers' data."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.fitting.contradictions import contradictions
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.search.crosswise import partitions
from ranksight.model.search.terms import ONE, hypotheses, write_term
from ranksight.model.series.reducing import Series
from ranksight.model.spaces import SPACES
from ranksight.model.spaces.pmnf import Pmnf, _interleaved
from ranksight.model.uncertainty.forecast import OK


def _series(x: np.ndarray, *rows: np.ndarray, metric: str = "visits") -> Series:
    names = tuple(f"k{i}" for i in range(len(rows)))
    return Series(("p",), x[:, None], np.stack(rows)[:, :, None], names, (metric,) * len(rows))


def test_normal_form_has_the_papers_terms() -> None:
    space = SPACES["pmnf"](1)
    assert isinstance(space, Pmnf)
    assert len(space.factors) == 20
    assert [comb(len(space.factors), n) for n in range(1, space.terms + 1)] == [20, 190, 1140, 4845, 15504]
    assert space.folds == 2


def test_folds_are_interleaved() -> None:
    x = np.array([8.0, 2.0, 32.0, 4.0, 16.0, 64.0])
    folds = _interleaved(x, np.ones((1, 6), dtype=bool), 2)
    assert folds[0][np.argsort(x)].tolist() == [0, 1, 0, 1, 0, 1]
    missing = _interleaved(x, np.array([[True, True, True, False, True, True]]), 0)
    assert missing[0].tolist() == [1, 0, 3, -1, 2, 4]


def test_normal_form_grows_until_nothing_is_gained() -> None:
    x = 2.0 ** np.arange(1, 9)
    fitted = fit_series(
        _series(x, 3 + 2 * np.sqrt(x), 0 * x + 5, 7 + 2 * np.log2(x) + 0.1 * x * np.log2(x)), space="pmnf"
    )
    assert [fitted.formula(i) for i in range(3)] == ["3 + 2 * p^(1/2)", "5", "7 + 2 * log2(p) + 0.1 * p * log2(p)"]


def test_surface_of_four_dimensions_is_found(shared: Path) -> None:
    table = json.loads((shared / "papers" / "facts.json").read_text())["milc_bytes"]
    volume = np.array([float(v) for v in table])
    fitted = fit_series(_series(volume, np.array(list(table.values())), metric="bytes_sent"))
    ((coefficient, term),) = fitted.leading(0)
    assert term[0].tolist() == [0.75, 0.0, 0.0]
    assert coefficient == pytest.approx(72, rel=1e-6)
    fine = fit_series(_series(volume, np.array(list(table.values())), metric="bytes_sent"), space="pmnf-fine")
    assert fine.leading(0)[-1][1][0].tolist() == [0.75, 0.0, 0.0]


def test_power_law_and_logarithm_of_the_simple_family() -> None:
    x = np.array([12.0, 24.0, 36.0, 48.0, 96.0, 120.0])
    fitted = fit_series(_series(x, 5 * x**-0.75 + 2, 3 * np.log2(x) + 1, 2 * 2.0 ** (x / 40) + 1), space="ding")
    answer = fitted.predict(np.array([[192.0]]))
    np.testing.assert_allclose(answer.value[:2, 0], [5 * 192**-0.75 + 2, 3 * np.log2(192) + 1], rtol=1e-6)
    assert answer.value[2, 0] == pytest.approx(2 * 2 ** (192 / 40) + 1, rel=0.1)


def test_exponentials_are_found() -> None:
    k = np.arange(3.0, 17.0)
    fitted = fit_series(_series(k, 3 + 2 * k**2 * 2**k, k**4 * 2.0**k), space="exponential")
    assert fitted.formula(0) == "3 + 2 * p^2 * 2^(p)"
    assert fitted.formula(1) == "1 * p^4 * 2^(p)"


def test_own_hypotheses_can_be_given() -> None:
    from ranksight.model.search.offer import Listed

    own = Listed(hypotheses([((ONE,),), ((ONE,), ((0.4, 0.0, 0.0),))], [0.0, 0.0]))
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    fitted = fit_series(_series(x, 2 + x**0.4), space=own)
    assert fitted.formula(0) == "2 + 1 * p^(2/5)"


def test_unknown_space_names_the_nearest() -> None:
    with pytest.raises(InputError, match="nearest: pmnf"):
        fit_series(_series(np.arange(1.0, 6.0), np.arange(5.0)), space="pnmf")


def test_too_many_parameters_are_refused() -> None:
    points = np.array(list(itertools.product((1.0, 2.0), repeat=5)))
    series = Series(tuple("abcde"), points, np.ones((1, 32, 1)), ("k",), ("time",))
    with pytest.raises(InputError, match="5 parameters are too many"):
        fit_series(series)


def test_set_partitions_are_counted_by_bell_numbers() -> None:
    assert [len(list(partitions(tuple(range(n))))) for n in range(1, 6)] == [1, 2, 5, 15, 52]


def test_terms_are_written_as_people_read_them() -> None:
    term = np.array([[1.5, 1.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]])
    assert write_term(term, ("p", "n", "k")) == "p^(3/2) * log2(p) * log2(n)^2 * k^(-1) * 2^(k)"


def test_products_that_do_not_compose_are_found() -> None:
    volume = np.array([81.0, 256.0, 400.0, 625.0, 900.0, 1296.0, 2401.0])
    per_visit, visits = 15.94 * volume, 5.11e4 + 1.38e4 * volume**0.25
    rows = np.stack([per_visit * visits, per_visit, visits])
    metrics = ("flops", "flops_per_visit", "visits")
    good = Series(("V",), volume[:, None], rows[:, :, None], ("cg",) * 3, metrics)
    for point in (81.0, 65536.0):
        assert contradictions(fit_series(good), np.array([point])) == {}
    # A printed table that gives the whole another constant.
    rows[0] = 1.16e8 + 3.24e5 * volume**1.25
    bad = fit_series(Series(("V",), volume[:, None], rows[:, :, None], ("cg",) * 3, metrics))
    found = contradictions(bad, np.array([65536.0]))
    assert list(found) == [0]
    assert found[0].startswith("flops_per_visit x visits gives -")


@pytest.mark.parametrize("power", [3.5, 4.0, 5.0, 7.0])
@pytest.mark.parametrize("metric", ["time", "instructions"])
def test_growth_steeper_than_volumes_is_found(power: float, metric: str) -> None:
    sizes = np.array([20.0, 30.0, 40.0, 50.0, 60.0])
    jitter = np.array([0.995, 1.0, 1.005]) if metric == "time" else np.ones(3)
    series = Series(("size",), sizes[:, None], (3 * sizes**power)[None, :, None] * jitter, ("k",), (metric,))
    said = fit_series(series).predict(np.array([[240.0]]))
    assert said.status[0, 0] == OK
    assert said.value[0, 0] == pytest.approx(3 * 240**power, rel=0.1)


def test_steep_growth_over_sizes_is_divided_among_ranks() -> None:
    points = np.array([(ranks, size) for ranks in (4.0, 8.0, 16.0, 32.0) for size in (32.0, 48.0, 64.0, 96.0)])

    def law(at: np.ndarray) -> np.ndarray:
        return at[:, 1] ** 4 / at[:, 0] + 6 * at[:, 1] ** 3 / at[:, 0] ** (2 / 3)

    values = law(points)[None, :, None] * np.array([0.99, 1.0, 1.01])
    ahead = np.array([[64.0, 192.0]])
    said = fit_series(Series(("ranks", "size"), points, values, ("k",), ("time",))).predict(ahead)
    assert said.status[0, 0] == OK
    assert said.value[0, 0] == pytest.approx(law(ahead)[0], rel=0.05)


def test_a_share_that_is_sorted_is_found_at_several_sizes() -> None:
    points = np.array([(p, n) for p in (1, 2, 4, 6, 8) for n in (100, 150, 220)], dtype=float)
    ranks, size = points.T
    counted = 400 * size * (9 * np.log2(ranks) + 3) / ranks
    fitted = fit_series(Series(("ranks", "size"), points, counted[None, :, None], ("merge",), ("instructions",)))
    assert fitted.predict(np.array([[64.0, 220.0]])).value[0, 0] == pytest.approx(400 * 220 * 57 / 64, rel=1e-6)


@pytest.mark.parametrize("parts", [(1.0, 1.0, 0.0), (0.3, 1.0, 0.0), (0.0, 1.0, 0.5)])
def test_times_of_lines_faces_and_volumes_add_up(parts: tuple[float, ...]) -> None:
    sizes = np.array([8.0, 16.0, 32.0, 64.0, 128.0])

    def law(size: np.ndarray) -> np.ndarray:
        return np.sum([part * (size / 128) ** (at + 1) for at, part in enumerate(parts)], axis=0)

    jitter = np.exp(0.005 * np.random.default_rng(2).standard_normal((5, 3)))
    series = Series(("size",), sizes[:, None], law(sizes)[None, :, None] * jitter, ("k",), ("time",))
    ahead = np.array([256.0, 512.0])
    said, truth = fit_series(series).predict(ahead[:, None]), law(ahead)
    assert (said.status[0] == OK).all()
    assert ((said.lower[0] <= truth) & (truth <= said.upper[0])).all()
    np.testing.assert_allclose(said.value[0], truth, rtol=0.1)


def test_volume_surface_and_a_constant_are_met_by_five_numbers_of_ranks() -> None:
    """Forms with as many terms as there are values, such as blocks with ghost layers, fit whatever they are."""
    ranks = np.array([4.0, 8.0, 16.0, 24.0, 48.0])

    def count(p: np.ndarray) -> np.ndarray:
        return 7.5e5 + 5.8e5 * p ** (-2 / 3) + 1.48e7 / p

    series = Series(("ranks",), ranks[:, None], count(ranks)[None, :, None], ("k",), ("instructions",))
    far = np.array([192.0, 768.0])
    answer = fit_series(series).predict(far[:, None])
    assert answer.value[0] == pytest.approx(count(far), rel=1e-6)
    assert (answer.status == 0).all()


@pytest.mark.parametrize("law", [lambda p: np.full(len(p), 25.0), lambda p: 1600 / p])
def test_no_pair_of_terms_follows_counts_that_scatter(law: Callable[[np.ndarray], np.ndarray]) -> None:
    ranks, far = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([64.0, 512.0])
    values = law(ranks) * (1 + 0.02 * np.random.default_rng(0).standard_normal((20, 5)))
    names = tuple(f"k{at}" for at in range(20))
    series = Series(("ranks",), ranks[:, None], values[:, :, None], names, ("instructions",) * 20)
    answer = fit_series(series).predict(far[:, None])
    assert (answer.status == OK).mean() > 0.9
    assert ((answer.lower <= law(far)) & (law(far) <= answer.upper)).mean() > 0.9
