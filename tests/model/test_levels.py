"""What two values of a parameter can say: exact where loops count, bounded by all sums of powers through two points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series
from ranksight.model.structure.bridge import bridge
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.levels import NO_LEVELS, fit_levels, two_valued
from ranksight.model.uncertainty.forecast import FEW_POINTS, OK


def one(values: tuple[float, float], at: list[float], counted: bool = True) -> tuple[np.ndarray, ...]:
    return bridge(
        (10.0, 20.0), np.array(values).reshape(1, 1, 2).repeat(len(at), axis=1), np.array(at), np.array([counted])
    )


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 3),
    st.floats(1e-3, 1e6),
    st.floats(0, 1e6),
    st.floats(20, 500),
)
def test_sums_of_adjacent_powers_come_out_exactly(power: int, a: float, b: float, at: float) -> None:
    def true(x: float) -> float:
        return b * x**power + a * x ** (power + 1)

    value, lower, upper = one((true(10), true(20)), [at, 10.0, 20.0])
    assert value[0] == pytest.approx([true(at), true(10), true(20)], rel=1e-6)
    assert (lower <= value * (1 + 1e-9)).all()
    assert (value <= upper * (1 + 1e-9)).all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=4, max_size=4), st.floats(20, 200))
def test_every_sum_of_powers_that_grows_no_faster_is_inside(coefficients: list[float], at: float) -> None:
    def true(x: float) -> float:
        return sum(c * x**i for i, c in enumerate(coefficients))

    if true(10) < 1e-3:
        return
    slope = np.log2(true(20) / true(10))
    most = np.ceil(slope - 1e-9)
    if any(c > 0 for c in coefficients[int(most) + 1 :]):
        return
    value, lower, upper = one((true(10), true(20)), [at])
    assert lower[0, 0] * (1 - 1e-6) <= true(at) <= upper[0, 0] * (1 + 1e-6)
    assert value[0, 0] <= true(at) * (1 + 1e-6)


def test_what_two_points_cannot_say() -> None:
    assert np.isnan(one((0.0, 5.0), [40.0])[0]).all()
    assert np.isnan(one((np.nan, 5.0), [40.0])[0]).all()
    assert [x[0, 0] for x in one((0.0, 0.0), [40.0])] == [0, 0, 0]
    value, lower, upper = one((1.0, 4.0), [40.0], counted=False)
    assert value[0, 0] == pytest.approx(16)
    assert lower[0, 0] == pytest.approx(16 / np.sqrt(2))
    assert upper[0, 0] == pytest.approx(16 * np.sqrt(2))


def series(points: list[tuple[float, float]]) -> Series:
    table = np.array(points)
    values = (table[:, 0] * table[:, 1] ** 2)[None, :, None]
    return Series(("ranks", "size"), table, values, ("k",), ("instructions",))


def test_the_two_valued_parameter_is_found() -> None:
    assert two_valued(series([(p, n) for p in (1, 2, 4, 8) for n in (3, 6)])) == "size"
    assert two_valued(series([(p, n) for p in (1, 2) for n in (3, 6)])) == "", "both took two values"
    assert two_valued(series([(p, n) for p in (1, 2, 4) for n in (3, 6, 9)])) == ""
    assert fit_levels(series([(p, n) for p in (1, 2, 4) for n in (3, 6, 9)])) is NO_LEVELS


def test_other_parameters_are_functions_at_each_level() -> None:
    levels = fit_levels(series([(p, n) for p in (1, 2, 4, 8, 16) for n in (3, 6)]))
    assert levels
    said = levels.predict(np.array([[64, 12.0], [64, 4.0]]))
    assert said.value[0] == pytest.approx([64 * 144, 64 * 16], rel=1e-3)
    assert (said.status == 0).all()


def test_nothing_else_varied() -> None:
    levels = fit_levels(series([(4, 3), (4, 6)]))
    assert levels
    assert levels.predict(np.array([[4, 12.0]])).value[0, 0] == pytest.approx(4 * 144)


def _two_sizes(count: object, ranks: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)) -> Series:
    points = np.array([[p, n] for p in ranks for n in (16.0, 24.0)])
    values = np.array([[[count(p, n)] for p, n in points]])  # type: ignore[operator]
    return Series(("ranks", "size"), points, values, ("k",), ("instructions",))


def test_what_grows_and_what_does_not_are_carried_apart() -> None:
    def count(p: float, n: float) -> float:
        return float(21 * n**3 / p + 300 * np.log2(p) + 1000)

    found = fit_levels(_two_sizes(count))
    assert found
    # At 64 ranks most of it does not grow, and the slope between the sizes is that of n, not of n^3.
    answer = found.predict(np.array([[64.0, 96.0]]))
    assert answer.value[0, 0] == pytest.approx(count(64, 96), rel=1e-6)
    again = type(found).from_dict(found.to_dict()).predict(np.array([[64.0, 96.0]]))
    assert again.value[0, 0] == pytest.approx(answer.value[0, 0], rel=1e-9)


@pytest.mark.parametrize("rest", [61803.3, 314159.2, 520965.3, 886550.1])
def test_the_same_terms_are_taken_at_both_sizes_where_others_are_equal(rest: float) -> None:
    """From four ranks on a constant, and what there is of each edge of a grid that is cut, are the same."""

    def count(p: float, n: float) -> float:
        return 552.2790636547927 * n**3 / p + rest

    found = fit_levels(_two_sizes(count, (4.0, 8.0, 16.0, 24.0, 48.0)))
    assert found
    points = np.array([[48.0, 48.0], [192.0, 48.0], [768.0, 48.0]])
    said = found.predict(points)
    assert said.value[0] == pytest.approx([count(p, n) for p, n in points], rel=0.01)
    assert (said.status == 0).all()


@settings(max_examples=100, deadline=None)
@given(st.floats(1, 50), st.floats(0, 1e6), st.floats(20, 200))
def test_intervals_hold_the_power_that_few_ranks_show(volume: float, rest: float, at: float) -> None:
    def true(x: float) -> float:
        return volume * x**3 + rest

    values = np.array([[[true(10), true(20)]]])
    # Elsewhere the slope was between 2 and 3, so that volumes are in it.
    value, lower, upper = bridge((10.0, 20.0), values, np.array([at]), np.array([True]), np.array([[2.4]]))
    assert lower[0, 0] <= value[0, 0] <= upper[0, 0]
    assert lower[0, 0] * (1 - 1e-6) <= true(at) <= upper[0, 0] * (1 + 1e-6)


def test_a_share_that_is_sorted_is_inside() -> None:
    value, lower, upper = one((10**2 * np.log(10), 20**2 * np.log(20)), [80.0])
    assert lower[0, 0] * (1 - 1e-9) <= 80**2 * np.log(80) <= upper[0, 0]
    assert lower[0, 0] < value[0, 0]


@pytest.mark.parametrize("size", [0.0, -3.0])
def test_nothing_is_reported_where_nothing_runs(size: float) -> None:
    levels = fit_levels(series([(p, n) for p in (1, 2, 4, 8, 16) for n in (3, 6)]))
    assert levels
    said = levels.predict(np.array([[64, size], [64, 12.0]]))
    assert np.isnan([said.value[0, 0], said.lower[0, 0], said.upper[0, 0]]).all()
    assert said.reason[0, 0] == f"size is {size:g}, and was above zero in all runs"
    assert said.value[0, 1] == pytest.approx(64 * 144, rel=1e-3)


def test_traffic_that_was_nothing_at_one_level_has_no_bound_beyond() -> None:
    """Held at its share of the loads it had a value, and ends that were no numbers: 1.31 kB from 1.31 kB to nan."""
    counts = np.array([[[0.0], [10478.9]], [[9e6], [7e6]]])
    series = Series(("ranks",), np.array([[12.0], [16.0]]), counts, ("step", "step"), ("bytes_mem_read", "loads"))
    said = fit_levels(series).predict(np.array([[128.0]]))
    assert said.value[0, 0] > 0
    assert said.lower[0, 0] == 0
    assert said.upper[0, 0] == np.inf


def counted(values: dict[tuple[float, ...], float], names: tuple[str, ...]) -> Series:
    points = np.array(list(values), dtype=float)
    return Series(names, points, np.array(list(values.values()))[None, :, None], ("k",), ("instructions",))


def test_what_begins_on_the_second_rank_shows_no_growth() -> None:
    levels = fit_levels(counted({(1,): 1800.0, (2,): 151560.0}, ("ranks",)))
    said = levels.predict(np.array([[2.0], [12.0]]))
    assert said.status[0].tolist() == [OK, FEW_POINTS]
    assert said.reason[0, 1] == "ranks took two values, which show no growth law here; measure ranks 4 and 8"


def test_functions_at_two_sizes_answer_at_these() -> None:
    """What is printed is predicted where a law of both parameters, of ten values, is far from it."""
    of_ranks = {1: 0.0, 2: 1.0, 4: 1 / 2, 6: 2 / 3, 8: 3 / 4}
    values = {(p, n): 160 * n * n * c + 20 * n * (p == 2) for p, c in of_ranks.items() for n in (36, 50)}
    series, asked = counted(values, ("ranks", "size")), np.array([[12.0, 50.0], [256.0, 50.0]])
    functions = Functions(fit_series(series), fit_levels(series))
    of_all, printed = functions.fitted.predict(asked).value, functions.levels.predict(asked).value
    np.testing.assert_array_equal(functions.predict(asked).value, [[of_all[0, 0], printed[0, 1]]])
