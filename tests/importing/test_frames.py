"""Experiments of tables in memory: the model of the same file, and what is refused."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError


def measured() -> pd.DataFrame:
    """Two kernels, three repetitions with scatter."""
    random = np.random.default_rng(5)
    rows = [
        (p, kernel, time * (1 + 0.02 * random.standard_normal()))
        for p in (1, 2, 4, 8, 16)
        for kernel, time in (("work", 7.3 / p), ("tree", 0.31 * (1 + np.log2(p))))
        for _ in range(3)
    ]
    return pd.DataFrame(rows, columns=["p", "part", "seconds"])


def test_a_frame_gives_the_model_of_the_same_file(tmp_path: Path) -> None:
    table = measured()
    table.to_csv(tmp_path / "table.csv", index=False)
    words = ["--parameter", "ranks=p", "--kernel", "part", "--metric", "time=seconds"]
    assert main(["import", "csv", str(tmp_path / "table.csv"), *words, "-o", str(tmp_path / "made")]) == 0
    experiment = rs.from_frame(table, parameters={"ranks": "p"}, kernel="part", time="seconds")
    other = rs.from_dict(table.to_dict("list"), parameters={"ranks": "p"}, kernel="part", time="seconds")
    expected = rs.fit(tmp_path / "made").predict(ranks=[3, 64, 256]).table()
    for each in (experiment, other):
        found = rs.fit(each).predict(ranks=[3, 64, 256]).table()
        pd.testing.assert_frame_equal(found, expected)


def test_the_folder_goes_with_the_experiment() -> None:
    experiment = rs.from_frame(measured(), parameters={"ranks": "p"}, kernel="part", time="seconds")
    place = experiment.path.parent
    assert len(experiment) == 15
    assert place.is_dir()
    del experiment
    gc.collect()
    assert not place.exists()


def test_units_in_names_and_missing_cells_are_read_as_in_files() -> None:
    table = pd.DataFrame({"ranks": [1, 2, 4, 8], "time [ms]": [80.0, 40.0, None, 10.0]})
    with pytest.warns(UserWarning, match="no value of time: left out in 1 of 4 rows"):
        experiment = rs.from_frame(table, time="time [ms]")
    assert [run.configuration["ranks"] for run in experiment.runs] == [1, 2, 8]
    first = experiment.table(experiment.runs[0], "counters")
    assert first is not None
    assert first["time"].tolist() == pytest.approx([0.08])


GOOD = {"ranks": [1, 2, 4], "kernel": ["a", "a", "a"], "time": [3.0, 2.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        ({}, {"time": "tme"}, r"no column 'tme'.*time"),
        ({}, {"parameters": ["size"]}, "no column 'size'"),
        ({"time": [3.0, "2x", 1.0]}, {}, r"the frame:2: '2x' in column 'time' is not a number"),
        ({"ranks": [1, "two", 4]}, {}, r"the frame:2: 'two' in column 'ranks' is not a number"),
        ({"ranks": [1, 1, 4], "time": [3.0, 3.0, 1.0]}, {}, "row 2 is there before"),
        ({"ranks": [1, 1, 4]}, {"repetition": "kernel"}, "row 2 is there before"),
        ({"time": [None, None, None]}, {}, "no row is left"),
        ({"ranks": [1, 2]}, {}, "make no table"),
        ({"ranks": [], "kernel": [], "time": []}, {}, "no rows"),
        ({"ranks": [0.5, 0, -1]}, {}, "no row is left"),
    ],
)
def test_a_bad_frame_is_refused_in_one_line(change: dict, settings: dict, said: str) -> None:
    given = {"parameters": ["ranks"], "kernel": None if "repetition" in settings else "kernel", "time": "time"}
    with pytest.raises(InputError, match=said) as refused:
        rs.from_dict({**GOOD, **change}, **{**given, **settings})
    assert "\n" not in str(refused.value)


def test_the_column_time_is_the_time_where_none_is_named() -> None:
    table = pd.DataFrame(GOOD)
    times = [
        rs.from_frame(table, kernel="kernel", **named).counters()["time"].tolist() for named in ({}, {"time": "time"})
    ]
    assert times[0] == times[1]
    with pytest.raises(InputError, match="no column is named for the time"):
        rs.from_frame(table.rename(columns={"time": "t"}), kernel="kernel")


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(InputError, match="is a list"):
        rs.from_frame([[1, 2.0]], time="time")  # type: ignore[arg-type]
    table = pd.DataFrame([[1, 2.0, 3.0]], columns=["ranks", "time", "time"])
    with pytest.raises(InputError, match="twice"):
        rs.from_frame(table, time="time")


def test_a_kernel_that_holds_the_others_is_asked_for() -> None:
    rows = [(p, k, t / p) for p in (1, 2, 4, 8) for k, t in (("main", 10.0), ("a", 4.0), ("b", 3.0), ("c", 2.9))]
    table = pd.DataFrame(rows, columns=["ranks", "kernel", "time"])
    with pytest.raises(InputError, match="total='main'"):
        rs.from_frame(table, kernel="kernel", time="time")
    assert len(rs.from_frame(table, kernel="kernel", time="time", total="main")) == 4


def test_rows_of_several_kernels_are_not_repetitions_of_one() -> None:
    with pytest.raises(InputError, match="rows of one configuration differ in 'part'; name the column"):
        rs.from_frame(measured(), parameters={"ranks": "p"}, time="seconds")


def test_remedies_are_those_of_python() -> None:
    with pytest.raises(InputError, match="correct or leave out these rows"):
        rs.from_dict({"ranks": [1, "x"], "time": [1.0, 2.0]}, time="time")
