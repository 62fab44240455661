"""What laws leave to each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.model.laws.law import CONSTANT_CPI, COST, COUNTED, FUNCTION, LawTimes, code_of
from ranksight.model.laws.stacking import Weights
from ranksight.model.laws.together import VAGUE, Laws
from ranksight.model.laws.view import Asked, Fits
from ranksight.model.quantity import Quantity
from ranksight.model.resource.equation import LEVELS
from ranksight.model.uncertainty.forecast import Forecast

SHARED = "shared bandwidth"


def law(kernels: tuple[str, ...], seconds: float, down: float = 0.1, up: float = 0.1, **more: object) -> LawTimes:
    shape = len(kernels), 1
    time = Quantity(np.full(shape, np.log(seconds)), np.full(shape, down), np.full(shape, up))
    return LawTimes(kernels, time, np.ones(shape, dtype=bool), ("",) * len(kernels), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("imputing", [COST, FUNCTION, CONSTANT_CPI])
def test_kernels_whose_times_are_imputed_are_left_to_the_law_that_does_so(imputing: str) -> None:
    laws = Laws({name: law(("a", "b"), 1.0) for name in (CONSTANT_CPI, COST, FUNCTION)})
    laws.laws[imputing] = law(("a", "b"), 1.0, imputed=("b",))
    laws.leave_imputed()
    for name, times in laws.laws.items():
        assert times.answers[:, 0].tolist() == [True, name == imputing]


@pytest.mark.parametrize(
    ("down", "up", "left"), [(0.6, 0.6, True), (0.05, 1.1, True), (1.1, 0.05, True), (0.4, 0.4, False)]
)
def test_a_law_is_vague_by_the_width_of_both_its_sides(down: float, up: float, left: bool) -> None:
    assert (down + up > 1) == left
    laws = Laws({FUNCTION: law(("k",), 1.5, VAGUE * down, VAGUE * up), CONSTANT_CPI: law(("k",), 1.0)})
    laws.leave_vague(Weights(("k",), (FUNCTION, CONSTANT_CPI), np.array([[0.5, 0.5]]), np.array([0.5, 0.5])))
    assert laws.laws[FUNCTION].answers.tolist() == [[not left]]


@pytest.mark.parametrize(("known", "answers"), [(True, True), (False, True), (True, False)])
def test_a_law_that_says_nothing_takes_no_place(known: bool, answers: bool) -> None:
    """Vague itself, of another kernel, or without an answer."""
    other = law(("k" if known else "m",), 1.0, *([2 * VAGUE] * 2 if known and answers else []))
    other = replace(other, answers=other.answers & answers)
    laws = Laws({FUNCTION: law(("k",), 1.5, VAGUE, VAGUE), CONSTANT_CPI: other})
    laws.leave_vague(Weights(("k",), (FUNCTION, CONSTANT_CPI), np.array([[0.2, 0.8]]), np.array([0.2, 0.8])))
    assert laws.laws[FUNCTION].answers.all()


def test_a_function_that_has_all_the_weight_answers_as_it_is() -> None:
    """With the form of its distribution, which a mixture does not know."""
    laws = Laws({FUNCTION: law(("a",), 2.0), COST: law(("a",), 1.0)})
    value = np.array([[2.0]])
    function = Forecast.settled(value, 0.5 * value, 3 * value)
    near = np.zeros((1, 1), dtype=bool)
    for weight, same in ((1.0, True), (0.6, False)):
        weights = np.array([[weight, 1 - weight]])
        of_laws = Weights(("a",), (FUNCTION, COST), weights, weights[0])
        mixed, names, share = laws.mixed(function, {"a": 0}, of_laws, of_laws, near)
        assert names == (FUNCTION, COST)
        assert share[:, 0, 0] == pytest.approx(weights[0])
        assert (mixed.upper[0, 0] == 6.0 and mixed.lower[0, 0] == 1.0) == same


@pytest.mark.parametrize(("total", "expected"), [(4.0, [1.0, 0.5, 0.25, 2.25]), (0.0, [0.0, 0.0, 0.0, 3.0])])
def test_what_a_core_takes_is_divided_as_the_equation_divides_it(total: float, expected: list[float]) -> None:
    """A quarter to execution, and to the levels 2, 1, 0.5 and 4.5 of 16; as it was where the equation says nothing."""
    counted = dict(zip(("execution", *LEVELS), total * np.array([8.0, 2.0, 1.0, 0.5, 4.5]) / 16, strict=True))
    shared = {"direct": 1.0, "execution": 5.0, LEVELS[-1]: 3.0}
    of_equation, of_memory = (
        {name: np.full((1, 1), each) for name, each in parts.items()} for parts in (counted, shared)
    )
    laws = Laws({COUNTED: law(("k",), 4.0, parts=of_equation), SHARED: law(("k",), 9.0, parts=of_memory)})
    for _ in range(2):  # what the law says stays as it is
        divided = laws._by_equation(laws.laws[SHARED])
    assert divided["direct"] == pytest.approx(1.0)
    assert divided["execution"] == pytest.approx(4.0 if total else 5.0)
    assert [divided[name][0, 0] for name in LEVELS] == pytest.approx(expected)
    unknown = laws._by_equation(law(("other",), 9.0, parts=of_memory))
    assert unknown["execution"] == pytest.approx(5.0)


def test_a_law_has_one_word_in_tables() -> None:
    assert [code_of(name) for name in (FUNCTION, COUNTED, "a b", "zeta of rank")] == [
        "function", "counted-equation", "a-b", "zeta-of-rank",
    ]  # fmt: skip


def test_laws_that_are_not_installed_are_named() -> None:
    assert Fits({}).remark() == ""
    one, two = Fits({}, {"mine": {}}).remark(), Fits({}, {"mine": {}, "other": {}}).remark()
    assert "law mine of this model is not installed" in one
    assert one.endswith("come from the functions of time; install the package that registers it")
    assert "laws mine, other of this model are not installed" in two
    assert two.endswith("registers them")


def test_laws_are_asked_for_the_kernels_that_have_a_time() -> None:
    nothing = Forecast.settled(*np.full((3, 3, 1), 1.0))
    rows = {("a", "time"): 0, ("a", "instructions"): 1, ("b", "instructions"): 2}
    asked = Asked(("ranks",), np.ones((1, 1)), rows, nothing, nothing, np.ones((1, 1)), Fits({}))
    assert asked.timed == ("a",)
    assert np.isnan(asked.values("time", ("a", "b")).centre[:, 0]).tolist() == [False, True]
