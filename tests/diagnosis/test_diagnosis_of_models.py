"""Models of experiments whose truth is known, diagnosed from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import made_up
import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.layouts import better, layouts
from ranksight.cli.main import main
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform, load


@pytest.fixture(scope="module")
def platform() -> Platform:
    return load("icelake-8360y")


@pytest.fixture(scope="module")
def buggy(tmp_path_factory: pytest.TempPathFactory, platform: Platform) -> Model:
    folder = tmp_path_factory.mktemp("bug") / "e"
    return assemble(made_up.write(folder, (1, 2, 4, 8), (12, 24), platform, bug=True), platform=platform)[0]


def test_a_planted_bug_is_named_and_becomes_the_largest(buggy: Model) -> None:
    found = buggy.diagnose(ranks=[8, 100_000], size=12)
    assert not found.strong
    scaling = found.scaling().set_index("kernel")
    assert scaling.loc["search", "verdict"] == "grows"
    assert scaling["named"].to_dict() == {"search": True, "stencil": False, "pack": False} | {
        name: False for name in scaling.index if name not in ("search", "stencil", "pack")
    }
    # 300 instructions a rank against 36,720 and stalls in the same proportion: 123 ranks, loads of L2 aside.
    crossing = found.crossovers()
    top = crossing[crossing["largest"]].iloc[0]
    assert (top["kernel"], top["over"]) == ("search", "stencil")
    assert top["lower"] < top["ranks"] < top["upper"]
    assert top["ranks"] == pytest.approx(made_up.stencil(12) / 300, rel=0.1)
    advice = found.advice()
    assert advice["kind"].iloc[0] == "growth"
    assert advice["kernel"].iloc[0] == "search"
    assert advice["saves"].iloc[0] > 0.9


@pytest.mark.parametrize(("latency", "seconds_a_byte", "surface"), [(1e-6, 0, 0), (0, 1e-9, 0), (1e-6, 0, 1)])
def test_another_layout_is_reported_where_the_number_of_messages_costs(
    buggy: Model, latency: float, seconds_a_byte: float, surface: float
) -> None:
    sent, law = buggy.equation.communication, buggy.functions.neighbours
    assert sent is not None
    assert law
    fabric = Fabric.flat(NetworkParameters(Piecewise((0,), (latency,), (seconds_a_byte,))))
    found = layouts(law.grid, 60)
    expected = better(found, sent, np.array([60.0, 24.0]), fabric, "openmpi-5.0", surface)
    if not latency or surface:
        assert expected is None
        return
    assert expected is not None
    text, saved = expected
    # Of 10 messages to each of 266 / 60 neighbours, a line of ranks leaves those to 118 / 60.
    assert text.startswith("60 x 1 x 1 instead of 5 x 4 x 3: -56% messages")
    assert saved == pytest.approx(10 * (266 - 118) / 60 * latency, rel=1e-3)


def test_shares_of_a_configuration_sum_to_one_and_the_table_is_ordered(buggy: Model) -> None:
    rows = buggy.diagnose(ranks=[8, 64], size=[12, 24]).verdicts()
    for _, part in rows.groupby(["ranks", "size"]):
        assert part["share"].sum() == pytest.approx(1)
        assert part["time"].is_monotonic_decreasing
    assert len(rows) == 4 * rows["kernel"].nunique()


def test_what_is_reported_is_plain_data(buggy: Model, tmp_path: Path) -> None:
    found = buggy.diagnose(ranks=64, size=12).to_dict()
    assert found["schema_version"] == 1
    text = json.dumps(found, allow_nan=False)
    assert {row["kernel"] for row in json.loads(text)["scaling"]} >= {"search", "stencil", "pack"}
    buggy.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json").diagnose(ranks=64, size=12).to_dict()
    for one, other in zip(found["verdicts"], again["verdicts"], strict=True):
        assert one["verdict"] == other["verdict"]
        assert one["time"] == pytest.approx(other["time"], rel=1e-4)


@pytest.mark.parametrize("ranks", [0, -3, 1.5])
def test_there_are_no_such_ranks(buggy: Model, ranks: float) -> None:
    with pytest.raises(InputError, match="not a number of ranks"):
        buggy.diagnose(ranks=ranks, size=12)


@pytest.mark.parametrize("size", [0, -3])
def test_no_program_runs_on_nothing(buggy: Model, size: float) -> None:
    with pytest.raises(InputError, match="was above zero in all runs"):
        buggy.diagnose(ranks=64, size=size)


def test_ceilings_come_back_and_damage_is_found(platform: Platform) -> None:
    found = Ceilings.of(platform)
    again = Ceilings.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.bandwidth == pytest.approx(found.bandwidth, nan_ok=True)
    assert again.share(np.array([1, 18, 72]))[3] == pytest.approx([15.37e9, 92.45e9 / 18, 92.45e9 / 18])
    for damage in ({"latency": [1, 2]}, {"frequency": 0}, {"bandwidth": "x"}, {"cores": None}, {"line": -1}):
        with pytest.raises(InputError, match="ceilings"):
            Ceilings.from_dict({**found.to_dict(), **damage})


def test_ceilings_are_those_of_the_clock_that_runs_had(tmp_path: Path, platform: Platform) -> None:
    """Cycles that were counted give cycles an instruction, whatever clock the platform's description has."""
    turbo = 1.4 * platform.frequency
    experiment = Experiment.create(tmp_path / "e", "made up", ["ranks"])
    for p in (1, 2, 4, 8):
        cycles = np.full(p, 4e9 / p)
        table = pd.DataFrame({"kernel": "k", "rank": np.arange(p), "cycles": cycles, "time": cycles / turbo})
        table["instructions"] = cycles / 2
        experiment.add(Run({"ranks": p}, 0, "perf"), table)
    model, _ = assemble(experiment, platform=platform)
    found = model.diagnose(ranks=[8]).verdicts().iloc[0]
    assert found["cpi"] == pytest.approx(2.0, rel=0.01)
    kept = Ceilings.from_dict(model.observed["diagnosis"]["ceilings"])
    before = Ceilings.of(platform)
    assert kept.latency / before.latency == pytest.approx([1, 1, 1, 1.4])
    assert kept.bandwidth[3] == before.bandwidth[3]


