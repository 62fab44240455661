"""Distributions of logarithms and how they combine, against samples of the same quantities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.quantity import TAIL, UNKNOWN, Quantity, add, deviations, larger, mix, product
from ranksight.model.uncertainty.forecast import Forecast

SAMPLES = 200_000
LEVELS = (0.5, 0.9, 0.99)


def quantity(*values: float, deviation: float = 0.1, cause: str = "") -> Quantity:
    centre = np.log(np.array(values))
    return Quantity.even(centre, np.full(centre.shape, deviation)).caused_by(cause)


def draws(part: Quantity, errors: np.ndarray) -> np.ndarray:
    """Samples of a quantity with standard errors (n, ...), either side with its own deviation."""
    return np.exp(part.centre + np.where(errors < 0, part.down, part.up) * errors)


def covered(found: Quantity, samples: np.ndarray, level: float) -> np.ndarray:
    _, low, high = found.interval(level)
    return ((samples >= low) & (samples <= high)).mean(axis=0)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("level", LEVELS)
def test_a_product_has_the_interval_of_its_samples(level: float, random: np.random.Generator) -> None:
    parts = [quantity(2.0, 0.1, deviation=0.3), quantity(5.0, 1e-6, deviation=0.1), quantity(1.0, 3.0, deviation=0.0)]
    samples = np.prod([draws(part, random.normal(size=(SAMPLES, 2))) for part in parts], axis=0)
    found = product(parts)
    assert covered(found, samples, level) == pytest.approx([level] * 2, abs=0.005)
    assert found.interval(level)[0] == pytest.approx([10.0, 3e-7])


@pytest.mark.parametrize("level", LEVELS)
def test_errors_of_one_cause_go_together_in_a_product(level: float, random: np.random.Generator) -> None:
    parts = [quantity(2.0, deviation=0.3, cause="cache"), quantity(4.0, deviation=0.1, cause="cache")]
    errors = random.normal(size=(SAMPLES, 1))
    found = product(parts)
    assert found.deviation == pytest.approx([0.4])
    assert covered(found, draws(parts[0], errors) * draws(parts[1], errors), level) == pytest.approx([level], abs=0.005)


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("count", [2, 10])
def test_a_sum_of_independent_quantities_covers_its_samples(
    deviation: float, count: int, random: np.random.Generator
) -> None:
    parts = [quantity(1.0 + at, deviation=deviation) for at in range(count)]
    samples = np.sum([draws(part, random.normal(size=(SAMPLES, 1))) for part in parts], axis=0)
    found = add(parts)
    # Medians do not add exactly: what is skewed ends a little higher.
    assert covered(found, samples, 0.9)[0] == pytest.approx(0.9, abs=0.02 + 0.5 * deviation**2 * count)
    assert found.deviation[0] == pytest.approx(np.log(samples).std(), rel=0.05 + deviation**2)


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.3])
def test_a_sum_of_errors_of_one_cause_is_as_uncertain_as_its_parts(
    deviation: float, random: np.random.Generator
) -> None:
    parts = [quantity(1.0 + at, deviation=deviation, cause="clock") for at in range(10)]
    errors = random.normal(size=(SAMPLES, 1))
    found = add(parts)
    assert found.deviation == pytest.approx([deviation])
    assert covered(found, np.sum([draws(part, errors) for part in parts], axis=0), 0.9) == pytest.approx(
        [0.9], abs=5e-3
    )
    assert add([found, *parts]).deviation == pytest.approx([deviation])


def test_causes_are_independent_of_each_other(random: np.random.Generator) -> None:
    parts = [quantity(1.0, deviation=0.1, cause=cause) for cause in ("a", "a", "b", "b")]
    one, other = random.normal(size=(2, SAMPLES, 1))
    samples = 2 * draws(parts[0], one) + 2 * draws(parts[2], other)
    assert add(parts).deviation == pytest.approx(np.log(samples).std(axis=0), rel=0.03)
    assert add(parts).cause == ""
    assert add(parts[:2]).cause == product(parts[:2]).cause == "a"


def test_many_independent_parts_average_out() -> None:
    parts = [quantity(1.0, deviation=0.1) for _ in range(100)]
    assert add(parts).deviation == pytest.approx([0.01], rel=0.02)


def test_either_side_of_a_sum_is_of_that_side_of_its_parts() -> None:
    centre, none = np.zeros(1), np.zeros(1)
    rises, falls = Quantity(centre, none, none + 0.2), Quantity(centre, none + 0.2, none)
    found = add([rises, falls])
    assert found.up == pytest.approx(np.log1p((np.exp(TAIL * 0.2) - 1) / 2) / TAIL)
    assert found.down == pytest.approx(-np.log1p(-(1 - np.exp(-TAIL * 0.2)) / 2) / TAIL)


def test_zero_adds_nothing_and_what_is_missing_is_missing() -> None:
    zero = Quantity.of_ends(np.zeros(1), np.zeros(1), np.zeros(1))
    part = quantity(3.0)
    total = add([part, zero])
    assert np.exp(total.centre) == pytest.approx([3.0])
    assert total.deviation == pytest.approx(part.deviation, rel=1e-9)
    assert [end.tolist() for end in add([zero, zero]).interval(0.9)] == [[0.0]] * 3
    missing = Quantity.of_ends(*np.full((3, 1), np.nan))
    assert np.isnan(add([part, missing]).centre).all()
    assert np.isnan(product([part, missing]).centre).all()


def test_the_lower_end_of_a_sum_stays_above_zero() -> None:
    found = add([quantity(1.0, deviation=UNKNOWN), quantity(1e-9, deviation=UNKNOWN)])
    _, low, high = found.interval(0.99)
    assert (low > 0).all()
    assert np.isfinite(high).all()


@pytest.mark.parametrize("apart", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_mixture_has_the_moments_of_its_samples(apart: float, share: float, random: np.random.Generator) -> None:
    parts = [quantity(1.0, deviation=0.1), quantity(np.exp(apart), deviation=0.3)]
    first = random.random((SAMPLES, 1)) < share
    each = [draws(part, random.normal(size=(SAMPLES, 1))) for part in parts]
    samples = np.log(np.where(first, *each))
    found = mix(parts, np.array([[share], [1 - share]]))
    assert found.centre == pytest.approx(samples.mean(axis=0), abs=0.005)
    assert found.deviation == pytest.approx(samples.std(axis=0), rel=0.01)
    assert covered(found, np.exp(samples), 0.9)[0] == pytest.approx(0.9, abs=0.06)


def test_a_mixture_is_of_the_parts_that_there_are() -> None:
    nothing, part = Quantity.exact(np.full(2, np.nan)), quantity(2.0, 3.0)
    found = mix([part, nothing], np.full((2, 2), 0.5))
    assert np.exp(found.centre) == pytest.approx([2.0, 3.0])
    assert found.deviation == pytest.approx(part.deviation)
    assert np.isnan(mix([nothing, nothing], np.full((2, 2), 0.5)).centre).all()


def test_the_larger_of_two_follows_whichever_is_larger_at_each_end() -> None:
    wide, narrow = quantity(1.0, 1.0, deviation=0.5), quantity(1.2, 9.0, deviation=0.01)
    found = larger(wide, narrow)
    assert np.exp(found.centre) == pytest.approx([1.2, 9.0])
    assert found.up == pytest.approx([0.5 - np.log(1.2), 0.01])
    assert found.down == pytest.approx([0.01, 0.01])
    assert larger(wide, Quantity.exact(np.full(2, np.nan))).up == pytest.approx(wide.up)


def test_further_deviations_are_independent_and_on_their_side() -> None:
    part = quantity(2.0, deviation=0.3)
    assert part.wider(0.4).deviation == pytest.approx([0.5])
    assert (part.wider(0.4, 0.0).down, part.wider(0.4, 0.0).up) == (pytest.approx([0.5]), pytest.approx([0.3]))
    assert part.no_narrower(0.4).deviation == pytest.approx([0.4])
    assert part.no_narrower(0.2).deviation == pytest.approx([0.3])


def test_an_inverse_turns_both_sides_round() -> None:
    part = Quantity(np.log([2.0]), np.array([0.1]), np.array([0.4]))
    value, low, high = part.inverse().interval(0.9)
    assert value == pytest.approx([0.5])
    assert (low, high) == (pytest.approx(0.5 * np.exp(-0.4 * TAIL)), pytest.approx(0.5 * np.exp(0.1 * TAIL)))
    assert product([part, part.caused_by("").inverse()]).centre == pytest.approx([0.0])


def test_a_bound_holds_for_the_median_and_the_upper_end() -> None:
    part = Quantity(np.log([0.5, 0.9, 1.4]), np.full(3, 0.3), np.full(3, 0.3))
    value, low, high = part.at_most(1.0).interval(0.9)
    assert value == pytest.approx([0.5, 0.9, 1.0])
    assert high == pytest.approx([0.5 * np.exp(0.3 * TAIL), 1.0, 1.0])
    assert low == pytest.approx(np.exp(part.centre - TAIL * 0.3))
    assert np.isnan(Quantity.exact(np.array([np.nan])).at_most(1.0).centre).all()


@pytest.mark.parametrize("level", LEVELS)
def test_an_interval_becomes_a_quantity_and_an_interval_again(level: float) -> None:
    answer = Forecast.settled(*(np.array([[x, 3 * x]]) for x in (2.0, 1.5, 2.2)))
    back = answer.having(answer.quantity())
    for name in ("value", "lower", "upper"):
        assert getattr(back, name) == pytest.approx(getattr(answer, name), rel=1e-12)
    assert answer.quantity().deviation == pytest.approx(answer.spread)
    assert answer.quantity(np.array([-1, 0])).centre[0] == pytest.approx(np.full(2, np.nan), nan_ok=True)
    assert Forecast.of(answer.quantity()).lower == pytest.approx(answer.lower)
    for end, expected in zip((answer.at(level).value, answer.at(level).lower, answer.at(level).upper),
                             answer.quantity().interval(level), strict=True):  # fmt: skip
        assert end == pytest.approx(expected)
    assert answer.at(level).spread == pytest.approx(answer.spread)


@pytest.mark.parametrize(("level", "quantile"), [(0.5, 0.764892), (0.9, 2.353363), (0.99, 5.840909)])
def test_answers_of_another_level_have_the_tails_of_their_distribution(level: float, quantile: float) -> None:
    """Quantiles of Student's distribution with three degrees of freedom, from a table."""
    value = np.array([[2.0]])
    answer = Forecast.settled(value, value * np.exp(-2.353363), value * np.exp(2 * 2.353363))
    asked = replace(answer, freedom=np.array([[3.0]])).at(level)
    assert asked.lower == pytest.approx(value * np.exp(-quantile), rel=1e-5)
    assert asked.upper == pytest.approx(value * np.exp(2 * quantile), rel=1e-5)
    with pytest.raises(InputError, match="is not a probability"):
        answer.at(1.0)


