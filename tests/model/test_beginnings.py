"""A kernel without a row on few ranks did not run there, whatever form the measurements come in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.series.beginnings import with_beginnings
from ranksight.model.series.reducing import Series
from ranksight.reports.formula import readable

RANKS = np.array([1.0, 2, 4, 8])
NAN = np.nan


def made(rows: dict[tuple[str, str], list[float]], worth: float = NAN) -> Series:
    values = np.array(list(rows.values()))[:, :, None]
    kernels, metrics = zip(*rows, strict=True)
    return Series(("ranks",), RANKS[:, None], values, kernels, metrics, worth=np.full(values.shape, worth))


def test_zero_below_the_ranks_that_a_kernel_runs_on() -> None:
    rows = {
        ("solve", "time"): [8.0, 4, 2, 1],
        ("solve", "cpi"): [1.0, 1, 1, 1],
        ("halo", "time"): [NAN, 1, 1, 1],
        ("halo", "cpi"): [NAN, 2, 2, 2],  # no sum, which nothing is not 0 of
        ("lost", "time"): [1.0, NAN, 1, 1],
        ("ends", "time"): [1.0, 1, 1, NAN],
        ("seen", "time"): [NAN, 1, 1, 1],  # it ran: its instructions were counted
        ("seen", "instructions"): [5.0, 5, 5, 5],
        (WHOLE, "time"): [NAN, 9, 9, 9],
    }
    found = with_beginnings(made(rows)).values[:, :, 0]
    np.testing.assert_array_equal(found[2], [0, 1, 1, 1])
    expected = np.array(list(rows.values()))
    expected[2, 0] = 0
    np.testing.assert_array_equal(found, expected)


def test_no_zero_where_samples_missed_or_nothing_was_measured() -> None:
    rows = {("solve", "time"): [8.0, 4, 2, 1], ("halo", "time"): [NAN, 1, 1, 1]}
    assert np.isnan(with_beginnings(made(rows, worth=0.01)).values[1, 0, 0])
    assert np.isnan(
        with_beginnings(made({(WHOLE, "time"): [8.0, 4, 2, 1], ("halo", "time"): rows["halo", "time"]})).values[1, 0, 0]
    )


def test_the_same_data_say_the_same_by_every_way(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made-up", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        times = {"solve": 12 / ranks} | ({"halo": 0.4 + 0.1 * np.log2(ranks)} if ranks > 1 else {})
        table = pd.DataFrame({"kernel": list(times), "rank": -1, "time": list(times.values())})
        experiment.add(Run({"ranks": ranks}, collector="x"), table)
    assert main(["export", "extrap", str(experiment.path), "-o", str(tmp_path / "x.jsonl"), "-q"]) == 0
    assert main(["import", str(tmp_path / "x.jsonl"), "-o", str(tmp_path / "again"), "-q"]) == 0
    models: list[Model] = [fit(experiment), fit(str(tmp_path / "again"))]
    answers = []
    for model in models:
        table = model.predict(ranks=[1, 2, 32], metrics="time").table()
        answers.append(
            table.fillna({"kernel": WHOLE}).set_index(["kernel", "ranks"])[["value", "lower", "upper"]].sort_index()
        )
    pd.testing.assert_frame_equal(*answers)
    assert answers[0].loc[("halo", 1.0)].tolist() == [0, 0, 0]
    assert answers[0].loc[(WHOLE, 1.0), "value"] == pytest.approx(12, rel=0.01)
    formula = models[0].table().set_index("kernel").loc["halo", "formula"]
    assert "above ranks = 1, 0 below" in readable(formula)


def test_a_kernel_that_ended_is_named_where_that_is_extrapolated(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "ends", ["ranks"])
    for ranks in (1, 2, 4, 8, 16):
        table = pd.DataFrame({"kernel": ["a", "b"], "rank": -1, "time": [8 / ranks, float(ranks <= 4)]})
        experiment.add(Run({"ranks": ranks}, collector="x"), table)
    model = fit(experiment)
    assert any("of b (from ranks 8 on): none is assumed" in note for note in model.predict(ranks=[8, 32]).notes)
    assert not any("none is assumed" in note for note in model.predict(ranks=[2, 16]).notes)
