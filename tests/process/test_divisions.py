"""Parameters up to one: mesh widths, time steps and tolerances count by how often they go into one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ranksight as rs
from ranksight.core.arrays import Array
from ranksight.reports.formula import readable

Law = Callable[[Array], Array]


def _model(x: Array, exact: Array, seed: int = 1, name: str = "dx") -> rs.Model:
    scatter = np.exp(0.01 * np.random.default_rng(seed).normal(size=(len(x), 3)))
    columns = {name: np.repeat(x, 3), "time": (exact[:, None] * scatter).ravel()}
    return rs.fit(rs.from_dict(columns, [name], time="time"))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("x", "law"),
    [
        ([0.2, 0.1, 0.05, 0.025], lambda x: 2e-3 / x**3),
        ([0.1, 0.05, 0.025, 0.0125], lambda x: 1e-6 / x**4),
        ([0.1, 0.05, 0.025, 0.0125, 0.00625], lambda x: 5 + 1e-3 / x**2),
        ([1e-2, 1e-3, 1e-4, 1e-5, 1e-6], lambda x: 2 - 2 * np.log10(x)),
    ],
)
def test_times_grow_by_how_often_a_width_goes_into_one(x: list[float], law: Law, seed: int) -> None:
    """Powers beyond the second missed runs by a third, and logarithms of a tolerance ended in an error."""
    asked = np.array([x[-2], x[-1] / 2])
    table = _model(np.array(x), law(np.array(x)), seed).predict(dx=asked.tolist(), metrics="time").table()
    assert (table["status"] == "ok").all()
    np.testing.assert_allclose(table["value"], law(asked), rtol=0.08)
    assert ((table["lower"] < law(asked)) & (law(asked) < table["upper"])).all()


def test_what_is_printed_is_of_the_parameter_itself() -> None:
    x = np.array([0.2, 0.1, 0.05, 0.025])
    formula = readable(_model(x, 2 / x**3).table()["formula"][0])
    assert formula.endswith("/ dx³")


def test_counts_of_widths_are_exact() -> None:
    """They were a constant, 97 % too low at half the width."""
    rows = [(p, x, 200 + 1e4 / x**3 / p) for p in (1, 2, 4, 8) for x in (0.1, 0.05, 0.025, 0.0125)]
    ranks, dx, instructions = (list(column) for column in zip(*rows, strict=True))
    columns = {"ranks": ranks, "dx": dx, "instructions": instructions}
    model = rs.fit(rs.from_dict(columns, ["ranks", "dx"], metrics=["instructions"]))
    table = model.predict(ranks=16, dx=0.00625, metrics="instructions").table()
    assert table["value"][0] == pytest.approx(200 + 1e4 / 0.00625**3 / 16, rel=1e-3)
    assert table["upper"][0] < 1.2 * table["value"][0]


@pytest.mark.parametrize("power", [1, 2])
def test_counts_of_a_tolerance_have_its_logarithm(power: int) -> None:
    tolerance = np.array([1e-2, 1e-3, 1e-4, 1e-6, 1e-8])
    law = 3e5 * np.log2(1 / tolerance) ** power + 1e6
    model = rs.fit(rs.from_dict({"tol": tolerance, "instructions": law}, ["tol"], metrics=["instructions"]))
    table = model.predict(tol=[1e-5, 1e-10], metrics="instructions").table()
    true = 3e5 * np.log2([1e5, 1e10]) ** power + 1e6
    np.testing.assert_allclose(table["value"], true, rtol=1e-3)
    assert ((table["lower"] <= true) & (true <= table["upper"])).all()


def test_no_term_is_printed_twice() -> None:
    x = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    formula = readable(_model(x, 10 - 8 * x, name="filled").table()["formula"][0])
    assert formula.replace("-", "+").count("+") == 1


def test_zero_among_fractions_has_a_function() -> None:
    x = np.array([0, 0.1, 0.2, 0.3, 0.5])
    table = _model(x, 10 + 8 * x, name="fill").predict(fill=0.4, metrics="time").table()
    assert table["value"][0] == pytest.approx(13.2, rel=0.05)
