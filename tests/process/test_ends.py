"""Tests of work that ends to be divided: times that fall and then stay flat."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.core.arrays import Array
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.process.prevalence import along_one, at_runs, ending, learned, texts_of
from ranksight.model.process.products import numbered, offered_along, products
from ranksight.model.process.solve import Data
from ranksight.model.search.growth import Growth
from ranksight.model.search.terms import NUMBERED, limited, values, write_term
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series

X = 2.0 ** np.arange(6)
GRID = np.array([(nodes, cores) for nodes in (1.0, 2.0, 4.0, 8.0) for cores in (2.0, 4.0, 8.0, 16.0)])


def _fit(times: Array, points: Array, names: tuple[str, ...]) -> Fitted:
    scatter = np.exp(0.004 * np.random.default_rng(3).normal(size=(1, len(points), 2)))
    return fit_series(Series(names, points, times[None, :, None] * scatter, ("k",), ("time",)))


def test_an_end_is_a_power_of_the_smaller_of_both() -> None:
    ends = np.array([[limited(4.0, -1.0)], [limited(6.5, -1.0)], [limited(6.5, 1.0)]])
    at = values(ends, np.array([[1.0], [4.0], [5.0], [100.0]]))
    np.testing.assert_allclose(at, [[1, 1 / 4, 1 / 4, 1 / 4], [1, 1 / 4, 1 / 5, 1 / 6.5], [1, 4, 5, 6.5]])
    assert np.isnan(values(ends, np.zeros((1, 1)))).all()
    assert write_term(np.array([limited(8.0, -1.0)]), ("threads",)) == "min(threads, 8)^(-1)"
    assert write_term(np.array([limited(6.5627, 1.0)]), ("threads",)) == "min(threads, 6.56)"
    assert -limited(4.0, 1.0)[2] == NUMBERED


@pytest.mark.parametrize("power", [-1, 1])
@pytest.mark.parametrize("end", [2.0, 3.0, 5.5, 8.0, 12.0, 16.0])
def test_every_end_between_two_values_is_among_the_means(end: float, power: float) -> None:
    terms, members, which = at_runs(*along_one(), X)
    ends = members[ending(terms, members) & ((members >= 0).sum(axis=1) == 2)]
    at = values(terms, X[:, None])
    law = 9 * np.minimum(X, end) ** power
    left = [np.linalg.lstsq(at[mean[:2]].T, law, rcond=None)[:2] for mean in ends]
    exact = [found for found, misfit in left if misfit.sum() < 1e-20]
    assert any((found > -1e-9).all() for found in exact)
    assert len(which) == len(members)
    # Every mean but those that end is there once.
    assert (np.bincount(which)[~ending(*along_one())] == 1).all()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_values_show_no_end(count: int) -> None:
    for shown in ((X[:count],), (X, X[:count])):
        terms, members, _ = at_runs(*along_one(), *shown)
        assert not ending(terms, members).any()


def test_what_was_not_measured_shows_no_end() -> None:
    """A kernel that one rank does not have, and another that it has."""
    table, members, _ = learned().over(X[:5], None, X[1:5])
    used = members[ending(table.terms, members)]
    ends = table.terms[np.unique(used[used >= 0])]
    assert set(ends[ends[:, 0, 2] == -NUMBERED, 0, 1]) == {4, 8}


def test_an_end_weighs_the_same_for_any_number_of_values() -> None:
    for domains in (None, Domains.inferred(4)):
        shares = []
        for count in (4, 6):
            table, _, _ = learned().over(X[:count], domains)
            shares.append(np.exp(table.means[ending(table.terms, table.members)]).sum())
        whole = learned()
        expected = np.exp(whole.means[ending(whole.terms, whole.members)]).sum()
        np.testing.assert_allclose(shares, expected)


@pytest.mark.parametrize("name", ["threads", "nodes"])
@pytest.mark.parametrize("power", [-1.0, 1.0])
@pytest.mark.parametrize("end", [5.0, 8.0])
def test_a_flat_tail_goes_on(name: str, power: float, end: float) -> None:
    start = 20 * (power > 0)
    fitted = _fit(start + 70 * np.minimum(X, end) ** power, X[:, None], (name,))
    answer = fitted.predict(np.array([[64.0], [256.0]]))
    truth = start + 70 * end**power
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.05)
    assert (answer.lower[0] < truth).all()
    assert (answer.upper[0] > truth).all()
    assert (answer.upper[0] < 1.5 * answer.lower[0]).all()


@pytest.mark.parametrize("power", [-1.0, 1.0])
def test_between_the_two_values_a_law_goes_on_until_it_ends(power: float) -> None:
    """Not on a line from one value to the next."""
    start = 20 * (power > 0)
    fitted = _fit(start + 70 * np.minimum(X, 12.0) ** power, X[:, None], ("threads",))
    asked = np.array([9.0, 11.0, 12.0, 14.0])
    answer, truth = fitted.predict(asked[:, None]), start + 70 * np.minimum(asked, 12.0) ** power
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.02)
    assert ((answer.lower[0] < truth) & (truth < answer.upper[0])).all()


def test_a_fall_that_goes_on_has_no_end() -> None:
    fitted = _fit(70 / X + 1, X[:, None], ("threads",))
    answer = fitted.predict(np.array([[64.0], [256.0]]))
    np.testing.assert_allclose(answer.value[0], [70 / 64 + 1, 70 / 256 + 1], rtol=0.05)


@pytest.mark.parametrize("end", [5.3, 6.2, 8.0])
def test_a_flat_tail_along_one_of_two_parameters_goes_on(end: float) -> None:
    nodes, cores = GRID.T
    fitted = _fit(400 / nodes / np.minimum(cores, end) + 2 * nodes**0.3, GRID, ("nodes", "cores"))
    answer = fitted.predict(np.array([[8.0, 64.0], [16.0, 32.0]]))
    truth = 400 / np.array([8, 16]) / end + 2 * np.array([8, 16]) ** 0.3
    np.testing.assert_allclose(answer.value[0], truth, rtol=0.1)
    assert ((answer.lower[0] < truth) & (truth < answer.upper[0])).all()


def test_ends_along_several_parameters_have_numbers() -> None:
    data = Data(
        np.log(GRID / GRID.min(axis=0)), np.log(400 / GRID[None, :, 0]), *np.zeros((2, 1, 16)), np.ones((1, 16))
    )
    terms = products(GRID, data)
    members = np.arange(terms.factors.shape[1])[None]
    np.testing.assert_allclose(numbered(terms.numbers(members)[0], GRID), terms.terms[0])
    along = offered_along(GRID)
    ends = [each[each[:, 2] == -NUMBERED, 1] for each in along]
    assert [(each.min(), each.max()) for each in ends] == [(2, 4), (4, 8)]


def test_the_table_names_ends() -> None:
    table = learned()
    texts = texts_of(table.terms, table.members)
    assert [text for text, ends in zip(texts, ending(table.terms, table.members), strict=True) if ends] == [
        "min(x, 1)^(-1) + min(x, 2)^(-1)",
        "1 + min(x, 1)^(-1) + min(x, 2)^(-1)",
        "min(x, 1) + min(x, 2)",
        "1 + min(x, 1) + min(x, 2)",
    ]


def test_what_ends_to_be_divided_is_constant_in_the_limit() -> None:
    term = np.array([(1.0, 0.0, 0.0), limited(6.0, -1.0)])
    assert str(Growth.of_term(term, ("size", "threads"))) == str(Growth.of_term(term[:1], ("size",)))
