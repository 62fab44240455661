"""Counts of whole blocks, which a function with a falling part meets by chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK, Forecast

Law = Callable[[np.ndarray], np.ndarray]


def expected(
    law: Law, sizes: tuple[float, ...], asked: tuple[float, ...], unit: float = 1.0, parameter: str = "size"
) -> Forecast:
    x = np.array(sizes)
    series = Series((parameter,), x[:, None], unit * law(x)[None, :, None], ("k",), ("instructions",))
    return fit_varied(series).predict(np.array(asked)[:, None])


@pytest.mark.parametrize("unit", [1.0, 40.0, 1e7 / 3])
def test_blocks_met_by_a_function_that_saturates_go_on(unit: float) -> None:
    asked = (30.0, 36.0, 48.0, 72.0)
    said = expected(lambda x: np.ceil(x / 4), (12, 18, 24), asked, unit)
    true = unit * np.ceil(np.array(asked) / 4)
    assert (said.lower[0] <= true).all()
    assert (true <= said.upper[0]).all()
    # 9 - 72 / x, which meets the three values, is 7.5 at 48 and 8 at 72.
    assert (said.value[0, 2:] > unit * np.array([9, 12])).all()


@pytest.mark.parametrize("power", [2, 3])
def test_blocks_of_an_area_and_of_a_volume(power: int) -> None:
    sizes, asked = (12.0, 18.0, 24.0), (30.0, 48.0)
    said = expected(lambda x: np.ceil(x / 4) ** power, sizes, asked)
    true = np.ceil(np.array(asked) / 4) ** power
    known = said.status[0] == OK
    assert ((said.lower[0] <= true) & (true <= said.upper[0]) | ~known).all()


@pytest.mark.parametrize(
    ("law", "sizes"),
    [
        (lambda x: x - 1, (12.0, 18.0, 24.0)),
        (lambda x: 10 - 8 / x, (12.0, 18.0, 24.0)),
        (lambda x: x / 6 + 1, (12.0, 18.0, 24.0)),
        (lambda x: x, (12.0, 24.0, 48.0)),
        (lambda x: 9 - 72 / x, (12.0, 18.0, 24.0, 36.0)),
    ],
)
def test_what_blocks_do_not_meet_or_four_sizes_show_stays_exact(law: Law, sizes: tuple[float, ...]) -> None:
    asked = (2 * sizes[-1],)
    said = expected(law, sizes, asked)
    true = law(np.array(asked))
    assert said.status[0, 0] == OK
    assert said.upper[0, 0] / said.lower[0, 0] < 1.3
    assert said.lower[0, 0] <= true[0] <= said.upper[0, 0]


@pytest.mark.parametrize("units", [60, 100, 120, 150, 1000])
def test_units_dealt_out_to_ranks_are_no_surface_of_a_grid(units: int) -> None:
    def law(ranks: np.ndarray) -> np.ndarray:
        return np.ceil(units / ranks)

    said, true = expected(law, (2.0, 4.0, 8.0, 16.0), (32.0,), 1e6, "ranks"), 1e6 * law(np.array([32.0]))
    assert said.lower[0, 0] <= true[0] <= said.upper[0, 0]


def test_partners_on_a_grid_stay_exact() -> None:
    asked = np.array([64.0, 256.0])
    sides = {4.0: (2, 2), 8.0: (4, 2), 16.0: (4, 4), 32.0: (8, 4), 64.0: (8, 8), 128.0: (16, 8), 256.0: (16, 16)}

    def surface(ranks: np.ndarray) -> np.ndarray:
        return np.array([512 / sides[x][0] + 512 / sides[x][1] for x in ranks.tolist()])

    said = expected(surface, (4.0, 8.0, 16.0, 32.0), (64.0, 256.0), parameter="ranks")
    assert (said.status[0] == OK).all()
    np.testing.assert_allclose(said.value[0], surface(asked), rtol=1e-6)
    assert (said.upper[0] < 1.3 * said.lower[0]).all()
