"""Rules of ranks: what they mean, what is refused, and which one measured values seem to follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.analysis.planning.values import NAMED, Rule, infer, thin
from ranksight.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "low", "high", "wanted"),
    [
        ("6*n^2", 1, 150, [6, 24, 54, 96, 150]),
        ("cubes", 8, 216, [8, 27, 64, 125, 216]),
        ("squares", 2, 30, [4, 9, 16, 25]),
        ("powers-of-two", 1, 20, [1, 2, 4, 8, 16]),
        ("2^n", 1, 20, [2, 4, 8, 16]),
        ("16..64:16", 1, 50, [16, 32, 48]),
        ("3..6", 1, 50, [3, 4, 5, 6]),
        ("8, 27,64", 1, 30, [8, 27]),
        ("cubes,100", 60, 130, [64, 100, 125]),
        ("n*(n+1)", 1, 20, [2, 6, 12, 20]),
        ("max(n, 5)", 1, 7, [5, 6, 7]),
        ("2^3^n", 1, 600, [8, 512]),
        ("n/2", 1, 3, [1, 2, 3]),
        ("6*4^2", 1, 100, [96]),
    ],
)
def test_values(text: str, low: float, high: float, wanted: list[float]) -> None:
    assert Rule(text).values(low, high).tolist() == wanted


def test_fractions_are_kept_where_the_parameter_takes_them() -> None:
    assert Rule("n/2").values(1, 2, whole=False).tolist() == [1.0, 1.5, 2.0]


@pytest.mark.parametrize(
    "text",
    ["", "8,,9", "n*m", "__import__('os').system('true')", "n.__class__", "2..", "5..1", "1..9:0", "2^^n", "n" * 3000,
     "sin(n)", "(" * 100 + "n" + ")" * 100, "^".join(["2"] * 100), "cube", "n if n else 1", "[1]", "6*n**2", "n=3"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Rule(text).values(1, 100)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.remedy


@given(st.text(alphabet="n0123456789+-*/^(),.: abcx_", max_size=30))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        values = Rule(text).values(1, 1000)
    except InputError:
        return
    assert ((values >= 1) & (values <= 1000) & (values == np.round(values))).all()
    assert (np.diff(values) > 0).all()


def test_a_huge_range_is_not_held() -> None:
    assert Rule("1..1e15").values(10, 13).tolist() == [10, 11, 12, 13]
    assert len(Rule("0..1e15:0.001").values(1, 1e15)) <= 1 << 20


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ([1, 8, 27, 64], "cubes"),
        ([1, 2, 4, 8], "powers-of-two"),
        ([4, 16, 64], "powers-of-two"),
        ([4, 9, 25], "squares"),
        ([6, 24, 54], "6*n^2"),
        ([6, 12, 24, 96], "6*2^(n-1)"),
        ([30, 60, 90], "30*n"),
        ([5000, 6000, 9000], "5000+1000*(n-1)"),
        ([3, 7, 20], "3,7,20,20*2^n"),
        ([36], "36,36*2^n"),
    ],
)
def test_the_rule_of_measured_values(seen: list[float], text: str) -> None:
    rule = infer(np.array(seen, dtype=float))
    assert (rule.text, rule.inferred) == (text, True)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=8, unique=True))
def test_an_inferred_rule_holds_what_it_was_inferred_from(seen: list[int]) -> None:
    values = infer(np.array(seen, dtype=float)).values(min(seen), max(seen))
    assert set(seen) <= set(values.tolist())


@given(st.lists(st.floats(0.5, 1e6), min_size=1, max_size=40, unique=True), st.integers(2, 12))
def test_thinning_keeps_the_ends(values: list[float], most: int) -> None:
    given_values = np.sort(np.array(values))
    few = thin(given_values, most)
    assert len(few) <= max(most, 2) + 1 or len(given_values) <= most
    assert (few[0], few[-1]) == (given_values[0], given_values[-1])
    assert set(few.tolist()) <= set(values)


def test_every_name_is_a_formula_of_n() -> None:
    for name in NAMED:
        assert len(Rule(name).values(1, 64)) >= 4
