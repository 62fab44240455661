"""Measuring distant points, and the time by phases compared with the sum over kernels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from written import sweeps, write

from ranksight.analysis.phases.analysis import analyse
from ranksight.analysis.phases.cross_check import cross_check
from ranksight.analysis.phases.pet import Pet
from ranksight.cli import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.breakdown import PARTS, Breakdown
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.platforms import load
from ranksight.reports.predictions import phase_times

ORIGINAL = {(p, 240.0): sweeps for p in (4, 9, 16, 25)}
COMMAND = ["--", "sh", "-c", "true", "{ranks}", "{size}"]


class Played:
    """A collector that plays traces back as if it had measured them."""

    text, deterministic, default = "played", True, False

    def __init__(self, source: Experiment, name: str, table: str) -> None:
        self.source, self.name, self.table = source, name, table
        self.asked: list[int] = []

    def available(self):
        from ranksight.campaign.collecting import Availability

        return Availability(True)

    def steps(self, launch, folder):
        from ranksight.campaign.collecting import Step

        return [Step(("true",))]

    def collect(self, launch, folder):
        from ranksight.core.reading import Reading

        self.asked.append(launch.ranks)
        run = next(
            run
            for run in self.source.runs
            if run.collector == self.name and dict(run.configuration) == dict(launch.configuration)
        )
        return Reading(
            configuration=dict(launch.configuration), tables={self.table: self.source.table(run, self.table)}
        )


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    from ranksight.cli import measure

    source = write(tmp_path / "source", {(p, 60.0): sweeps for p in (1, 4, 9)})
    both = {
        name: Played(source, name, table)
        for name, table in (("pmpi-events", "events"), ("callgrind-intervals", "intervals"))
    }
    monkeypatch.setattr(measure, "choose_collectors", lambda names, say=None: {name: both[name] for name in names})
    return both["pmpi-events"]


def test_it_stops_where_cpi_stops_falling(tmp_path: Path, played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "e")
    write(tmp_path / "e", ORIGINAL)
    # 60^3 cells: up to two ranks' share misses the caches, from four on none does; nine shows that it stopped.
    assert main(["measure", "--distant", "--ranks", "1,4,9,16,25", "--size", "60", "-o", folder, *COMMAND]) == 0
    out = capsys.readouterr().out
    assert played.asked == [1, 4, 9]
    assert "1 ranks: CPI of phase 2 " in out
    assert out.splitlines()[-1].startswith("next: ranksight phases")
    point = analyse(Experiment.read(folder), load("generic"), clock="measured").phases[1].groups[0].distant
    assert point is not None
    assert point.measured_ranks == 9
    assert point.ranks == pytest.approx(9 * 64, rel=0.03)


def test_where_there_can_be_no_distant_point(
    tmp_path: Path, played: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(folder: str, *more: str, command: list[str] = COMMAND) -> tuple[int, str]:
        code = main(["measure", "--distant", "--quiet", *more, "-o", folder, *command])
        return code, capsys.readouterr().err

    write(tmp_path / "a", ORIGINAL, counted=False)
    code, said = refused(str(tmp_path / "a"), "--ranks", "4", "--size", "60")
    assert (code, "the regression through the rank counts measured is kept" in said) == (4, True)
    write(tmp_path / "b", ORIGINAL)
    code, said = refused(str(tmp_path / "b"), "--ranks", "4", "--size", "240")
    assert (code, "is the original workload" in said) == (1, True)
    code, said = refused(str(tmp_path / "b"), "--ranks", "4", "--size", "30,60")
    assert (code, "2 values of size" in said) == (1, True)
    code, said = refused(str(tmp_path / "new"), "--ranks", "4", "--size", "60")
    assert (code, "measure it first" in said) == (4, True)
    code, said = refused(str(tmp_path / "c"), "--ranks", "4", command=["--", "sh", "{ranks}"])
    assert code == 4
    code, said = refused(str(tmp_path / "b"), "--ranks", "4", "--size", "60", "--emit", "slurm")
    assert code == 2
    assert played.asked == []


def _broken(total: float, communication: float, spread: float = 0.01) -> Breakdown:
    value, none = np.array([[total]]), np.array([[0]])
    said = Forecast(value, value * (1 - spread), value * (1 + spread), none, np.array([[""]], dtype=object), value)
    each = {name: np.array([[communication if name == "communication" else 0.0]]) for name in PARTS}
    return Breakdown(said, ("kernel",), each, np.ones(1))


def test_why_two_answers_part(tmp_path: Path) -> None:
    pet = analyse(write(tmp_path / "e", ORIGINAL), load("generic"), clock="measured").pet
    points = np.array([[400.0, 240.0], [400.0, 60.0], [401.0, 240.0]])
    said, begin = pet.at(400), pet.at(25)
    inside, computed = float(said.communication.sum()), float(said.computation.sum())
    start = _broken(float(begin.total[0]), float(begin.communication.sum()))

    def one(total: float, communication: float):
        both = [
            cross_check(pet, ("ranks", "size"), points[k : k + 1], _broken(total, communication), start)
            for k in range(3)
        ]
        assert both[1:] == [[], []]  # another workload, and ranks that the program does not take
        return both[0][0]

    assert one(float(said.total[0]) * 1.01, inside).agree
    messages = one(computed + inside + 10, inside + 10)
    assert not messages.agree
    assert messages.why.startswith("time in MPI")
    assert "measured in the traces" in messages.why
    level = one(computed * 5 + inside, inside)
    assert level.why.startswith("computation")
    assert "never level off" in level.why
    early = cross_check(
        pet,
        ("ranks", "size"),
        points[:1],
        _broken(computed * 5 + inside, inside),
        _broken(5 * float(begin.total[0]), 0.0),
    )
    assert "differ at 25 ranks already" in early[0].why
    json.dumps(level.to_dict(), allow_nan=False)
    here = cross_check(pet, ("ranks", "size"), np.array([[16.0, 240.0]]), _broken(50.0, 0.0), start)
    assert "where both were measured" in here[0].why


def test_a_time_by_phases_that_could_be_anything_is_none(tmp_path: Path) -> None:
    """From few rank counts, far out: said with the factor that its interval spans, and compared with nothing."""
    pet = analyse(write(tmp_path / "e", ORIGINAL), load("generic"), clock="measured").pet
    predicted = pet.at(400)
    wide = replace(predicted, lower=predicted.total / 1e3, upper=predicted.total * 1e30)
    pet = SimpleNamespace(at=lambda *_: wide, workload=pet.workload, measured=pet.measured)
    total = _broken(float(predicted.total[0]), 0.0)
    (found,) = cross_check(pet, ("ranks", "size"), np.array([[400.0, 240.0]]), total, total)
    assert found.to_dict()["value"] is None
    assert not found.agree
    (line,) = [each.text for each in phase_times([found], "") if each]
    assert line.startswith("ranks=400 size=240: no time by phases: the interval spans a factor of a million")


def test_predict_shows_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    experiment = write(tmp_path / "e", ORIGINAL)
    for p in (4, 9, 16, 25):
        times = {
            "exchange": 12 * 50 * 240**3 / p * 2e-9,
            "sweep": 12 * 30 * 240**3 / p * 2e-9,
            "norm": 12 * 20 * 240**3 / p * 2e-9,
        }
        table = pd.DataFrame({"kernel": list(times), "time": list(times.values())})
        counters = pd.concat([table.assign(rank=rank) for rank in range(p)], ignore_index=True)
        experiment.add(Run({"ranks": float(p), "size": 240.0}, collector="timer"), counters)
    model = str(tmp_path / "model.json")
    assert main(["fit", str(tmp_path / "e"), "-o", model, "--quiet"]) == 0
    assert main(["predict", model, "--ranks", "36,400", "--metric", "time"]) in (0, 4)
    out = capsys.readouterr().out
    assert "ranks=36 size=240: by phases" in out
    assert "by kernels" in out
    assert main(["predict", model, "--ranks", "36", "--metric", "time", "--format", "json"]) in (0, 4)
    content = json.loads(capsys.readouterr().out)["phases"][0]
    work = 12 * 100 * 240**3 / 36 * 2e-9
    assert content["computation"] == pytest.approx(work, rel=0.02)
    assert content["sum"] == pytest.approx(work, rel=0.1)
    assert main(["predict", model, "--ranks", "36", "--metric", "instructions"]) == 1


def test_a_trace_without_phases_is_reported_by_predict(tmp_path: Path) -> None:
    from ranksight.analysis.observed import phases_of

    experiment = write(tmp_path / "e", {(4, 240.0): sweeps})
    found = phases_of(experiment, None, None, None)
    assert "at 4 ranks only" in found["missing"]
    assert phases_of(Experiment.create(tmp_path / "f", "made", ["ranks"]), None, None, None) == {}
    pet = phases_of(write(tmp_path / "g", ORIGINAL, cores=2), None, load("generic"), None)
    assert pet["network"] == "generic"
    known = Pet.from_dict(json.loads(json.dumps(pet, allow_nan=False)))
    times = known.at(100)
    assert np.isfinite(times.communication).all()
    # Of the exchange's messages: 12 of 8 (240^3 / 100)^(2/3) bytes, a few GB/s
    exchange = float(times.communication[1, 0])
    assert 1e-6 < exchange < 1e-2
