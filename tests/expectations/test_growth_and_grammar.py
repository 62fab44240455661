"""The grammar of expectations and rules, and the arithmetic of growths."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.analysis.expectations.grammar import growth
from ranksight.analysis.expectations.inequality import inequality
from ranksight.core.formula import FormulaError
from ranksight.model.search.growth import Growth, Order, leading

F = Fraction


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("O(1)", {}),
        ("O(log p)", {"p": Order(log=F(1))}),
        ("log(p)", {"p": Order(log=F(1))}),
        ("O(p^0.5 log p)", {"p": Order(power=F(1, 2), log=F(1))}),
        ("O(sqrt(p) * log2^2 p)", {"p": Order(power=F(1, 2), log=F(2))}),
        ("O(log2(p)^2 * sqrt(p))", {"p": Order(power=F(1, 2), log=F(2))}),
        ("O(p^(1/3))", {"p": Order(power=F(1, 3))}),
        ("O(p^0.67)", {"p": Order(power=F(2, 3))}),
        ("O(p^0.33 log p)", {"p": Order(power=F(1, 3), log=F(1))}),
        ("O(p^1.25)", {"p": Order(power=F(5, 4))}),
        ("O(p^0.7)", {"p": Order(power=F(7, 10))}),
        ("O(k^3 2^k)", {"k": Order(rate=F(1), power=F(3))}),
        ("O(2^(k/2))", {"k": Order(rate=F(1, 2))}),
        ("O(4^(0.5 k) k)", {"k": Order(rate=F(1), power=F(1))}),
        ("O(n^3 / p)", {"n": Order(power=F(3)), "p": Order(power=F(-1))}),
        ("O(n log n / (p log p))", {"n": Order(power=F(1), log=F(1)), "p": Order(power=F(-1), log=F(-1))}),
        ("O((p log p)^2)", {"p": Order(power=F(2), log=F(2))}),
        ("O(p + log p + 1)", {"p": Order(power=F(1))}),
        ("O(n p + n)", {"n": Order(power=F(1)), "p": Order(power=F(1))}),
        ("O(p^-1)", {"p": Order(power=F(-1))}),
    ],
)
def test_what_is_written_is_read(text: str, orders: dict[str, Order]) -> None:
    assert growth(text) == Growth.of(orders)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 1, "nothing is written"),
        ("O()", 3, "found ')'"),
        ("O(log p", 8, "found the end"),
        ("O(log p))", 9, "found ')'"),
        ("O(3 p)", 3, "constant 3"),
        ("O(p^1/2)", 7, "constant 2"),
        ("O(n + p)", 3, "no summand of n + p"),
        ("O(log(p^2))", 8, "of one parameter"),
        ("O(p - 1)", 5, "difference"),
        ("O(p^)", 5, "found ')'"),
        ("O(p^(1/0))", 8, "zero"),
        ("O(p^100)", 5, "is not supported"),
        ("O((((p^60)^60)^60)^60)", 1, "is not supported"),
        ("O(log log p)", 7, "found 'log'"),
        ("O(0.5^k)", 3, "does not grow"),
        ("O(p; import os)", 4, "';' is not understood"),
        ("O(__import__('os').system('ls'))", 14, "is not understood"),
        ("(" * 60 + "p" + ")" * 60, 21, "nested too deep"),
    ],
)
def test_what_does_not_fit_is_named_with_its_column(text: str, column: int, part: str) -> None:
    with pytest.raises(FormulaError) as caught:
        growth(text)
    assert part in caught.value.plain
    assert caught.value.at + 1 == column


def test_endless_text_is_refused() -> None:
    with pytest.raises(FormulaError, match="characters"):
        growth("p*" * 10000 + "p")


exponents = st.fractions(min_value=-4, max_value=4, max_denominator=6)
orders = st.builds(Order, exponents, exponents, exponents)
growths = st.dictionaries(st.sampled_from("knp"), orders, max_size=3).map(Growth.of)


@given(growths)
def test_exact_text_is_read_back(one: Growth) -> None:
    assert growth(one.exact) == one


@given(growths, growths)
def test_division_undoes_multiplication(one: Growth, other: Growth) -> None:
    assert one * other / other == one
    assert one / one == Growth()
    assert one.within(other) == Growth().within(other / one)


@given(st.text(alphabet="Op^()log2k/*+-0. 13n", max_size=25))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert growth(growth(text).exact) == growth(text)
    except FormulaError as error:
        assert 0 <= error.at <= len(text)


def test_classes_are_ordered_as_the_functions_are() -> None:
    texts = ["1", "log p", "log^2 p", "p^0.25", "p^0.25 log p", "p", "p^3", "2^(p/4)", "p 2^(p/4)", "2^p", "p 2^p"]
    found = [growth(text)["p"] for text in texts]
    assert found == sorted(found)


def test_a_sum_grows_along_each_parameter_as_its_fastest_summand() -> None:
    assert leading([growth("n^3/p"), Growth()]) == growth("n^3")
    assert leading([growth("log p"), growth("p^0.5")]) == growth("p^0.5")


def test_rules_are_read() -> None:
    rule = inequality('2 * MPI_Allreduce + A::run <= Reduce + 0.5 "apply(int, long)" + Reduce')
    assert rule.smaller == (("MPI_Allreduce", 2.0), ("A::run", 1.0))
    assert rule.larger == (("Reduce", 2.0), ("apply(int, long)", 0.5))
    turned = inequality("A >= B")
    assert (turned.smaller, turned.larger) == ((("B", 1.0),), (("A", 1.0),))


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("A < B", 3, "expected <= or >="),
        ("A <=", 5, "found the end"),
        ("A <= B <= C", 8, "expected the end"),
        ("A <= 0 B", 6, "not positive"),
        ("A <= B & C", 8, "is not understood"),
        ("A + B <= B", 1, "contradicts itself"),
        ("A", 2, "expected <= or >="),
    ],
)
def test_rules_that_do_not_fit(text: str, column: int, part: str) -> None:
    with pytest.raises(FormulaError) as caught:
        inequality(text)
    assert part in caught.value.plain
    assert caught.value.at + 1 == column
