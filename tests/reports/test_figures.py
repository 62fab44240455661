"""Figures of the page: where their values are."""

from __future__ import annotations

import pytest

from ranksight.reports.html.figures import draw


def test_marks_are_named_where_they_are_drawn() -> None:
    figure = draw(
        "marks",
        lambda ax: (ax.plot([1, 10, 100], [5, 50, 5], "o"), ax.set_xscale("log"), ax.set_yscale("log")),
        "three marks",
        (10, 4),
        [1, 10, 100],
        [("level", ["L2", "L3", "memory"])],
        ["a", "b", "c"],
        heights=[5, 50, 5],
    )
    x, y = figure.hover["x"], figure.hover["y"]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert figure.hover["top"] <= y[1] < y[0] == y[2] <= figure.hover["bottom"]
    assert all(0 <= place <= 720 for place in x)
    assert figure.hover["heads"] == ["a", "b", "c"]
