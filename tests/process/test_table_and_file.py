"""The table of prevalence as a distribution, and processes read from files of others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.application.others import DoubtfulSum
from ranksight.model.process.covariance import Turn
from ranksight.model.process.fit_process import fit_process
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import COARSE, ending, learned, unlearned
from ranksight.model.process.solve import KINDS
from ranksight.model.series.noise import locate

X = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
ASKED = np.array([[3.0], [32.0]])


@pytest.fixture(scope="module")
def process() -> Process:
    return fit_process(X, locate((3 + 100 / X[:, 0])[None, :, None], points=X), np.arange(1))


@pytest.mark.parametrize("table", [learned(), unlearned(COARSE)], ids=["learned", "unlearned"])
def test_weights_of_a_table_are_probabilities(table: Any) -> None:
    for part in (table, table.coarse, table.in_domains):
        assert np.exp(part.means).sum() == pytest.approx(1)
        assert np.exp(part.covariances).sum() == pytest.approx(1)
    joint = table.joint
    assert np.exp(joint[np.isfinite(joint)]).sum() == pytest.approx(1)
    for count in (1, 2, 3, 8):
        kind, place, weight = table.odd(np.arange(count, dtype=float)[:, None])
        assert len(kind) == len(place) == len(weight) == (count + 2 if count > 2 else 1)
        assert np.exp(weight).sum() == pytest.approx(1)


def test_covariances_that_stand_for_all_stand_for_themselves() -> None:
    weight = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    few = replace(unlearned(COARSE), covariances=np.log(weight)).coarse
    assert np.exp(few.covariances) == pytest.approx(weight)
    near = replace(unlearned(1.1 * COARSE), covariances=np.log(weight)).coarse
    assert np.exp(near.covariances) == pytest.approx(weight)


def test_a_known_memory_domain_divides_the_weight_of_each_mean() -> None:
    table = learned()
    whole, count = np.exp(table.means), len(table.means)
    parts = np.exp(table.in_domains.means).reshape(2, count)
    assert parts.sum(axis=0) == pytest.approx(whole)
    occurs = (whole > 0) & ~ending(table.terms, table.members)
    assert not parts[1][ending(table.terms, table.members)].any()
    share = parts[1][occurs] / whole[occurs]
    assert set(np.round(share, 9)) <= set(np.round(np.exp(table.filling), 9))


def test_a_table_learns_what_is_sure_and_keeps_what_nothing_is_known_of() -> None:
    table = unlearned(COARSE)
    shape = len(table.means), len(COARSE)
    same = table.updated(np.zeros((4, *shape)), 10.0, 3)
    assert same.means == pytest.approx(table.means)
    assert same.covariances == pytest.approx(table.covariances)
    sure = np.full((6, *shape), -1e4)
    sure[:, 2, 1] = 0.0
    after = table.updated(sure, 10.0, 2)
    for old, new, at in ((table.means, after.means, 2), (table.covariances, after.covariances, 1)):
        expected = 10 * np.exp(old)
        expected[at] += 6
        assert np.exp(new) == pytest.approx(expected / 16)


@pytest.mark.parametrize(("power", "factor"), [(0.0, 1.0), (0.5, 2.0), (1.0, 4.0)])
def test_odds_of_a_turn_go_with_the_scatter(power: float, factor: float) -> None:
    turn = Turn(0.2, power, 0.5, 1.0)
    few, many = turn.probability(np.array([0.03, 0.12]))
    assert few == pytest.approx(0.2)
    assert many / (1 - many) == pytest.approx(factor * 0.25)


def test_a_process_is_read_as_it_was_written(process: Process) -> None:
    again = Process.from_dict(json.loads(json.dumps(process.to_dict())))
    for old, new in zip(process.components(ASKED), again.components(ASKED), strict=True):
        assert new == pytest.approx(old)
    odd = Process.from_dict({**process.to_dict(), "kind": np.ones_like(process.kind).tolist()})
    assert (odd.kind == 1).all()
    going_on = Process.from_dict({**process.to_dict(), "turn": np.zeros_like(process.turn).tolist()})
    for old, new in zip(process.straight(ASKED), going_on.components(ASKED), strict=True):
        assert new == pytest.approx(old)


def test_hypotheses_that_are_solved_in_parts_are_the_same(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    many = process.select(np.zeros(7, dtype=np.intp), np.arange(7))
    whole = many.straight(ASKED)
    monkeypatch.setattr("ranksight.model.process.posterior.BATCH", 3 * len(ASKED) * process.weight.shape[1])
    for old, new in zip(whole, many.straight(ASKED), strict=True):
        assert new == pytest.approx(old, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("turn", [[1.0, 0.0, 0.0, 0.0]]),
        ("turn", [[-0.1, 0.0, 0.0, 0.0]]),
        ("turn", [[0.1, 0.0, -1.0, 0.0]]),
        ("turn", [[0.1, 0.0]]),
        ("points", [[1.0], [2.0], [4.0], [8.0], [0.0]]),
        ("points", [[1.0], [2.0], [4.0], [8.0], [None]]),
        ("points", [[1.0], [2.0]]),
        ("axes", [-1]),
        ("axes", [0, 1]),
        ("rows", [-1]),
        ("scatter", [-1.0]),
        ("scatter", [0.1, 0.1]),
        ("logs", [[1.0, 2.0]]),
        ("difference", [1.0, 2.0]),
    ],
)
def test_a_process_that_does_not_fit_together_is_refused(process: Process, name: str, damaged: list[Any]) -> None:
    with pytest.raises(InputError, match="process"):
        Process.from_dict({**process.to_dict(), name: damaged})


@pytest.mark.parametrize(("name", "value"), [("kind", len(KINDS)), ("kind", -1), ("place", 5), ("place", -1),
                                             ("members", -2), ("members", 10_000), ("weight", -0.1)])  # fmt: skip
def test_places_outside_of_a_process_are_refused(process: Process, name: str, value: float) -> None:
    content = json.loads(json.dumps(process.to_dict()))
    first = content[name][0]
    if name == "members":
        first = first[0]
    first[0] = value
    with pytest.raises(InputError, match="process"):
        Process.from_dict(content)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [("freedom", 0.0), ("error", [0.1, 0.1, 0.0]), ("error", [0.1]), ("measured", [1.0]), ("prior", [0.0, 0.0]),
     ("members", [[1]]), ("members", [[-2]]), ("members", [0]), ("terms", [[0.0, 0.0, 0.0]])],
)  # fmt: skip
def test_a_sum_of_the_rest_that_does_not_fit_together_is_refused(name: str, damaged: Any) -> None:
    terms, members = np.zeros((1, 1, 3)), np.zeros((1, 1), dtype=np.intp)
    rest = DoubtfulSum(terms, members, np.zeros(1), X[:3], np.ones(3), np.full(3, 0.1), 4.0)
    for freedom in (0.5, 4.0):
        assert DoubtfulSum.from_dict({**rest.to_dict(), "freedom": freedom}).freedom == freedom
    with pytest.raises(InputError, match="doubtfulsum"):
        DoubtfulSum.from_dict({**rest.to_dict(), name: damaged})


def test_no_hypothesis_weighs_twice() -> None:
    """Odd runs are compared under the best means and under those that scatter most, some of which are the same."""
    points = 2.0 ** np.arange(8)[:, None]
    values = (3 + 100 / points[:, 0]) * np.exp(0.1 * np.sin(7 * np.arange(8)))
    values[3] *= 2
    one = fit_process(points, locate(values[None, :, None], points=points), np.arange(1))
    rows = zip(one.members[0], one.scales[0], one.kind[0], one.place[0], one.weight[0], strict=True)
    every = [(tuple(terms), tuple(scales), kind, place) for terms, scales, kind, place, weight in rows if weight > 0]
    assert len(set(every)) == len(every)
    odd = [each for each in every if each[2] == 1 and each[3] == 3]
    assert len({terms for terms, *_ in odd}) > 1