def test_answers_that_may_be_below_zero_are_scaled_as_they_are() -> None:
    answer = Forecast.settled(np.array([[-1.0, 1.0, 0.0]]), np.array([[-2.0, -1.0, 0.0]]), np.array([[1.0, 2.0, 3.0]]))
    asked, wider = answer.at(0.99), deviations(0.99) / TAIL
    assert asked.lower == pytest.approx(np.array([[-1 - wider, 1 - 2 * wider, 0.0]]))
    assert asked.upper == pytest.approx(np.array([[-1 + 2 * wider, 1 + wider, 3 * wider]]))
    zero = Forecast.settled(np.ones((1, 1)), np.zeros((1, 1)), np.full((1, 1), 2.0)).at(0.5)
    assert zero.lower == 0
    assert zero.upper == pytest.approx(2 ** (deviations(0.5) / TAIL))


def test_ends_that_say_nothing_are_no_knowledge() -> None:
    found = Quantity.of_ends(np.ones(3), np.array([0.0, -1.0, np.nan]), np.array([np.inf, np.nan, 1.0]))
    assert found.down.tolist() == [UNKNOWN] * 3
    assert found.up.tolist() == [UNKNOWN, UNKNOWN, 0.0]
    assert np.isnan(Quantity.of_ends(np.array([-1.0]), np.zeros(1), np.ones(1)).centre).all()


def test_deviations_are_those_of_the_normal_law() -> None:
    assert deviations(0.9) == TAIL == pytest.approx(1.6448536)
    assert deviations(0.5) == pytest.approx(0.6744898)
