"""Counts that no function meets are answered as counted where they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series
from ranksight.model.structure.met import NOTHING_MISSED, find_missed

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
