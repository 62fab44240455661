"""Counts that no function meets are answered as counted where they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series
from ranksight.model.structure.met import NOTHING_MISSED, Met, find_missed
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

RANKS = np.array([4.0, 8, 12, 24, 48])


def test_neighbours_that_are_all_there_are_as_counted(tmp_path):
    """Each rank of a stencil sends to all others, or to its 26 neighbours."""
    made = Experiment.create(tmp_path / "e", "stencil", ["ranks"])
    for ranks in RANKS:
        rows = {"kernel": ["exchange", "solve"], "rank": -1, "messages": [4 * min(ranks - 1, 26), np.nan]}
        made.add(Run({"ranks": float(ranks)}, 0), pd.DataFrame({**rows, "instructions": [np.nan, 1e9 / ranks]}))
    fit(made).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    said = {
        each.configuration["ranks"]: each
        for each in model.predict(ranks=[*RANKS, 96], metrics=["messages"]).answers
        if each.kernel == "exchange"
    }
    for ranks in RANKS:
        assert said[ranks].value == said[ranks].lower == said[ranks].upper == 4 * min(ranks - 1, 26)
    assert said[96].lower <= 104 * (1 + 1e-9)
    assert said[96].upper >= 380 * (1 - 1e-9)


def _series(values: np.ndarray, metric: str) -> Series:
    return Series(("ranks",), RANKS[:, None], values[None], ("k",), (metric,))


@pytest.mark.parametrize("metric", ["instructions", "time"])
def test_counts_that_scatter_are_met_within_it_and_times_have_laws(metric: str):
    values = 1e9 / RANKS[:, None] * np.array([0.95, 1.0, 1.05])
    assert find_missed(_series(values, metric), 1.05e9 / RANKS[None]) is NOTHING_MISSED
    missed = find_missed(_series(values, metric), 1.3e9 / RANKS[None])
    assert len(missed.kernels) == (metric == "instructions")


def _opened(missed: Met, most: float, now: float, more: float) -> Forecast:
    known = Forecast.settled(*np.full((3, 1, 1), now)), Forecast.settled(*np.full((3, 1, 1), most))
    return missed.opened(*known, np.array([more]))


def test_lawless_counts_go_on_as_any_of_the_last_steps():
    values = np.array([1.0, 1, 1, 1, 4])[:, None]
    missed = find_missed(_series(values, "messages"), values.T, {("k", "messages")})
    opened = _opened(missed, 4.0, 16.0, 2.0)
    assert opened.lower[0, 0] == pytest.approx(0.99 * 4)
    assert opened.upper[0, 0] == pytest.approx(1.01 * 16)
    # Along sides of a grid, others of which fewer ranks cut, the last step alone says how they go on.
    missed = find_missed(_series(values, "messages"), values.T, {("k", "messages")}, (), {("k", "messages")})
    assert _opened(missed, 4.0, 16.0, 2.0).lower[0, 0] == pytest.approx(0.99 * 16)


def test_what_one_number_of_ranks_sent_alone_is_unknown_beyond():
    values = np.array([0.0, 0, 0, 0, 7])[:, None]
    missed = find_missed(_series(values, "messages"), np.full((1, 5), 1e-5), {("k", "messages")})
    assert missed.single.all()
    opened = _opened(missed, 1e-5, 1e-5, 2.0)
    assert opened.status[0, 0] == forecast.WIDE
    assert (opened.lower[0, 0], opened.upper[0, 0]) == (0.0, pytest.approx(14.0, rel=0.02))
