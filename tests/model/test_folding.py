"""Kernels too small to matter are one kernel, and nothing of the program's counts is lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.view import View
from ranksight.model.fitted_model import Model
from ranksight.model.series.folding import OTHERS, Folded, Selection, select

SMALL = [f"small{at}" for at in range(60)]
LARGE = [f"large{at}" for at in range(5)]


def experiment(path: Path, cost: float = 1.0, growing: float = 0.0) -> Experiment:
    """A program of five kernels, sixty of 5e-5 of it each that do not grow, and one that may; `cost` is small0's."""
    made = Experiment.create(path, "program", ["ranks"])
    for p in (1, 2, 4, 8):
        counts = dict.fromkeys(LARGE, 2e9 / p + 1e7) | dict.fromkeys(SMALL, 5e5 / p) | {"grows": growing * p**2}
        counts["small0"] *= cost
        table = pd.DataFrame({"kernel": np.repeat(list(counts), p), "rank": np.tile(np.arange(p), len(counts))})
        table["instructions"] = np.repeat(list(counts.values()), p) * (1 + 0.1 * (table["rank"] == 0))
        table["cpi"] = 1.5
        table = table[(table["kernel"] != "small1") | (table["rank"] == 0)]
        made.add(Run({"ranks": p}, 0, "counts"), table)
        sent = pd.DataFrame(
            {"kernel": ["small2", WHOLE], "rank": 0, "messages": [10.0, 10.0], "wall_time": [np.nan, 1]}
        )
        made.add(Run({"ranks": p}, 0, "pmpi"), sent)
    return made


def test_small_kernels_become_one_and_counts_stay(tmp_path: Path) -> None:
    made = experiment(tmp_path / "e")
    found = select(made)
    assert found.kernels >= set(SMALL)
    view = found.view(made)
    for run in made.runs:
        before, after = (each.table(run, "counters") for each in (made, view))
        assert before is not None
        assert after is not None
        for name in ("instructions", "messages"):
            if name in before:
                sums = [each.groupby("rank")[name].sum() for each in (before, after)]
                assert sums[1].to_dict() == pytest.approx(sums[0].to_dict())
    counts = view.counters(["instructions", "messages", "cpi"]).astype({"kernel": str})
    assert set(counts["kernel"]) == {*LARGE, OTHERS, WHOLE, "small2"}
    # A ratio of the sum is not the sum of ratios, and what was sent is still its sender's.
    assert counts.loc[counts["kernel"] == OTHERS, "cpi"].isna().all()
    assert counts.loc[counts["kernel"] == "small2", "messages"].eq(10).all()


def test_what_is_large_anywhere_or_grows_stays(tmp_path: Path) -> None:
    assert "small0" not in select(experiment(tmp_path / "large", cost=40)).kernels
    still, grows = (select(experiment(tmp_path / f"{each}", growing=each)).kernels for each in (1.0, 2e3))
    assert "grows" in still
    assert "grows" not in grows


def test_few_kernels_stay_as_they_are(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "program", ["ranks"])
    made.add(
        Run({"ranks": 1}, 0, "counts"), pd.DataFrame({"kernel": list("abc"), "rank": 0, "instructions": [1e9, 1, 1]})
    )
    assert select(made) == Selection()


def test_kept_kernels_and_metrics_not_asked_for(tmp_path: Path) -> None:
    made = experiment(tmp_path / "e")
    assert "small3" not in select(made, keep=["small3"]).kernels
    assert select(made, ["wall_time"]) == Selection()


def test_samples_of_one_kernel_scatter_as_those_of_its_parts(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "program", ["ranks"])
    who = {"kernel": ["a", "b", "c"], "rank": 0}
    table = pd.DataFrame({**who, "metric": "time", "samples": [3.0, 8.0, 0.0], "worth": [2.0, 1.0, 1.0]})
    run = made.add(
        Run({"ranks": 1}, 0, "s"), pd.DataFrame({**who, "time": [6.0, 8.0, 0.0]}), tables={"sampling": table}
    )
    found = View(made, Folded({"a", "b", "c"})).table(run, "sampling")
    assert found is not None
    assert len(found) == 1
    row = found.iloc[0]
    assert row["samples"] * row["worth"] == pytest.approx(14)
    assert row["samples"] * row["worth"] ** 2 == pytest.approx(3 * 4 + 8)


def test_one_or_two_samples_do_not_make_a_kernel(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "program", ["ranks"])
    for p in (1, 2, 4):
        number = {"loop": 400.0, **dict.fromkeys(LARGE, 40.0), **{kernel: float(p == 4) for kernel in SMALL}}
        table = pd.DataFrame({"kernel": list(number), "rank": 0, "samples": list(number.values())})
        times = table[["kernel", "rank"]].assign(time=1e-3 * table["samples"])
        full = table.assign(metric="time", worth=1e-3)
        made.add(Run({"ranks": p}, 0, "s", provenance={"time": "sampled"}), times, tables={"sampling": full})
    assert select(made).kernels == set(SMALL)


def test_fit_says_so_and_keeps_all_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = experiment(tmp_path / "e")
    assert main(["fit", str(made.path), "--metric", "instructions"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "61 kernels below 0.1% of every metric are summed into (others): at most 0.3% of instructions" in said
    model = Model.load(tmp_path / "e.model.json")
    assert set(model.fitted.kernels) == {*LARGE, OTHERS}
    row = model.predict(ranks=8, metrics=["instructions"], kernels=OTHERS).table()
    exact = 59 * 5e5 / 8 * (1 + 0.1 / 8) + 5e5 / 8 * 1.1 / 8
    assert row["value"].iloc[0] == pytest.approx(exact, rel=1e-4)
    with pytest.raises(InputError, match="part of"):
        model.predict(ranks=8, kernels="small4", metrics=["instructions"])
    assert set(model.view(made).counters(["instructions"])["kernel"].astype(str)) >= {OTHERS, "large0"}
    assert main(["fit", str(made.path), "--metric", "instructions", "--all-kernels", "--force", "--quiet"]) == 0
    assert len(Model.load(tmp_path / "e.model.json").fitted.kernels) == 66
    assert len(rs.fit(made, ["instructions"], all_kernels=True).fitted.kernels) == 66


def test_a_damaged_selection_is_refused() -> None:
    with pytest.raises(InputError, match="selection"):
        Selection.from_dict(json.loads('{"kernels": ["a"], "shares": {"time": "much"}}'))


def test_compare_keeps_what_matters_on_one_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (experiment(tmp_path / f"{each}.exp", cost=each) for each in (1, 40))
    main(["compare", str(before.path), str(after.path), "--format", "csv"])
    lines = capsys.readouterr().out.splitlines()
    assert any(",small0," in line for line in lines)
    assert not any(",small7," in line for line in lines)
