"""Campaigns on a platform and with kernels split into loops: what is done, what is refused, a real one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from ranksight.campaign.collecting import COLLECTORS, Collector
from ranksight.cli._adapting import adapt, check_alike
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, read
from ranksight.core.run import Run
from ranksight.counters.collectors.callgrind import Callgrind
from ranksight.counters.collectors.perf import Perf
from ranksight.counters.collectors.perf_stat import PerfStat
from ranksight.examples.build import build
from ranksight.platforms import load
from ranksight.platforms.events import load as load_table


def taken(*names: str) -> dict[str, Collector]:
    return {name: COLLECTORS[name] for name in names}


def test_callgrind_simulates_the_platforms_caches() -> None:
    platform = load("haswell-e5-2680v3")
    found = adapt(taken("callgrind", "pmpi"), platform, (), named=True)["callgrind"]
    assert isinstance(found, Callgrind)
    assert found.platform is platform
    assert "L2 262144,8,64" in found.simulated
    assert "L2 262144,8,64" not in Callgrind().simulated


def test_perf_counts_the_platforms_events_on_a_processor_of_that_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranksight.cli._adapting.recognise", lambda processor: load_table("haswell-ep"))
    found = adapt(taken("perf", "perf-stat"), load("haswell-e5-2680v3"), (), named=True)
    assert isinstance(found["perf"], Perf)
    assert isinstance(found["perf-stat"], PerfStat)
    assert found["perf"].table is not None
    assert found["perf"].table.name == "haswell-ep"
    assert found["perf-stat"].table is not None


def test_events_of_another_processor_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranksight.cli._adapting.recognise", lambda processor: load_table("zen4"))
    with pytest.raises(InputError, match="collector perf: platform haswell-e5-2680v3 has the events of"):
        adapt(taken("perf"), load("haswell-e5-2680v3"), (), named=True)
    said: list[str] = []
    found = adapt(taken("perf", "callgrind"), load("haswell-e5-2680v3"), (), named=False, say=said.append)
    assert isinstance(found["perf"], Perf)
    assert found["perf"].table is None
    assert "it counts this processor's own" in said[0]


def test_what_no_collector_can_do_is_refused() -> None:
    with pytest.raises(InputError, match="none of the collectors pmpi depends on a platform"):
        adapt(taken("pmpi"), load("generic"), (), named=True)
    with pytest.raises(InputError, match="none of the collectors perf-stat, pmpi can split kernels"):
        adapt(taken("perf-stat", "pmpi"), None, ("solve",), named=True)
    said: list[str] = []
    adapt(taken("callgrind", "pmpi"), None, ("solve",), named=False, say=said.append)
    assert said == ["pmpi: splits no kernels, solve stay whole there"]


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return build("heat", tmp_path_factory.mktemp("heat"))


def line(heat: Path, folder: Path, collectors: Sequence[str], *more: str) -> list[str]:
    return [
        *("measure", "--ranks", "1,2", "--size", "6,9,12", "-o", str(folder), "--quiet"),
        *(word for name in collectors for word in ("--collector", name)),
        *more,
        *("--", "mpirun", "--oversubscribe", "-n", "{ranks}", str(heat), "--n", "{size}", "--steps", "2"),
    ]


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.perf
def test_parts_survive_measure_fit_and_predict(heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "e"
    collectors = ("callgrind", "perf-clock")
    split = ("--refine", "apply_operator", "--platform", "zen4")
    assert main(line(heat, folder, collectors, *split)) == 0
    experiment = read(folder)
    assert len(experiment) == 12
    table = experiment.counters(["instructions", "time"])
    parts = {name for name in table["kernel"].astype(str) if name.startswith("apply_operator")}
    assert "apply_operator" not in parts
    loops = {name for name in parts if "@heat_kernels.h:" in name}
    assert loops
    counted = table[table["kernel"].isin(loops)].dropna(subset=["instructions"])
    # the innermost loop runs once a cell: nearly all of the kernel's work grows with the cube of the size
    sums = counted.groupby(["run", "kernel"], observed=True)["instructions"].sum()
    assert sums.groupby("run").max().min() > 0
    timed = set(table.dropna(subset=["time"])["kernel"].astype(str))
    assert {name for name in timed if name.startswith("apply_operator")} <= parts
    capsys.readouterr()

    assert main(line(heat, folder, collectors, *split)) == 0, "the same line goes on"
    assert main(line(heat, folder, collectors, "--platform", "zen4")) == 1
    assert "holds runs of callgrind that split apply_operator" in capsys.readouterr().err
    assert main(line(heat, folder, collectors, "--refine", "apply_operator")) == 1
    assert "with other caches" in capsys.readouterr().err

    model = tmp_path / "m.json"
    assert main(["fit", str(folder), "-o", str(model), "--quiet"]) == 0
    capsys.readouterr()
    main(["predict", str(model), "--ranks", "2", "--size", "24", "--metric", "instructions", "--format", "json"])
    answer = capsys.readouterr().out
    assert json.loads(answer)
    assert any(loop in answer for loop in loops)


@pytest.mark.mpi
@pytest.mark.valgrind
def test_a_kernel_that_does_not_exist(heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line(heat, tmp_path / "e", ("callgrind",), "--refine", "aply_operator")) == 1
    error = capsys.readouterr().err
    assert "aply_operator cannot be refined" in error
    assert "Traceback" not in error
    assert len(read(tmp_path / "e")) == 0
    assert main(line(heat, tmp_path / "f", ("callgrind",), "--platform", "nosuch")) == 1
    assert "no platform is named 'nosuch'" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(("table", "option"), [("signature", "--sample"), ("rank_classes", "--sample-ranks")])
def test_a_campaign_of_parts_is_not_kept_where_all_is_asked_for(tmp_path: Path, table: str, option: str) -> None:
    """The warnings advise ``off``: the same folder would keep what they warn of."""
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    counters = pd.DataFrame({"kernel": ["k"] * 3, "rank": [0, 1, 2], "instructions": 1e6})
    part = pd.DataFrame({"rank": [0, 1, 2], "counted_by": [0, 1, 0]})
    experiment.add(Run({"ranks": 3.0}, collector="callgrind"), counters, tables={table: part})
    whole, kept = Callgrind().sampled(None, False), Callgrind().sampled(0, True)
    check_alike(experiment, {"callgrind": kept}, ())
    with pytest.raises(InputError, match=f"{option} off: .* of which a part was simulated") as error:
        check_alike(experiment, {"callgrind": whole}, ())
    assert f"{option} auto" in str(error.value.remedy)
    experiment = Experiment.create(tmp_path / "all", "app", ["ranks"])
    every = pd.DataFrame({"rank": [0, 1, 2], "counted_by": [0, 1, 2]})
    experiment.add(Run({"ranks": 3.0}, collector="callgrind"), counters, tables={"rank_classes": every})
    check_alike(experiment, {"callgrind": whole}, ())
