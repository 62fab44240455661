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
from ranksight.model.series.absences import with_absences
from ranksight.model.series.reducing import Series, series_from_experiment
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
    found = with_absences(made(rows)).values[:, :, 0]
    np.testing.assert_array_equal(found[2], [0, 1, 1, 1])
    expected = np.array(list(rows.values()))
    expected[2, 0] = 0
    np.testing.assert_array_equal(found, expected)


def test_zero_above_the_ranks_from_which_another_kernel_takes_its_place() -> None:
    rows = {
        ("solve", "time"): [8.0, 4, 2, 1],
        ("flux", "time"): [64.0, 32, NAN, NAN],
        ("flux v2", "time"): [NAN, NAN, 16, 8],
        ("flux", "instructions"): [6.0, 3, NAN, NAN],
        ("lost", "time"): [1.0, 1, 1, NAN],  # nothing begins where its row is missing
    }
    found = with_absences(made(rows)).values[:, :, 0]
    np.testing.assert_array_equal(found[1:3], [[64, 32, 0, 0], [0, 0, 16, 8]])
    np.testing.assert_array_equal(found[3:], [[6, 3, NAN, NAN], [1, 1, 1, NAN]])


def test_zero_above_the_ranks_that_a_kernel_runs_on_where_shorter_ones_are_listed() -> None:
    rows = {
        ("solve", "time"): [80.0, 40, 20, 10],
        ("swap", "time"): [8.0, 4, NAN, NAN],  # 2 s at the least on 4 ranks
        ("bcast", "time"): [0.0, 0.1, 0.2, 0.3],
        ("short", "time"): [0.3, 0.2, NAN, NAN],  # 0.1 s at the least: too short to be listed, maybe
        ("once", "time"): [8.0, 8, 8, NAN],  # one row may be lost
        ("again", "time"): [8.0, NAN, NAN, 8],
        ("counted", "time"): [8.0, 4, NAN, NAN],  # what counted it did not run there
        ("counted", "instructions"): [8.0, 4, NAN, NAN],
    }
    found = with_absences(made(rows)).values[:, :, 0]
    expected = np.array(list(rows.values()))
    expected[1, 2:] = 0
    np.testing.assert_array_equal(found, expected)


def test_a_kernel_that_no_larger_run_lists_is_in_none_of_their_sums(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made-up", ["ranks"])
    for ranks in (1, 2, 4, 8, 16, 32):
        times = {"solve": 320 / ranks, "bcast": 0.02 + 0.02 * np.log2(ranks)}
        times |= {"swap": 40 / ranks} if ranks <= 4 else {}
        table = pd.DataFrame({"kernel": list(times), "rank": -1, "time": list(times.values())})
        experiment.add(Run({"ranks": ranks}, collector="x"), table)
    answers = fit(experiment).predict(ranks=[8, 64], metrics="time").table()
    assert answers[answers["kernel"] == "swap"]["value"].tolist() == [0, 0]
    whole = answers[answers["kernel"].isna()].set_index("ranks")["value"]
    for ranks in (8, 64):
        assert whole[ranks] == pytest.approx(320 / ranks + 0.02 + 0.02 * np.log2(ranks), rel=0.03)


def test_a_kernel_under_another_name_is_in_the_sum_once(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made-up", ["ranks"])
    for ranks in (4, 8, 16, 32, 64, 128):
        name = "flux" if ranks <= 16 else "flux v2"
        table = pd.DataFrame({"kernel": [name, "halo"], "rank": -1, "time": [300 / ranks, 0.4 / ranks**0.6]})
        experiment.add(Run({"ranks": ranks}, collector="x"), table)
    answers = fit(experiment).predict(ranks=[8, 64, 256], metrics="time").table()
    whole = answers[answers["kernel"].isna()].set_index("ranks")["value"]
    for ranks in (8, 64, 256):
        assert whole[ranks] == pytest.approx(300 / ranks + 0.4 / ranks**0.6, rel=0.1)


def test_no_zero_where_samples_missed_or_nothing_was_measured() -> None:
    rows = {("solve", "time"): [8.0, 4, 2, 1], ("halo", "time"): [NAN, 1, 1, 1]}
    assert np.isnan(with_absences(made(rows, worth=0.01)).values[1, 0, 0])
    assert np.isnan(
        with_absences(made({(WHOLE, "time"): [8.0, 4, 2, 1], ("halo", "time"): rows["halo", "time"]})).values[1, 0, 0]
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


@pytest.mark.parametrize("cell", ["", "NA", "n/a"])
def test_a_row_without_a_value_is_no_absence(tmp_path: Path, cell: str) -> None:
    rows = ["kernel,ranks,time", *(f"solve,{n},{8 / n}" for n in (1, 2, 4, 8)), f"halo,1,{cell}"]
    rows += [*(f"halo,{n},{2 + 0.1 * n}" for n in (2, 4, 8)), *(f"late,{n},3" for n in (2, 4, 8))]
    (tmp_path / "times.csv").write_text("\n".join(rows) + "\n")
    assert main(["import", str(tmp_path / "times.csv"), "-o", str(tmp_path / "exp")]) == 0
    experiment = Experiment.read(tmp_path / "exp")
    series = with_absences(series_from_experiment(experiment), experiment.counted())
    assert np.isnan(series.values[series.rows["halo", "time"], 0]).all()
    np.testing.assert_array_equal(series.values[series.rows["late", "time"], 0], 0)


def test_a_kernel_that_no_rank_has_a_value_of_is_no_absence(tmp_path: Path) -> None:
    rows = [f"solve,{p},{rank},{8 / p}" for p in (1, 2, 4) for rank in range(p)]
    rows += [f"halo,{p},{rank},{2 if p > 2 else ''}" for p in (1, 2, 4) for rank in range(p)]
    (tmp_path / "times.csv").write_text("\n".join(["kernel,ranks,rank,time", *rows, "mean,4,all,"]) + "\n")
    columns = ["--parameter", "ranks", "--kernel", "kernel", "--rank", "rank", "--metric", "time"]
    assert main(["import", "csv", str(tmp_path / "times.csv"), *columns, "-o", str(tmp_path / "exp")]) == 0
    experiment = Experiment.read(tmp_path / "exp")
    series = with_absences(series_from_experiment(experiment), experiment.counted())
    np.testing.assert_array_equal(series.values[series.rows["halo", "time"], :, 0], [NAN, NAN, 2])
