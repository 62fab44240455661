"""Imbalance of stated ratios, worked out by hand, and costs of communication read from files of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model import priors
from ranksight.model.application.comm_blocking import Blocking, Taken
from ranksight.model.application.imbalances import APART, Imbalances
from ranksight.model.laws.view import medians
from ranksight.model.quantity import TAIL
from ranksight.model.series.reducing import Series

POINTS = np.array([[4.0], [16.0]])
RATIOS = np.array([3.0, 0.5, 0.2, 0.6])
"""Work of the first rank, the last, others, and the most of the others, over the mean."""


def uneven(held: bool, having: dict[str, tuple[float, float]] | None = None, together: float = 1.0) -> Imbalances:
    """Of the one kernel "a"; 10 % to either side of its ratios."""

    def ratios(points: np.ndarray) -> tuple[np.ndarray, ...]:
        each = np.repeat(RATIOS[:, None, None], len(points), axis=2)
        return each, 0.9 * each, 1.1 * each

    fitted = SimpleNamespace(parameters=("ranks",))

    def known(points: np.ndarray) -> np.ndarray:
        return np.ones((4, 1, len(points)), dtype=bool)

    of_runs = {"latest": RATIOS[:, None], "points": POINTS}
    classes: Any = SimpleNamespace(kernels=("a",), fitted=fitted, ratios=ratios, known=known, **of_runs)
    return Imbalances(classes, held, False, together, having or {})


@pytest.mark.parametrize("held", [False, True])
def test_the_program_waits_for_its_slowest_rank(held: bool) -> None:
    """Kernel "a" takes 2 s on the mean of ranks, three times as much on the first; "even" takes 5 s on all."""
    times = np.array([[6.0 if held else 2.0] * 2, [5.0, 5.0]])
    one, names = uneven(held), ("a", "even")
    assert one.means(names, times, POINTS) == pytest.approx(np.array([[2.0, 2.0], [5.0, 5.0]]))
    assert one.parts(names, times, POINTS) == pytest.approx(np.array([[4.0, 4.0], [0.0, 0.0]]))
    assert one.slowest_class(names, times, POINTS) == ("first rank",) * 2
    # The time of the slowest rank is known as it is.
    ends = (11.0, 11.0, 11.0) if held else (11.0, 10.4, 11.6)
    for end, slowest in zip(one.program(names, times, POINTS), ends, strict=True):
        assert end == pytest.approx(slowest / times.sum(axis=0))
    assert [end.tolist() for end in one.program(names, 0 * times, POINTS)] == [[1.0, 1.0]] * 3


def test_no_ranks_have_more_than_all_or_less_than_one() -> None:
    names = ("root", "half", "workers", "all", "none", "many")
    having = {"root": (1.0, 0.0), "half": (0.0, 0.5), "workers": (-1.0, 1.0), "none": (0.0, 0.0), "many": (0.0, 2.0)}
    expected = np.array([[1 / 4, 1 / 16], [0.5, 0.5], [3 / 4, 15 / 16], [1, 1], [1 / 4, 1 / 16], [1, 1]])
    assert uneven(False, having).among(names, POINTS) == pytest.approx(expected)
    assert uneven(False, having).part(names, POINTS) == pytest.approx(expected)
    assert uneven(True, having).part(names, POINTS) == pytest.approx(1.0)
    assert uneven(True).among((), POINTS).shape == (0, 2)


def test_the_slowest_of_those_that_have_a_kernel_is_compared_with_them() -> None:
    having = {"a": (0.0, 0.5), "even": (0.0, 0.5)}
    names = ("a", "even")
    assert uneven(False, having).slowest(names, POINTS) == pytest.approx(np.array([[3.0, 3.0], [1.0, 1.0]]))
    assert uneven(True, having).slowest(names, POINTS) == pytest.approx(np.array([[1.5, 1.5], [1.0, 1.0]]))


def test_a_ratio_is_as_doubtful_as_its_law_says() -> None:
    ratio, deviation = uneven(True).reaching(("even", "a"), POINTS)
    assert ratio == pytest.approx(np.array([[1.0, 1.0], [3.0, 3.0]]))
    assert deviation == pytest.approx(np.repeat([[0.0], [np.log(1.1 / 0.9) / (2 * TAIL)]], 2, axis=1))


RANKS = np.array([[1.0], [2.0], [4.0]])


def test_only_slowest_ranks_that_differ_are_remarked() -> None:
    assert not uneven(False, together=0.1).remarks(RANKS)
    assert not uneven(True, together=(1 + APART) / 2).remarks(RANKS)
    assert "less than their sum" in uneven(True, together=APART).remarks(RANKS)[0]


def blocking() -> Blocking:
    values = np.log([[0.5, 0.6, 0.7]])
    taken = Taken(("p",), RANKS, values, np.full((1, 3), 0.02))
    return Blocking(("ranks",), (0,), ("p",), ("",), np.ones(1), np.zeros(1), ("constant",), np.zeros((1, 3)),
                    np.zeros(1, dtype=np.intp), values, taken.errors, 2.0, taken)  # fmt: skip


def test_a_measured_cost_of_communication_is_the_answer_there() -> None:
    mean, spread, exact = blocking().at(np.array([[2.0], [3.0], [64.0]]))
    assert exact.tolist() == [[True, False, False]]
    assert mean[0, 0] == pytest.approx(np.log(0.6))
    assert mean[0, 2] <= blocking().at(np.array([[4.0]]))[0][0, 0] + np.log(16)
    assert (spread[0, :2] >= priors.REPEATED).all()
    assert spread[0, 2] > spread[0, 1]


@pytest.mark.parametrize(
    ("name", "damaged"),
    [("node", -1.0), ("columns", [1]), ("columns", [-1]), ("ways", []), ("shapes", ["another"]), ("levels", [None]),
     ("weights", [-1.0]), ("weights", [0.5, 0.5]), ("errors", [[0.1, 0.1, -0.1]]), ("values", [[0.1, 0.1]]),
     ("shaped", [[0.0, 0.0]]), ("departures", [-1]), ("departures", [10_000]), ("departures", [0, 0]),
     ("taken", {"kinds": ["p"], "points": [[1.0]], "logs": [[0.0, 0.0]], "errors": [[0.0, 0.0]]}),
     ("taken", {"kinds": ["p"], "points": RANKS.tolist(), "logs": [[0.0] * 3] * 2, "errors": [[0.0] * 3] * 2})],
)  # fmt: skip
def test_a_cost_of_communication_that_does_not_fit_together_is_refused(name: str, damaged: Any) -> None:
    content = blocking().to_dict()
    assert Blocking.from_dict(content).at(RANKS)[0] == pytest.approx(blocking().at(RANKS)[0])
    assert Blocking.from_dict({**content, "node": 0.0}).node == 0
    with pytest.raises(InputError):
        Blocking.from_dict({**content, name: damaged})


@pytest.mark.parametrize("together", [0.5, -0.1, 1.1])
def test_a_part_that_no_ranks_have_does_not_fit(together: float) -> None:
    assert uneven(True, together=together)._fits() == (together == 0.5)
    assert not uneven(True, {"a": (np.nan, 1.0)})._fits()


def test_a_metric_that_no_run_has_is_missing_of_any_kernel() -> None:
    series = Series(("ranks",), RANKS, np.array([[[1.0, 3.0, 2.0]] * 3]), ("a",), ("time",))
    assert medians(series, "time", ("a", "b")) == pytest.approx(np.array([[2.0] * 3, [np.nan] * 3]), nan_ok=True)
