"""The search space around an expectation, as the paper constructs it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.analysis.expectations.grammar import growth
from ranksight.analysis.expectations.match import limit_of, match
from ranksight.core.errors import InputError
from ranksight.model.search.growth import NONE, Growth, Order
from ranksight.model.search.offer import Listed
from ranksight.model.spaces import SPACES
from ranksight.model.spaces.rulers import MPI, Ruler, deviation, offer, ruler, stated, terms, wider


def written(text: str, names: tuple[str, ...] = ("p",), **how: object) -> list[str]:
    return [str(one)[2:-1] for one in terms(growth(text), names, **how)]


def test_the_papers_example_has_its_17_terms() -> None:
    found = written("O(p)")
    assert found == [
        "1", "log p", "p^0.25", "p^0.25 log p", "p^0.5", "p^0.5 log p", "p^0.75", "p^0.75 log p", "p", "p log p",
        "p^1.25", "p^1.25 log p", "p^1.5", "p^1.5 log p", "p^1.75", "p^1.75 log p", "p^2",
    ]  # fmt: skip
    assert limit_of(growth("O(p)")) == growth("O(p^0.5)")


def test_numbers_are_those_of_the_facts(shared: Path) -> None:
    facts = json.loads((shared / "papers" / "facts.json").read_text())
    assert len(written("O(p)")) == facts["shudler_E=p_terms"]
    assert len(MPI.orders) == facts["shudler_mpi_terms"]


def test_the_space_of_the_mpi_study_has_26_terms() -> None:
    powers = {0, Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), 1, Fraction(5, 4),
              Fraction(4, 3), Fraction(3, 2), Fraction(5, 3), Fraction(7, 4), 2}  # fmt: skip
    assert {order.power for order in MPI.orders} == powers
    assert {order.log for order in MPI.orders} == {0, 1}
    assert len(MPI.orders) == 26
    space = SPACES["mpi"](1)
    assert isinstance(space, Listed)
    assert len(space.hypotheses.terms) == 26
    with pytest.raises(InputError, match="one parameter"):
        SPACES["mpi"](2)


def test_each_class_has_its_own_ruler() -> None:
    assert written("O(log p)") == ["1", *(f"log^{x} p" for x in ("0.25", "0.5", "0.75")), "log p",
                                   *(f"log^{x} p" for x in ("1.25", "1.5", "1.75", "2")), "p", "p log p"]  # fmt: skip
    # E^2 = p^2 log^2 p lies above p^2 log p here.
    assert len(written("O(p log p)")) == 18
    assert written("O(1)") == written("O(log p)")
    exponential = written("O(k^3 2^k)", ("k",))
    assert {"k 2^k", "k^2 2^k", "k^3 2^k", "k^4 2^k", "2^(2 k)", "1"} <= set(exponential)
    assert written("O(1/p)")[0] == "1/p^2"
    assert written("O(1/p)")[-3:] == ["1", "p", "p log p"]
    assert {"1/p^0.67", "1/p^0.33"} <= set(written("O(1/p)"))


@given(st.builds(Order, *[st.fractions(min_value=0, max_value=4, max_denominator=4)] * 3), st.integers(0, 3))
def test_every_ruler_holds_the_expectation_and_both_boundaries(expected: Order, depth: int) -> None:
    found = ruler(expected, depth)
    assert NONE in found
    if expected != NONE:
        assert expected in found
        assert max(found) <= expected.to(Fraction(2))
        assert NONE < deviation(expected) < expected
    assert list(found) == sorted(set(found))


def test_halving_once_more_halves_the_steps() -> None:
    assert len(ruler(Order(power=Fraction(1)), 3)) == 17 + 16
    assert len(ruler(Order(power=Fraction(1)), 0)) == 3 + 2


def test_several_parameters_are_products() -> None:
    found = terms(growth("O(n^3 / p)"), ("n", "p"))
    assert len(found) == len(set(found)) == (17 + 2) * (25 + 2)
    assert growth("O(n^3 / p)") in found
    assert growth("O(n^1.5)") in found


def test_spaces_that_explode_are_made_coarser_and_then_refused() -> None:
    names = ("a", "b", "c")
    three = growth("O(a b c)")
    assert len(terms(three, names)) <= 5000
    with pytest.raises(InputError, match="terms, more than"):
        terms(growth("O(a b c d e f)"), ("a", "b", "c", "d", "e", "f"))


def test_a_widened_space_goes_on_beyond_the_boundary() -> None:
    assert {growth("O(p^2)"), growth("O(log^2 p)")} <= set(wider(growth("O(log p)"), ("p",)))
    assert growth("O(p^4)") in wider(growth("O(p)"), ("p",))
    assert growth("O(p)") in wider(growth("O(1/p)"), ("p",))
    own = {"p": Ruler((Fraction(0), Fraction(1)))}
    assert set(wider(growth("O(log p)"), ("p",), own)) == {Growth(), growth("O(p)"), growth("O(log p)")}


def test_hypotheses_are_a_constant_terms_with_and_without_it_and_pairs() -> None:
    space = offer(terms(growth("O(p)"), ("p",)), ("p",))
    assert len(space.hypotheses.members) == 1 + 2 * 16 + 16 * 15 // 2
    expected = growth("O(n p)")
    two = offer(terms(expected, ("n", "p")), ("n", "p"), expected)
    assert len(two.hypotheses.members) == 1 + 2 * (17 * 17 - 1) + (17 * 17 - 2)


def test_an_expectation_as_a_function_has_its_term_alone() -> None:
    assert len(stated(growth("O(log p)"), ("p",)).hypotheses.members) == 2
    assert stated(growth("O(1)"), ("p",)).hypotheses.terms.tolist() == [[[0, 0, 0]]]
    # A constant is what keeps 1/p from falling.
    assert stated(growth("O(1/p)"), ("p",)).hypotheses.terms.tolist() == [[[-1, 0, 0]]]


def test_limits_hold_along_every_parameter() -> None:
    expected = growth("O(n^2 log p)")
    limit = limit_of(expected, growth("O(p^0.5)"))
    assert limit == growth("O(n p^0.5)")
    assert match(growth("O(n^3 p^0.5)"), expected, limit).rank == "approximate"
    assert match(growth("O(n^2 p)"), expected, limit).rank == "none"
    assert match(growth("O(n^2)"), expected, limit).rank == "approximate"
    assert match(growth("O(log p)"), expected, limit).rank == "none"
    assert match(growth("O(n^2 log p)"), expected, limit).rank == "total"
    assert not match(growth("O(n^2)"), expected, limit).faster
