"""Series of experiments: joined, reduced, and refused when they make no sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, Experiment, Run
from ranksight.model.series.reducing import Series, series_from_experiment


def _table(rows: list[tuple[str, int, float]], metric: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["kernel", "rank", metric])


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    made = Experiment.create(tmp_path / "e", "heat", ["ranks"])
    for ranks in (2, 4):
        for repetition in range(2):
            times = [("op", r, 1.0 * ranks + r + repetition) for r in range(ranks)]
            made.add(Run({"ranks": ranks}, repetition, "sampling"), _table(times, "time"))
        counts = [("op", r, 100.0 + r) for r in range(ranks)] + [("io", 0, 7.0)]
        made.add(Run({"ranks": ranks}, 0, "callgrind"), _table(counts, "instructions"))
    made.add(Run({"ranks": 8}, 0, "import"), _table([("op", ALL_RANKS, 42.0)], "time"))
    return made


def test_collectors_are_joined_and_ranks_reduced(experiment: Experiment) -> None:
    series = series_from_experiment(experiment)
    assert series.points.ravel().tolist() == [2, 4, 8]
    rows = dict(zip(zip(series.kernels, series.metrics, strict=True), series.values, strict=True))
    # Time is that of the slowest rank, work by the mean of those that have the kernel.
    assert rows["op", "time"][0].tolist() == [3.0, 4.0]
    assert rows["op", "instructions"][1, 0] == pytest.approx(101.5)
    assert rows["io", "instructions"][0, 0] == 7.0
    assert rows["op", "time"][2, 0] == 42.0
    assert np.isnan(rows["op", "instructions"][2]).all()


def test_reduction_over_ranks_is_honoured(experiment: Experiment) -> None:
    series = series_from_experiment(experiment, ("time",), "min")
    assert series.values[0, 0].tolist() == [2.0, 3.0]
    named = series_from_experiment(experiment, ("instructions",), {"instructions": "sum"})
    assert named.values[list(named.kernels).index("op"), 0, 0] == 201.0
    with pytest.raises(InputError, match="no reduction"):
        series_from_experiment(experiment, None, "average")  # type: ignore[arg-type]


def test_unknown_metric_and_empty_experiment_are_refused(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no metric .watts.; known: "):
        series_from_experiment(experiment, ("watts",))
    with pytest.raises(InputError, match="no complete run"):
        series_from_experiment(Experiment.create(tmp_path / "none", "x", ["ranks"]))


def test_infinite_values_are_refused_by_name(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "x", ["ranks"])
    made.add(Run({"ranks": 2}, 0, "c"), _table([("op", 0, np.inf)], "time"))
    with pytest.raises(InputError, match="row 1 has inf of time"):
        series_from_experiment(made)


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        ([[1.0], [1.0]], np.ones((1, 2, 1)), "appears twice"),
        ([[1.0], [np.nan]], np.ones((1, 2, 1)), "not finite"),
        ([[1.0], [2.0]], np.ones((1, 3, 1)), "values have the shape"),
        ([1.0, 2.0], np.ones((1, 2, 1)), "points have the shape"),
        ([[1.0], [2.0]], np.full((1, 2, 1), np.inf), "infinite"),
    ],
)
def test_senseless_series_are_refused(points: list[object], values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Series(("p",), np.array(points), values, ("k",), ("time",))


def test_zeros_of_ranks_that_do_nothing_are_no_part_of_a_mean(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "kernel": ["root", "root", "idle", "idle", "part", "part"],
            "rank": [0, 1] * 3,
            "loads": [5.0, 0.0, 0.0, 0.0, 0.0, 3.0],
            "instructions": [8.0, 0.0, 0.0, 0.0, 1.0, 3.0],
        }
    )
    made = Experiment.create(tmp_path / "e", "zeros", ["ranks"])
    made.add(Run({"ranks": 2}), table)
    made.add(Run({"ranks": 4}, provenance={"loads": "sampled, n = 9"}), table)
    series = series_from_experiment(made)
    rows = dict(zip(zip(series.kernels, series.metrics, strict=True), series.values[:, :, 0].tolist(), strict=True))
    # What no sample fell on is not nothing; what no rank did is.
    assert rows["root", "instructions"] == [8.0, 4.0]
    assert rows["root", "loads"] == [5.0, 2.5]
    assert rows["idle", "loads"] == [0.0, 0.0]
    assert rows["part", "loads"] == [1.5, 1.5]
    assert rows["part", "instructions"] == [2.0, 2.0]