@pytest.fixture(scope="module")
def file(buggy: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("file") / "made.model.json"
    buggy.save(path)
    return str(path)


def test_the_verb_fits_a_screen_and_names_the_bug(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", file, "--ranks", "8,4096", "--size", "12"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert max(map(len, said[:-1])) <= 80
    assert any(line.strip().startswith("search grows from") for line in said)
    assert any("search becomes the largest kernel above" in line and "90%" in line for line in said)
    assert any(line.strip().startswith("growth: search") for line in said)
    assert said[-1].startswith("next: ranksight ")
    assert main(["diagnose", file, "--quiet"]) == 0
    assert "next:" not in capsys.readouterr().out


def test_what_no_counter_shows_is_not_asked_of_the_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three instructions a cycle, and neither loads by level nor stalls: the platform's estimates decide nothing."""
    clock, times = load("zen4").frequency, {p: 8 / p for p in (1, 2, 4, 8, 16)}
    rows = "".join(f"{p},gemm,{t},{3 * clock * t:.0f}\n" for p, t in times.items())
    (tmp_path / "t.csv").write_text(f"ranks,kernel,time,instructions\n{rows}")
    words = ["--parameter", "ranks", "--kernel", "kernel", "--metric", "time", "--metric", "instructions"]
    assert main(["import", "csv", str(tmp_path / "t.csv"), *words, "-o", str(tmp_path / "e")]) == 0
    assert main(["fit", str(tmp_path / "e"), "--platform", "zen4", "-o", str(tmp_path / "m"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["diagnose", str(tmp_path / "m"), "--ranks", "16"]) == 4
    said = capsys.readouterr().out
    assert "compute or not counted" in said
    assert said.splitlines()[-1].startswith("next: ranksight doctor")
    main(["diagnose", str(tmp_path / "m"), "--ranks", "16", "--format", "csv"])
    assert "loads by cache level or stalls would show the rest" in capsys.readouterr().out


def test_the_verb_gives_tables_to_machines(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", file, "--ranks", "64", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert content["target"] == {"ranks": 64, "size": 24}
    assert main(["diagnose", file, "--format", "csv", "--kernel", "search"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("ranks,size,kernel,time,lower,upper,share,verdict")
    assert len(rows) == 3
    assert main(["diagnose", file, "--format", "csv", "--table", "crossovers"]) == 0
    assert capsys.readouterr().out.startswith("kernel,over,ranks,lower,upper,largest,share")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (["--kernel", "serch"], 1, "search"),
        (["--ranks", "0"], 1, "whole numbers"),
        (["--ranks", "2.5"], 1, "whole numbers"),
        (["--level", "2"], 2, "probability"),
        (["--top", "0"], 2, "1 or more"),
        (["--colour", "3"], 1, "no parameter colour"),
        (["--ranks", "many"], 2, "not a list of numbers"),
        (["--platform", "my.toml"], 2, "ranksight fit EXPERIMENT --platform my.toml"),
    ],
)
def test_what_is_asked_wrongly_is_reported(
    file: str, line: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", file, *line]) == code
    assert says in capsys.readouterr().err


def test_growth_by_times_alone_is_not_denied_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel whose time grows and whose instructions fall: both lines on growth agree."""
    rows = []
    for p in (2, 4, 8, 16, 32, 64):
        rows += [f"{p},sweep,{200 / p},{6e11 / p},{5e11 / p}", f"{p},drain,{1 + 0.3 * p**0.8},{2e9 / p},{1.5e9 / p}"]
    (tmp_path / "t.csv").write_text("\n".join(["ranks,kernel,time,instructions,cycles", *rows]))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--values", "mean"]
    metrics = [word for name in ("time", "instructions", "cycles") for word in ("--metric", name)]
    assert main([*words, *metrics, "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    capsys.readouterr()
    main(["diagnose", str(tmp_path / "m.json"), "--ranks", "256"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "drain grows from" in shown
    assert "By times alone, drain grows faster than log(ranks); no other kernel grows" in shown
    assert "No kernel" not in shown


@pytest.mark.parametrize(("law", "grows"), [(lambda p: 4e-3 * p, True), (lambda p: 0.3, False)])
def test_growth_of_the_time_outside_of_kernels_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], law: Callable[[int], float], grows: bool
) -> None:
    """It was 93 % of the time at 1,024 ranks, and all that was said is that no kernel grows."""
    rows = [f"{p},{k},{t}" for p in (4, 8, 16, 32, 64)
            for k, t in (("flux", 300 / p), ("all", 300 / p + law(p)))]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["ranks,kernel,time", *rows]))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--total", "all"]
    assert main([*words, "--metric", "time", "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    capsys.readouterr()
    main(["diagnose", str(tmp_path / "m.json"), "--ranks", "1024"])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("the time outside of kernels grows faster than log(ranks)" in shown) == grows


@pytest.mark.parametrize("more", [0.0, 3e6])
def test_a_rate_above_that_of_all_runs_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: float
) -> None:
    """Instructions grow beyond the runs and the time does not: more of them a cycle than any run had."""
    rows = [f"{p},relax,{90 / p},{9e9 / p + more * p}" for p in (1, 2, 4, 8, 16)]
    (tmp_path / "t.csv").write_text("\n".join(["ranks,kernel,time,instructions", *rows]))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--values", "mean"]
    assert main([*words, "--metric", "time", "--metric", "instructions", "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    capsys.readouterr()
    main(["diagnose", str(tmp_path / "m.json"), "--ranks", "256"])
    shown = capsys.readouterr().out
    (line,) = (each for each in shown.splitlines() if each.split()[:1] == ["IPC"] and "%" in each)
    assert line.split()[1] == "100%"
    assert line.endswith(" ?") == (more > 0)
    assert ("exceeds that of the same kernels in all runs" in shown) == (more > 0)
