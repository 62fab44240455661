"""Totals and the sums of their parts: programs of operations, kernels of operations, programs of kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.agreement import Agreement, merge, message_series, remark
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

COLUMNS = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]


def answers(*rows: tuple[float, float, float]) -> Forecast:
    value, lower, upper = (np.array(column)[:, None] for column in zip(*rows, strict=True))
    return Forecast.settled(value, lower, upper, form=1.0)


@pytest.mark.parametrize(
    ("direct", "summed", "merged", "apart"),
    [
        ((10, 8, 12), (11, 11, 11), (11, 11, 11), False),  # the narrower
        ((10, 10, 10), (11, 8, 12), (10, 10, 10), False),
        ((10, 9, 11), (30, 25, 33), (10, 9, 33), True),  # both, if they do not overlap
        ((30, 25, 33), (10, 9, 11), (30, 9, 33), True),
        ((10, 10, 10), (10.001, 10.001, 10.001), (10, 10, 10), False),  # one number
    ],
)
def test_the_narrower_of_two_answers_or_both(direct, summed, merged, apart) -> None:
    answer, disjoint = merge(answers(direct), answers(summed))
    assert (answer.value[0, 0], answer.lower[0, 0], answer.upper[0, 0]) == merged
    assert disjoint.tolist() == [apart]


def test_a_sum_with_a_part_without_value_replaces_nothing() -> None:
    nothing = answers((np.nan, np.nan, np.nan))
    nothing.status[:] = forecast.NO_DATA
    answer, disjoint = merge(answers((10, 8, 12)), nothing)
    assert answer.value[0, 0] == 10
    assert not disjoint.any()
    answer, disjoint = merge(nothing, answers((10, 8, 12)))
    assert (answer.value[0, 0], answer.status[0, 0]) == (10, forecast.OK)


def test_whole_and_parts_widen_where_they_contradict() -> None:
    rows = {(WHOLE, "instructions"): 0, ("a", "instructions"): 1, ("b", "instructions"): 2}
    said = answers((318, 310, 330), (100, 90, 110), (50, 50, 50))
    agreement = Agreement(covered={"instructions": (1.0, 1.2)})
    answer, apart = agreement.agreed(said, rows, np.array([0, 0.6, 0.4]), {})
    assert answer.lower[0, 0] < 150
    assert answer.upper[0, 0] == 330
    assert answer.upper[1, 0] == pytest.approx(110 * 318 / 165)  # the part that is not exact
    assert answer.upper[2, 0] == 50
    (text,) = remark(apart, np.array([[64.0]]), ["ranks"])
    assert text.startswith("instructions of the whole program at ranks 64: 318 by their own function, 165 as the sum")
    agreed, none = agreement.agreed(answers((160, 140, 180), (100, 90, 110), (50, 50, 50)), rows, np.ones(3), {})
    assert not none
    assert agreed.value[0, 0] == 160


@pytest.fixture(scope="module")
def coarsened(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A program whose ranks call a kernel only where they work on a coarser level, and a sum over all ranks."""
    made = Experiment.create(tmp_path_factory.mktemp("levels") / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8):
        rows: list[tuple[object, ...]] = [("sum", r, "Allreduce", p, 64, 5.0, 40.0, 1e-6, 0) for r in range(p)]
        rows += [("up", r, "Send", p, 64, 3.0, 300.0, 1e-6, 1) for r in range(1, p)]
        listed = pd.DataFrame(rows, columns=COLUMNS)
        by_rank = listed.groupby(["kernel", "rank"])[["count", "bytes"]].sum().reset_index()
        every = listed.groupby("rank")[["count", "bytes"]].sum().reset_index().assign(kernel=WHOLE)
        counted = pd.concat([by_rank, every]).rename(columns={"count": "messages", "bytes": "bytes_sent"})
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"messages": listed})
    return fit(made)


@pytest.mark.parametrize("ranks", [3, 12, 64, 4096])
def test_a_program_sends_what_its_operations_do(coarsened: Model, ranks: int) -> None:
    assert set(coarsened.agreement.programs) == {"messages", "bytes_sent"}
    assert ("up", "messages") in coarsened.agreement.kernels  # ranks that do not have it sent nothing
    true = 5 + 3 * (ranks - 1) / ranks
    asked = coarsened.predict(ranks=ranks, metrics="messages")
    (program,) = [each for each in asked.answers if each.kernel is None]
    assert program.value == pytest.approx(true, rel=1e-6)
    assert program.lower <= true * (1 + 1e-9)
    assert program.upper >= true * (1 - 1e-9)
    assert (WHOLE, "messages") not in coarsened.functions.rows  # it is the sum of what all kernels send


def test_the_model_file_holds_the_agreement(coarsened: Model, tmp_path: Path) -> None:
    coarsened.save(tmp_path / "model.json")
    assert Model.load(tmp_path / "model.json").agreement == coarsened.agreement


def test_an_operation_that_a_traced_run_does_not_have_moved_nothing(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "exp", "app", ["ranks"])
    for p in (1, 4):
        rows = [("sum", r, "Allreduce", p, 64, 5.0, 40.0, 1e-6, 0) for r in range(p)]
        rows += [("up", r, "Send", p, 64, 3.0, 300.0, 1e-6, 1) for r in range(1, p)]
        counted = pd.DataFrame({"kernel": "sum", "rank": range(p), "visits": 1.0})
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"messages": pd.DataFrame(rows, columns=COLUMNS)})
    made.add(Run({"ranks": 8}, 0, "counted"), pd.DataFrame({"kernel": ["sum"], "rank": [0], "visits": [1.0]}))
    series = message_series(made)
    assert series is not None
    values = dict(zip(series.keys, series.values[..., 0].tolist(), strict=True))
    assert values["up: Send", "messages"] == [0.0, 2.25]  # and no configuration that was not traced
