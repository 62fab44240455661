"""From traces to phases, tables, distant points and the application's time."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from written import sweeps, write

from ranksight.analysis.phases.analysis import analyse
from ranksight.analysis.phases.pet import Pet
from ranksight.cli import main
from ranksight.core import limits
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import read

CACHES = [SimpleNamespace(latency=latency) for latency in (4.0, 14.0, 40.0)]
PLATFORM: Any = SimpleNamespace(
    name="test", frequency=1e9, caches=CACHES, memory=SimpleNamespace(latency=200e-9), network={}, cores=4
)
ORIGINAL = {(p, 240.0): sweeps for p in (4, 9, 16, 25)}
SMALL = {(p, 60.0): sweeps for p in (4, 9, 16)}


def test_phases_of_a_program_on_square_grids(tmp_path: Path) -> None:
    analysis = analyse(write(tmp_path / "e", ORIGINAL), PLATFORM)
    assert [phase.weight.formula for phase in analysis.phases] == ["1", "12", "36 x + 36, x: squares", "12", "1"]
    assert analysis.phases[2].label == "sweep Recv Send"
    assert analysis.coverage > 0.9
    sweep = analysis.phases[2].groups[0]
    assert sweep.table is not None
    # 30 work units of each cell and step, and 15 further instructions per sweep
    assert sweep.table.spread < 1e-3
    assert float(sweep.table.at(400)) == pytest.approx(30 * 240**3 / 400 / 60 + 15, rel=1e-2)


def test_pet_is_the_time_that_was_measured(tmp_path: Path) -> None:
    experiment = write(tmp_path / "e", ORIGINAL)
    analysis = analyse(experiment, PLATFORM, clock="measured")
    ends = {}
    for run in experiment.runs:
        events = experiment.table(run, "events")
        if events is not None:
            ends[run.configuration["ranks"]] = float(events["begin"].max())
    # times of powers of p are exact powers here, but for constants of a few microseconds
    times = analysis.pet.at(sorted(ends))
    np.testing.assert_allclose(times.total, [ends[p] for p in sorted(ends)], rtol=0.02)


def test_a_distant_point_mends_what_small_runs_cannot_show(tmp_path: Path) -> None:
    plain = analyse(write(tmp_path / "a", ORIGINAL), PLATFORM)
    both = analyse(write(tmp_path / "b", ORIGINAL | SMALL), PLATFORM)
    assert both.workload == {"size": 240.0}
    assert both.small == {"size": 60.0}
    exchange = both.phases[1].groups[0].distant
    assert exchange is not None
    # 60^3 / 16 cells a rank are 240^3 / 1024
    assert exchange.ranks == pytest.approx(1024, rel=0.03)
    # 1024 ranks hold 13,500 cells each, which the caches hold: half the time of few ranks
    work = 240**3 / 1024
    truth = (50 * work + 530) * 1e-9 + 1e-6
    error = [abs(float(a.phases[1].computation(1024)) / truth - 1) for a in (plain, both)]
    assert error[1] < 0.5 * error[0]
    assert plain.phases[1].groups[0].distant is None
    assert "no smaller workload" in plain.phases[1].groups[0].reason


def test_a_total_that_grows_bars_the_distant_point(tmp_path: Path) -> None:
    def growing(p: int, size: float):
        return sweeps(p, size, overhead=1e7)

    analysis = analyse(write(tmp_path / "e", dict.fromkeys(ORIGINAL, growing) | SMALL), PLATFORM)
    group = analysis.phases[1].groups[0]
    assert not group.constant
    assert group.distant is None
    assert "not constant over rank counts" in group.reason
    assert group.power == group.plain
    assert analysis.phases[2].groups[0].distant is not None  # the others' are


def test_time_stands_in_where_no_instructions_are_known(tmp_path: Path) -> None:
    analysis = analyse(write(tmp_path / "e", ORIGINAL | SMALL, counted=False), PLATFORM)
    assert analysis.clock == "measured"
    assert all("instructions between calls are not known" in g.reason for p in analysis.phases for g in p.groups)
    with pytest.raises(InsufficientError, match="no instructions between calls"):
        analyse(write(tmp_path / "f", ORIGINAL, counted=False), PLATFORM, clock="simulated")


def test_simulated_time_where_ranks_shared_cores(tmp_path: Path) -> None:
    analysis = analyse(write(tmp_path / "e", ORIGINAL, cores=2), PLATFORM)
    assert analysis.clock == "simulated"
    assert analysis.pet.network == ""
    assert any("shared cores" in note for note in analysis.notes)
    # an instruction a cycle, and 36 cycles for each load from the third level
    group = analysis.phases[3].groups[0]
    assert group.times[0] == pytest.approx(20 * 240**3 / 4 * 2 * 1e-9, rel=1e-6)


def test_ranks_that_the_program_does_not_take(tmp_path: Path) -> None:
    pet = analyse(write(tmp_path / "e", ORIGINAL), PLATFORM).pet
    with pytest.raises(InputError, match="squares only; nearest: 961 and 1024"):
        pet.at(1000)
    with pytest.raises(InputError):
        pet.at(0)
    copied = Pet.from_dict(json.loads(json.dumps(pet.to_dict(), allow_nan=False)))
    assert copied.at(1024).total == pet.at(1024).total
    for damage in ({}, {**pet.to_dict(), "phases": [{}]}, {**pet.to_dict(), "phases": 3}, [], None):
        with pytest.raises(InputError, match="fit the model again"):
            Pet.from_dict(damage)


def test_what_holds_no_phases(tmp_path: Path) -> None:
    def once(p: int, size: float):
        yield from [("a", "Bcast", 8, 1e-3, 1e3), ("b", "Allreduce", 8, 1e-3, 1e3), ("m", "Finalize", 0, 0.0, 0)]

    def only(p: int, size: float):
        for _ in range(20):
            yield "a", "Allreduce", 8, 1e-3, 1e3

    with pytest.raises(InsufficientError, match="nothing repeats"):
        analyse(write(tmp_path / "a", {(2, 1.0): once, (4, 1.0): once}), PLATFORM)
    with pytest.raises(InsufficientError, match="one phase, Allreduce in a"):
        analyse(write(tmp_path / "b", {(2, 1.0): only, (4, 1.0): only}), PLATFORM)
    with pytest.raises(InsufficientError, match="at 4 ranks only"):
        analyse(write(tmp_path / "c", {(4, 240.0): sweeps}), PLATFORM)
    with pytest.raises(InputError, match="names 0 workloads"):
        analyse(write(tmp_path / "d", ORIGINAL), PLATFORM, workload={"size": 7.0})


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "e", ORIGINAL | SMALL)
    folder = str(tmp_path / "e")
    assert main(["phases", folder, "--ranks", "1024", "--instructions"]) == 0
    out = capsys.readouterr().out
    assert "36 x + 36, x: squares" in out
    assert "stands for 1024 ranks" in " ".join(out.split())
    assert out.splitlines()[-1].startswith("next: ")
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("next: "))
    assert main(["phases", folder, "--ranks", "1024", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["phases"][2]["weight"]["rule"] == "squares"
    assert content["predictions"][0]["ranks"] == 1024
    assert main(["phases", folder, "--ranks", "1024", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("phase,calls,share,weight,factor,exponent,distant_ranks,seconds_at_1024")
    assert main(["phases", folder, "--ranks", "1000"]) == 1
    assert "nearest: 961 and 1024" in capsys.readouterr().err
    assert main(["phases", folder, "--admissible", "sqares"]) == 2
    assert main(["phases", str(tmp_path / "nothing")]) == 1


def test_no_trace_no_phases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ranksight.core.experiment import Experiment

    Experiment.create(tmp_path / "e", "made", ["ranks"])
    assert main(["phases", str(tmp_path / "e")]) == 4
    assert "--collector pmpi-events" in capsys.readouterr().err
    Experiment.create(tmp_path / "f", "made", ["size"])
    assert main(["phases", str(tmp_path / "f")]) == 1


def test_damaged_traces_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = write(tmp_path / "e", ORIGINAL)
    file = next((tmp_path / "e" / "runs").glob("ranks4-*pmpi-events*")) / "events.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"events.parquet cannot be read"):
        analyse(experiment, PLATFORM)
    table = experiment.table(experiment.runs[-1], "events")
    assert table is not None
    table[table["rank"] != 2].to_parquet(file)
    with pytest.raises(InputError, match="holds 24 of 4 ranks"):
        analyse(experiment, PLATFORM)
    table[table["rank"] < 4].drop(columns="kernel").to_parquet(file)
    experiment = read(tmp_path / "e")  # tables are read once
    with pytest.raises(InputError, match="lacks kernel"):
        analyse(experiment, PLATFORM)
    file.write_bytes(whole)
    monkeypatch.setattr(limits, "EVENTS", 100)
    with pytest.raises(InsufficientError, match="more than the 100 that are read"):
        analyse(experiment, PLATFORM)


def test_a_trace_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    experiment = write(tmp_path / "e", ORIGINAL)
    runs = [
        replace(run, notes=("9 calls found no place in a full table of events and are not in it",))
        for run in experiment.runs
    ]
    cut = type(experiment)(experiment.path, "made", experiment.parameters, runs)
    with pytest.raises(InsufficientError, match="trace a shorter run"):
        analyse(cut, PLATFORM)


def test_instructions_of_another_run_are_not_used(tmp_path: Path) -> None:
    experiment = write(tmp_path / "e", ORIGINAL)
    for file in (tmp_path / "e" / "runs").glob("ranks9-*intervals*/intervals.parquet"):
        import pandas as pd

        pd.read_parquet(file).iloc[1:].to_parquet(file)
    analysis = analyse(experiment, PLATFORM, clock="measured")
    assert any("its calls are not those of the event trace" in note for note in analysis.notes)
    assert all(group.distant is None for phase in analysis.phases for group in phase.groups)
