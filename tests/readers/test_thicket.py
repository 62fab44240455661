"""Thicket's and Hatchet's JSON, written by llnl-thicket 2026.1.1 from Caliper's samples, against Caliper's own values."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import readings

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, Experiment
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "thicket" / "two_ranks.json"
read = partial(readings.read, "thicket")


def test_a_profile_has_the_values_of_its_caliper_file() -> None:
    pytest.importorskip("caliperreader")
    found, before = read(SAMPLE), readings.read("caliper", DATA / "caliper" / "two_ranks.cali")
    assert found.configuration == before.configuration
    assert found.command == before.command
    # Thicket leaves out what Caliper counted outside of all regions.
    kept = before.counters[before.counters["kernel"] != "(outside of regions)"].sort_values(["kernel", "rank"])
    theirs = found.counters.sort_values(["kernel", "rank"])
    assert list(theirs["kernel"]) == list(kept["kernel"])
    for metric in ("time", "time_inclusive", "instructions", "visits"):
        assert list(theirs[metric]) == pytest.approx(list(kept[metric]))


def test_units_are_guessed_and_noted() -> None:
    """Thicket does not keep the units of Caliper's columns."""
    reading = read(DATA / "thicket" / "reduced.json").per_rank("here")
    assert readings.cell(reading, "main->solve", "time_inclusive", ALL_RANKS) == pytest.approx(24_000e-6 / 4)
    assert any("taken as microseconds" in note for note in reading.notes)


def test_a_single_profile_of_hatchet() -> None:
    reading = read(DATA / "thicket" / "hatchet.json")
    assert reading.configuration == {"ranks": 2.0}
    assert readings.cell(reading, "main->solve<a,b>", "time_inclusive", 1) == 7.0


def test_an_ensemble_is_one_run_a_profile(tmp_path: Path) -> None:
    content = json.loads(SAMPLE.read_text())
    for profile, size in ((1, 60), (2, 60)):
        rows = [row for row in content["dataframe"] if row["profile"] == content["profile"][0]]
        content["dataframe"] += [{**row, "profile": profile, "time (inc)": row["time (inc)"] * 2} for row in rows]
        content["metadata"].append({**content["metadata"][0], "profile": profile, "problem_size": size})
    (tmp_path / "ensemble.json").write_text(json.dumps(content))
    words = ["--parameter", "size=problem_size", "-o", str(tmp_path / "made.exp"), "--quiet"]
    assert main(["import", str(tmp_path / "ensemble.json"), *words]) == 0
    runs = Experiment.read(tmp_path / "made.exp").runs
    assert sorted((run.configuration["size"], run.repetition) for run in runs) == [(30, 0), (60, 0), (60, 1)]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content.pop("dataframe"), "is not of Thicket"),
        (lambda content: content["dataframe"].clear(), "holds no profile"),
        (lambda content: content["dataframe"][0].update(node=77), "row 0 of the dataframe names no node"),
        (lambda content: content["graph"][0]["0"].pop("data"), "a node of the graph is not complete: 'data'"),
        (lambda content: content["graph"][0]["2"]["children"].append(0), "names no node of the graph"),
        (lambda content: content["graph"][0]["0"]["children"].append(9), "a node of the graph is not complete: '9'"),
        (lambda content: content.update(metadata=[3]), "metadata is not a list of objects"),
        (lambda content: content["dataframe"][0].update({"time (inc)": "slow"}), "'slow' of time (inc)"),
        (
            lambda content: content.update(dataframe=[{"node": 0, "profile": 1, "name": "main"}]),
            "holds no total of a metric",
        ),
    ],
)
def test_damaged_files_are_refused(damage: Any, message: str, tmp_path: Path) -> None:
    content = json.loads(SAMPLE.read_text())
    damage(content)
    (tmp_path / "damaged.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"damaged\.json.*{re.escape(message)}"):
        list(READERS["thicket"].read(tmp_path / "damaged.json"))
