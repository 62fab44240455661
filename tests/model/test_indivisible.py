"""Whole units of work that the ranks' instructions give away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.structure.rank_notes import indivisible, units_on


def write(path: Path, units: int, ranks: tuple[int, ...], jitter: float = 1e-5, finer: bool = False) -> Experiment:
    made = Experiment.create(path, "blocks", ["ranks"])
    rng = np.random.default_rng(3)
    for p in ranks:
        own = np.full(p, units / p) if finer else units // p + (np.arange(p) < units % p).astype(float)
        count = 1e6 * own * np.exp(rng.normal(0, jitter, p))
        made.add(Run({"ranks": p}), pd.DataFrame({"kernel": "sweep", "rank": range(p), "instructions": count}))
    return made


@pytest.mark.parametrize("units", [96, 384])
def test_units_are_read_off_uneven_ranks(tmp_path: Path, units: int) -> None:
    experiment = write(tmp_path / "e", units, (1, 4, 8, 10, 20, 36))
    assert f"comes in {units} whole units" in indivisible(experiment)
    fit(experiment, platform=None).save(tmp_path / "m.json")
    (note,) = (text for text in Model.load(tmp_path / "m.json").notes(np.array([[50.0]])) if "whole units" in text)
    assert "--units" in note
    stated = fit(experiment, platform=None, units=str(units))
    assert not any("comes in" in text for text in stated.notes(np.array([[50.0]])))


def test_nothing_is_read_where_ranks_show_of_no_units(tmp_path: Path) -> None:
    assert indivisible(write(tmp_path / "finer", 96, (1, 4, 8, 10, 20, 36), finer=True)) == ""
    assert indivisible(write(tmp_path / "one", 96, (1, 2, 4, 8, 36))) == ""  # a single uneven number of ranks
    assert indivisible(write(tmp_path / "noisy", 96, (10, 20, 36), jitter=0.05)) == ""
    both = write(tmp_path / "both", 96, (10, 20))
    other = write(tmp_path / "other", 50, (7, 50))
    for run in other.runs:
        both.add(run, other.table(run, "counters"))
    assert indivisible(both) == ""
    assert np.isnan(units_on(np.array([1.0, 2.0, 3.0])))
    assert units_on(np.array([3.0, 4.0, 4.0])) == 11.0
    assert units_on(np.array([4.0, 4.0])) == 0.0
